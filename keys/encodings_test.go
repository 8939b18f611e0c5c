//go:build cgo || ossl_nocgo

package keys_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/keys"
)

// TestLoadEncodings writes a key in many ways. A file that crypto/tls and "openssl pkey" read must
// load, as the same key.
func TestLoadEncodings(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("needs the program openssl")
	}
	key := tlstest.Key(tlstest.P256, "leaf")
	other := tlstest.Key(tlstest.RSA2048, "leaf")
	certificate := pemOf("CERTIFICATE", tlstest.ServerCert(tlstest.P256).Certificate[0])
	text, otherText := keyPEM(t, key), keyPEM(t, other)
	der, err := x509.MarshalECPrivateKey(key.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	sec1, parameters := pemOf("EC PRIVATE KEY", der), pemOf("EC PARAMETERS", []byte{6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7})
	wide := func(order func([]byte, uint16) []byte, text []byte) (out []byte) {
		for _, unit := range append([]uint16{0xfeff}, utf16.Encode([]rune(string(text)))...) {
			out = order(out, unit)
		}
		return out
	}
	little := func(out []byte, unit uint16) []byte { return append(out, byte(unit), byte(unit>>8)) }
	big := func(out []byte, unit uint16) []byte { return append(out, byte(unit>>8), byte(unit)) }
	join := func(parts ...any) (out []byte) {
		for _, part := range parts {
			switch part := part.(type) {
			case string:
				out = append(out, part...)
			case []byte:
				out = append(out, part...)
			}
		}
		return out
	}
	replace := func(text []byte, from, to string) []byte { return bytes.ReplaceAll(text, []byte(from), []byte(to)) }
	long := strings.Repeat("a line of text that says nothing\n", 40)
	body := strings.Join(strings.Split(string(text), "\n")[1:4], "")
	oneLine := "-----BEGIN PRIVATE KEY-----\n" + body + "\n-----END PRIVATE KEY-----\n"
	library, err := ossl.Library()
	if err != nil {
		t.Fatal(err)
	}
	old := strings.HasPrefix(library.Version, "1.1.")
	for _, test := range []struct {
		name  string
		text  []byte
		loads bool // if the other two don't both decide
	}{
		{"PKCS #8", text, true},
		{"SEC 1", sec1, true},
		{"CRLF", replace(text, "\n", "\r\n"), true},
		{"CRLF, text behind it", join(replace(text, "\n", "\r\n"), long), true},
		{"CR alone", replace(text, "\n", "\r"), false},
		{"no newline at the end", bytes.TrimSpace(text), true},
		{"blank lines around it", join("\n\n", text, "\n\n\n"), true},
		{"blanks at the ends of lines", replace(text, "\n", "  \n"), true},
		{"indented", join("  ", replace(text, "\n", "\n  ")), false},
		{"body indented", replace(text, "\nM", "\n  M"), false},
		{"on one line", []byte(oneLine), true},
		{"text before it", join(long, text), true},
		{"a little text behind it", join(text, "the end\n"), true},
		{"text behind it", join(text, long), true},
		{"text around it", join(long, text, long), true},
		{"text between", join(certificate, long, text, long), true},
		{"zero bytes behind it", join(text, make([]byte, 200)), true},
		{"bag attributes", join("Bag Attributes\n    localKeyID: 54 69 6D\nKey Attributes: <No Attributes>\n", text),
			true},
		{"parameters before it", join(parameters, sec1), true},
		{"parameters and text", join(parameters, long, sec1, long), true},
		{"behind its certificate", join(certificate, text), true},
		{"before its certificate", join(text, certificate), true},
		{"before its certificate, text behind that", join(text, certificate, long), true},
		{"twice", join(text, text), true},
		{"another key behind it", join(text, otherText), false},
		{"a byte order mark", join("\ufeff", text), ossltest.Before3(t) == ""},
		{"a byte order mark behind a line", join("key:\n\ufeff", text), false},
		{"UTF-16, little endian", wide(little, text), false},
		{"UTF-16, big endian", wide(big, text), false},
		{"another cut one behind it", join(text, text[:len(text)-40]), false},
		{"another damaged one behind it", join(text, replace(text, "M", "!")), false},
		{"an unknown block behind it", join(text, pemOf("NONSENSE", []byte("nonsense"))), false},
		{"DER, PKCS #8", pkcs8(t, key), true},
		{"DER, SEC 1", der, true},
		{"DER with bytes behind it", join(der, make([]byte, 80)), false},
		{"base64 without lines", []byte(body), false},
		{"cut", text[:len(text)-40], false},
		{"text in the block", replace(text, "\nM", "\nhello\nM"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := write(t, "key.pem", test.text)
			_, goErr := tls.X509KeyPair(certificate, test.text)
			command := exec.Command(openssl, "pkey", "-in", file, "-pubout", "-outform", "DER")
			public, opensslErr := command.Output()
			loaded, err := keys.Load(file)
			want := test.loads
			if goErr == nil && opensslErr == nil && test.name != "another key behind it" && !strings.HasPrefix(test.name, "another ") &&
				!strings.HasPrefix(test.name, "an unknown") { // of several keys the others take the first one
				want = true
			}
			if strings.HasPrefix(test.name, "an unknown") && old { // of which 1.1.1 takes no notice
				want = true
			}
			if (err == nil) != want {
				t.Fatalf("Load: %v; crypto/tls: %v; openssl: %v", err, goErr, opensslErr)
			}
			if err != nil {
				if e := new(keys.Error); !errors.As(err, &e) || e.Reason == "" {
					t.Errorf("the error has no reason: %v", err)
				}
				return
			}
			if !loaded.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(key.Public()) {
				t.Error("another key")
			}
			if opensslErr == nil {
				if parsed, err := x509.ParsePKIXPublicKey(public); err != nil || !parsed.(*ecdsa.PublicKey).Equal(key.Public()) {
					t.Errorf("openssl has another key: %v", err)
				}
			}
		})
	}
}

// TestLoadUnsupported: errors name the kinds of keys that are not supported.
func TestLoadUnsupported(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("needs the program openssl")
	}
	for _, test := range []struct {
		args, want string
	}{
		{"-algorithm EC -pkeyopt ec_paramgen_curve:P-256 -pkeyopt ec_param_enc:explicit", "explicit parameters"},
		{"-algorithm EC -pkeyopt ec_paramgen_curve:brainpoolP256r1", "brainpool"},
		{"-algorithm EC -pkeyopt ec_paramgen_curve:secp256k1", "secp256k1"},
		{"-algorithm ED448", "Ed448"},
		{"-algorithm RSA-PSS -pkeyopt rsa_keygen_bits:2048", "RSA-PSS"},
		{"-algorithm X448", "X448"},
	} {
		t.Run(test.want, func(t *testing.T) {
			text, err := exec.Command(openssl, append([]string{"genpkey"}, strings.Fields(test.args)...)...).Output()
			if err != nil && ossltest.InFIPS {
				t.Skip("OSSL_TEST_FIPS: the module makes no such key")
			} else if err != nil {
				t.Skipf("this openssl makes no such key: %v", err)
			}
			_, err = keys.Load(write(t, "key.pem", text))
			if err == nil || !strings.Contains(err.Error(), "a key of an unsupported kind") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestLoadOldCipher: a PKCS #12 container as Windows makes it names the cipher and the provider.
func TestLoadOldCipher(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("needs the program openssl")
	}
	if version := ossltest.Before3(t); version != "" {
		t.Skipf("OpenSSL %s has RC2 itself", version)
	}
	pair := write(t, "pair.pem", keyPEM(t, tlstest.Key(tlstest.P256, "leaf")),
		pemOf("CERTIFICATE", tlstest.ServerCert(tlstest.P256).Certificate[0]))
	container := write(t, "pair.p12")
	command := exec.Command(openssl, "pkcs12", "-export", "-legacy", "-in", pair, "-out", container, "-passout", "pass:"+storeSecret)
	if out, err := command.CombinedOutput(); err != nil {
		t.Skipf("openssl: its legacy provider is missing: %v %s", err, out)
	}
	if _, err := keys.LoadX509KeyPair(container, container, answer(storeSecret, nil)); err == nil ||
		!strings.Contains(err.Error(), "RC2") || !strings.Contains(err.Error(), `"legacy"`) {
		t.Errorf("error %v", err)
	}
}
