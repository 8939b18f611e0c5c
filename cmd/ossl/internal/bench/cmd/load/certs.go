//go:build linux

package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// serverName is on the certificates.
const serverName = "localhost"

// writeCerts writes ca.pem, and for each kind of key a certificate and its key, such as P256.pem and
// P256.key, into a folder.
func writeCerts(dir string, kinds []tlstest.KeyKind) error {
	if err := writePEM(filepath.Join(dir, "ca.pem"), "CERTIFICATE", tlstest.CA().Cert.Raw); err != nil {
		return err
	}
	for _, kind := range kinds {
		cert := tlstest.New(tlstest.Options{Kind: kind, Names: []string{serverName}})
		der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
		if err != nil {
			return err
		}
		base := filepath.Join(dir, string(kind))
		if err := writePEM(base+".pem", "CERTIFICATE", cert.Certificate...); err != nil {
			return err
		}
		if err := writePEM(base+".key", "PRIVATE KEY", der); err != nil {
			return err
		}
	}
	return nil
}

func writePEM(file, kind string, ders ...[]byte) error {
	var b bytes.Buffer
	for _, der := range ders {
		if err := pem.Encode(&b, &pem.Block{Type: kind, Bytes: der}); err != nil {
			return err
		}
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}
