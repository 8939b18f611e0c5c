package audit

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/audit/internal/hello"
)

// TestClientHellos writes each client's hello, and reads it again.
func TestClientHellos(t *testing.T) {
	all, err := clientHellos()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 15 {
		t.Errorf("%d clients", len(all))
	}
	seen := map[string]bool{}
	for i := range all {
		c := &all[i]
		if seen[c.Name] || c.Name == "" || c.Source == "" || i > 0 && c.Common && !all[i-1].Common {
			t.Errorf("%q: twice, or without a source, or out of order", c.Name)
		}
		seen[c.Name] = true
		h, err := c.hello("example.org")
		if err != nil {
			t.Error(err)
			continue
		}
		m, err := h.Message()
		if err != nil {
			t.Error(c.Name, err)
			continue
		}
		parsed, err := hello.ParseClientHello(m)
		if err != nil {
			t.Error(c.Name, err)
			continue
		}
		got := names(parsed.Order, hello.ExtensionName)
		want := slices.DeleteFunc(slices.Clone(c.Extensions), func(e string) bool {
			return e == "padding" && !slices.Contains(got, e) // not if the message is long enough
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s: the extensions are %v", c.Name, got)
		}
		if got := names(parsed.Suites, hello.SuiteName); !slices.Equal(got, c.Suites) {
			t.Errorf("%s: the suites are %v", c.Name, got)
		}
		if len(parsed.KeyShares) != len(c.Shares) || len(parsed.Groups) != len(c.Groups) ||
			len(parsed.Signatures) != len(c.Signatures) ||
			slices.Contains(c.Extensions, "server_name") != (parsed.ServerName == "example.org") {
			t.Errorf("%s: %+v", c.Name, parsed)
		}
	}
}

// simulated runs the clients against a crypto/tls server.
func simulated(t *testing.T, config *tls.Config) *Facts {
	t.Helper()
	r := testRun(serveGo(t, config))
	if err := probeClients(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for _, c := range r.facts.Clients.Clients {
		if c.State != Tested {
			t.Errorf("%s: %+v", c.Name, c.Outcome)
		}
	}
	return r.facts
}

// byName returns a client whose name begins so.
func byName(t *testing.T, f *Facts, name string) SimulatedClient {
	t.Helper()
	i := slices.IndexFunc(f.Clients.Clients, func(c SimulatedClient) bool { return strings.HasPrefix(c.Name, name) })
	if i < 0 {
		t.Fatalf("no client %s", name)
	}
	return f.Clients.Clients[i]
}

// clientFindings returns the findings of the rules of clients.
func clientFindings(f *Facts) (ids []string, findings []Finding) {
	for _, rule := range clientRules {
		found, outcome := rule.check(&judgement{facts: f})
		for range found {
			ids = append(ids, rule.ID)
		}
		if findings = append(findings, found...); outcome.State != Tested {
			ids = append(ids, rule.ID+" "+string(outcome.State))
		}
	}
	return ids, findings
}

func TestClients(t *testing.T) {
	f := simulated(t, &tls.Config{})
	if ids, findings := clientFindings(f); ids != nil {
		t.Errorf("crypto/tls: %+v", findings)
	}
	for name, want := range map[string][2]string{
		"Chrome": {"TLS 1.3", "X25519MLKEM768"}, "Firefox": {"TLS 1.3", "X25519MLKEM768"}, "curl": {"TLS 1.3", "x25519"},
		"BearSSL": {"TLS 1.2", ""}, "mbedTLS": {"TLS 1.2", ""}, "Go": {"TLS 1.3", "X25519MLKEM768"},
	} {
		if c := byName(t, f, name); c.Version != want[0] || want[1] != "" && c.Group != want[1] || c.Retry || c.Refused != "" {
			t.Errorf("%+v", c)
		}
	}
	if c := byName(t, f, "Java 7"); c.Refused == "" {
		t.Errorf("%+v", c)
	}
}

func TestClientsRetry(t *testing.T) {
	f := simulated(t, &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP256}})
	ids, findings := clientFindings(f)
	if !slices.Equal(ids, []string{"client-retry"}) || findings[0].Severity != Medium || findings[0].Price.Share < 0.5 ||
		!strings.Contains(findings[0].Evidence, "secp256r1") {
		t.Errorf("%v: %+v", ids, findings)
	}
	if c := byName(t, f, "Chrome"); !c.Retry || c.Group != "secp256r1" {
		t.Errorf("%+v", c)
	}
}

func TestClientsRefused(t *testing.T) {
	f := simulated(t, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}})
	if ids, findings := clientFindings(f); !slices.Equal(ids, []string{"client-refused"}) || findings[0].Severity != Medium {
		t.Errorf("%v: %+v", ids, findings)
	}
}

// TestClientsGentle shows that an audit that has made its connections simulates no clients, and
// that the rules report this.
func TestClientsGentle(t *testing.T) {
	for _, before := range []int{gentle, gentle - 2} {
		r := testRun(serveGo(t, &tls.Config{}))
		r.cost.Connections = before
		if err := probeClients(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		ids, _ := clientFindings(r.facts)
		if r.cost.Connections != gentle || !slices.Equal(ids, []string{"client-refused not tested", "client-retry not tested"}) {
			t.Errorf("%d connections, %v", r.cost.Connections, ids)
		}
	}
}
