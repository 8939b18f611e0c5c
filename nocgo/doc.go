// Package nocgo lets programs that are built without cgo use OpenSSL. Import it for its effect:
//
//	import _ "github.com/ossl-go/ossl/nocgo"
//
// Built with CGO_ENABLED=0 for Linux on amd64 or arm64, such a program needs no C compiler. It is linked
// dynamically, and finds OpenSSL at run time as others do, with glibc and with musl. Where there is no C
// library, as in an image made from scratch, it doesn't start. Built with cgo, or for another system, the
// package does nothing.
//
// A release of this module has ossl's C code as an object for each processor. SECURITY.md describes how
// they are made, and how to compare them with your own. To link an object of your own making instead, make a
// package with ossl/nocgo/build, and import that.
//
// The versions of this module and of ossl must be equal, and that of github.com/ebitengine/purego, which
// runs C without cgo, must be the one that this module requires; otherwise [ossl.Library] and all others
// return an error that is ErrUnavailable. The race detector, -linkmode=external, and the build modes plugin,
// c-shared and c-archive need cgo.
//
// [ossl.Library]: https://pkg.go.dev/github.com/ossl-go/ossl#Library
package nocgo
