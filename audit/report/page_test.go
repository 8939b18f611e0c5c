package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ossl-go/ossl/audit"
	"github.com/ossl-go/ossl/audit/report"
)

// written returns the sample in a format.
func written(t *testing.T, format string, options report.Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.Write(&out, sample(), format, options); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestNothingControls: a server's texts neither control a terminal nor become markup.
func TestNothingControls(t *testing.T) {
	for _, format := range report.Formats() {
		text := written(t, format, report.Options{Verbose: true})
		for _, r := range text {
			if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
				t.Errorf("%s has the character %q", format, r)
			}
		}
		if !utf8.ValidString(text) {
			t.Errorf("%s isn't UTF-8", format)
		}
		if format != "text" && strings.Contains(text, "<script") {
			t.Errorf("%s has a script", format)
		}
	}
	if text := written(t, "markdown", report.Options{}); strings.Contains(text, "[link]") || strings.Contains(text, " *bold*") ||
		strings.Contains(text, "http://") || strings.Contains(text, "www.example") || strings.Contains(text, "@name") ||
		strings.Contains(text, " $x") {
		t.Error("Markdown of a server is markup")
	}
}

// TestValidity: the first screen shows how long a certificate is valid, if it has such days.
func TestValidity(t *testing.T) {
	d := sample()
	r := d.Reports[0]
	c := &r.Facts.Certificates.Chains[0].Certificates[0]
	for _, test := range []struct {
		from, to time.Duration
		problem  string
		want     string
	}{
		{-time.Hour, 50 * time.Hour, "", "RSA 2048, valid for 2 more days;"},
		{-time.Hour, 26 * time.Hour, "", "RSA 2048, valid for 1 more day;"},
		{-time.Hour, time.Hour, "", "RSA 2048, valid for less than a day;"},
		{-time.Hour, -time.Minute, "", "RSA 2048, expired less than a day ago;"},
		{-time.Hour, -50 * time.Hour, "", "RSA 2048, expired 2 days ago;"},
		{time.Hour, 50 * time.Hour, "", "RSA 2048, not valid yet;"},
		{0, 0, "it has 0 bytes", "RSA 2048; chain of 1 certificate"},
	} {
		c.NotBefore, c.NotAfter, c.Error = r.Started.Add(test.from), r.Started.Add(test.to), test.problem
		var out bytes.Buffer
		if err := report.Write(&out, d, "text", report.Options{Brief: true}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), test.want) {
			t.Errorf("no %q in\n%s", test.want, out.String())
		}
	}
}

// TestLongTexts: a text of a megabyte, as a certificate can have, is cut.
func TestLongTexts(t *testing.T) {
	d := sample()
	d.Reports[0].Facts.Certificates.Chains[0].Certificates[0].Subject = "CN=" + strings.Repeat("a", 1<<20)
	for _, format := range []string{"text", "markdown", "html"} {
		var out bytes.Buffer
		if err := report.Write(&out, d, format, report.Options{Verbose: true}); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); len(text) > 100_000 || !strings.Contains(strings.Join(strings.Fields(text), ""), "bytesmore)") {
			t.Errorf("%s has %d bytes", format, len(text))
		}
	}
}

// TestText: lines fit 100 columns, colours come only if they are asked for, and the parts of a
// report are there that its options ask for.
func TestText(t *testing.T) {
	for line := range strings.SplitSeq(written(t, "text", report.Options{Width: 40, Verbose: true}), "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("too long for 80 columns: %q", line)
		}
	}
	brief, usual := written(t, "text", report.Options{Brief: true}), written(t, "text", report.Options{})
	verbose := written(t, "text", report.Options{Verbose: true})
	for _, text := range []string{brief, usual, verbose} {
		for line := range strings.SplitSeq(text, "\n") {
			if utf8.RuneCountInString(line) > 100 {
				t.Errorf("too long: %q", line)
			}
			if strings.TrimRight(line, " ") != line {
				t.Errorf("spaces at the end: %q", line)
			}
		}
		if strings.Contains(text, "\x1b") {
			t.Error("colours without Options.Colour")
		}
	}
	for _, c := range []struct {
		part                  string
		brief, usual, verbose bool
	}{
		{"shop.example:443", true, true, true},
		{"  fast  D  because of: TLS 1.3 sessions are not resumed (resume-tls13)", true, true, true},
		{"  safe  ?  at best C: staple-missing failed to be tested", true, true, true},
		{"[2001:db8::1]:443 failed: connection refused", true, true, true},
		{"3 rules tested, 1 not tested, 1 failed to test", true, true, true},
		{"1 rule tested, 0 not tested", true, true, true},
		{"7 signatures of the server's key", true, true, true},
		{"remedy    ssl_session_cache shared:TLS:10m;", false, true, true},
		{"price     1.2 ms (95 %: 1.1 to 1.3) of the", false, true, true},
		{"early-data-replay         not tested: not asked for", false, false, true},
		{"TLS 1.0                         not offered", false, false, true},
		{"  stapling                      good, from 2026-11-23T10:30:00Z, 1h30m0s old,", false, false, true},
		{"ticket keys   3 looks from 2026-11-23 12:00:00 to 2026-11-23 14:00:00 UTC, of which 1 failed;", true, true, true},
		{"replayed requests               3 sent, 1 executed, 2 answered by 425", false, false, true},
		{"next          ossl config nginx --from FILE --try on the server", true, true, true},
		{"dead.example:25     ?     ?     no address can be reached", true, true, true},
	} {
		for name, have := range map[string][2]bool{
			"brief": {strings.Contains(brief, c.part), c.brief}, "usual": {strings.Contains(usual, c.part), c.usual},
			"verbose": {strings.Contains(verbose, c.part), c.verbose},
		} {
			if have[0] != have[1] {
				t.Errorf("%s text has %q: %v", name, c.part, have[0])
			}
		}
	}
	coloured := written(t, "text", report.Options{Colour: true, Verbose: true})
	if plain := regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(coloured, ""); plain != verbose || coloured == plain {
		t.Error("text with colours isn't the text without them")
	}
}

// TestSARIF: the parts that SARIF 2.1.0 and code scanning require are there, and agree.
func TestSARIF(t *testing.T) {
	var log struct {
		Schema  string `json:"$schema"`
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct {
						ID               string
						ShortDescription struct{ Text string }
					}
				}
			}
			Invocations []struct {
				ExecutionSuccessful        *bool
				ToolExecutionNotifications []struct{ Level string }
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
				}
				PartialFingerprints map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(written(t, "sarif", report.Options{})), &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || log.Schema == "" || len(log.Runs) != 1 {
		t.Fatalf("%+v", log)
	}
	run := log.Runs[0]
	rules := audit.Rules()
	if len(run.Tool.Driver.Rules) != len(rules) || run.Tool.Driver.Name == "" {
		t.Errorf("%d rules, want %d", len(run.Tool.Driver.Rules), len(rules))
	}
	for i, rule := range run.Tool.Driver.Rules {
		if rule.ID != rules[i].ID || rule.ShortDescription.Text == "" {
			t.Errorf("rule %d is %+v", i, rule)
		}
	}
	if len(run.Results) != 3 {
		t.Fatalf("%d results, want 3", len(run.Results))
	}
	for i, level := range []string{"error", "warning", "note"} {
		r := run.Results[i]
		if r.Level != level || r.Message.Text == "" || len(r.PartialFingerprints) == 0 ||
			r.Locations[0].PhysicalLocation.ArtifactLocation.URI != "https://shop.example:443" {
			t.Errorf("result %d is %+v", i, r)
		}
	}
	// A target that can't be reached: the run reports that it didn't succeed.
	if ok := run.Invocations[0].ExecutionSuccessful; ok == nil || *ok {
		t.Error("the run is successful")
	}
	if n := run.Invocations[0].ToolExecutionNotifications; len(n) != 2 || n[0].Level != "warning" || n[1].Level != "error" {
		t.Errorf("notifications %+v", n)
	}
}

// TestJUnit: the counts equal the numbers of cases.
func TestJUnit(t *testing.T) {
	type problem struct {
		Message string `xml:"message,attr"`
	}
	var all struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string   `xml:"name,attr"`
				Failure *problem `xml:"failure"`
				Error   *problem `xml:"error"`
				Skipped *problem `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(written(t, "junit", report.Options{})), &all); err != nil {
		t.Fatal(err)
	}
	tests, failures, errors, skipped := 0, 0, 0, 0
	for _, s := range all.Suites {
		for _, c := range s.Cases {
			tests++
			if c.Failure != nil {
				failures++
			}
			if c.Error != nil {
				errors++
			}
			if c.Skipped != nil {
				skipped++
			}
		}
	}
	// dns-https has the severity info, which is no failure.
	if tests != 7 || failures != 2 || errors != 2 || skipped != 1 {
		t.Errorf("%d cases, %d failures, %d errors, %d skipped", tests, failures, errors, skipped)
	}
	if all.Tests != tests || all.Failures != failures || all.Errors != errors || all.Skipped != skipped {
		t.Errorf("the counts are %+v", all)
	}
}

// TestHTML: the page is well-formed and needs nothing else.
func TestHTML(t *testing.T) {
	text := written(t, "html", report.Options{})
	d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(text, "<!DOCTYPE html>")))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			for _, a := range e.Attr {
				if n := a.Name.Local; (n == "src" || n == "href") && !strings.HasPrefix(a.Value, "#") {
					t.Errorf("<%s> refers to %q", e.Name.Local, a.Value)
				}
			}
		}
	}
	for _, part := range []string{"<svg", `class="finding high"`, "1.2 ms (95 %", "at best C"} {
		if !strings.Contains(text, part) {
			t.Errorf("the page has no %s", part)
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	if err := report.Write(io.Discard, sample(), "pdf", report.Options{}); err == nil {
		t.Error("no error")
	}
}
