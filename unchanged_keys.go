//go:build ossl_unchanged

package ossl

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"strings"
)

// loadKey loads a private key by its URI.
var loadKey func(uri string) (crypto.Signer, error)

// RegisterKeys sets the function that loads private keys. Package keys, which has it, imports this one.
func RegisterKeys(load func(uri string) (crypto.Signer, error)) { loadKey = load }

// KeyPair returns the chain in PEM blocks, with the key of the settings that belongs to its leaf. ok is
// false if there is none: then crypto/tls looks for the key where it always does.
func KeyPair(chain []byte) (cert tls.Certificate, ok bool, err error) {
	s := settingsInForce()
	if s.err != nil || len(s.Keys) == 0 {
		return cert, false, s.err
	}
	list, err := s.keys()
	if err != nil {
		return cert, false, err
	}
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			cert.Certificate = append(cert.Certificate, block.Bytes)
		}
	}
	if len(cert.Certificate) == 0 {
		return tls.Certificate{}, false, nil // crypto/tls returns the error
	}
	if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
		return tls.Certificate{}, false, nil
	}
	for _, key := range list {
		if public, can := key.Public().(interface{ Equal(crypto.PublicKey) bool }); can && public.Equal(cert.Leaf.PublicKey) {
			cert.PrivateKey = key
			return cert, true, nil
		}
	}
	return tls.Certificate{}, false, nil
}

// loadKeys loads the keys. It is called once, even if it fails: tokens count wrong PINs.
func (s *processSettings) loadKeys() (list []crypto.Signer, err error) {
	why, err := fipsRequired()
	if err != nil {
		return nil, err
	}
	if why != "" {
		if err := s.checkFIPS(why); err != nil {
			return nil, err
		}
	}
	for _, uri := range s.Keys {
		key, err := loadKey(uri)
		if err != nil {
			return nil, s.refuse("keys", strings.TrimPrefix(err.Error(), "keys: ")+". The process doesn't try it again")
		}
		list = append(list, key)
	}
	return list, nil
}
