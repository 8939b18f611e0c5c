package terminator_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestServeFIPS: a server in FIPS mode serves with approved algorithms alone, also to a backend, and
// refuses by name a policy that demands others.
func TestServeFIPS(t *testing.T) {
	if _, err := ossl.NewContext(&tls.Config{}, ossl.WithFIPS()); err != nil {
		t.Skipf("FIPS mode needs a FIPS provider, of OpenSSL 3.0 or later: %v", err)
	}
	w := newWorld(t)
	config := w.config("ossl", terminator.Site{Root: w.folder(map[string]string{"index.html": "x"})})
	config.FIPS = true
	files := w.start(config)
	proxied := w.config("ossl", terminator.Site{Backend: terminator.Backend{To: "https://" + files.addr, Name: "localhost",
		CA: w.authority.File}})
	proxied.FIPS = true
	for name, r := range map[string]*running{"serve": files, "proxy": w.start(proxied)} {
		t.Run(name, func(t *testing.T) {
			protocols(t, func(t *testing.T, http2 bool) {
				if name == "proxy" { // the backend's site has the name localhost
					if status, _ := get(t, r.client(http2, nil), "https://localhost/"); status != 200 {
						t.Errorf("status %d", status)
					}
					return
				}
				if status, body := get(t, r.client(http2, nil), "https://localhost/"); status != 200 || body != "x" {
					t.Errorf("%d %q", status, body)
				}
			})
			conn := r.mustDial(func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256} })
			write(t, conn, "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
			_, _ = io.ReadAll(conn)
			if state := conn.ConnectionState(); state.CurveID != tls.CurveP256 {
				t.Errorf("the group %v", state.CurveID)
			}
			if _, err := r.dial(func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.X25519} }); err == nil {
				t.Error("X25519 alone is accepted")
			}
			if _, err := r.dial(func(c *tls.Config) {
				c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256}
			}); err == nil {
				t.Error("ChaCha20 alone is accepted")
			}
		})
	}
	refused := *config
	refused.KernelTLS = true
	if err := refused.Check(); err == nil || !strings.Contains(err.Error(), "kernel-tls and fips") {
		t.Errorf("kernel-tls: error %v", err)
	}
	refused = *config
	refused.Policy = terminator.DefaultPolicy
	log := slog.New(slog.DiscardHandler)
	s, err := terminator.Start(context.Background(), &refused, log, log)
	if err == nil {
		s.Drain(context.Background())
	}
	if err == nil || !strings.Contains(err.Error(), "FIPS") {
		t.Errorf("a policy with ChaCha20: error %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestACMEWithFIPS: certificates by ACME are refused by name if the host is in FIPS mode.
func TestACMEWithFIPS(t *testing.T) {
	if _, err := ossl.NewContext(&tls.Config{}, ossl.WithFIPS()); err != nil {
		t.Skipf("FIPS mode needs a FIPS provider, of OpenSSL 3.0 or later: %v", err)
	}
	w := newWorld(t)
	c, _ := acmeConfig(w, "ossl", terminator.Site{Names: []string{"a.test"}, Root: w.folder(nil)})
	t.Setenv("OSSL_FIPS", "require")
	log := slog.New(slog.DiscardHandler)
	s, err := terminator.Start(t.Context(), c, log, log)
	if err == nil {
		s.Drain(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "acme can't be used in FIPS mode") {
		t.Errorf("error %v", err)
	}
}
