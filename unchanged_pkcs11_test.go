//go:build ossl_unchanged && unix

package ossl_test

import (
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/keys"
)

// TestPKCS11Settings checks that a key in a token takes the place of the key in a file.
func TestPKCS11Settings(t *testing.T) {
	k := tlstest.NewToken(t)
	uri := k.URI + ";object=ec;type=private"
	key, err := keys.Load(uri, keys.WithProvider("pkcs11"), // which stays active in the process
		keys.WithPassphrase(func(string) ([]byte, error) { return []byte(k.PIN), nil }))
	if err != nil {
		t.Fatal(err)
	}
	made := tlstest.New(tlstest.Options{Key: key, Names: []string{tlstest.ServerName}})
	var chain []byte
	for _, der := range made.Certificate {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	pin := filepath.Join(t.TempDir(), "pin")
	if err := os.WriteFile(pin, []byte(k.PIN), 0o600); err != nil {
		t.Fatal(err)
	}
	set(t, fmt.Sprintf(`{"format": 1, "keys": [%q]}`, uri+"?pin-source=file:"+pin))
	cert, ok, err := ossl.KeyPair(chain)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	serve(t, tlstest.ClientConfig(), tlstest.ServerConfig(tlstest.Certificates(cert)), false).check(t)
	if key, ok := cert.PrivateKey.(*keys.Key); !ok || key.Provider() != "pkcs11" {
		t.Errorf("the key is a %T: %v", cert.PrivateKey, cert.PrivateKey)
	}
}
