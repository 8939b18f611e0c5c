package measure

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/cmd/ossl/internal/bench"
)

// A Section is a part of the measurements.
type Section struct {
	Name, Title string
}

// Sections are all parts, in their order.
var Sections = []Section{
	{"handshakes", "Full handshakes, by key, group and version"},
	{"resumption", "Connections that resume a session, each with a round trip"},
	{"connections", "New connections, each with a round trip"},
	{"latency", "Round trips of a few bytes on one connection"},
	{"bulk", "Bulk data, by the size of writes"},
	{"ciphers", "Bulk data, by cipher, in TLS 1.2"},
	{"http", "HTTP requests, answered with 1 KB"},
	{"grpc", "gRPC calls of a few bytes"},
	{"memory", "Memory of an idle connection, server's end"},
}

// Rows returns the rows of the sections, all if there are none. In FIPS mode some don't exist. The
// last result names the rows that are missing here, with the reasons.
func Rows(sections []string, fips bool) (rows []*Row, missing []string) {
	for _, s := range Sections {
		if len(sections) > 0 && !slices.Contains(sections, s.Name) {
			continue
		}
		for _, row := range builders[s.Name](fips) {
			row.Section = s.Name
			if reason := row.unavailable(); reason != "" {
				missing = append(missing, row.Name+": "+reason)
				continue
			}
			rows = append(rows, row)
		}
	}
	return rows, missing
}

// Common returns the rows that all engines can measure, and names the missing ones.
func Common(rows []*Row, engines []Engine) (common []*Row, missing []string) {
	for _, row := range rows {
		if i := slices.IndexFunc(engines, func(e Engine) bool { return e.Lacks(row) }); i >= 0 {
			missing = append(missing, row.Name+": not possible with "+engines[i].Name())
			continue
		}
		common = append(common, row)
	}
	return common, missing
}

var builders = map[string]func(fips bool) []*Row{
	"handshakes": handshakes, "resumption": resumption, "connections": connections, "latency": latency, "bulk": bulk,
	"ciphers": ciphers, "http": requests, "grpc": calls, "memory": memory,
}

// unavailable returns the reason why the host's OpenSSL can't do a row, or "".
func (r *Row) unavailable() string {
	if r.kernel && !slices.Contains(ossl.KernelTLS(), tls.VersionTLS13) {
		return "this kernel can't encrypt TLS 1.3"
	}
	if r.make == nil {
		return ""
	}
	m, err := r.make(Both(bench.OSSL))
	if err != nil {
		if bench.GroupRefused(err) {
			return "this OpenSSL lacks the group"
		}
		return "" // the measurement reports it
	}
	_, _ = m.Close()
	return ""
}

func between(p bench.Pair, make func(bench.Pair) (bench.Measure, error)) func(Ends) (bench.Measure, error) {
	return func(ends Ends) (bench.Measure, error) {
		p.Server, p.Client = ends.Server, ends.Client
		return make(p)
	}
}

var certNames = map[bench.Cert]string{bench.P256: "ECDSA P-256", bench.RSA2048: "RSA-2048", bench.Ed25519: "Ed25519"}

func handshake(name string, p bench.Pair) *Row {
	cache := "hit"
	if p.NoChainCache {
		cache = "off"
	}
	kex := p.Kex
	if kex == 0 {
		kex = bench.DefaultKex()
	}
	benchmark := fmt.Sprintf("Handshake/cert=%s/mutual=%v/kex=%v", p.Cert, p.Mutual, kex)
	if p.Version == tls.VersionTLS12 {
		benchmark += "/version=1.2"
	}
	return &Row{Name: "handshake, " + name, Benchmark: benchmark + "/chaincache=" + cache, Unit: PerOperation,
		make: between(p, bench.NewHandshake)}
}

func handshakes(fips bool) []*Row {
	rows := []*Row{
		handshake("ECDSA P-256", bench.Pair{Cert: bench.P256}),
		handshake("ECDSA P-256, no chain cache", bench.Pair{Cert: bench.P256, NoChainCache: true}),
		handshake("ECDSA P-256, mutual", bench.Pair{Cert: bench.P256, Mutual: true}),
		handshake("RSA-2048", bench.Pair{Cert: bench.RSA2048}),
		handshake("ECDSA P-256, group P-256", bench.Pair{Cert: bench.P256, Kex: tls.CurveP256}),
		handshake("ECDSA P-256, group X25519MLKEM768", bench.Pair{Cert: bench.P256, Kex: tls.X25519MLKEM768}),
		handshake("TLS 1.2, ECDSA P-256", bench.Pair{Cert: bench.P256, Version: tls.VersionTLS12}),
		handshake("TLS 1.2, RSA-2048", bench.Pair{Cert: bench.RSA2048, Version: tls.VersionTLS12}),
	}
	if fips { // no chain is remembered: one row is enough; and the group is P-256 anyway
		return slices.DeleteFunc(rows, func(r *Row) bool {
			return strings.HasSuffix(r.Name, "no chain cache") || strings.HasSuffix(r.Name, "group P-256")
		})
	}
	return append(rows, handshake("Ed25519", bench.Pair{Cert: bench.Ed25519}))
}

func resumption(bool) []*Row {
	var rows []*Row
	for _, v := range []uint16{tls.VersionTLS13, tls.VersionTLS12} {
		for _, cert := range []bench.Cert{bench.P256, bench.RSA2048} {
			p := bench.Pair{Cert: cert, Version: v, Resume: "ticket"}
			rows = append(rows, &Row{
				Name:      fmt.Sprintf("%s by ticket, %s", tls.VersionName(v), certNames[cert]),
				Benchmark: fmt.Sprintf("Resumption/cert=%s/version=%s/resume=ticket", cert, strings.TrimPrefix(tls.VersionName(v), "TLS ")),
				Unit:      PerOperation,
				make:      between(p, bench.NewConnections),
			})
		}
	}
	return rows
}

func connections(bool) []*Row {
	var rows []*Row
	for _, cert := range []bench.Cert{bench.P256, bench.RSA2048} {
		rows = append(rows, &Row{Name: "connections, " + certNames[cert], Benchmark: "Connections/cert=" + string(cert),
			Unit: PerSecond, make: between(bench.Pair{Cert: cert}, bench.NewConnections)})
	}
	return rows
}

func latency(bool) []*Row {
	return []*Row{{Name: "round trip", Benchmark: "Latency", Unit: PerOperation,
		make: between(bench.Pair{Cert: bench.P256}, bench.NewLatency)}}
}

func bulk(bool) []*Row {
	var rows []*Row
	for _, size := range []int{1 << 20, 16 << 10, 1 << 10} {
		rows = append(rows, stream("", "", size, bench.Pair{Cert: bench.P256}))
	}
	kernel := stream(", kernel TLS", "/record=kernel", 1<<20, bench.Pair{Cert: bench.P256, Records: "kernel"})
	kernel.kernel = true
	return append(rows, kernel)
}

// stream returns a row of bulk data from the server, in writes of a size.
func stream(more, key string, size int, p bench.Pair) *Row {
	name := fmt.Sprintf("%d KB", size>>10)
	if size >= 1<<20 {
		name = fmt.Sprintf("%d MB", size>>20)
	}
	return &Row{
		Name: "bulk, " + name + " writes" + more, Unit: Throughput, Bytes: size,
		Benchmark: "Bulk/dir=down/write=" + strings.ReplaceAll(name, " ", "") + key,
		make:      between(p, func(p bench.Pair) (bench.Measure, error) { return bench.NewBulk(p, bench.Down, size) }),
	}
}

func ciphers(fips bool) []*Row {
	suites := []struct {
		name string
		id   uint16
	}{
		{"AES-128-GCM", tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		{"AES-256-GCM", tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384},
		{"ChaCha20-Poly1305", tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256},
	}
	if fips {
		suites = suites[:2]
	}
	var rows []*Row
	for _, suite := range suites {
		for _, size := range []int{16 << 10, 1 << 10} {
			p := bench.Pair{Cert: bench.P256, Version: tls.VersionTLS12, Suite: suite.id}
			rows = append(rows, stream(", "+suite.name, "/cipher="+suite.name, size, p))
		}
	}
	return rows
}

// idleConnections are fewer than package bench's, since a user waits for them.
const idleConnections = 2000

func memory(bool) []*Row {
	return []*Row{{Name: "idle connection", Benchmark: "IdleMemory", Unit: Memory,
		once: func(_ context.Context, ends Ends) (float64, error) {
			m, err := bench.IdleMemory(ends.Server, "", idleConnections)
			return m.RSS, err
		}}}
}

// Demo returns the rows of the demonstration, which is a part of the whole.
func Demo(fips bool) []*Row {
	names := []string{
		"handshake, ECDSA P-256", "handshake, ECDSA P-256, no chain cache", "handshake, ECDSA P-256, mutual", "handshake, RSA-2048",
		"connections, ECDSA P-256", "round trip", "bulk, 1 MB writes", "bulk, 16 KB writes",
	}
	rows, _ := Rows([]string{"handshakes", "connections", "latency", "bulk"}, fips)
	return slices.DeleteFunc(rows, func(r *Row) bool { return !slices.Contains(names, r.Name) })
}
