package promossl_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/metrics"
	"github.com/ossl-go/ossl/promossl"
)

// fixed is a Source whose numbers don't change.
type fixed []metrics.Named

func (f fixed) Stats() []metrics.Named { return f }

var known = fixed{{Name: "web", Stats: ossl.Stats{
	Handshakes: []ossl.HandshakeStats{
		{Version: tls.VersionTLS12, CipherSuite: tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, CurveID: tls.CurveP256, Count: 1},
		{Server: true, Version: tls.VersionTLS13, CipherSuite: tls.TLS_AES_128_GCM_SHA256, CurveID: tls.X25519,
			Resumption: ossl.ResumedTicket, HelloRetry: true, Count: 2},
	},
	Failures: []ossl.FailureStats{
		{Server: true, Failure: ossl.Failure{Class: ossl.FailureRefused, Alert: 70}, Count: 3},
		{Server: true, Failure: ossl.Failure{Class: ossl.FailureNotTLS}, Count: 4},
	},
	Durations: []ossl.DurationStats{{Server: true, Resumed: true, Count: 3, Sum: 2500 * time.Millisecond,
		Buckets: []ossl.DurationBucket{{AtMost: time.Millisecond, Count: 1}, {AtMost: time.Second, Count: 2}}}},
	Broken:       []ossl.FailureStats{{Failure: ossl.Failure{Class: ossl.FailureTruncated}, Count: 5}},
	OpenConns:    6,
	BytesRead:    7,
	BytesWritten: 8,
	Records:      ossl.RecordStats{Direct: 9, Libssl: 10, Kernel: 11},
	SessionCache: ossl.SessionCacheStats{Hits: 12, Misses: 13, Errors: 14, Puts: 15, PutErrors: 16},
	ChainCache:   ossl.ChainCacheStats{Hits: 17, Misses: 18},
	Revocation:   ossl.RevocationStats{Revoked: 23, HardFails: 24, SoftFails: 25},

	CertificateCache:   ossl.ConversionCacheStats{Misses: 19, Evictions: 20},
	ConfigurationCache: ossl.ConversionCacheStats{Misses: 21, Evictions: 22},
}}}

const knownText = `
ossl_tls_chain_cache_lookups_total{context="web",result="hit"} 17
ossl_tls_chain_cache_lookups_total{context="web",result="miss"} 18
ossl_tls_connection_failures_total{alert="",class="truncated",context="web",role="client"} 5
ossl_tls_connections_total{context="web",records="libssl"} 10
ossl_tls_connections_total{context="web",records="ossl"} 9
ossl_tls_conversion_evictions_total{cache="certificates",context="web"} 20
ossl_tls_conversion_evictions_total{cache="configurations",context="web"} 22
ossl_tls_conversions_total{cache="certificates",context="web"} 19
ossl_tls_conversions_total{cache="configurations",context="web"} 21
ossl_tls_handshake_failures_total{alert="",class="not_tls",context="web",role="server"} 4
ossl_tls_handshake_failures_total{alert="protocol_version",class="refused",context="web",role="server"} 3
ossl_tls_handshake_seconds_bucket{context="web",resumed="true",role="server",le="0.001"} 1
ossl_tls_handshake_seconds_bucket{context="web",resumed="true",role="server",le="1"} 2
ossl_tls_handshake_seconds_bucket{context="web",resumed="true",role="server",le="+Inf"} 3
ossl_tls_handshake_seconds_sum{context="web",resumed="true",role="server"} 2.5
ossl_tls_handshake_seconds_count{context="web",resumed="true",role="server"} 3
ossl_tls_handshakes_total{` +
	`cipher_suite="TLS_AES_128_GCM_SHA256",context="web",curve="x25519",` +
	`hello_retry="true",resumption="ticket",role="server",version="1.3"} 2
ossl_tls_handshakes_total{` +
	`cipher_suite="TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",context="web",curve="secp256r1",` +
	`hello_retry="false",resumption="none",role="client",version="1.2"} 1
ossl_tls_kernel_connections_total{context="web"} 11
ossl_tls_open_connections{context="web"} 6
ossl_tls_read_bytes_total{context="web"} 7
ossl_tls_revocation_verdicts_total{context="web",verdict="hard_fail"} 24
ossl_tls_revocation_verdicts_total{context="web",verdict="revoked"} 23
ossl_tls_revocation_verdicts_total{context="web",verdict="soft_fail"} 25
ossl_tls_session_cache_gets_total{context="web",result="error"} 14
ossl_tls_session_cache_gets_total{context="web",result="hit"} 12
ossl_tls_session_cache_gets_total{context="web",result="miss"} 13
ossl_tls_session_cache_puts_total{context="web",result="error"} 16
ossl_tls_session_cache_puts_total{context="web",result="ok"} 15
ossl_tls_written_bytes_total{context="web"} 8
`

// gather returns the metrics in Prometheus' text format, without comments and without the library's
// metrics.
func gather(t *testing.T, r *prometheus.Registry) string {
	t.Helper()
	text := string(scrape(t, r))
	var lines strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "ossl_openssl_info") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// TestMetrics compares all metrics of known numbers.
func TestMetrics(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(promossl.NewCollector(known))
	if got, want := gather(t, r), strings.TrimPrefix(knownText, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestLint checks names, types and help texts with Prometheus' own linter.
func TestLint(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(promossl.NewCollector(known))
	problems, err := testutil.GatherAndLint(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestProcess checks that the metrics of the process have no label for a Context, and that a
// registry has either them or the metrics of Contexts.
func TestProcess(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(promossl.NewCollector(metrics.Process))
	text := gather(t, r)
	if !strings.Contains(text, "ossl_tls_open_connections ") || strings.Contains(text, "context=") {
		t.Error(text)
	}
	if err := r.Register(promossl.NewCollector(new(metrics.Contexts))); err == nil {
		t.Error("a registry has the connections twice")
	}
}

// TestBadName checks that a Source with a name that no label can have makes a scrape fail, and
// doesn't end the program.
func TestBadName(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(promossl.NewCollector(fixed{{Name: "\xff", Stats: known[0].Stats}}))
	if _, err := r.Gather(); err == nil {
		t.Error("a label that is not UTF-8 was accepted")
	}
}

// TestContexts checks the metrics of real connections, and that the metric of the library
// appears with the first handshake.
func TestContexts(t *testing.T) {
	var contexts metrics.Contexts
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(promossl.NewCollector(&contexts))
	if families, err := r.Gather(); err != nil || len(families) > 0 {
		t.Fatalf("%v, %v", families, err)
	}
	ca := newAuthority(t)
	client := newContext(t, &contexts, "client", ca.client())
	server := newContext(t, &contexts, "server", ca.server())
	if strings.Contains(string(scrape(t, r)), "ossl_openssl_info") {
		t.Error("a scrape before the first handshake describes the library")
	}
	visit(t, client, server)
	text := string(scrape(t, r))
	lib, err := ossl.Library()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`ossl_openssl_info{description="` + lib.VersionText + `",version="` + lib.Version + `"} 1`,
		`ossl_tls_handshake_seconds_count{context="client",resumed="false",role="client"} 1`,
		`ossl_tls_handshake_seconds_count{context="server",resumed="false",role="server"} 1`,
		`ossl_tls_read_bytes_total{context="server"} 4`,
		`ossl_tls_written_bytes_total{context="client"} 4`,
		`ossl_tls_open_connections{context="client"} 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}

// BenchmarkCollect is the Collector's part of a scrape of one Context.
func BenchmarkCollect(b *testing.B) {
	c := promossl.NewCollector(known)
	ch := make(chan prometheus.Metric, 100)
	b.ReportAllocs()
	for b.Loop() {
		c.Collect(ch)
		for len(ch) > 0 {
			<-ch
		}
	}
}
