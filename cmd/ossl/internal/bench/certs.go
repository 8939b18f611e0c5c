package bench

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"
)

// A Cert names the kind of key that certificates have.
type Cert string

// The kinds of certificate, spelled as in benchmark names.
const (
	P256    Cert = "P256"
	RSA2048 Cert = "RSA2048"
	Ed25519 Cert = "Ed25519"
)

// Certs are all kinds of certificate.
var Certs = []Cert{P256, RSA2048, Ed25519}

// serverName is the name in the server's certificates.
const serverName = "bench.example"

// An identity is a certification authority with the two leaves it issued. All three have keys of
// one kind, so that a row measures only that kind.
type identity struct {
	root           *x509.Certificate
	roots          *x509.CertPool // only the root
	server, client tls.Certificate
}

var identities = map[Cert]func() (*identity, error){
	P256: sync.OnceValues(func() (*identity, error) {
		return newIdentity(func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) })
	}),
	RSA2048: sync.OnceValues(func() (*identity, error) {
		return newIdentity(func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) })
	}),
	Ed25519: sync.OnceValues(func() (*identity, error) {
		return newIdentity(func() (crypto.Signer, error) {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			return key, err
		})
	}),
}

// identityOf returns the process's identity with keys of kind c. It is made
// once: rows that are compared use the same keys.
func identityOf(c Cert) (*identity, error) {
	make, ok := identities[c]
	if !ok {
		return nil, fmt.Errorf("bench: no certificates of kind %q", c)
	}
	return make()
}

func newIdentity(newKey func() (crypto.Signer, error)) (*identity, error) {
	authority := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "ossl bench CA"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	authorityKey, err := newKey()
	if err != nil {
		return nil, err
	}
	root, err := issue(authority, authority, authorityKey, authorityKey)
	if err != nil {
		return nil, err
	}
	leaf := func(serial int64, usage x509.ExtKeyUsage) (tls.Certificate, error) {
		key, err := newKey()
		if err != nil {
			return tls.Certificate{}, err
		}
		return issue(&x509.Certificate{
			SerialNumber: big.NewInt(serial),
			Subject:      pkix.Name{CommonName: serverName},
			DNSNames:     []string{serverName},
			NotBefore:    authority.NotBefore,
			NotAfter:     authority.NotAfter,
			KeyUsage:     x509.KeyUsageDigitalSignature,
			ExtKeyUsage:  []x509.ExtKeyUsage{usage},
		}, root.Leaf, key, authorityKey)
	}
	server, serverErr := leaf(2, x509.ExtKeyUsageServerAuth)
	client, clientErr := leaf(3, x509.ExtKeyUsageClientAuth)
	if err := errors.Join(serverErr, clientErr); err != nil {
		return nil, err
	}
	id := &identity{root: root.Leaf, roots: x509.NewCertPool(), server: server, client: client}
	id.roots.AddCert(root.Leaf)
	return id, nil
}

// issue makes a certificate from template, signed by parent.
func issue(template, parent *x509.Certificate, key, parentKey crypto.Signer) (tls.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}
