package chain

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"math/big"
	"testing"
)

func TestStrongChains(t *testing.T) {
	rsaOf := func(bits uint) *rsa.PublicKey {
		return &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), bits-1), E: 65537}
	}
	cert := func(key any, signature x509.SignatureAlgorithm) *x509.Certificate {
		return &x509.Certificate{PublicKey: key, SignatureAlgorithm: signature}
	}
	p256, p384 := &ecdsa.PublicKey{Curve: elliptic.P256()}, &ecdsa.PublicKey{Curve: elliptic.P384()}
	leaf := cert(p256, x509.ECDSAWithSHA256)
	for _, test := range []struct {
		name  string
		chain []*x509.Certificate
		level int // the highest that admits it
	}{
		{"RSA-1023", []*x509.Certificate{cert(rsaOf(1023), x509.SHA512WithRSA)}, 0},
		{"RSA-1024", []*x509.Certificate{cert(rsaOf(1024), x509.SHA512WithRSA)}, 1},
		{"RSA-2047", []*x509.Certificate{cert(rsaOf(2047), x509.SHA512WithRSA)}, 1},
		{"RSA-2048", []*x509.Certificate{cert(rsaOf(2048), x509.SHA512WithRSA)}, 2},
		{"RSA-3072", []*x509.Certificate{cert(rsaOf(3072), x509.SHA512WithRSA)}, 3},
		{"RSA-7680", []*x509.Certificate{cert(rsaOf(7680), x509.SHA512WithRSA)}, 4},
		{"RSA-15360", []*x509.Certificate{cert(rsaOf(15360), x509.SHA512WithRSA)}, 5},
		{"P-224", []*x509.Certificate{cert(&ecdsa.PublicKey{Curve: elliptic.P224()}, 0)}, 2},
		{"P-256", []*x509.Certificate{leaf}, 3},
		{"P-384", []*x509.Certificate{cert(p384, 0)}, 4},
		{"P-521", []*x509.Certificate{cert(&ecdsa.PublicKey{Curve: elliptic.P521()}, 0)}, 5},
		{"Ed25519", []*x509.Certificate{cert(ed25519.PublicKey{}, x509.PureEd25519)}, 3},
		{"a key that is unknown", []*x509.Certificate{cert(nil, x509.ECDSAWithSHA512)}, 0},
		{"an issuer's key", []*x509.Certificate{leaf, cert(rsaOf(2048), x509.SHA256WithRSA), leaf}, 2},
		{"the anchor's key", []*x509.Certificate{leaf, cert(rsaOf(1024), x509.SHA256WithRSA)}, 1},
		{"the anchor's signature", []*x509.Certificate{leaf, cert(p256, x509.SHA1WithRSA)}, 3},
		{"an issuer's signature", []*x509.Certificate{leaf, cert(p256, x509.SHA1WithRSA), leaf}, 0},
		{"the leaf's signature", []*x509.Certificate{cert(p384, x509.ECDSAWithSHA256), cert(p384, 0)}, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			for level := range len(levelBits) {
				chains, err := strongChains([][]*x509.Certificate{test.chain}, level)
				if admitted := err == nil && len(chains) == 1; admitted != (level <= test.level) {
					t.Errorf("level %d: %d chains, %v", level, len(chains), err)
				}
			}
		})
	}
	strong := []*x509.Certificate{leaf, cert(p384, 0)}
	chains, err := strongChains([][]*x509.Certificate{{leaf, cert(rsaOf(1024), 0)}, strong}, 3)
	if err != nil || len(chains) != 1 || chains[0][1] != strong[1] {
		t.Errorf("of two chains: %v, %v", chains, err)
	}
}
