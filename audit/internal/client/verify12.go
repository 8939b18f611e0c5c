package client

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/audit/internal/wire"
)

// verifyExchange verifies the signature of a ServerKeyExchange, whose first bytes are the
// parameters. State.Unverified is the reason if it couldn't.
func (h *handshake12) verifyExchange(message []byte, parameters int) error {
	if message == nil {
		return nil
	}
	r := wire.Reader{Rest: message[parameters:]}
	scheme := 0
	if h.State.Version >= hello.TLS12 {
		scheme = r.Number(2)
		h.State.Signature = uint16(scheme)
	}
	signature := r.Vector(2)
	if !r.Done() {
		h.State.Unverified = protocolError("the server sent a malformed signature")
		return nil
	}
	certificate, err := h.State.leaf()
	if err != nil {
		h.State.Unverified = err
		return nil
	}
	signed := concat(h.hello.Random, h.State.ServerHello.Random, message[:parameters])
	h.State.Unverified = verify12(certificate, uint16(scheme), signed, signature)
	if errors.Is(h.State.Unverified, errSignature) {
		return errSignature
	}
	return nil
}

var errSignature = &ProtocolError{"the server's signature is wrong"}

// verify12 verifies a TLS 1.2 signature. A scheme of 0 is not verified.
func verify12(certificate *x509.Certificate, scheme uint16, signed, signature []byte) error {
	hash := map[uint16]crypto.Hash{2: crypto.SHA1, 3: crypto.SHA224, 4: crypto.SHA256, 5: crypto.SHA384, 6: crypto.SHA512}[scheme>>8]
	pss := map[uint16]crypto.Hash{0x0804: crypto.SHA256, 0x0805: crypto.SHA384, 0x0806: crypto.SHA512,
		0x0809: crypto.SHA256, 0x080a: crypto.SHA384, 0x080b: crypto.SHA512}[scheme]
	if pss != 0 {
		hash = pss
	}
	var digest []byte
	if hash != 0 {
		d := hash.New()
		d.Write(signed)
		digest = d.Sum(nil)
	}
	switch key := certificate.PublicKey.(type) {
	case *ecdsa.PublicKey:
		if scheme&0xff == 3 && hash != 0 {
			if !ecdsa.VerifyASN1(key, digest, signature) {
				return errSignature
			}
			return nil
		}
	case *rsa.PublicKey:
		if pss != 0 {
			return checked(rsa.VerifyPSS(key, pss, digest, signature, nil))
		}
		if scheme&0xff == 1 && hash != 0 {
			return checked(rsa.VerifyPKCS1v15(key, hash, digest, signature))
		}
	case ed25519.PublicKey:
		if scheme == 0x0807 {
			if !ed25519.Verify(key, signed, signature) {
				return errSignature
			}
			return nil
		}
	}
	return fmt.Errorf("client: no verification of the signature scheme 0x%04x", scheme)
}

func checked(err error) error {
	if errors.Is(err, rsa.ErrVerification) {
		return errSignature
	}
	return err // the standard library refuses the key
}
