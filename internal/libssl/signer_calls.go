package libssl

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"runtime"
	"unsafe"
)

// NewSignerCredential makes a credential of a chain and a key that only Go can use. The key must
// belong to the chain's leaf. Handshakes that sign with it end a step with NeedSign, so their
// connections must come from [Context.Start] with asks set. schemes is as for [NewCredential].
func NewSignerCredential(chain [][]byte, signer crypto.Signer, schemes []tls.SignatureScheme,
	staple, scts []byte) (*Credential, error) {
	if err := checkSigner(signer, uint64(c_ossl_version())); err != nil {
		return nil, err
	}
	sigalgs, err := list(schemes, signatureNames())
	if err != nil {
		return nil, err
	}
	packed := PackChain(chain)
	limits := cString(sigalgs)
	defer c_free(unsafe.Pointer(limits))
	handle := newHandle(signer)
	var errs [errorSlots]c_ulong
	p := c_ossl_cred_new_signer(bytePtr(packed), c_size_t(len(packed)), c_uintptr_t(handle), limits,
		bytePtr(staple), c_size_t(len(staple)), bytePtr(scts), c_size_t(len(scts)), &errs[0])
	if p == nil {
		freeHandle(handle)
		return nil, &Error{Op: "load certificate for a crypto.Signer", Codes: codes(&errs)}
	}
	c := &Credential{p: p, asksGo: true}
	// C may keep the credential longer than this, but signs only for connections, which keep c.
	runtime.AddCleanup(c, freeHandle, handle)
	return ownCredential(c), nil
}

// SignRequest returns the request for a signature, at NeedSign.
func (c *Conn) SignRequest() *SignRequest {
	signer := signerOf(c.p.signer)
	return &SignRequest{
		signer:    signer,
		inContext: asContextSigner(signer),
		algorithm: int(c.p.sign_algorithm),
		hash:      crypto.Hash(c.p.sign_hash),
		digested:  c.p.sign_form == 1,
		tbs:       bytes.Clone(c.Message()),
		max:       int(c.p.signature_cap),
	}
}

// SetSignature answers NeedSign. Without a signature libssl fails.
func (c *Conn) SetSignature(signature []byte) {
	c.p.answer = c_size_t(copy(unsafe.Slice((*byte)(unsafe.Pointer(c.p.signature)), int(c.p.signature_cap)), signature))
}

// signerOf returns the signer that a handle refers to, nil if it no longer exists.
func signerOf(handle c_uintptr_t) crypto.Signer {
	signer, _ := valueOf(uintptr(handle)).(crypto.Signer)
	return signer
}
