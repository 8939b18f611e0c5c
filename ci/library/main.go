// Command library prints the version of the OpenSSL in use, its text and the paths of libssl and libcrypto, a line each.
// ci/matrixrun runs it to be sure of what a row of its table stands for.
package main

import (
	"fmt"
	"os"

	"github.com/ossl-go/ossl"
)

func main() {
	lib, err := ossl.Library()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%s\n%s\n%s\n%s\n", lib.Version, lib.VersionText, lib.Path, lib.CryptoPath)
}
