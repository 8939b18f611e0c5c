package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ossl-go/ossl/audit"
)

// JUnit's XML, as Jenkins and GitLab read it: a suite for each target and a case for each rule.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string      `xml:"name,attr"`
		Tests     int         `xml:"tests,attr"`
		Failures  int         `xml:"failures,attr"`
		Errors    int         `xml:"errors,attr"`
		Skipped   int         `xml:"skipped,attr"`
		Time      string      `xml:"time,attr"`
		Timestamp string      `xml:"timestamp,attr"`
		Cases     []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
		Skipped *junitSkipped `xml:"skipped"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

func writeJUnit(w io.Writer, d *Document, _ Options) error {
	all := junitSuites{Name: "ossl check"}
	for _, r := range d.Reports {
		s := junitOf(r)
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Skipped += s.Skipped
		all.Suites = append(all.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// junitOf returns a suite. A rule with findings is a failure, except findings of the severity info,
// which are output.
func junitOf(r *audit.Report) junitSuite {
	s := junitSuite{
		Name: targetOf(r), Tests: len(r.Results), Time: fmt.Sprintf("%.3f", r.Seconds),
		Timestamp: r.Started.UTC().Format(time.RFC3339),
	}
	for _, result := range r.Results {
		c := junitCase{Name: result.Rule, Class: targetOf(r)}
		switch result.State {
		case audit.NotTested:
			c.Skipped = &junitSkipped{printable(result.Reason)}
			s.Skipped++
		case audit.Failed:
			c.Error = &junitProblem{Message: printable(result.Reason), Type: "failed to test"}
			s.Errors++
		}
		var texts []string
		for _, f := range r.Findings {
			if f.Rule != result.Rule {
				continue
			}
			for _, text := range []string{f.Evidence, f.Reason, f.Remedy, "Price: " + priceDetail(f.Price)} {
				texts = append(texts, printable(text))
			}
			if f.Severity != audit.Info && c.Failure == nil { // the worst is the first
				c.Failure = &junitProblem{Message: printable(f.Title), Type: string(f.Severity)}
				s.Failures++
			}
		}
		if c.Failure != nil {
			c.Failure.Text = strings.Join(texts, "\n")
		} else {
			c.Output = strings.Join(texts, "\n")
		}
		s.Cases = append(s.Cases, c)
	}
	return s
}
