package confgen

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// ThrowAway makes an authority, and for each kind of key a certificate for localhost, in a folder.
// Kinds are "ECDSA", "ECDSA P-384", "RSA 2048" and the like, and "Ed25519". Everything is worthless
// elsewhere: the authority's key is never written.
func ThrowAway(dir, server string, kinds ...string) (*x509.CertPool, []Certificate, error) {
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "throw-away authority"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 0, 60), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)
	if err != nil {
		return nil, nil, err
	}
	if root, err = x509.ParseCertificate(der); err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(root)
	var out []Certificate
	for i, kind := range kinds {
		key, err := makeKey(kind)
		if err != nil {
			return nil, nil, err
		}
		leaf := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 2)), Subject: pkix.Name{CommonName: "localhost"},
			NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 0, 59), DNSNames: []string{"localhost"},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
			KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
		if _, ok := key.(*rsa.PrivateKey); !ok {
			leaf.KeyUsage = x509.KeyUsageDigitalSignature
		}
		der, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), rootKey)
		if err != nil {
			return nil, nil, err
		}
		secret, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, nil, err
		}
		chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
		cert := Certificate{Chain: filepath.Join(dir, fmt.Sprintf("chain%d.pem", i)), Key: filepath.Join(dir,
			fmt.Sprintf("key%d.pem", i))}
		if server == "haproxy" {
			chain = append(chain, private...)
		}
		if err := os.WriteFile(cert.Chain, chain, 0o600); err != nil {
			return nil, nil, err
		}
		if err := os.WriteFile(cert.Key, private, 0o600); err != nil {
			return nil, nil, err
		}
		out = append(out, cert)
	}
	return pool, out, nil
}

func makeKey(kind string) (crypto.Signer, error) {
	switch kind {
	case "ECDSA", "ECDSA P-256":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ECDSA P-384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ECDSA P-521":
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "Ed25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	bits := 0
	if _, err := fmt.Sscanf(kind, "RSA %d", &bits); err != nil || bits < 2048 || bits > 8192 {
		return nil, fmt.Errorf("confgen: no keys of the kind %q", kind)
	}
	return rsa.GenerateKey(rand.Reader, bits)
}
