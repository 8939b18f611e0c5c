package terminator_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// clientCertificate returns a client's certificate with all kinds of names, and its authority's file.
func (w *world) clientCertificate() (cert tls.Certificate, authority string) {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	uri, err := url.Parse("spiffe://example.org/ns/prod/sa/web")
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(7), DNSNames: []string{"Web.Prod.example.org"}, URIs: []*url.URL{uri},
		EmailAddresses: []string{"Ops@Example.org"}, NotAfter: time.Now().Add(time.Hour),
		Subject:               pkix.Name{CommonName: "web 1", OrganizationalUnit: []string{"Payments", "EU"}},
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	authority = w.folder(nil) + "/clients.pem"
	w.write(authority, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, authority
}

// TestClientAllow: clients with an authority's certificate get in only if it fits a rule, in both
// versions, and in resumed handshakes too.
func TestClientAllow(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		cert, authority := w.clientCertificate()
		sum := sha256.Sum256(cert.Certificate[0])
		fingerprint := hex.EncodeToString(sum[:])
		root := w.folder(map[string]string{"index.html": "x"})
		config := func(optional bool, rules ...string) *terminator.Config {
			return w.config(engine, terminator.Site{Root: root, ClientCA: []string{authority}, ClientOptional: optional,
				ClientAllow: rules})
		}
		visit := func(r *running, version uint16, change func(*tls.Config)) (resumed bool, err error) {
			conn, err := r.dial(func(c *tls.Config) {
				c.MinVersion, c.MaxVersion, c.Certificates = version, version, []tls.Certificate{cert}
				change(c)
			})
			if err != nil {
				return false, err
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n"); err != nil {
				return false, err
			}
			answer, err := io.ReadAll(conn)
			if err == nil && !strings.HasPrefix(string(answer), "HTTP/1.0 200 ") {
				err = fmt.Errorf("answer %q", answer)
			}
			return conn.ConnectionState().DidResume, err
		}
		for _, test := range []struct {
			rule string
			fits bool
		}{
			{"dns:web.prod.EXAMPLE.org", true}, {"dns:*.prod.example.org", true}, {"dns:*.example.org", false},
			{"dns:prod.example.org", false}, {"dns:web.prod.example.or", false},
			{"uri:spiffe://example.org/ns/prod/sa/web", true}, {"uri:spiffe://EXAMPLE.org/ns/*/sa/web", true},
			{"uri:spiffe://example.org/ns/*/sa/*", true}, {"uri:spiffe://example.org/*", false},
			{"uri:spiffe://example.org/ns/prod/sa/web/", false}, {"uri:spiffe://example.org/ns/prod/sa/we", false},
			{"uri:spiffe://example.org/ns/prod/sa/Web", false}, {"uri:https://example.org/ns/prod/sa/web", false},
			{"uri:spiffe://example.org.evil/ns/*/sa/web", false},
			{"email:Ops@example.ORG", true}, {"email:ops@example.org", false},
			{"cn:web 1", true}, {"cn:Web 1", false}, {"cn:web", false},
			{"ou:EU", true}, {"ou:Payments", true}, {"ou:payments", false},
			{"sha256:" + fingerprint, true}, {"sha256:" + strings.ToUpper(fingerprint), true},
			{"sha256:" + strings.Repeat("0", 64), false},
		} {
			t.Run(test.rule, func(t *testing.T) {
				r := w.start(config(false, "cn:nobody", test.rule))
				for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
					_, err := visit(r, version, func(*tls.Config) {})
					if (err == nil) != test.fits {
						t.Errorf("%s: %v", tls.VersionName(version), err)
					}
					if !test.fits && (err == nil || err.Error() != "remote error: tls: bad certificate") {
						t.Errorf("%s: the client's error is %v", tls.VersionName(version), err)
					}
				}
				if !test.fits {
					r.log.await(t, "msg=limit", "limit=client-allow")
					r.log.await(t, "msg=handshake", "fits no rule of client-allow", "web 1")
				}
			})
		}
		t.Run("optional", func(t *testing.T) {
			r := w.start(config(true, "cn:nobody"))
			if _, err := visit(r, tls.VersionTLS13, func(c *tls.Config) { c.Certificates = nil }); err != nil {
				t.Errorf("without a certificate: %v", err)
			}
			if _, err := visit(r, tls.VersionTLS13, func(*tls.Config) {}); err == nil {
				t.Error("with one that fits no rule: no error")
			}
		})
		t.Run("required", func(t *testing.T) {
			r := w.start(config(false, "cn:web 1"))
			if _, err := visit(r, tls.VersionTLS13, func(c *tls.Config) { c.Certificates = nil }); err == nil {
				t.Error("without a certificate: no error")
			}
		})
		t.Run("reload", func(t *testing.T) {
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				c := config(false, "cn:web 1")
				r := w.start(c)
				cache := tls.NewLRUClientSessionCache(0)
				keep := func(c *tls.Config) { c.ClientSessionCache = cache }
				for i := range 2 {
					if resumed, err := visit(r, version, keep); err != nil || resumed != (i > 0) {
						t.Fatalf("visit %d: resumed %t, %v", i, resumed, err)
					}
				}
				changed := config(false, "cn:web 2")
				changed.Sites[0].Pairs = c.Sites[0].Pairs
				if err := r.Reload(context.Background(), changed); err != nil {
					t.Fatal(err)
				}
				if _, err := visit(r, version, keep); err == nil {
					t.Errorf("%s: a session is resumed past the new rules", tls.VersionName(version))
				}
			}
		})
		t.Run("sites", func(t *testing.T) { // that differ in nothing else
			pair := w.pair(false, "a.test", "b.test")
			c := config(false, "cn:web 1")
			c.Sites[0].Names, c.Sites[0].Pairs = []string{"a.test"}, []terminator.Pair{pair}
			second := c.Sites[0]
			second.Names, second.ClientAllow = []string{"b.test"}, []string{"cn:web 2"}
			c.Sites = append(c.Sites, second)
			r := w.start(c)
			for name, fits := range map[string]bool{"a.test": true, "b.test": false} {
				_, err := visit(r, tls.VersionTLS13, func(c *tls.Config) { c.ServerName = name })
				if fits && err != nil && !strings.Contains(err.Error(), "421") || !fits && err == nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	})
}

// TestClientAllowRefused: rules that are odd are refused by name.
func TestClientAllowRefused(t *testing.T) {
	w := newWorld(t)
	for _, rule := range []string{"", "dns", "dns:", "name:x", "DNS:a.test", "dns: a.test", "dns:*", "dns:*.", "dns:a.*.test",
		"dns:*a.test", "dns:a.test.", "dns:a..test", "dns:a test", "dns:münchen.test", "uri:", "uri:example", "uri:spiffe://*/x",
		"uri:spiffe://*.test/x", "uri:spiffe://a.test/x*", "uri:spiffe://a.test/**", "uri:/x/*", "email:", "email:ops",
		"email:*@a.test",
		"email:Ops <ops@a.test>", "cn:", "cn: x", "cn:*", "ou:*", "sha256:", "sha256:12",
		"sha256:" + strings.Repeat("g", 64), "web 1"} {
		c := w.config("ossl", terminator.Site{Root: w.dir, ClientCA: []string{w.authority.File}, ClientAllow: []string{"cn:x", rule}})
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("client-allow %q: ", rule)) {
			t.Errorf("%q: %v", rule, err)
		}
	}
	c := w.config("ossl", terminator.Site{Root: w.dir, ClientAllow: []string{"cn:x"}})
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "client-allow needs client-ca") {
		t.Errorf("without client-ca: %v", err)
	}
}
