//go:build cgo

package ossl_test

import (
	"flag"
)

func runFlag() string { return flag.Lookup("test.run").Value.String() }
