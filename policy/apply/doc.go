// Package apply turns the policies of package policy into configurations for ossl. It is a package of
// its own so that programs that only read policies build without cgo and without OpenSSL.
package apply
