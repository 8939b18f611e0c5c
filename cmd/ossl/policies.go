package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	policies "github.com/ossl-go/ossl/policy"
)

func policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Show the policies by which servers are judged and configured, and compare them",
		Long: `Policy shows the policies of this command: what documents such as Mozilla's guidelines or BSI
TR-02102-2 allow a TLS server, value by value, with the section that says so and, where there is
one, the last day on which it is allowed. Policies are dated, and never change: a new edition of a
document is a new policy. 'ossl check' and 'ossl config' take their names, as --policy.`,
		Example: `  ossl policy list
  ossl policy show bsi --at 2032-01-01
  ossl policy diff mozilla-intermediate-5.7 mozilla-intermediate-6.0`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("name what to do: ossl policy list, show or diff")
		},
	}
	cmd.AddCommand(policyListCommand(), policyShowCommand(), policyDiffCommand())
	return cmd
}

// A policySummary is a result of "policy list", as --json writes it.
type policySummary struct {
	Name    string        `json:"name"`
	Aliases []string      `json:"aliases"`
	Title   string        `json:"title"`
	Date    policies.Date `json:"date"`
	Summary string        `json:"summary"`
}

func policyListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all policies",
		Long: `List shows the name of each policy, its other names, its date, and for whom it is. The first one is
the default.

The keys of --json are stable: a list of objects with name, aliases, title, date and summary.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := []policySummary{}
			for _, p := range policies.All() {
				list = append(list, policySummary{p.Name, append([]string{}, p.Aliases...), p.Title, p.Date, p.Summary})
			}
			out := cmd.OutOrStdout()
			if asJSON {
				return writeJSON(out, list)
			}
			for i, p := range list {
				if i > 0 {
					fmt.Fprintln(out)
				}
				fmt.Fprintln(out, strings.Join(append([]string{p.Name}, p.Aliases...), ", "))
				writeIndented(out, 2, fmt.Sprintf("%s (%v). %s", p.Title, p.Date, p.Summary))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func policyShowCommand() *cobra.Command {
	var asJSON bool
	var at string
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a policy with the source of each value",
		Long: `Show writes all values of a policy. In lists, the most preferred value comes first. Beside each
value are its level (required, recommended, allowed, phase-out), the last day on which it is allowed
if there is one, and the section of the document. Settings that the document leaves open are left
out.

--json writes the policy as its file has it. The keys are stable: docs/POLICIES.md describes them.`,
		Args:              exactly(1),
		ValidArgsFunction: completePolicies(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := policyAt(args[0], at)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), p)
			}
			writePolicy(cmd.OutOrStdout(), p)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.Flags().StringVar(&at, "at", "", "without the values that are not allowed on this `day` any more: 2032-01-01")
	return cmd
}

// A policyDiff is the result of "policy diff", as --json writes it.
type policyDiff struct {
	A           string                `json:"a"`
	B           string                `json:"b"`
	Differences []policies.Difference `json:"differences"`
}

func policyDiffCommand() *cobra.Command {
	var asJSON bool
	var at string
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Show in which values two policies differ",
		Long: `Diff shows each value in which two policies differ, as A has it and as B has it. A dash stands for a
value that a policy doesn't have. Sources and notes are not compared. The exit status is 0 in either
case.

The keys of --json are stable: a and b are the policies' names, differences a list of objects with
field, name (of a value in a list), a and b.`,
		Args:              exactly(2),
		ValidArgsFunction: completePolicies(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := policyAt(args[0], at)
			if err != nil {
				return err
			}
			b, err := policyAt(args[1], at)
			if err != nil {
				return err
			}
			d := policies.Diff(a, b)
			out := cmd.OutOrStdout()
			if asJSON {
				return writeJSON(out, policyDiff{a.Name, b.Name, append([]policies.Difference{}, d...)})
			}
			writeDiff(out, a.Name, b.Name, d)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.Flags().StringVar(&at, "at", "", "compare what both allow on this `day`: 2032-01-01")
	return cmd
}

// policyAt returns the policy with a name, as on a day if one is given. Its errors are usage errors.
func policyAt(name, day string) (*policies.Policy, error) {
	p, err := policies.Get(name)
	if err != nil {
		return nil, usageError(strings.TrimPrefix(err.Error(), "policy: "))
	}
	if day == "" {
		return p, nil
	}
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return nil, usageError(fmt.Sprintf("--at is %q, not a day such as 2032-01-01", day))
	}
	return p.At(t), nil
}

// completePolicies completes up to n names of policies.
func completePolicies(n int) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return policies.Names(), cobra.ShellCompDirectiveNoFileComp
	}
}

// controls are the characters that could control a terminal and that package json doesn't escape.
var controls = regexp.MustCompile("[\x7f-\u009f]")

// writeJSON writes a value as indented JSON.
func writeJSON(w io.Writer, v any) error {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, controls.ReplaceAllStringFunc(text.String(), func(c string) string {
		return fmt.Sprintf(`\u%04x`, []rune(c)[0])
	}))
	return err
}

// writeIndented writes text in lines that begin with n spaces.
func writeIndented(w io.Writer, n int, text string) {
	for _, line := range wrap(printable(text), textWidth-n) {
		fmt.Fprintf(w, "%*s%s\n", n, "", line)
	}
}

// fieldTitles are the titles of a policy's fields in its JSON.
var fieldTitles = map[string]string{
	"versions": "Versions", "suites13": "Cipher suites of TLS 1.3", "suites12": "Cipher suites of TLS 1.2",
	"order": "Whose order of cipher suites decides", "groups": "Key exchange groups", "signatures": "Signature schemes",
	"keys": "Keys of certificates", "chain": "Certificates", "stapling": "OCSP stapling", "resumption": "Resumption",
	"records": "Records", "sockets": "Sockets and HTTP", "fips": "FIPS mode",
}

func writePolicy(w io.Writer, p *policies.Policy) {
	fmt.Fprintln(w, strings.Join(append([]string{p.Name}, p.Aliases...), ", "))
	writeIndented(w, 0, fmt.Sprintf("%s (%v)", p.Title, p.Date))
	writeIndented(w, 0, p.Summary)
	lines := p.Lines()
	for len(lines) > 0 {
		top, _, _ := strings.Cut(lines[0].Field, ".")
		n := 0
		for n < len(lines) && (lines[n].Field == top || strings.HasPrefix(lines[n].Field, top+".")) {
			n++
		}
		fmt.Fprintf(w, "\n%s\n", fieldTitles[top])
		writePart(w, top, lines[:n])
		lines = lines[n:]
	}
	fmt.Fprintf(w, "\nSources\n")
	for _, key := range slices.Sorted(maps.Keys(p.Sources)) {
		s := p.Sources[key]
		fmt.Fprintf(w, "  %s\n", key)
		writeIndented(w, 4, s.Title)
		if s.URL != "" {
			fmt.Fprintf(w, "    %s\n", s.URL)
		}
	}
}

// writePart writes the values of one part of a policy.
func writePart(w io.Writer, top string, lines []policies.Line) {
	const indent, notes, widest = 2, 6, 48
	names := make([]string, len(lines))
	width, dated := 0, false
	for i, l := range lines {
		names[i] = strings.Join(strings.Fields(strings.TrimPrefix(strings.TrimPrefix(l.Field, top), ".")+" "+l.Name+" "+l.Value), " ")
		if l.Value == "" && l.Name == "" {
			names[i] = strings.TrimSpace(names[i] + " (open)")
		}
		if len(l.Name)+len(l.Value) > widest { // the curves of a key
			names[i] = l.Name
			lines[i].Note = strings.TrimSpace(strings.TrimSuffix(l.Value+"; "+l.Note, "; "))
		}
		dated = dated || l.Until != nil
		width = max(width, min(len(names[i]), widest))
	}
	for i, l := range lines {
		level := string(l.Level)
		if level == "" && (l.Name != "" || l.Value != "") {
			level = "allowed"
		}
		until := ""
		if l.Until != nil {
			until = "until " + l.Until.String()
		}
		line := fmt.Sprintf("%*s%-*s  %-11s", indent, "", width, names[i], level)
		if dated {
			line += fmt.Sprintf("  %-16s", until)
		}
		note := l.Note
		if l.Needs != "" {
			note = strings.TrimSuffix("with "+l.Needs+" only; "+note, "; ")
		}
		if joined := strings.TrimRight(line, " ") + "  " + l.Source; len(line)+2+len(l.Source) <= textWidth {
			line += "  " + l.Source
		} else if len(joined) <= textWidth {
			line = joined
		} else {
			note = strings.TrimSuffix(l.Source+": "+note, ": ")
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		if note != "" {
			writeIndented(w, notes, note)
		}
	}
}

func writeDiff(w io.Writer, a, b string, differences []policies.Difference) {
	if len(differences) == 0 {
		fmt.Fprintf(w, "%s and %s allow the same.\n", a, b)
		return
	}
	field := ""
	fmt.Fprintf(w, "A  %s\nB  %s\n", a, b)
	for _, d := range differences {
		top, rest, _ := strings.Cut(d.Field, ".")
		if top != field {
			field = top
			fmt.Fprintf(w, "\n%s\n", fieldTitles[top])
		}
		if name := strings.TrimSpace(rest + " " + d.Name); name != "" {
			fmt.Fprintf(w, "  %s\n", name)
		}
		for _, side := range []struct{ mark, text string }{{"A", d.A}, {"B", d.B}} {
			if side.text == "" {
				side.text = "-"
			}
			for i, line := range wrap(side.text, textWidth-7) {
				if i > 0 {
					side.mark = " "
				}
				fmt.Fprintf(w, "    %s  %s\n", side.mark, line)
			}
		}
	}
}
