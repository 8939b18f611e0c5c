package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench"
	"github.com/ossl-go/ossl/cmd/ossl/internal/measure"
)

// demoRounds is the number of measurements of each row.
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
and once on Go's crypto/tls, and shows the times of both in one table: some of the rows of
ossl bench, measured in the same way.

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
	cmd.Flags().BoolVar(&o.json, "json", false, "write the result as JSON, with the keys of 'ossl bench --format json'")
	cmd.Flags().BoolVar(&o.noColor, "no-color", false, "write the table without colours")
	return cmd
}

func demo(cmd *cobra.Command, o demoOptions) error {
	lib, err := usableLibrary()
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if !o.json {
		writeHead(out, lib)
	}
	report := newReport(lib, demoRounds, "ossl demo")
	report.Rows = measure.Demo(report.FIPS)
	if err := runReport(cmd, report, ownEngines(), o.duration); err != nil {
		return err
	}
	if o.json {
		return report.WriteJSON(out)
	}
	writeDemo(out, report, lib, colours(out, o.noColor))
	return nil
}

func writeDemo(w io.Writer, report *measure.Report, lib library, colours bool) {
	writeTable(w, report, "", report.Rows, colours)
	fmt.Fprintf(w, "TLS 1.3, %v, AES-128-GCM, no resumption; server and client in this process, over loopback.\n",
		bench.DefaultKex())
	if report.FIPS {
		fmt.Fprintln(w, "In FIPS mode OpenSSL verifies each chain. crypto/tls is not in its own FIPS mode.")
	} else {
		fmt.Fprintln(w, "Chain cache: ossl's clients remember chains they have verified; crypto/tls verifies each time.")
	}
	writeFoot(w, report)
	if hint := fastestHint(lib.Version); hint != "" {
		fmt.Fprintln(w, hint)
	}
}

// fastestLine is the line of releases with which ossl is fastest, among the measured ones:
// docs/PERFORMANCE.md.
const fastestLine = "4.0"

// fastestHint returns a line for a user of an older OpenSSL, or "".
func fastestHint(version string) string {
	if older, err := olderThan(version, fastestLine); err != nil || !older {
		return ""
	}
	return fmt.Sprintf("OpenSSL %s is the fastest that ossl was measured with; this is %s.", fastestLine, version)
}

// olderThan reports whether a version such as 3.0.19 or 1.1.1w comes before a line such as 4.0.
func olderThan(version, line string) (bool, error) {
	numbers := func(s string) (major, minor int, err error) {
		_, err = fmt.Sscanf(s, "%d.%d", &major, &minor)
		return major, minor, err
	}
	major, minor, err := numbers(version)
	if err != nil {
		return false, err
	}
	lineMajor, lineMinor, err := numbers(line)
	return major < lineMajor || major == lineMajor && minor < lineMinor, err
}
