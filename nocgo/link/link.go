//go:build !cgo && linux && (amd64 || arm64)

// Package link links an object of ossl's C code into a program that is built without cgo. Packages that
// ossl/nocgo/build has made call it.
package link

import (
	"fmt"
	"runtime/debug"

	_ "github.com/ebitengine/purego" // threads are libc's, and C may call Go
	"github.com/ossl-go/ossl/internal/libssl"
)

const (
	puregoPath    = "github.com/ebitengine/purego"
	puregoVersion = "v0.11.3" // whose internal/fakecgo was read, and tested with the object
)

// Object links an object, whose SHA-256 hash is given. The addresses are the object's, and those of
// _cgo_topofstack and crosscall2 in the runtime.
func Object(object, topOfStack, crosscall2 uintptr, hash string) {
	if info, ok := debug.ReadBuildInfo(); ok {
		if reason := refusal(info.Deps); reason != "" {
			libssl.RefuseObject(reason)
			return
		}
	}
	libssl.LinkObject(object, topOfStack, crosscall2, hash)
}

// refusal returns the reason why the program's modules can't be used with an object, or "".
func refusal(modules []*debug.Module) string {
	for _, m := range modules {
		if m.Path != puregoPath {
			continue
		}
		has := m.Version
		if m.Replace != nil {
			has = "the replacement " + m.Replace.Path
		}
		if has != puregoVersion {
			return fmt.Sprintf("this program was built without cgo, and with %s of %s, with which ossl/nocgo wasn't tested: "+
				"require %s, or build it with CGO_ENABLED=1 and a C compiler", has, puregoPath, puregoVersion)
		}
	}
	return ""
}
