package report

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/ossl-go/ossl/audit"
)

func writeMarkdown(w io.Writer, d *Document, _ Options) error {
	m := bufio.NewWriter(w)
	fmt.Fprintf(m, "# TLS audit\n\n%s, %s.\n\n", escape(d.Tool), d.Written.UTC().Format("2006-01-02 15:04 UTC"))
	fmt.Fprintf(m, "| target | fast | safe | findings |\n|---|---|---|---|\n")
	for _, r := range d.Reports {
		text := findingsText(r)
		if r.Error != "" {
			text = r.Error
		}
		fmt.Fprintf(m, "| %s | %s | %s | %s |\n", escape(targetOf(r)), r.Fast.Mark, r.Safe.Mark, escape(text))
	}
	for _, r := range d.Reports {
		markdownReport(m, r)
	}
	return m.Flush()
}

func markdownReport(m io.Writer, r *audit.Report) {
	fmt.Fprintf(m, "\n## %s\n\nJudged by policy %s as of %s.\n", escape(targetOf(r)), escape(r.Policy), r.At)
	for _, g := range []struct {
		axis audit.Axis
		audit.Grade
	}{{audit.Fast, r.Fast}, {audit.Safe, r.Safe}} {
		text := ""
		if reason := gradeText(r, g.Grade); reason != "" {
			text = ", " + reason
		}
		fmt.Fprintf(m, "\n- %s: **%s**%s", g.axis, g.Mark, escape(text))
	}
	fmt.Fprintf(m, "\n")
	for i, f := range r.Findings {
		fmt.Fprintf(m, "\n### %d. %s\n\n%s, %s, rule `%s`\n\n", i+1, escape(f.Title), f.Severity, f.Axis, f.Rule)
		for _, part := range findingRows(f) {
			fmt.Fprintf(m, "- %s: %s\n", part.name, escape(part.text))
		}
	}
	if failed := inState(r, audit.Failed); len(failed) > 0 {
		fmt.Fprintf(m, "\n### Failed to test\n\n| rule | reason |\n|---|---|\n")
		for _, result := range failed {
			fmt.Fprintf(m, "| `%s` | %s |\n", result.Rule, escape(result.Reason))
		}
	}
	if rows := factRows(r); r.Facts.Address != "" && len(rows) > 0 {
		fmt.Fprintf(m, "\n### Facts\n\n| | |\n|---|---|\n")
		for _, row := range rows {
			fmt.Fprintf(m, "| %s | %s |\n", escape(strings.TrimSpace(row.name)), escape(row.text))
		}
	}
	fmt.Fprintf(m, "\n%s. Cost to the server: %s.\n", rulesText(r), costText(r))
	if text := nextText(r); text != "" {
		fmt.Fprintf(m, "\nNext: %s.\n", escape(text))
	}
}

// findingRows returns a finding's parts in the order in which they are read.
func findingRows(f audit.Finding) (rows []row) {
	for _, part := range []row{
		{"address", f.Address}, {"evidence", f.Evidence}, {"reason", f.Reason}, {"remedy", f.Remedy},
		{"price", priceDetail(f.Price)}, {"source", f.Source},
	} {
		if part.text != "" {
			rows = append(rows, part)
		}
	}
	return rows
}

// escape returns text for Markdown. Texts come from servers, so nothing in them may become markup.
func escape(text string) string {
	var b strings.Builder
	for _, r := range printable(text) {
		switch r {
		case '<':
			b.WriteString("&lt;")
		case '&':
			b.WriteString("&amp;")
		case '\\', '`', '*', '_', '{', '}', '[', ']', '#', '|', '~', '!', '$':
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return linking.ReplaceAllString(b.String(), "$0<!-- -->")
}

// linking are the characters with which GitHub's Markdown makes links of plain text: of addresses
// of pages and of mail, and of names of users. A comment behind them prevents it.
var linking = regexp.MustCompile(`(?i):/|www|@`)
