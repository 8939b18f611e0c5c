package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// adapterTitles are the modules whose benchmarks writeAdapters knows, in the order of its tables.
var adapterTitles = []string{"libp2ptls", "httptls", "grpctls"}

// implementations maps the names that the adapters' benchmarks have for the two sides of a
// comparison to those of package bench.
var implementations = map[string]string{"std": "std", "StdTLS": "std", "nethttp": "std", "ossl": "ossl", "OpenSSL": "ossl"}

// adapterTargets are the highest ratios of time to crypto/tls's with both ends on OpenSSL.
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
	fmt.Fprintf(w, "%s. Medians of a pairing, server-client; the ratio is that of both ends on OpenSSL to\n", r.conditions())
	fmt.Fprint(w, "both on crypto/tls, and the range is that of the rounds' own ratios.\n")
	for _, module := range adapterTitles {
		if pairings := r.pairings(module); len(pairings) > 0 {
			fmt.Fprintf(w, "\n| %s | std-std | std-ossl | ossl-std | ossl-ossl | ratio | range | target | "+
				"| allocations: std-std | ossl-ossl |\n|---|--:|--:|--:|--:|--:|:-:|--:|---|--:|--:|\n", module)
			for _, p := range pairings {
				r.writePairing(w, p, generation(version))
			}
		}
	}
}

func (r *results) writePairing(w io.Writer, p pairing, generation int) {
	std, ours := p.by["std-std"], p.by["ossl-ossl"]
	fmt.Fprintf(w, "| %s |", p.label())
	for _, impls := range []string{"std-std", "std-ossl", "ossl-std", "ossl-ossl"} {
		if values := r.values[p.by[impls]]["ns/op"]; len(values) > 0 {
			fmt.Fprintf(w, " %s |", duration(median(values)))
		} else {
			fmt.Fprint(w, " |")
		}
	}
	ratios := r.ratio(ours, std, "ns/op")
	if len(ratios) == 0 {
		fmt.Fprint(w, " | | | | | |\n")
		return
	}
	ratio := median(r.values[ours]["ns/op"]) / median(r.values[std]["ns/op"])
	limit, has := limitFor(adapterTargets, p.bench, generation)
	fmt.Fprintf(w, " **%.2f** | %.2f-%.2f | %s |", ratio, slices.Min(ratios), slices.Max(ratios),
		verdict(has, ratio <= limit, fmt.Sprintf("%.2f", limit), ""))
	fmt.Fprintf(w, " %s | %s |\n", count(median(r.values[std]["allocs/op"])), count(median(r.values[ours]["allocs/op"])))
}

// label returns the benchmark's name and keys in words: "Handshake, peers=fresh, procs=1".
func (p pairing) label() string {
	_, bench, _ := strings.Cut(string(p.bench), ".")
	return strings.ReplaceAll(bench, "/", ", ")
}
