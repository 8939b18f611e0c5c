//go:build cgo

package libssl

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"crypto/tls"
	"runtime"
	"unsafe"
)

// Credential is a certificate chain with its key, ready for use by any number of connections.
type Credential struct {
	p        *C.ossl_cred
	asksGo   bool
	provider string // the provider of a key that was loaded by URI
}

// NewCredential makes a credential of a chain and a PKCS #8 key, which it clears. schemes, if there
// are any, limit the algorithms that the key signs with. fips makes the credential for Contexts in
// FIPS mode, and for them only.
func NewCredential(fips bool, chain [][]byte, pkcs8 []byte, schemes []tls.SignatureScheme,
	staple, scts []byte) (*Credential, error) {
	defer clear(pkcs8)
	sigalgs, err := list(schemes, signatureNames())
	if err != nil {
		return nil, err
	}
	packed := PackChain(chain)
	limits := cString(sigalgs)
	defer C.free(unsafe.Pointer(limits))
	var errs [errorSlots]C.ulong
	p := C.ossl_cred_new(C.int(flag(fips)), bytePtr(packed), C.size_t(len(packed)), bytePtr(pkcs8), C.size_t(len(pkcs8)), limits,
		bytePtr(staple), C.size_t(len(staple)), bytePtr(scts), C.size_t(len(scts)), &errs[0])
	if p == nil {
		return nil, &Error{Op: "load certificate and key", Codes: codes(&errs)}
	}
	return ownCredential(&Credential{p: p}), nil
}

func ownCredential(c *Credential) *Credential {
	runtime.AddCleanup(c, func(p *C.ossl_cred) { C.ossl_cred_free(p) }, c.p)
	return c
}

// SetIdentity sets the hash of the identity in the certificate. Servers bind their sessions to it;
// without it they resume none. It must be called before the credential is used.
func (c *Credential) SetIdentity(id [32]byte) {
	C.ossl_cred_set_identity(c.p, (*C.uint8_t)(&id[0]))
	runtime.KeepAlive(c)
}

// AsksGo reports whether handshakes ask Go to sign with the credential. Their connections must come
// from [Context.Start] with asks set.
func (c *Credential) AsksGo() bool { return c.asksGo }

// MayBlock reports whether libssl may take long to sign with the credential, because its key's
// provider is not part of OpenSSL.
func (c *Credential) MayBlock() bool { return !IsOwnProvider(c.provider) }
