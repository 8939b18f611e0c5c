package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"math/big"
	"testing"
)

// A key so large that a verification would take minutes is refused, in both versions.
func TestLargeKey(t *testing.T) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	n := new(big.Int).Lsh(big.NewInt(1), maxRSA)
	n.SetBit(n, 0, 1)
	large := &rsa.PublicKey{N: n, E: 1<<31 - 1}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, large, signer)
	if err != nil {
		t.Fatal(err)
	}
	s := &State{Certificates: [][]byte{der}}
	if _, err := s.leaf(); !errors.As(err, new(*ProtocolError)) {
		t.Error(err)
	}
	if err := s.verifySignature(0x0804, nil, nil); !errors.Is(err, errUnverified) {
		t.Error(err)
	}
}
