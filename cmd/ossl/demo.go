package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ossl-go/ossl/bench"
	"github.com/ossl-go/ossl/cmd/ossl/internal/measure"
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
	machine := measure.ThisMachine()
	result := demoResult{
		Library: lib,
		Go:      machine.Go,
		CPUs:    machine.CPUs,
		Load:    machine.Load,
		Rounds:  demoRounds,
	}
	rows := measure.Demo(lib.FIPSRequired != "")
	engines := []measure.Engine{measure.Local(measure.Both(bench.Std)), measure.Local(measure.Both(bench.OSSL))}
	p := newProgress(cmd.ErrOrStderr())
	p.start(demoRounds, len(rows)*len(engines))
	err = measure.Run(cmd.Context(), rows, engines, measure.Options{Rounds: demoRounds, Duration: o.duration, Step: p.step})
	p.stop()
	if err != nil {
		return err
	}
	for _, row := range rows {
		result.Rows = append(result.Rows, demoRowOf(row))
	}
	if o.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(result)
	}
	writeTable(out, result, colours(out, o.noColor))
	return nil
}
