// Ossl is the command of the ossl library: TLS for Go on the host's OpenSSL.
//
//	ossl demo       real traffic on the host's OpenSSL, compared with crypto/tls
//	ossl version    the OpenSSL found on this host, and its features
//
// Its exit status is 0 on success, 1 if something failed, and 2 if the command line was wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as in shells
)

// A usageError is an error in the command line that a command reports itself.
type usageError string

func (e usageError) Error() string { return string(e) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the command that args name and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	started := false // cobra has found the command and accepted its flags
	root := &cobra.Command{
		Use:               "ossl",
		Short:             "TLS for Go on the host's OpenSSL",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRun:  func(*cobra.Command, []string) { started = true },
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(demoCommand(), versionCommand())

	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "ossl: interrupted")
		return exitInterrupted
	case !started || errors.As(err, new(usageError)):
		fmt.Fprintf(stderr, "ossl: %v\nSee 'ossl help'.\n", err)
		return exitUsage
	}
	// The library's errors begin with its name, which is this command's too.
	fmt.Fprintf(stderr, "ossl: %s\n", strings.TrimPrefix(err.Error(), "ossl: "))
	return exitFailure
}
