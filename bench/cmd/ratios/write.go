package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

func (r *results) write(w io.Writer) {
	version := r.version()
	g := generation(version)
	fmt.Fprintf(w, "# ossl beside crypto/tls: libssl %s\n\n", version)
	fmt.Fprintf(w, "%s. Medians and their ratio; the range is that of the rounds' own ratios.\n", r.conditions())
	r.writeRatios(w, g)
	r.writeCPU(w)
	r.writeResumption(w)
	r.writeCounts(w, g)
}

// version returns the version of libssl that was measured.
func (r *results) version() string {
	return cmp.Or(strings.Join(r.config["libssl"], " and "), "of unknown version")
}

// conditions describes the conditions of the measurement.
func (r *results) conditions() string {
	least, most := r.rounds(r.names[0]), 0
	for _, n := range r.names {
		least, most = min(least, r.rounds(n)), max(most, r.rounds(n))
	}
	rounds := fmt.Sprintf("%d rounds", least)
	if least != most {
		rounds = fmt.Sprintf("%d to %d rounds", least, most)
	}
	return strings.Join(append([]string{rounds}, r.config["cpu"]...), ", ")
}

// compared returns the benchmarks of ossl for which crypto/tls was measured too.
func (r *results) compared() []name {
	return slices.DeleteFunc(slices.Clone(r.names), func(n name) bool {
		return n.std() == n || n.isFloor() || n.base() == "IdleMemory" || r.values[n.std()] == nil
	})
}

func (r *results) writeRatios(w io.Writer, generation int) {
	for _, part := range []struct {
		head       string
		throughput bool
		targets    []target
	}{
		{"time: ossl / crypto/tls (lower is better)", false, timeTargets},
		{"throughput: ossl / crypto/tls (higher is better)", true, throughputTargets},
	} {
		wrote := false
		for _, n := range r.compared() {
			if (n.base() == "Bulk") != part.throughput {
				continue
			}
			if !wrote {
				fmt.Fprintf(w, "\n| %s | crypto/tls | ossl | ratio | range | floor | target | |\n|---|--:|--:|--:|:-:|--:|--:|---|\n",
					part.head)
				wrote = true
			}
			unit, format := "ns/op", duration
			if part.throughput {
				unit, format = "MB/s", throughput
			}
			ratio, ratios := r.medians(n, unit), r.ratio(n, n.std(), unit)
			limit, has := limitFor(part.targets, n, generation)
			meets := func(ratio float64) bool {
				if part.throughput {
					return ratio >= limit
				}
				return ratio <= limit
			}
			floor, beaten := r.floorOf(n, unit), ""
			if floor.what != "" && !meets(floor.ratio) {
				beaten = floor.what
			}
			fmt.Fprintf(w, "| %s | %s | %s | **%.3f** | %.2f-%.2f | %s | %s |\n", label(n),
				format(median(r.values[n.std()][unit])), format(median(r.values[n][unit])),
				ratio, slices.Min(ratios), slices.Max(ratios), floor, verdict(has, meets(ratio), fmt.Sprintf("%.2f", limit), beaten))
		}
	}
}

// writeCPU writes the processor time of each end. It is measured in lockstep on one thread: see
// bench.SplitCPU.
func (r *results) writeCPU(w io.Writer) {
	wrote := false
	for _, n := range r.compared() {
		if len(r.ratio(n, n.std(), "client-ns/op")) == 0 || n.base() == "Resumption" {
			continue // writeResumption writes it
		}
		if !wrote {
			fmt.Fprint(w, "\n| processor time of each end | client: crypto/tls | ossl | ratio | floor ",
				"| server: crypto/tls | ossl | ratio | floor |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
			wrote = true
		}
		fmt.Fprintf(w, "| %s |", label(n))
		for _, unit := range []string{"client-ns/op", "server-ns/op"} {
			std, ossl := median(r.values[n.std()][unit]), median(r.values[n][unit])
			fmt.Fprintf(w, " %s | %s | %.2f | %s |", duration(std), duration(ossl), ossl/std, r.floorOf(n, unit))
		}
		fmt.Fprintln(w)
	}
}

func (r *results) writeCounts(w io.Writer, generation int) {
	wrote := false
	for _, n := range r.names {
		for _, t := range countTargets {
			if !t.matches(n) {
				continue
			}
			if !wrote {
				fmt.Fprint(w, "\n| count | crypto/tls | ossl | target | |\n|---|--:|--:|--:|---|\n")
				wrote = true
			}
			what := t.label + recordPath(n)
			if cert := n.key("cert"); cert != "" {
				what += ", " + cert
			}
			sum := func(n name) (total float64) {
				for _, unit := range t.units {
					total += median(r.values[n][unit])
				}
				return total
			}
			limit, has := 0.0, generation >= 0
			if has {
				limit = t.limit[generation]
			}
			if t.asStd {
				limit, has = sum(n.std()), r.values[n.std()] != nil
			}
			std := "-"
			if s := sum(n.std()); s > 0 {
				std = count(s)
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s |\n", what, std, count(sum(n)), verdict(has, sum(n) <= limit, count(limit), ""))
		}
	}
	r.writeMemory(w)
}

func (r *results) writeMemory(w io.Writer) {
	wrote := false
	for _, n := range r.names {
		if n.base() != "IdleMemory" {
			continue
		}
		if !wrote {
			fmt.Fprint(w, "\n| bytes of an idle connection, server | Go heap | Go stack | C heap | resident |\n|---|--:|--:|--:|--:|\n")
			wrote = true
		}
		what := "ossl" + recordPath(n)
		if n == n.std() {
			what = "crypto/tls"
		}
		v := r.values[n]
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", what, count(median(v["go-B/conn"])),
			count(median(v["stack-B/conn"])), count(median(v["c-B/conn"])), count(median(v["rss-B/conn"])))
	}
}

// recordPath describes the record path in n's name.
func recordPath(n name) string {
	if v := n.key("record"); v != "" {
		return ", record path " + v
	}
	return ""
}

// label describes the operation that n measures.
func label(n name) string {
	var words []string
	add := func(format, key string) {
		if v := n.key(key); v != "" {
			words = append(words, fmt.Sprintf(format, v))
		}
	}
	words = append(words, strings.ToLower(n.base()))
	add("TLS %s", "version")
	add("%s", "cert")
	add("%s", "resume")
	if n.key("mutual") == "true" {
		words = append(words, "mutual")
	}
	if n.key("kex") != "X25519" {
		add("%s", "kex")
	}
	add("chain cache %s", "chaincache")
	add("%s", "dir")
	add("%s writes", "write")
	if n.key("server") != n.key("client") {
		add("(server %s,", "server")
		add("client %s)", "client")
	}
	return strings.Join(words, " ") + recordPath(n)
}

// verdict returns the last two columns: a limit, and whether it is met. beaten is the floor that
// misses it too, "" for none.
func verdict(has, met bool, limit, beaten string) string {
	switch {
	case !has:
		return " | "
	case met:
		return limit + " | met"
	case beaten != "":
		return limit + " | **missed**, " + beaten + " too"
	}
	return limit + " | **missed**"
}

func duration(ns float64) string {
	d := time.Duration(ns)
	switch {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%.2f us", ns/1e3)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.0f us", ns/1e3)
	}
	return fmt.Sprintf("%.1f ms", ns/1e6)
}

func throughput(mbs float64) string { return fmt.Sprintf("%.0f MB/s", mbs) }

func count(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
