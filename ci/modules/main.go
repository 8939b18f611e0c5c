// Command modules prepares releases of the Go modules of this repository, all at one version. The
// scripts ci/release and ci/proxy call it:
//
//	modules [-n] [-out DIR] VERSION
//
// It copies the tree, and in the copy sets the modules' requirements on one another to VERSION and
// writes their hashes to go.sum. This is possible before anything is published, because a module's
// hash depends only on its files, not on a nested module's. So one commit can be tagged for all
// modules. From the copy it makes a module proxy of files, as the GOPROXY protocol describes them.
// There it compares the modules' APIs with the APIs at the last tags.
//
// Then it commits the changed files and tags the commit, once for each module; modules that others
// require come first. It pushes nothing, but prints the command that does.
//
// With -n it changes nothing in the repository: it prints the plan, and reports instead of refusing
// that the work tree has changes, or that CHANGELOG.md has nothing to release. VERSION may then be
// "next": a pre-release of the next minor version, with a name that no other run uses. With -out,
// the copy and the proxy are left in DIR, as DIR/tree and DIR/proxy, and the version in
// DIR/version.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	var r release
	flag.BoolVar(&r.dry, "n", false, "change nothing in the repository")
	flag.StringVar(&r.out, "out", "", "leave the copy and the proxy in this empty or new `folder`")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: modules [-n] [-out DIR] VERSION")
		os.Exit(2)
	}
	r.root, r.version, r.w = ".", flag.Arg(0), os.Stdout
	// Interrupted, it still removes its files.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := r.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "ci/release:", err)
		os.Exit(1)
	}
}
