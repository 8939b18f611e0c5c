package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/rounds"
)

func (r *results) write(w io.Writer) {
	version := r.version()
	g := generation(version)
	fmt.Fprintf(w, "# ossl beside crypto/tls: libssl %s\n\n", version)
	fmt.Fprintf(w, "%s. Figures are medians. %s\n", r.conditions(), rounds.Legend(r.leastRounds()))
	r.writeRatios(w, g)
	r.writeCPU(w)
	r.writeResumption(w)
	r.writeCounts(w, g)
}

// version returns the libssl version that was measured.
func (r *results) version() string {
	return cmp.Or(strings.Join(r.config["libssl"], " and "), "of unknown version")
}

// leastRounds returns the number of rounds of the benchmark with the fewest.
func (r *results) leastRounds() int {
	least := r.rounds(r.names[0])
	for _, n := range r.names {
		least = min(least, r.rounds(n))
	}
	return least
}

// conditions describes the conditions of the measurement.
func (r *results) conditions() string {
	least, most := r.leastRounds(), 0
	for _, n := range r.names {
		most = max(most, r.rounds(n))
	}
	text := fmt.Sprintf("%d rounds", least)
	if least != most {
		text = fmt.Sprintf("%d to %d rounds", least, most)
	}
	return strings.Join(append([]string{text}, r.config["cpu"]...), ", ")
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
		var rows [][]string
		for _, n := range r.compared() {
			if (n.base() == "Bulk") != part.throughput {
				continue
			}
			unit, format := "ns/op", duration
			if part.throughput {
				unit, format = "MB/s", throughput
			}
			ratio := r.ratio(n, n.std(), unit)
			limit, has := limitFor(part.targets, n, generation)
			meets := func(ratio rounds.Ratio) bool {
				if part.throughput {
					return ratio.Median >= limit
				}
				return ratio.Median <= limit
			}
			floor, beaten := r.floorOf(n, unit), ""
			if floor.what != "" && !meets(floor.ratio) {
				beaten = floor.what
			}
			rows = append(rows, []string{label(n), format(r.median(n.std(), unit)), format(r.median(n, unit)), ratio.String(),
				floor.String(), verdict(has, meets(ratio), fmt.Sprintf("%.2f", limit), beaten)})
		}
		rounds.WriteMarkdown(w, []string{part.head, "crypto/tls", "ossl", "ratio", "floor", "target"}, rows)
	}
}

// writeCPU writes the processor time of each end. It is measured in lockstep on one thread: see
// bench.SplitCPU.
func (r *results) writeCPU(w io.Writer) {
	var rows [][]string
	for _, n := range r.compared() {
		if r.ratio(n, n.std(), "client-ns/op").Rounds == 0 || n.base() == "Resumption" {
			continue // writeResumption writes it
		}
		row := []string{label(n)}
		for _, unit := range []string{"client-ns/op", "server-ns/op"} {
			row = append(row, duration(r.median(n.std(), unit)), duration(r.median(n, unit)), r.ratio(n, n.std(), unit).String(),
				r.floorOf(n, unit).String())
		}
		rows = append(rows, row)
	}
	rounds.WriteMarkdown(w, []string{"processor time of each end", "client: crypto/tls", "ossl", "ratio", "floor",
		"server: crypto/tls", "ossl", "ratio", "floor"}, rows)
}

func (r *results) writeCounts(w io.Writer, generation int) {
	var rows [][]string
	for _, n := range r.names {
		for _, t := range countTargets {
			if !t.matches(n) {
				continue
			}
			what := t.label + recordPath(n)
			if cert := n.key("cert"); cert != "" {
				what += ", " + cert
			}
			sum := func(n name) (total float64) {
				for _, unit := range t.units {
					total += r.median(n, unit)
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
			rows = append(rows, []string{what, std, count(sum(n)), verdict(has, sum(n) <= limit, count(limit), "")})
		}
	}
	rounds.WriteMarkdown(w, []string{"count", "crypto/tls", "ossl", "target"}, rows)
	r.writeMemory(w)
	r.writeContexts(w)
}

// writeContexts writes the costs of one more Context. A tls.Config costs crypto/tls nothing until it
// is used.
func (r *results) writeContexts(w io.Writer) {
	var rows [][]string
	for _, n := range r.names {
		if n.base() == "NewContext" {
			rows = append(rows, []string{n.key("role"), duration(r.median(n, "ns/op")), count(r.median(n, "go-B/context")),
				count(r.median(n, "c-B/context"))})
		}
	}
	rounds.WriteMarkdown(w, []string{"one more Context", "time", "bytes in Go", "in C"}, rows)
}

func (r *results) writeMemory(w io.Writer) {
	var rows [][]string
	for _, n := range r.names {
		if n.base() != "IdleMemory" {
			continue
		}
		row := []string{"ossl" + recordPath(n)}
		if n == n.std() {
			row[0] = "crypto/tls"
		}
		for _, unit := range []string{"go-B/conn", "stack-B/conn", "c-B/conn", "rss-B/conn"} {
			row = append(row, count(r.median(n, unit)))
		}
		rows = append(rows, row)
	}
	rounds.WriteMarkdown(w, []string{"bytes of an idle connection, server", "Go heap", "Go stack", "C heap", "resident"}, rows)
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
	switch n.base() {
	case "Start":
		return "processor time of a process with one server and one client"
	case "StartClient":
		return "processor time of a process with one client connection"
	case "StartImport":
		return "processor time of a process without a connection"
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

// verdict returns a limit, and whether it is met. beaten is the floor that misses it too, "" for none.
func verdict(has, met bool, limit, beaten string) string {
	switch {
	case !has:
		return ""
	case met:
		return limit + ", met"
	case beaten != "":
		return limit + ", **missed**, " + beaten + " too"
	}
	return limit + ", **missed**"
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
