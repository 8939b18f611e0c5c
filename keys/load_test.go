//go:build cgo || ossl_nocgo

package keys_test

import (
	"bytes"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/keys"
)

const storeSecret = "store-secret"

// answer is a WithPassphrase that always returns secret. It counts the calls in asked.
func answer(secret string, asked *int) keys.Option {
	return keys.WithPassphrase(func(string) ([]byte, error) {
		if asked != nil {
			*asked++
		}
		return []byte(secret), nil
	})
}

// write writes a file into a temporary folder and returns its path.
func write(t *testing.T, name string, content ...[]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, bytes.Join(content, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func pkcs8(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func pemOf(kind string, der ...[]byte) (text []byte) {
	for _, d := range der {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: d})...)
	}
	return text
}

func keyPEM(t *testing.T, key any) []byte { return pemOf("PRIVATE KEY", pkcs8(t, key)) }

// storeChain returns the certificates of the files in testdata/store: the leaf and its authority.
func storeChain(t *testing.T) []*x509.Certificate {
	t.Helper()
	text, err := os.ReadFile("testdata/store/chain.pem")
	if err != nil {
		t.Fatal(err)
	}
	var certs []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		certs = append(certs, cert)
	}
	return certs
}

// TestLoadKey: files of every form give a key with the right public key, which signs.
func TestLoadKey(t *testing.T) {
	p256, rsa2048 := tlstest.Key(tlstest.P256, "leaf"), tlstest.Key(tlstest.RSA2048, "leaf")
	ed := tlstest.Key(tlstest.Ed25519, "leaf")
	leaf := storeChain(t)[0].PublicKey
	absolute, err := filepath.Abs("testdata/store/encrypted.pem")
	if err != nil {
		t.Fatal(err)
	}
	traditional, err := x509.MarshalECPrivateKey(p256.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	// As openssl ecparam -genkey writes it.
	parameters := pemOf("EC PARAMETERS", []byte{6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7})
	cert := tlstest.ServerCert(tlstest.P256).Certificate[0]
	for _, test := range []struct {
		name, uri string
		public    crypto.PublicKey
		asked     int
	}{
		{"PEM", write(t, "key.pem", keyPEM(t, p256)), p256.Public(), 0},
		{"PEM, RSA", write(t, "key.pem", keyPEM(t, rsa2048)), rsa2048.Public(), 0},
		{"PEM, Ed25519", write(t, "key.pem", keyPEM(t, ed)), ed.Public(), 0},
		{"PEM, SEC 1 behind parameters", write(t, "key.pem", parameters, pemOf("EC PRIVATE KEY", traditional)), p256.Public(), 0},
		{"PEM, behind a certificate and text", write(t, "key.pem", pemOf("CERTIFICATE", cert), []byte("the key:\n"), keyPEM(t, p256)),
			p256.Public(), 0},
		{"PEM, text and lines behind it", write(t, "key.pem", keyPEM(t, p256), []byte("that was it\n\n\n")), p256.Public(), 0},
		{"PEM, twice", write(t, "key.pem", keyPEM(t, p256), keyPEM(t, p256)), p256.Public(), 0},
		{"DER", write(t, "key.der", pkcs8(t, p256)), p256.Public(), 0},
		{"DER, RSA", write(t, "key.der", pkcs8(t, rsa2048)), rsa2048.Public(), 0},
		{"a name with a colon and a space", write(t, "a: b", keyPEM(t, p256)), p256.Public(), 0},
		{"file URI", "file:" + write(t, "key.pem", keyPEM(t, p256)), p256.Public(), 0},
		{"file URI with an authority", "file://" + absolute, leaf, 1},
		{"encrypted PEM", "testdata/store/encrypted.pem", leaf, 1},
		{"encrypted DER", "testdata/store/encrypted.der", leaf, 1},
		{"encrypted traditional PEM", "testdata/store/encrypted-traditional.pem", leaf, 1},
		{"PKCS #12", "testdata/store/pair.p12", leaf, 1},
		{"PKCS #12, empty passphrase", "testdata/store/open.p12", leaf, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked := 0
			key, err := keys.Load(test.uri, answer(storeSecret, &asked))
			if err != nil {
				t.Fatal(err)
			}
			if !key.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(test.public) {
				t.Errorf("public key %v", key.Public())
			}
			if asked != test.asked {
				t.Errorf("asked %d times", asked)
			}
			checkSignature(t, key)
			want := "default"
			if ossltest.Before3(t) != "" {
				want = ""
			}
			if key.Provider() != want {
				t.Errorf("provider %q", key.Provider())
			}
		})
	}
}

// TestLoadKeyErrors: errors have the reason, and no passphrase.
func TestLoadKeyErrors(t *testing.T) {
	p256, rsa2048 := tlstest.Key(tlstest.P256, "leaf"), tlstest.Key(tlstest.RSA2048, "leaf")
	public, err := x509.MarshalPKIXPublicKey(p256.Public())
	if err != nil {
		t.Fatal(err)
	}
	rsaPublic, err := x509.MarshalPKIXPublicKey(rsa2048.Public())
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := os.ReadFile("testdata/store/encrypted.pem")
	if err != nil {
		t.Fatal(err)
	}
	const mistaken = "can't be loaded; is the passphrase or PIN right?"
	refusal := errors.New("nobody is there")
	x25519Key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, uri string
		opts      []keys.Option
		reason    string
		is        error
	}{
		{"missing", filepath.Join(t.TempDir(), "none.pem"), nil, "can't be loaded", fs.ErrNotExist},
		{"missing, by URI", "file:" + filepath.Join(t.TempDir(), "none.pem"), nil, "can't be loaded", fs.ErrNotExist},
		{"relative file URI", "file:testdata/store/encrypted.pem", nil, "a file: URI must have an absolute path", nil},
		{"file URI of nothing", "file:", nil, "a file: URI must have an absolute path", nil},
		{"empty name", "", nil, "is neither a URI nor a path", nil},
		{"NUL", "key\x00.pem", nil, "is neither a URI nor a path", nil},
		{"folder", t.TempDir() + "/..", nil, "is a folder", nil},
		{"empty file", write(t, "key.pem"), nil, "there is no private key", nil},
		{"text", write(t, "key.pem", []byte("no key in here\n")), nil, "", nil},
		{"random DER", write(t, "key.der", []byte{0x30, 0x03, 0x02, 0x01, 0x00}), nil, "", nil},
		{"broken PEM", write(t, "key.pem", keyPEM(t, p256)[:80]), nil, "", nil},
		{"damaged", write(t, "key.pem", pemOf("PRIVATE KEY", pkcs8(t, p256)[:60])), nil, "", nil},
		{"certificate only", write(t, "cert.pem", pemOf("CERTIFICATE", tlstest.ServerCert(tlstest.P256).Certificate[0])), nil,
			"there is no private key", nil},
		{"public key only", write(t, "key.pem", pemOf("PUBLIC KEY", public)), nil, "there is no private key", nil},
		{"RSA public key only", write(t, "key.pem", pemOf("PUBLIC KEY", rsaPublic)), nil, "there is no private key", nil},
		{"two keys", write(t, "key.pem", keyPEM(t, p256), keyPEM(t, rsa2048)), nil, "there are 2 private keys: name one", nil},
		{"a key for key exchange", write(t, "key.pem", keyPEM(t, x25519Key)), nil, "", nil},
		{"no passphrase", "testdata/store/encrypted.pem", nil, "a passphrase or PIN is required, see WithPassphrase", nil},
		{"no passphrase, PKCS #12", "testdata/store/pair.p12", nil, "a passphrase or PIN is required, see WithPassphrase", nil},
		{"wrong passphrase", "testdata/store/encrypted.pem", []keys.Option{answer("wrong-secret", nil)}, mistaken, nil},
		{"wrong passphrase, DER", "testdata/store/encrypted.der", []keys.Option{answer("wrong-secret", nil)}, mistaken, nil},
		{"wrong passphrase, traditional", "testdata/store/encrypted-traditional.pem", []keys.Option{answer("wrong-secret", nil)},
			mistaken, nil},
		{"wrong passphrase, PKCS #12", "testdata/store/pair.p12", []keys.Option{answer("wrong-secret", nil)}, mistaken, nil},
		{"wrong passphrase, another key beside", write(t, "key.pem", keyPEM(t, p256), encrypted),
			[]keys.Option{answer("wrong-secret", nil)}, mistaken, nil},
		{"passphrase refused", "testdata/store/encrypted.pem",
			[]keys.Option{keys.WithPassphrase(func(string) ([]byte, error) { return nil, refusal })}, "no passphrase", refusal},
		{"passphrase too long", "testdata/store/encrypted.pem", []keys.Option{answer(strings.Repeat("wrong-secret", 1000), nil)},
			"no passphrase", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			key, err := keys.Load(test.uri, test.opts...)
			var e *keys.Error
			if key != nil || !errors.As(err, &e) {
				t.Fatalf("%v, %v", key, err)
			}
			t.Log(err)
			if e.URI != test.uri || test.reason != "" && e.Reason != test.reason {
				t.Errorf("URI %q, reason %q", e.URI, e.Reason)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("is not %v", test.is)
			}
			if text := fmt.Sprintf("%v %+v %#v", err, *e, e.Err); strings.Contains(text, "wrong-secret") {
				t.Error("the passphrase is in the error")
			}
		})
	}
}

func TestKeyOptionErrors(t *testing.T) {
	file := write(t, "key.pem", keyPEM(t, tlstest.Key(tlstest.P256, "leaf")))
	for name, opt := range map[string]keys.Option{
		"no signers":        keys.WithMaxSigners(0),
		"no answer":         keys.WithPassphrase(nil),
		"no provider":       keys.WithProvider(""),
		"a path":            keys.WithProvider("/tmp/evil"),
		"a way up":          keys.WithProvider("../evil"),
		"a NUL":             keys.WithProvider("default\x00"),
		"there is no such":  keys.WithProvider("no-such-provider"),
		"another's library": keys.WithProvider("libssl"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := keys.Load(file, opt)
			var e *keys.Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			t.Log(err)
		})
	}
	if ossltest.Before3(t) == "" {
		if _, err := keys.Load(file, keys.WithProvider("default")); err != nil {
			t.Errorf("a provider that is there: %v", err)
		}
	}
}

// TestLoadKeyScheme: a URI is refused if no provider serves its scheme. The error contains none of
// its secrets.
func TestLoadKeyScheme(t *testing.T) {
	asked := 0
	_, err := keys.Load("nosuch:object=key?pin-value=1234-secret", answer("x", &asked))
	var e *keys.Error
	text := fmt.Sprintf("%v%#v", err, e)
	if !errors.As(err, &e) || !strings.Contains(e.Reason, "nosuch") || strings.Contains(text, "1234-secret") {
		t.Fatal(err)
	}
	t.Log(err)
	if asked != 0 {
		t.Error("asked for a passphrase")
	}
	// OpenSSL itself would load the file.
	t.Chdir(t.TempDir())
	const uri = "nosuch:object=key"
	if err := os.WriteFile(uri, keyPEM(t, tlstest.Key(tlstest.P256, "leaf")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Load(uri); !errors.As(err, &e) {
		t.Fatal(err)
	}
	if _, err := keys.Load("./" + uri); err != nil {
		t.Errorf("by a path: %v", err)
	}
}

// TestLoadKeyPanic: a panic in the function of WithPassphrase reaches the caller of Load.
func TestLoadKeyPanic(t *testing.T) {
	defer func() {
		if p := recover(); p != "no pin" {
			t.Errorf("recovered %v", p)
		}
	}()
	_, err := keys.Load("testdata/store/encrypted.pem", keys.WithPassphrase(func(string) ([]byte, error) { panic("no pin") }))
	t.Errorf("no panic: %v", err)
}

// TestPassphraseIsCleared: the passphrase is cleared after use.
func TestPassphraseIsCleared(t *testing.T) {
	for _, same := range []bool{false, true} {
		secret := []byte(storeSecret)
		ask := keys.WithPassphrase(func(uri string) ([]byte, error) {
			if uri != "testdata/store/pair.p12" {
				t.Errorf("asked for %s", uri)
			}
			return secret, nil
		})
		var err error
		if same {
			_, err = keys.LoadX509KeyPair("testdata/store/pair.p12", "testdata/store/pair.p12", ask)
		} else {
			_, err = keys.Load("testdata/store/pair.p12", ask)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(secret, make([]byte, len(storeSecret))) {
			t.Errorf("same %t: still there", same)
		}
	}
}

func TestLoadX509KeyPair(t *testing.T) {
	root := tlstest.NewAuthority("store root", nil, nil)
	inter := tlstest.NewAuthority("store intermediate", root, nil)
	other := tlstest.New(tlstest.Options{Kind: tlstest.RSA2048})
	cert := tlstest.New(tlstest.Options{Kind: tlstest.P256, Issuer: inter})
	again := tlstest.New(tlstest.Options{Kind: tlstest.P256, Issuer: inter})
	leaf := cert.Certificate[0]
	keyFile := write(t, "key.pem", keyPEM(t, cert.PrivateKey))
	broken := bytes.Clone(leaf[:len(leaf)-9])
	store := storeChain(t)
	for _, test := range []struct {
		name      string
		cert, key string
		want      [][]byte
		reason    string
	}{
		{"leaf first", write(t, "c", pemOf("CERTIFICATE", leaf, inter.Cert.Raw, root.Cert.Raw)), keyFile,
			[][]byte{leaf, inter.Cert.Raw, root.Cert.Raw}, ""},
		{"in disorder, with others and twice", write(t, "c", pemOf("CERTIFICATE", root.Cert.Raw, other.Certificate[0], leaf,
			inter.Cert.Raw, tlstest.CA().Cert.Raw, leaf)), keyFile, [][]byte{leaf, inter.Cert.Raw, root.Cert.Raw}, ""},
		{"leaf only", write(t, "c", leaf), keyFile, [][]byte{leaf}, ""},
		{"one file", write(t, "c", pemOf("CERTIFICATE", leaf), keyPEM(t, cert.PrivateKey)), "", [][]byte{leaf}, ""},
		{"text between", write(t, "c", []byte("Certificate:\n    Data:\n"), pemOf("CERTIFICATE", leaf), []byte("# next\n"),
			pemOf("CERTIFICATE", inter.Cert.Raw), []byte("\n\n")), keyFile, [][]byte{leaf, inter.Cert.Raw}, ""},
		{"PKCS #12", "testdata/store/pair.p12", "", [][]byte{store[0].Raw, store[1].Raw}, ""},
		{"PKCS #12, empty passphrase", "testdata/store/open.p12", "", [][]byte{store[0].Raw, store[1].Raw}, ""},
		{"another key's", write(t, "c", pemOf("CERTIFICATE", other.Certificate[0], inter.Cert.Raw)), keyFile, nil,
			"no certificate belongs to the private key"},
		{"two for the key", write(t, "c", pemOf("CERTIFICATE", leaf, again.Certificate[0])), keyFile, nil,
			"there are several certificates for the private key: name one"},
		{"no certificate", keyFile, keyFile, nil, "there is no certificate"},
		{"the last one is broken", write(t, "c", pemOf("CERTIFICATE", leaf, broken)), keyFile, nil, "can't be loaded"},
		{"the first one is broken", write(t, "c", pemOf("CERTIFICATE", broken, leaf)), keyFile, nil, "can't be loaded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.key == "" {
				test.key = test.cert
			}
			asked := 0
			got, err := keys.LoadX509KeyPair(test.cert, test.key, answer(storeSecret, &asked))
			if test.reason != "" {
				var e *keys.Error
				if !errors.As(err, &e) || e.Reason != test.reason || e.URI != test.cert {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if asked > 1 {
				t.Errorf("asked %d times", asked)
			}
			if !bytes.Equal(bytes.Join(got.Certificate, nil), bytes.Join(test.want, nil)) {
				t.Errorf("%d certificates, or others, or in another order", len(got.Certificate))
			}
			if !bytes.Equal(got.Leaf.Raw, test.want[0]) {
				t.Error("another leaf")
			}
			if _, err := ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{got}}); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := keys.LoadX509KeyPair(filepath.Join(t.TempDir(), "none"), keyFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestKeyOfAnotherCertificate: NewContext refuses a key that doesn't belong to the leaf.
func TestKeyOfAnotherCertificate(t *testing.T) {
	key, err := keys.Load(write(t, "key.pem", keyPEM(t, tlstest.Key(tlstest.P256, "another"))))
	if err != nil {
		t.Fatal(err)
	}
	cert := tlstest.ServerCert(tlstest.P256)
	cert.PrivateKey = key
	var e *ossl.ConfigError
	_, err = ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{cert}})
	if !errors.As(err, &e) || e.Field != "Certificates" {
		t.Error(err)
	}
	for _, none := range []*keys.Key{nil, {}} {
		cert.PrivateKey = none
		if _, err := ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{cert}}); !errors.As(err, &e) {
			t.Error(err)
		}
	}
}
