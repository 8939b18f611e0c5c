package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/ossl-go/ossl/audit"
)

// Text is for terminals of widest columns, or of narrowest at least.
const narrowest, widest = 80, 100

// A screen writes text.
type screen struct {
	w      *bufio.Writer
	colour bool
	width  int // columns
}

func writeText(w io.Writer, d *Document, options Options) error {
	s := &screen{w: bufio.NewWriter(w), colour: options.Colour, width: widest}
	if options.Width > 0 {
		s.width = min(max(options.Width, narrowest), widest)
	}
	for i, r := range d.Reports {
		if i > 0 {
			s.line("")
		}
		s.report(r, options)
	}
	if len(d.Reports) > 1 {
		s.line("")
		s.table(d.Reports)
	}
	return s.w.Flush()
}

func (s *screen) line(format string, args ...any) {
	fmt.Fprintln(s.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// report writes one report: a screen, and the detail below it.
func (s *screen) report(r *audit.Report, options Options) {
	s.head(r)
	if r.Facts.Address != "" {
		s.grades(r)
		s.findings(r)
		s.offers(r)
	}
	s.foot(r)
	if !options.Brief {
		s.details(r)
	}
	if options.Verbose {
		if r.Facts.Address != "" {
			s.facts(r)
		}
		s.rules(r)
	}
	if text := nextText(r); text != "" {
		s.line("")
		s.field("next", text)
	}
}

// head writes the target and the circumstances.
func (s *screen) head(r *audit.Report) {
	s.line("%s", s.paint(bold, printable(targetOf(r))))
	about := []string{"policy " + r.Policy, "as of " + r.At}
	if r.Facts.Server != "" {
		about = append([]string{printable(r.Facts.Server)}, about...)
	}
	s.field("audited as", r.Target.Protocol+", "+strings.Join(about, ", "))
	for i, a := range r.Facts.Addresses {
		name := ""
		if i == 0 {
			name = "addresses"
		}
		text := a.Address
		switch {
		case a.State != audit.Tested:
			text += "  " + string(a.State) + ": " + a.Reason
		case a.RoundTrip != nil:
			text += "  " + millis(a.RoundTrip) + " to connect"
		}
		s.field(name, text)
	}
	if r.Error != "" {
		s.field("failed", printable(r.Error))
	}
	s.line("")
}

// grades writes the grades, each with the rule that stops the next one.
func (s *screen) grades(r *audit.Report) {
	for _, axis := range []audit.Axis{audit.Fast, audit.Safe} {
		grade := r.Fast
		if axis == audit.Safe {
			grade = r.Safe
		}
		s.paragraph(fmt.Sprintf("  %s  %s  ", axis, s.paint(gradeColour(grade.Mark), grade.Mark)), 11, gradeText(r, grade))
	}
	s.line("")
}

// findings writes a line for each finding.
func (s *screen) findings(r *audit.Report) {
	if len(r.Findings) == 0 {
		if r.Count(audit.Tested) > 0 {
			s.line("No findings.")
			s.line("")
		}
		return
	}
	for _, f := range r.Findings {
		title := f.Title
		if price := priceText(f.Price); price != "" {
			title += ": " + price
		}
		severity := s.paint(severityColour(f.Severity), fmt.Sprintf("%-9s", f.Severity))
		s.paragraph(fmt.Sprintf("  %s%-5s", severity, f.Axis), 16, title)
	}
	s.line("")
}

// foot writes how much was tested, and the cost.
func (s *screen) foot(r *audit.Report) {
	s.field("rules", rulesText(r))
	s.field("cost", costText(r))
}

// details writes the findings in full.
func (s *screen) details(r *audit.Report) {
	for i, f := range r.Findings {
		s.line("")
		for j, line := range wrap(printable(f.Title), s.width-4) {
			start := "    "
			if j == 0 {
				start = fmt.Sprintf("%2d. ", i+1)
			}
			s.line("%s%s", start, s.paint(bold, line))
		}
		s.paragraph("    ", 4, fmt.Sprintf("%s, %s, rule %s", f.Severity, f.Axis, f.Rule))
		for _, part := range findingRows(f) {
			s.detail(part.name, part.text)
		}
	}
	if r.Error != "" {
		return // it is the reason of all
	}
	s.failed(inState(r, audit.Failed))
}

// failed writes the rules that failed to be tested, together if they have the same reason.
func (s *screen) failed(results []audit.Result) {
	if len(results) == 0 {
		return
	}
	s.line("")
	s.line("Failed to test")
	var reasons []string
	rules := map[string][]string{}
	for _, result := range results {
		if rules[result.Reason] == nil {
			reasons = append(reasons, result.Reason)
		}
		rules[result.Reason] = append(rules[result.Reason], result.Rule)
	}
	for _, reason := range reasons {
		s.paragraph("  ", 2, reason)
		s.paragraph("      ", 6, strings.Join(rules[reason], ", "))
	}
}

// rules writes the results of all rules.
func (s *screen) rules(r *audit.Report) {
	s.line("")
	s.line("Rules")
	for _, result := range r.Results {
		text := string(result.State)
		switch {
		case result.State != audit.Tested:
			text += ": " + result.Reason
		case result.Findings == 1:
			text += ": 1 finding"
		default:
			text += fmt.Sprintf(": %d findings", result.Findings)
		}
		s.paragraph(fmt.Sprintf("  %-26s", result.Rule), 28, text)
	}
}

// table writes a line for each report.
func (s *screen) table(reports []*audit.Report) {
	width := 6
	for _, r := range reports {
		width = max(width, utf8.RuneCountInString(printable(targetOf(r))))
	}
	width = min(width, 50)
	s.line("%-*s  fast  safe  findings", width, "target")
	for _, r := range reports {
		text := findingsText(r)
		if r.Error != "" {
			text = printable(r.Error)
		}
		start := fmt.Sprintf("%-*s  %s     %s     ", width, printable(targetOf(r)),
			s.paint(gradeColour(r.Fast.Mark), r.Fast.Mark), s.paint(gradeColour(r.Safe.Mark), r.Safe.Mark))
		s.paragraph(start, width+14, text)
	}
}

func (s *screen) field(name, text string)  { s.paragraph(fmt.Sprintf("%-14s", name), 14, text) }
func (s *screen) detail(name, text string) { s.paragraph(fmt.Sprintf("    %-10s", name), 14, text) }

// paragraph writes text behind start, which takes indent columns, in lines of the screen's width.
func (s *screen) paragraph(start string, indent int, text string) {
	if text == "" {
		return
	}
	for i, line := range wrap(printable(text), s.width-indent) {
		if i > 0 {
			start = strings.Repeat(" ", indent)
		}
		s.line("%s%s", start, line)
	}
}
