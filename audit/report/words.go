package report

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ossl-go/ossl/audit"
)

// A colour is the number of an SGR escape sequence.
type colour string

const (
	plain  colour = ""
	bold   colour = "1"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	cyan   colour = "36"
)

// paint gives text a colour.
func (s *screen) paint(c colour, text string) string {
	if !s.colour || c == plain {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

func gradeColour(mark string) colour {
	switch mark {
	case "A", "B":
		return green
	case "C", "?":
		return yellow
	}
	return red
}

func severityColour(s audit.Severity) colour {
	switch s {
	case audit.Critical, audit.High:
		return red
	case audit.Medium:
		return yellow
	case audit.Low:
		return cyan
	}
	return plain
}

// targetOf returns the target as a user writes it.
func targetOf(r *audit.Report) string {
	return net.JoinHostPort(r.Target.Host, strconv.Itoa(int(r.Target.Port)))
}

// gradeText returns the reason why a grade is not better.
func gradeText(r *audit.Report, g audit.Grade) string {
	title := g.Rule
	for _, f := range r.Findings {
		if f.Rule == g.Rule {
			title = f.Title + " (" + g.Rule + ")"
			break
		}
	}
	switch {
	case g.Mark == "?":
		return fmt.Sprintf("at best %s: %s failed to be tested", g.Best, g.Rule)
	case g.Rule == "":
		return "no finding lowers it"
	}
	return "because of: " + title
}

// findingsText counts the findings by severity.
func findingsText(r *audit.Report) string {
	var parts []string
	for _, severity := range []audit.Severity{audit.Critical, audit.High, audit.Medium, audit.Low, audit.Info} {
		n := 0
		for _, f := range r.Findings {
			if f.Severity == severity {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, severity))
		}
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// rulesText reports how many rules were tested.
func rulesText(r *audit.Report) string {
	text := fmt.Sprintf("%s tested, %d not tested, %d failed to test", plural(r.Count(audit.Tested), "rule"),
		r.Count(audit.NotTested), r.Count(audit.Failed))
	if r.Interrupted {
		text += "; interrupted"
	}
	return text
}

// nextText returns the next step for the user, or "".
func nextText(r *audit.Report) string {
	step := r.NextStep()
	switch {
	case step == "":
		return ""
	case strings.Contains(step, " SERVER"):
		return step + " on the server: the policy's configuration, each difference from yours (FILE), and both tried. SERVER is " +
			strings.Join(audit.Products, ", ")
	case !strings.Contains(step, " FILE"):
		return step + ": the policy's configuration"
	}
	return step + " on the server: the policy's configuration, each difference from yours (FILE), and both tried"
}

func inState(r *audit.Report, state audit.State) (in []audit.Result) {
	for _, result := range r.Results {
		if result.State == state {
			in = append(in, result)
		}
	}
	return in
}

// costText reports how much work the audit did.
func costText(r *audit.Report) string {
	c := r.Cost
	text := fmt.Sprintf("%s, %s, %s of the server's key, %s, %s", plural(c.Connections, "connection"),
		plural(c.Handshakes, "completed handshake"), plural(c.Signatures, "signature"), bytesText(c.Bytes), secondsText(r.Seconds))
	if c.Retried > 0 {
		text += fmt.Sprintf("; %s lost and made again", plural(c.Retried, "connection"))
	}
	return text
}

// secondsText returns a time in seconds, or in milliseconds if it is shorter.
func secondsText(s float64) string {
	if s < 1 {
		return number(s*1000) + " ms"
	}
	return number(s) + " s"
}

// priceText returns the numbers of a price, or "".
func priceText(p audit.Price) string { return priceWords(p, millis) }

func priceWords(p audit.Price, time func(*audit.Interval) string) string {
	var parts []string
	if p.RoundTrips != 0 {
		parts = append(parts, "+"+plural(p.RoundTrips, "round trip"))
	}
	if p.Millis != nil {
		parts = append(parts, time(p.Millis)+" of the client's time")
	}
	if p.ServerMillis != nil {
		parts = append(parts, time(p.ServerMillis)+" of the server's processor")
	}
	if p.Bytes != 0 {
		parts = append(parts, bytesText(p.Bytes))
	}
	text := strings.Join(parts, ", ")
	if text != "" && p.Share != 0 && p.Share != 1 {
		text += fmt.Sprintf(", paid by %.0f %% of connections", p.Share*100)
	}
	return text
}

// priceDetail returns a price with its intervals and its method, or "" if the finding changes nothing that
// has a price.
func priceDetail(p audit.Price) string {
	text := priceWords(p, intervalText)
	switch {
	case text == "" && p.Method == "not measurable here": // there is nothing to price
		return ""
	case text == "":
		return p.Method
	case p.Method == "":
		return text
	}
	return text + ". " + strings.ToUpper(p.Method[:1]) + p.Method[1:]
}

func millis(i *audit.Interval) string { return number(i.Median) + " ms" }

// number returns three significant digits.
func number(x float64) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(x)))))
	text := strconv.FormatFloat(x, 'f', min(digits, 4), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// bytesText returns a number of bytes: "812 bytes", "4.1 kB".
func bytesText(n int) string {
	switch {
	case n < 1000:
		return plural(n, "byte")
	case n < 1000*1000:
		return number(float64(n)/1000) + " kB"
	}
	return number(float64(n)/1e6) + " MB"
}

func plural[N int | float64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(float64(n)) + " " + noun + "s"
}

// maxText bounds the bytes of one text for readers: certificates have room for a megabyte.
const maxText = 10_000

// printable replaces the characters that could control a terminal, and cuts long texts, because
// texts come from servers.
func printable(text string) string {
	if len(text) > maxText {
		text = fmt.Sprintf("%s… (%d bytes more)", text[:maxText], len(text)-maxText)
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// wrap splits text into lines of at most width characters.
func wrap(text string, width int) (lines []string) {
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if used > 0 && used+1+n > width {
			lines, line, used = append(lines, line), "", 0
		}
		for ; n > width; n -= width { // a hash, for example
			head := string([]rune(word)[:width])
			lines, word = append(lines, head), word[len(head):]
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	return append(lines, line)
}
