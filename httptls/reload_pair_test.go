package httptls_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/httptls"
	"github.com/ossl-go/ossl/keys"
)

// TestReloaderFirstLoad: the first load is as strict as later ones, and an encrypted key loads by an
// option.
func TestReloaderFirstLoad(t *testing.T) {
	dir := t.TempDir()
	cert, key := pairText(t)
	write := func(name string, text []byte) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	keyFile := write("key.pem", key)
	for name, test := range map[string]struct {
		text []byte
		want string
	}{
		"whole":             {append(bytes.Clone(cert), cert...), ""},
		"byte order marks":  {append([]byte("\ufeff"), bytes.Join([][]byte{cert, cert}, []byte("\ufeff"))...), ""},
		"cut":               {append(bytes.Clone(cert), cert[:len(cert)-30]...), "the file ends inside the PEM block"},
		"damaged":           {append(bytes.Clone(cert), bytes.Replace(cert, []byte("\nM"), []byte("\n!"), 1)...), "is damaged"},
		"a chain in PKCS 7": {append(bytes.Clone(cert), pem.EncodeToMemory(&pem.Block{Type: "PKCS7"})...), "PKCS7"},
	} {
		r, err := httptls.NewReloader(write("cert.pem", test.text), keyFile)
		if test.want != "" {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if pair, err := r.GetCertificate(&tls.ClientHelloInfo{}); err != nil || len(pair.Certificate) != 2 {
			t.Errorf("%s: %d certificates, %v", name, len(pair.Certificate), err)
		}
	}

	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("the rest needs the program openssl")
	}
	certFile, encrypted := write("cert.pem", cert), filepath.Join(dir, "encrypted.pem")
	encrypt := func() {
		command := exec.Command(openssl, "pkcs8", "-topk8", "-in", keyFile, "-out", encrypted, "-passout", "pass:abcd")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	encrypt()
	if _, err := httptls.NewReloader(certFile, encrypted); err == nil || !strings.Contains(err.Error(), "passphrase") {
		t.Errorf("an encrypted key: %v", err)
	}
	pass := keys.WithPassphrase(func(string) ([]byte, error) { return []byte("abcd"), nil })
	if _, err := httptls.NewReloader(certFile, encrypted, pass); err != nil {
		t.Errorf("with its passphrase: %v", err)
	}
	_, other := pairText(t)
	if err := os.WriteFile(keyFile, other, 0o600); err != nil {
		t.Fatal(err)
	}
	encrypt()
	if _, err := httptls.NewReloader(certFile, encrypted, pass); err == nil || !strings.Contains(err.Error(), "does not match") {
		t.Errorf("another key: %v", err)
	}
}

// pairText makes a certificate, and its key, in PEM.
func pairText(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"example.test"},
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}
