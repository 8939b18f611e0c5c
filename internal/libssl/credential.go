package libssl

import (
	"crypto/tls"
	"runtime"
	"unsafe"
)

// Credential is a certificate chain with its key, ready for use by any number of connections.
type Credential struct {
	p        *c_ossl_cred
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
	defer c_free(unsafe.Pointer(limits))
	var errs [errorSlots]c_ulong
	p := c_ossl_cred_new(c_int(flag(fips)), bytePtr(packed), c_size_t(len(packed)), bytePtr(pkcs8), c_size_t(len(pkcs8)), limits,
		bytePtr(staple), c_size_t(len(staple)), bytePtr(scts), c_size_t(len(scts)), &errs[0])
	if p == nil {
		return nil, &Error{Op: "load certificate and key", Codes: codes(&errs)}
	}
	return ownCredential(&Credential{p: p}), nil
}

func ownCredential(c *Credential) *Credential {
	runtime.AddCleanup(c, func(p *c_ossl_cred) { c_ossl_cred_free(p) }, c.p)
	return c
}

// SetIdentity sets the hash of the identity in the certificate. Servers bind their sessions to it;
// without it they resume none. It must be called before the credential is used.
func (c *Credential) SetIdentity(id [32]byte) {
	c_ossl_cred_set_identity(c.p, (*c_uint8_t)(&id[0]))
	runtime.KeepAlive(c)
}

// AsksGo reports whether handshakes ask Go to sign with the credential. Their connections must come
// from [Context.Start] with asks set.
func (c *Credential) AsksGo() bool { return c.asksGo }

// MayBlock reports whether libssl may take long to sign with the credential, because its key's
// provider is not part of OpenSSL.
func (c *Credential) MayBlock() bool { return !IsOwnProvider(c.provider) }
