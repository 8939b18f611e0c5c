package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ossl-go/ossl/audit"
	"github.com/ossl-go/ossl/audit/confgen"
	"github.com/ossl-go/ossl/audit/confgen/trial"
	policies "github.com/ossl-go/ossl/policy"
)

// explain prints how the user's configuration differs.
func (f *configFlags) explain(cmd *cobra.Command, ours *confgen.Config) error {
	yours, err := confgen.Read(ours.Server, f.from)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	differences := confgen.Compare(yours, ours)
	fmt.Fprintf(out, "%s, compared with the policy %s. Directives about TLS: %d; differences: %d.\n", printable(f.from),
		ours.Policy.Name, len(yours.Directives), len(differences))
	writeRead(out, yours)
	for _, d := range differences {
		fmt.Fprintf(out, "\n%s\n", printable(cut(d.Name)))
		writeLine(out, "  yours", valueOf(d.Yours, d.HasYours))
		writeLine(out, "  ours", valueOf(d.Ours, d.HasOurs))
		writeLine(out, "  because", d.Reason)
		if d.From != "" {
			writeLine(out, "  source", d.From)
		}
	}
	writeSources(out, ours.Policy, differences)
	return nil
}

// writeRead writes the sites of a configuration that was read, and the parts that weren't read.
func writeRead(out io.Writer, yours *confgen.Config) {
	places := func(all []confgen.Place) string {
		var names []string
		for _, p := range all[:min(len(all), 10)] {
			names = append(names, p.String())
		}
		if len(all) > len(names) {
			names = append(names, fmt.Sprintf("and %d more", len(all)-len(names)))
		}
		return strings.Join(names, ", ")
	}
	switch n := len(yours.Sites); n {
	case 0:
		writeLine(out, "  sites", "none with TLS found: only directives for the whole server are compared")
	case 1:
		writeLine(out, "  sites", "1 with TLS: "+places(yours.Sites))
	default:
		writeLine(out, "  sites", fmt.Sprintf("%d with TLS. The first is compared: %s. Not compared: %s", n, places(yours.Sites[:1]),
			places(yours.Sites[1:])))
	}
	unread := map[string][]confgen.Place{}
	for _, u := range yours.Unread {
		unread[u.What] = append(unread[u.What], u.Place)
	}
	for _, u := range yours.Unread {
		if at := unread[u.What]; at != nil {
			writeLine(out, "  not read", u.What+" ("+places(at)+")")
			delete(unread, u.What)
		}
	}
}

// writeSources writes the titles of the documents that the differences name by their keys.
func writeSources(out io.Writer, p *policies.Policy, differences []confgen.Difference) {
	head := "\nSources\n"
	for _, key := range slices.Sorted(maps.Keys(p.Sources)) {
		if slices.ContainsFunc(differences, func(d confgen.Difference) bool {
			return slices.Contains(strings.Fields(strings.ReplaceAll(d.From, ";", " ")), key)
		}) {
			fmt.Fprint(out, head)
			head = ""
			writeLine(out, "  "+key, p.Sources[key].Title)
		}
	}
}

func valueOf(value string, has bool) string {
	switch {
	case !has:
		return "(not there)"
	case value == "":
		return "(there)"
	}
	return cut(value)
}

// tryBoth starts the server with both configurations, and prints the difference.
func (f *configFlags) tryBoth(cmd *cobra.Command, o confgen.Options) error {
	t := trial.Options{Ours: o, Rounds: f.rounds}
	yours := "the server's defaults"
	if f.from != "" {
		var err error
		if t.Yours, err = confgen.Read(o.Server, f.from); err != nil {
			return err
		}
		yours = printable(f.from)
	}
	if t.Keys = f.keys; len(t.Keys) == 0 {
		t.Keys = []string{"ECDSA"}
	}
	if isTerminal(cmd.ErrOrStderr()) {
		t.Progress = func(step string) { fmt.Fprintf(cmd.ErrOrStderr(), "%s…\n", step) }
	}
	r, err := trial.Run(cmd.Context(), t)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	head := fmt.Sprintf("%s %s%s on the loopback address, %s key: %s, and ours by the policy %s", o.Server.Kind,
		o.Server.Version, withTLS(o.Server), strings.Join(t.Keys, " and "), yours, o.Policy.Name)
	fmt.Fprintf(out, "%s\n\n", strings.Join(wrap(head, textWidth), "\n"))
	if t.Yours != nil {
		writeRead(out, t.Yours)
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "%-34s %16s %16s\n", "", "yours", "ours")
	for _, row := range rowsOf(r) {
		fmt.Fprintf(out, "%-34s %16s %16s\n", row[0], row[1], row[2])
	}
	if len(r.Yours.LeftOut) > 0 {
		writeLine(out, "yours", "Not tried, since they may name files, programs or addresses, or need much memory: "+
			cut(strings.Join(r.Yours.LeftOut, ", ")))
	}
	for _, side := range []struct {
		name string
		side trial.Side
	}{{"yours", r.Yours}, {"ours", r.Ours}} {
		if side.side.Stopped != "" {
			fmt.Fprintln(out)
			writeLine(out, side.name, cut(side.side.Stopped))
			if side.side.Directive != "" {
				writeLine(out, "", "It starts without: "+cut(side.side.Directive))
			}
		}
		if side.side.AuditError != "" {
			writeLine(out, side.name, "The audit failed: "+side.side.AuditError)
		}
	}
	onlyIn(cmd, "\nFindings that ours doesn't have:", r.Yours.Report, r.Ours.Report)
	onlyIn(cmd, "\nFindings that only ours has:", r.Ours.Report, r.Yours.Report)
	if r.Ours.Stopped != "" || r.Yours.Stopped != "" {
		return exitStatus(exitFailure)
	}
	return nil
}

// withTLS names the library that a server has TLS of.
func withTLS(s confgen.Server) string {
	switch {
	case s.OpenSSL != confgen.Version{}:
		return " with OpenSSL " + s.OpenSSL.String()
	case s.Kind == "caddy" && s.Go != confgen.Version{}:
		return ", built with Go " + s.Go.String() + ","
	}
	return ""
}

// onlyIn prints the findings that one report has and the other doesn't.
func onlyIn(cmd *cobra.Command, head string, a, b *audit.Report) {
	if a == nil || b == nil {
		return
	}
	for _, f := range a.Findings {
		if slices.ContainsFunc(b.Findings, func(g audit.Finding) bool { return g.Rule == f.Rule }) {
			continue
		}
		if head != "" {
			fmt.Fprintln(cmd.OutOrStdout(), head)
			head = ""
		}
		writeLine(cmd.OutOrStdout(), "  "+string(f.Severity), f.Rule+": "+f.Title+". "+f.Evidence)
	}
}

func rowsOf(r *trial.Result) [][3]string {
	row := func(name string, value func(trial.Side) string) [3]string {
		cell := func(s trial.Side) string {
			if s.Stopped != "" {
				return "doesn't start"
			}
			if v := value(s); v != "" {
				return v
			}
			return "-"
		}
		return [3]string{name, cell(r.Yours), cell(r.Ours)}
	}
	median := func(values []float64, unit string) string {
		if len(values) == 0 {
			return ""
		}
		values = slices.Sorted(slices.Values(values))
		return fmt.Sprintf("%.2f %s", values[len(values)/2], unit)
	}
	graded := func(grade func(*audit.Report) string) func(trial.Side) string {
		return func(s trial.Side) string {
			if s.Report == nil {
				return ""
			}
			return grade(s.Report)
		}
	}
	return [][3]string{
		row("a current client gets", func(s trial.Side) string { return s.Version }),
		row("key exchange", func(s trial.Side) string { return s.Group }),
		row("resumed", func(s trial.Side) string { return fmt.Sprintf("%d of %d", s.Hits, s.Offered) }),
		row("full handshake, median", func(s trial.Side) string { return median(s.Full, "ms") }),
		row("resumed handshake, median", func(s trial.Side) string { return median(s.Resumed, "ms") }),
		row("first byte, median", func(s trial.Side) string { return median(s.FirstByte, "ms") }),
		row("16 MB, median", func(s trial.Side) string { return median(s.Bulk, "MB/s") }),
		row("grade, fast", graded(func(r *audit.Report) string { return r.Fast.Mark })),
		row("grade, safe", graded(func(r *audit.Report) string { return r.Safe.Mark })),
		row("findings", graded(func(r *audit.Report) string { return fmt.Sprint(len(r.Findings)) })),
	}
}
