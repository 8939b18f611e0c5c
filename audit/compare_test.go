package audit

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/audit/internal/testcert"
)

// serveHTTPS starts a server and returns its address.
func serveHTTPS(t *testing.T, config *tls.Config) netip.AddrPort {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = config
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

// TestAddressesDiffer: servers with one configuration don't differ; another certificate, another
// version, another suite and a refusal do, and a server that isn't TLS leaves the question open.
func TestAddressesDiffer(t *testing.T) {
	withProbes(t, probe{"addresses", probeAddresses})
	same := serveHTTPS(t, nil)
	old := serveHTTPS(t, &tls.Config{MaxVersion: tls.VersionTLS12})
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	plain := netip.MustParseAddrPort(server.Listener.Addr().String())
	refuses := serveHTTPS(t, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, nil
	}})
	for name, c := range map[string]struct {
		others []netip.AddrPort
		state  State
		says   []string
	}{
		"same":    {[]netip.AddrPort{serveHTTPS(t, nil)}, Tested, nil},
		"version": {[]netip.AddrPort{old}, Tested, []string{"version TLS 1.3 and TLS 1.2", "cipher suite "}},
		"certificate": {[]netip.AddrPort{
			serveHTTPS(t, &tls.Config{Certificates: []tls.Certificate{testcert.Root(testcert.Template{}).TLS()}}),
		}, Tested, []string{"certificate's SHA-256 "}},
		"refuses":             {[]netip.AddrPort{refuses}, Tested, []string{"refusal none and ", "version TLS 1.3 and none"}},
		"not TLS":             {[]netip.AddrPort{plain}, Failed, nil},
		"not TLS and version": {[]netip.AddrPort{plain, old}, Tested, []string{"version TLS 1.3 and TLS 1.2"}},
	} {
		r, err := Check(t.Context(), Target{Host: "example.test", Port: 443, Protocol: "tls"},
			Options{Addresses: append([]netip.AddrPort{same}, c.others...)})
		if err != nil {
			t.Fatal(err)
		}
		result := resultOf(t, r, "address-differs")
		if result.State != c.state || (result.Findings > 0) != (c.says != nil) {
			t.Errorf("%s: %+v; addresses %+v", name, result, r.Facts.Addresses)
		}
		for _, f := range r.Findings {
			for _, part := range c.says {
				if f.Rule == "address-differs" && !strings.Contains(f.Evidence, part) {
					t.Errorf("%s: %q doesn't say %q", name, f.Evidence, part)
				}
			}
		}
	}
}
