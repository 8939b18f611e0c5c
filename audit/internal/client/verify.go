package client

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
)

// errUnverified is the error if a signature could be neither verified nor refused.
var errUnverified = errors.New("client: the signature can't be verified")

func hexName(kind string, id uint16) string { return fmt.Sprintf("%s 0x%04x", kind, id) }

// verifySignature verifies the server's signature on message. It returns an error that wraps
// errUnverified if the key or the scheme isn't known here, or if no part of the certificate can
// be parsed; every other error means that the signature is wrong.
func (s *State) verifySignature(scheme uint16, message, signature []byte) error {
	leaf, err := s.leaf()
	if err != nil {
		return fmt.Errorf("%w: %w", errUnverified, err)
	}
	hashes := map[byte]crypto.Hash{2: crypto.SHA1, 4: crypto.SHA256, 5: crypto.SHA384, 6: crypto.SHA512}
	h := hashes[byte(scheme>>8)]
	kind := byte(scheme)
	if scheme>>8 == 8 { // RSA-PSS and Edwards curves have hash and key in the low byte
		switch scheme {
		case 0x0804, 0x0809:
			h, kind = crypto.SHA256, 4
		case 0x0805, 0x080a:
			h, kind = crypto.SHA384, 4
		case 0x0806, 0x080b:
			h, kind = crypto.SHA512, 4
		case 0x0807:
			kind = 7
		}
	}
	digest := message
	if kind != 7 {
		if h == 0 {
			return fmt.Errorf("%w: %s", errUnverified, hexName("scheme", scheme))
		}
		w := h.New()
		w.Write(message)
		digest = w.Sum(nil)
	}
	var good bool
	switch key := leaf.PublicKey.(type) {
	case *ecdsa.PublicKey:
		good = kind == 3 && ecdsa.VerifyASN1(key, digest, signature)
	case ed25519.PublicKey:
		good = kind == 7 && ed25519.Verify(key, message, signature)
	case *rsa.PublicKey:
		if key.N.BitLen() < 1024 {
			return fmt.Errorf("%w: RSA key of %d bits", errUnverified, key.N.BitLen())
		}
		switch kind {
		case 1:
			good = rsa.VerifyPKCS1v15(key, h, digest, signature) == nil
		case 4:
			good = rsa.VerifyPSS(key, h, digest, signature, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
		}
	default:
		return fmt.Errorf("%w: key %T", errUnverified, leaf.PublicKey)
	}
	if !good {
		return protocolError("the server's signature is wrong")
	}
	return nil
}
