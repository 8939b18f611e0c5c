package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench"
	"github.com/ossl-go/ossl/cmd/ossl/internal/measure"
	"github.com/ossl-go/ossl/cmd/ossl/internal/wholefile"
)

// A benchRequest is the command line of ossl bench.
type benchRequest struct {
	duration time.Duration
	rounds   int
	against  string
	pairings bool
	format   string
	html     string
	noColor  bool
	server   serverRequest
}

func benchCommand() *cobra.Command {
	var r benchRequest
	cmd := &cobra.Command{
		Use:   "bench [SECTION...|HOST:PORT]",
		Short: "Measure TLS on this machine, or a server's handshakes",
		Long: `Bench measures TLS on this machine, on the host's OpenSSL and on Go's crypto/tls, and shows how they
compare. Without a SECTION it measures everything:
` + sectionList() + `
In each round every row is measured with every engine, one right after the other, so that other
load on the machine affects all of them.

With the address of a server, such as example.org:443, it measures that server's handshakes instead:
full ones and resumed ones, as many a second as --rate says, and not more than --connections. Only
measure a server that is yours, or whose owner has agreed: --yes-this-is-mine says so.

The keys of --format json are stable: new ones may come, but none goes or changes its type.
  date, command, rounds, fips
  machine               processor, cpus, system, go, and load before the measurement
  openssl, libssl       the OpenSSL in use
  engines               the first one is what the others are compared with
  missing               rows that this host can't do, with the reason
  rows                  a list of objects with:
    section, name       benchmark is the name of the benchmark of the project that is the same
    unit                time, rate and throughput: all figures are nanoseconds for an operation,
                        which moves bytes; memory: bytes
    figures             the median of each engine; rounds has all figures
    ratios              of the time, or memory, of each engine except the first one to that:
                        ratio, and its range from ratio_low to ratio_high; below 1 is better`,
		Example: `  ossl bench
  ossl bench handshakes resumption --duration 30s --html report.html
  ossl bench --against /opt/openssl-4.0/lib --format json
  ossl bench example.org:443 --yes-this-is-mine`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !isSection(args[0]) {
				return r.server.run(cmd, args[0], r.format)
			}
			return r.run(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&r.duration, "duration", time.Minute, "approximate time to measure")
	flags.IntVar(&r.rounds, "rounds", 11, "number of rounds")
	flags.StringVar(&r.against, "against", "",
		"measure another `openssl` too: a version, the path of libssl, its\nfolder, or a script that runs a command on it")
	flags.BoolVar(&r.pairings, "pairings", false, "also let each implementation's clients meet the other's servers")
	flags.StringVar(&r.format, "format", "text", "text, json or benchstat")
	flags.BoolFunc("json", "the same as --format json", func(string) error { r.format = "json"; return nil })
	flags.StringVar(&r.html, "html", "", "write a page with charts to `file` too")
	flags.BoolVar(&r.noColor, "no-color", false, "write the tables without colours")
	r.server.flags(flags)
	return cmd
}

func isSection(name string) bool {
	return slices.ContainsFunc(measure.Sections, func(s measure.Section) bool { return s.Name == name })
}

func sectionList() string {
	var b strings.Builder
	for _, s := range measure.Sections {
		fmt.Fprintf(&b, "  %-13s %s\n", s.Name, s.Title)
	}
	return b.String()
}

func (r *benchRequest) check(sections []string) error {
	for _, name := range sections {
		if !isSection(name) {
			return usageError(fmt.Sprintf("unknown section %q", name))
		}
	}
	switch {
	case r.duration <= 0:
		return usageError(fmt.Sprintf("--duration is %v, but must be positive", r.duration))
	case r.rounds < 1:
		return usageError(fmt.Sprintf("--rounds is %d, but must be positive", r.rounds))
	case !slices.Contains([]string{"text", "json", "benchstat"}, r.format):
		return usageError(fmt.Sprintf("--format %q is not text, json or benchstat", r.format))
	}
	return r.server.unused()
}

func (r *benchRequest) run(cmd *cobra.Command, sections []string) (err error) {
	if err := r.check(sections); err != nil {
		return err
	}
	lib, err := usableLibrary()
	if err != nil {
		return err
	}
	if r.html != "" { // now: a name that can't be written must not cost a minute
		if err := wholefile.CheckReplace(r.html); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	engines := ownEngines()
	if r.pairings {
		engines = append(engines, measure.Local(measure.Ends{Server: bench.OSSL, Client: bench.Std}),
			measure.Local(measure.Ends{Server: bench.Std, Client: bench.OSSL}))
	}
	if r.against != "" {
		other, err := measure.NewWorker(cmd.Context(), r.against)
		if err != nil {
			return fmt.Errorf("--against: %w", err)
		}
		defer func() { err = errors.Join(err, other.Close()) }()
		engines = append(engines, other)
	}
	report := newReport(lib, r.rounds, "ossl "+strings.Join(commandLine(cmd, sections), " "))
	rows, missing := measure.Rows(sections, report.FIPS)
	common, lacking := measure.Common(rows, engines)
	report.Rows, report.Missing = common, append(missing, lacking...)
	if err := runReport(cmd, report, engines, r.duration); err != nil {
		return err
	}
	if r.html != "" {
		if err := wholefile.Replace(r.html, report.WriteHTML); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	out := cmd.OutOrStdout()
	switch r.format {
	case "json":
		return report.WriteJSON(out)
	case "benchstat":
		return report.WriteBenchstat(out)
	}
	writeHead(out, lib)
	for _, s := range measure.Sections {
		if rows := report.Section(s.Name); len(rows) > 0 {
			writeTable(out, report, s.Name, rows, colours(out, r.noColor))
		}
	}
	writeFoot(out, report)
	return nil
}

// commandLine returns the command line that a person would type for the same measurement.
func commandLine(cmd *cobra.Command, args []string) []string {
	line := append([]string{"bench"}, args...)
	for _, name := range []string{"duration", "rounds", "against", "pairings"} {
		f := cmd.Flags().Lookup(name)
		switch {
		case !f.Changed:
		case name == "pairings":
			line = append(line, "--"+name)
		case name == "against":
			line = append(line, "--"+name, filepath.Base(f.Value.String())) // the page may be for others
		default:
			line = append(line, "--"+name, f.Value.String())
		}
	}
	return line
}
