// Command headers checks the lists of OpenSSL's functions and constants in this repository against
// the declarations and exports of each supported OpenSSL version.
//
// Usage, from the repository's root (.ci/run headers does this):
//
//	go run ./ci/headers "$(ci/openssl-versions -headers)/headers"
//
// The library is built without OpenSSL's headers, from prototypes of our own. Here a C compiler
// compares those with the headers of each version in the folder: a function's full type, and a
// constant's value. Since symbols are found by name at run time, each must be exported by the
// library that the list names, from the version that the list gives on, and not before.
//
// A constant that C uses gets a line in OSSL_CONSTANTS of internal/libssl/api.h. A constant that Go
// uses is declared in internal/libssl, with OpenSSL's name first in the comment on its line:
//
//	VerifyExpired   = 10 // X509_V_ERR_CERT_HAS_EXPIRED
//	VerifyInvalidCA = 79 // X509_V_ERR_INVALID_CA, since 3.0
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// The lists: macros in C, and constants in Go.
var (
	cLists = []cList{
		{"internal/libssl/api.h", "OSSL_API", "OSSL_CONSTANTS"},
		{"cmd/ossl/internal/bench/floor/api.h", "FLOOR_API", "FLOOR_CONSTANTS"},
	}
	goLists = []string{"internal/libssl"}
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./ci/headers DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "headers:", err)
		os.Exit(1)
	}
}

// run checks the lists against each version in dir and prints a table.
func run(dir string) error {
	trees, err := filepath.Glob(filepath.Join(dir, "*", "usr", "include"))
	if err != nil || len(trees) == 0 {
		return fmt.Errorf("no version's headers are in %s", dir)
	}
	var constants []entry
	for _, dir := range goLists {
		more, err := goConstants(dir)
		if err != nil {
			return err
		}
		constants = append(constants, more...)
	}
	differs := false
	fmt.Printf("%-8s %-30s %9s %9s\n", "version", "headers", "functions", "constants")
	for _, include := range trees {
		v, err := openVersion(filepath.Dir(filepath.Dir(include)), cLists)
		if err != nil {
			return err
		}
		entries, err := readCLists(cLists, v.flags)
		if err != nil {
			return err
		}
		functions, constants, problems, err := v.check(cLists, slices.Concat(entries, constants))
		if err != nil {
			return err
		}
		verdict := "ok"
		if len(problems) > 0 {
			verdict, differs = "DIFFERS", true
		}
		fmt.Printf("%-8s %-30s %9d %9d  %s\n", filepath.Base(v.tree), v.text, functions, constants, verdict)
		for _, p := range problems {
			fmt.Println("   ", p)
		}
	}
	if differs {
		return errors.New("the lists differ from OpenSSL's headers and libraries")
	}
	return nil
}
