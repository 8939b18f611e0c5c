package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/rounds"
)

// adapterTitles are the modules whose benchmarks writeAdapters knows, in the order of its tables.
var adapterTitles = []string{"libp2ptls", "httptls", "grpctls"}

// implementations maps the names that the adapters' benchmarks have for the two sides of a comparison
// to package bench's names.
var implementations = map[string]string{"std": "std", "StdTLS": "std", "nethttp": "std", "ossl": "ossl", "OpenSSL": "ossl"}

// adapterTargets are the highest ratios of time to crypto/tls's if both sides use OpenSSL.
var adapterTargets = []target{
	{base: "libp2ptls.Handshake", limit: [2]float64{1.75, 1.45}},
	{base: "libp2ptls.Latency", limit: [2]float64{1.15, 1.05}},
	{base: "libp2ptls.Connections", match: map[string]string{"keys": "given"}, limit: [2]float64{1.6, 1.35}},
}

// A pairing is a benchmark of an adapter with all its combinations of server and client, by
// "std-std", "std-ossl" and so on. The benchmarks of httptls have the same implementation on both
// sides.
type pairing struct {
	bench name // without the implementations
	by    map[string]name
}

// pairings returns the benchmarks of module, in the order of the first round.
func (r *results) pairings(module string) []pairing {
	var all []pairing
	for _, n := range r.names {
		if !strings.HasPrefix(string(n), module+".") {
			continue
		}
		server, client := n.key("server"), n.key("client")
		if stack := n.key("stack"); stack != "" {
			server, client = stack, stack
		}
		server, client = implementations[server], implementations[client]
		if server == "" || client == "" {
			continue
		}
		bench := n.without("server").without("client").without("stack")
		i := slices.IndexFunc(all, func(p pairing) bool { return p.bench == bench })
		if i < 0 {
			i = len(all)
			all = append(all, pairing{bench, map[string]name{}})
		}
		all[i].by[server+"-"+client] = n
	}
	return all
}

// writeAdapters writes a table for each module of adapterTitles that was measured.
func (r *results) writeAdapters(w io.Writer) {
	version := r.version()
	fmt.Fprintf(w, "# The adapters beside their models: libssl %s\n\n", version)
	fmt.Fprintf(w, "%s. Figures are medians of a pairing, server-client; the ratio is that of\n"+
		"both ends on OpenSSL to both on crypto/tls. %s\n", r.conditions(), rounds.Legend(r.leastRounds()))
	for _, module := range adapterTitles {
		var rows [][]string
		for _, p := range r.pairings(module) {
			rows = append(rows, r.pairing(p, generation(version)))
		}
		rounds.WriteMarkdown(w, []string{module, "std-std", "std-ossl", "ossl-std", "ossl-ossl", "ratio", "target",
			"allocations: std-std", "ossl-ossl"}, rows)
	}
}

func (r *results) pairing(p pairing, generation int) []string {
	std, ours := p.by["std-std"], p.by["ossl-ossl"]
	row := []string{p.label()}
	for _, impls := range []string{"std-std", "std-ossl", "ossl-std", "ossl-ossl"} {
		text := ""
		if n := p.by[impls]; r.rounds(n) > 0 {
			text = duration(r.median(n, "ns/op"))
		}
		row = append(row, text)
	}
	ratio := r.ratio(ours, std, "ns/op")
	if ratio.Rounds == 0 {
		return append(row, "", "", "", "")
	}
	limit, has := limitFor(adapterTargets, p.bench, generation)
	return append(row, ratio.String(), verdict(has, ratio.Median <= limit, fmt.Sprintf("%.2f", limit), ""),
		count(r.median(std, "allocs/op")), count(r.median(ours, "allocs/op")))
}

// label returns the benchmark's name and keys in words: "Handshake, peers=fresh, procs=1".
func (p pairing) label() string {
	_, bench, _ := strings.Cut(string(p.bench), ".")
	return strings.ReplaceAll(bench, "/", ", ")
}
