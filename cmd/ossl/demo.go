package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ossl-go/ossl/bench"
)

// demoRounds is the number of measurements of each row. It is odd, so that one of them is the
// median.
const demoRounds = 11

type demoOptions struct {
	duration time.Duration
	json     bool
	noColor  bool
}

func demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run servers and clients on the host's OpenSSL and compare them with crypto/tls",
		Long: `Demo runs TLS servers and clients in this process, over loopback, once on the host's OpenSSL
and once on Go's crypto/tls, and shows the times of both in one table.

The two are measured alternately, so that other load on the machine affects both.
Everything is TLS 1.3 with X25519 and AES-128-GCM, without resumption. If OSSL_FIPS=require or
the host requires FIPS mode, the group is P-256, and OpenSSL uses its FIPS module.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.duration <= 0 {
				return usageError(fmt.Sprintf("--duration is %v, but must be positive", o.duration))
			}
			return demo(cmd, o)
		},
	}
	cmd.Flags().DurationVar(&o.duration, "duration", 20*time.Second, "approximate time to measure")
	cmd.Flags().BoolVar(&o.json, "json", false, "write the result as JSON")
	cmd.Flags().BoolVar(&o.noColor, "no-color", false, "write the table without colours")
	return cmd
}

// A demoResult is the result of the demo, as --json writes it.
type demoResult struct {
	Library library   `json:"library"`
	Go      string    `json:"go"`
	CPUs    int       `json:"cpus"`
	Load    float64   `json:"load"` // the load average of the minute before the demo
	Rounds  int       `json:"rounds"`
	Rows    []demoRow `json:"rows"`
}

func demo(cmd *cobra.Command, o demoOptions) error {
	lib, err := findLibrary()
	if err == nil {
		err = lib.err
	}
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if !o.json {
		writeHead(out, lib)
	}
	result := demoResult{
		Library: lib,
		Go:      runtime.Version(),
		CPUs:    runtime.GOMAXPROCS(0),
		Load:    load(),
		Rounds:  demoRounds,
		Rows:    demoRows(lib.FIPSRequired != ""),
	}
	if err := measureRows(cmd.Context(), result.Rows, o.duration, newProgress(cmd.ErrOrStderr())); err != nil {
		return err
	}
	if o.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(result)
	}
	writeTable(out, result, colours(out, o.noColor))
	return nil
}

// measureRows measures all rows for about d, in rounds: in each round every row has a slice of
// time, crypto/tls first and ossl right after it.
func measureRows(ctx context.Context, rows []demoRow, d time.Duration, p progress) error {
	impls := []bench.Impl{bench.Std, bench.OSSL}
	slice := d / time.Duration(demoRounds*len(rows)*len(impls))
	p.start(demoRounds, len(rows)*len(impls))
	defer p.stop()
	for round := range demoRounds {
		for i := range rows {
			for _, impl := range impls {
				if err := ctx.Err(); err != nil {
					return err
				}
				p.step(round, rows[i].Name+", "+implName(impl))
				perOp, err := rows[i].measure(impl, slice)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", rows[i].Name, implName(impl), err)
				}
				rows[i].add(impl, perOp)
			}
		}
	}
	for i := range rows {
		rows[i].summarize()
	}
	return nil
}

// measure returns the time of an operation of row r, measured for about d on new connections: the
// speed of a stream depends on the addresses of its buffers, which should differ from round to
// round, not from implementation to implementation.
func (r *demoRow) measure(impl bench.Impl, d time.Duration) (perOp time.Duration, err error) {
	m, err := r.make(impl)
	if err != nil {
		return 0, err
	}
	defer func() {
		_, closeErr := m.Close()
		err = errors.Join(err, closeErr)
	}()
	runtime.GC() // otherwise this slice would pay for garbage of the previous one
	const warmUp = 10
	if _, _, err := bench.TimeFor(m, d/warmUp); err != nil {
		return 0, err
	}
	ops, elapsed, err := bench.TimeFor(m, d-d/warmUp)
	if err != nil {
		return 0, err
	}
	return elapsed / time.Duration(ops), nil
}

// load returns the system's load average of the last minute, or 0 if it is not available.
func load() float64 {
	averages, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(averages), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return load
}

func implName(impl bench.Impl) string {
	if impl == bench.Std {
		return "crypto/tls"
	}
	return string(impl)
}
