package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/rounds"
)

// A name is a benchmark's name in the original order of its keys: Latency/server=std/client=std.
type name string

// base returns the part before the keys.
func (n name) base() string {
	base, _, _ := strings.Cut(string(n), "/")
	return base
}

// key returns the value of key k, "" if there is none.
func (n name) key(k string) string {
	for part := range strings.SplitSeq(string(n), "/") {
		if v, ok := strings.CutPrefix(part, k+"="); ok {
			return v
		}
	}
	return ""
}

// with returns the name with the value of key k changed, if it has that key.
func (n name) with(k, value string) name {
	parts := strings.Split(string(n), "/")
	for i, part := range parts {
		if strings.HasPrefix(part, k+"=") {
			parts[i] = k + "=" + value
		}
	}
	return name(strings.Join(parts, "/"))
}

// without returns the name without key k.
func (n name) without(k string) name {
	parts := slices.DeleteFunc(strings.Split(string(n), "/"), func(part string) bool { return strings.HasPrefix(part, k+"=") })
	return name(strings.Join(parts, "/"))
}

// std returns crypto/tls's benchmark that corresponds to n.
func (n name) std() name {
	return n.without("record").with("server", "std").with("client", "std").with("impl", "std").with("chaincache", "off")
}

// results are the measured values of each benchmark, by unit, one value for each round.
type results struct {
	config map[string][]string // "libssl", "cpu", ...: the distinct values seen
	names  []name              // in the order of the first round
	values map[name]map[string][]float64

	adapters bool // benchmarks of several modules: names begin with the module's and keep the number of processors
}

func newResults() *results {
	return &results{config: map[string][]string{}, values: map[name]map[string][]float64{}}
}

// name returns the name of the benchmark that a line of pkg begins with.
func (r *results) name(pkg, field string) name {
	field = strings.TrimPrefix(field, "Benchmark")
	n := procs.ReplaceAllString(field, "")
	if !r.adapters {
		return name(n)
	}
	count := cmp.Or(strings.TrimPrefix(field[len(n):], "-"), "1") // go test leaves out a 1
	return name(path.Base(pkg) + "." + n + "/procs=" + count)
}

var (
	configLine = regexp.MustCompile(`^([a-z][a-z0-9-]*):\s+(.*)$`)
	procs      = regexp.MustCompile(`-\d+$`)
)

// read adds the benchmarks in r. It ignores other lines, as benchstat does; the output of a failed
// benchmark is an error.
func (r *results) read(in io.Reader) error {
	lines, pkg := bufio.NewScanner(in), ""
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "--- FAIL") || line == "FAIL" {
			return fmt.Errorf("a benchmark failed: %s", line)
		}
		if m := configLine.FindStringSubmatch(line); m != nil {
			if m[1] == "pkg" {
				pkg = m[2]
			}
			if !slices.Contains(r.config[m[1]], m[2]) {
				r.config[m[1]] = append(r.config[m[1]], m[2])
			}
			continue
		}
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "Benchmark") || len(fields) < 4 || len(fields)%2 != 0 {
			continue
		}
		n := r.name(pkg, fields[0])
		if r.values[n] == nil {
			r.names = append(r.names, n)
			r.values[n] = map[string][]float64{}
		}
		for i := 2; i < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return fmt.Errorf("%q: %w", line, err)
			}
			r.values[n][fields[i+1]] = append(r.values[n][fields[i+1]], v)
		}
	}
	return lines.Err()
}

// rounds returns the number of times that n was measured.
func (r *results) rounds(n name) int { return len(r.values[n]["ns/op"]) }

// median returns the median of n's values of a unit, 0 if there are none.
func (r *results) median(n name, unit string) float64 { return rounds.Median(r.values[n][unit]) }

// ratio compares n's values of a unit with the values of benchmark base, round by round.
func (r *results) ratio(n, base name, unit string) rounds.Ratio {
	return rounds.Compare(r.values[n][unit], r.values[base][unit])
}
