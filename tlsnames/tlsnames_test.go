package tlsnames_test

import (
	"crypto/tls"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/tlsnames"
)

var registries = map[string]*tlsnames.Registry{
	"CipherSuites": tlsnames.CipherSuites, "Groups": tlsnames.Groups, "SignatureSchemes": tlsnames.SignatureSchemes,
	"Versions": tlsnames.Versions, "Alerts": tlsnames.Alerts, "Extensions": tlsnames.Extensions,
}

// TestRegistries: IDs and names are unique, and lead to each other, in any case.
func TestRegistries(t *testing.T) {
	for registry, r := range registries {
		ids, seen := map[uint16]bool{}, map[string]bool{}
		for e := range r.All() {
			lower := strings.ToLower(e.Name)
			if ids[e.ID] || seen[lower] || e.Name == "" {
				t.Errorf("%s: %#04x %q is there twice, or has no name", registry, e.ID, e.Name)
			}
			ids[e.ID], seen[lower] = true, true
			if found, ok := r.Lookup(e.ID); !ok || found != e || r.Name(e.ID) != e.Name {
				t.Errorf("%s: %#04x leads to %+v, not to %+v", registry, e.ID, found, e)
			}
			for _, name := range []string{e.Name, lower, strings.ToUpper(e.Name)} {
				if id, ok := r.ID(name); !ok || id != e.ID {
					t.Errorf("%s: %s leads to %#04x, not to %#04x", registry, name, id, e.ID)
				}
			}
		}
		for id := range 1 << 16 {
			if e, ok := r.Lookup(uint16(id)); ok != ids[uint16(id)] || r.Name(uint16(id)) != e.Name {
				t.Errorf("%s: %#04x leads to %+v", registry, id, e)
			}
		}
		if id, ok := r.ID("TLS_NONE"); ok {
			t.Errorf("%s: an unknown name leads to %#04x", registry, id)
		}
	}
}

// TestGo: the entries agree with crypto/tls's names.
func TestGo(t *testing.T) {
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if name := tlsnames.CipherSuites.Name(s.ID); name != s.Name {
			t.Errorf("%#04x is %s, and in crypto/tls %s", s.ID, name, s.Name)
		}
	}
	for id := range 1 << 16 {
		for r, name := range map[*tlsnames.Registry]string{
			tlsnames.Groups: tls.CurveID(id).String(), tlsnames.SignatureSchemes: tls.SignatureScheme(id).String(),
		} {
			e, _ := r.Lookup(uint16(id))
			if !strings.Contains(name, "(") && e.Go != name {
				t.Errorf("%#04x has the Go name %q, and in crypto/tls %s", id, e.Go, name)
			}
		}
	}
	for v := tls.VersionTLS10; v <= tls.VersionTLS13; v++ {
		if name := tlsnames.Versions.Name(uint16(v)); name != tls.VersionName(uint16(v)) {
			t.Errorf("%#04x is %s", v, name)
		}
	}
}

func TestOpenSSLSuite(t *testing.T) {
	for name, want := range map[string]string{
		"TLS_AES_128_GCM_SHA256":                      "TLS_AES_128_GCM_SHA256",
		"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384":     "ECDHE-ECDSA-AES256-GCM-SHA384",
		"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
		"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256":       "ECDHE-RSA-AES128-SHA256",
		"TLS_ECDHE_RSA_WITH_ARIA_128_GCM_SHA256":      "ECDHE-ARIA128-GCM-SHA256",
		"TLS_RSA_WITH_AES_128_CBC_SHA":                "AES128-SHA",
		"TLS_ECDHE_ECDSA_WITH_AES_128_CCM":            "ECDHE-ECDSA-AES128-CCM",
		"TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8":          "ECDHE-ECDSA-AES128-CCM8",
		"TLS_RSA_WITH_3DES_EDE_CBC_SHA":               "DES-CBC3-SHA",
		"TLS_RSA_WITH_IDEA_CBC_SHA":                   "IDEA-CBC-SHA",
		"TLS_ECDHE_RSA_WITH_RC4_128_SHA":              "ECDHE-RSA-RC4-SHA",
		"TLS_DHE_RSA_WITH_AES_256_GCM_SHA384":         "DHE-RSA-AES256-GCM-SHA384",
		"TLS_DHE_RSA_WITH_CAMELLIA_256_CBC_SHA256":    "DHE-RSA-CAMELLIA256-SHA256",
		"TLS_DHE_RSA_WITH_CAMELLIA_256_GCM_SHA384":    "",
		"TLS_ECDHE_RSA_WITH_ARIA_128_CBC_SHA256":      "",
		"TLS_PSK_WITH_AES_128_CBC_SHA256":             "PSK-AES128-CBC-SHA256",
		"TLS_PSK_WITH_AES_128_CCM_8":                  "PSK-AES128-CCM8",
		"TLS_ECDHE_PSK_WITH_AES_256_CBC_SHA384":       "ECDHE-PSK-AES256-CBC-SHA384",
		"TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-PSK-CHACHA20-POLY1305",
		"TLS_PSK_WITH_CAMELLIA_128_CBC_SHA256":        "",
		"TLS_DHE_PSK_WITH_AES_128_CBC_SHA":            "",
	} {
		if got := tlsnames.OpenSSLSuite(name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
}

// TestInteropOpenSSLSuite compares with the names that the command openssl prints.
func TestInteropOpenSSLSuite(t *testing.T) {
	out, err := exec.Command("openssl", "ciphers", "-stdname", "ALL:COMPLEMENTOFALL:@SECLEVEL=0").Output()
	if err != nil {
		t.Skip("openssl is not installed")
	}
	for line := range strings.Lines(string(out)) { // IANA's name, a hyphen, OpenSSL's
		words := strings.Fields(line)
		if len(words) < 3 {
			t.Fatalf("unexpected line %q", line)
		}
		if got := tlsnames.OpenSSLSuite(words[0]); got != words[2] && got != "" {
			t.Errorf("%s is %q, not %q", words[0], got, words[2])
		}
	}
}

// TestAllocs: look-ups by number don't allocate.
func TestAllocs(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		_ = tlsnames.CipherSuites.Name(0xc02f)
		_, _ = tlsnames.Groups.Lookup(0x11ec)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func Example() {
	fmt.Println(tlsnames.CipherSuites.Name(0x1301))
	id, _ := tlsnames.SignatureSchemes.ID("ecdsa_secp256r1_sha256")
	fmt.Printf("%#04x\n", id)
	group, _ := tlsnames.Groups.Lookup(0x0017)
	fmt.Println(group.Name, group.OpenSSL, group.Go)
	// Output:
	// TLS_AES_128_GCM_SHA256
	// 0x0403
	// secp256r1 prime256v1 CurveP256
}
