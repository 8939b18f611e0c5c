package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"

	"github.com/ossl-go/ossl/audit"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"target":   targetOf,
	"reason":   func(r *audit.Report, g audit.Grade) string { return printable(gradeText(r, g)) },
	"parts":    findingRows,
	"facts":    factRows,
	"summary":  summary,
	"cost":     costText,
	"count":    findingsText,
	"failed":   func(r *audit.Report) []audit.Result { return inState(r, audit.Failed) },
	"untested": func(r *audit.Report) []audit.Result { return inState(r, audit.NotTested) },
	"rules":    rulesText,
	"next":     func(r *audit.Report) string { return printable(nextText(r)) },
	"clean":    printable,
	"day":      func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
	"times":    timesChart,
	"name":     func(r row) string { return strings.TrimSpace(printable(r.name)) },
	"text":     func(r row) string { return printable(r.text) },
}).Parse(pageText))

// writeHTML writes one page that needs no other file and no script.
func writeHTML(w io.Writer, d *Document, _ Options) error { return page.Execute(w, d) }

// A bar is one bar of a chart, in the units of its SVG.
type bar struct {
	Name             string
	Text             string
	Y, TextY         int
	Width, TextX     float64
	Low, High, LineY float64
	Interval         bool
}

// A chart is a chart of bars.
type chart struct {
	Title  string
	Bars   []bar
	Height int
}

// timesChart draws the times of handshakes, or returns nil if none was measured.
func timesChart(r *audit.Report) *chart {
	t := r.Facts.Timing
	c := &chart{Title: "Milliseconds at this server, with 95 % intervals"}
	most := 0.0
	type entry struct {
		name string
		i    *audit.Interval
	}
	var entries []entry
	for _, e := range []entry{
		{"TCP connect", t.RoundTrip}, {"to HelloRetryRequest", t.Retry}, {"full handshake's flight", t.Full},
		{"resumed handshake's flight", t.Resumed},
	} {
		if e.i != nil {
			entries = append(entries, e)
			most = math.Max(most, e.i.High)
		}
	}
	if most <= 0 {
		return nil
	}
	const left, width = 190, 400
	for i, e := range entries {
		y := 6 + 26*i
		at := func(x float64) float64 { return math.Round(10*(left+width*x/most)) / 10 }
		c.Bars = append(c.Bars, bar{
			Name: e.name, Text: fmt.Sprintf("%s ms", number(e.i.Median)), Y: y, TextY: y + 13,
			Width: at(e.i.Median) - left, TextX: at(e.i.High) + 8, Low: at(e.i.Low), High: at(e.i.High), LineY: float64(y) + 8.5,
			Interval: e.i.High > e.i.Low,
		})
	}
	c.Height = 26*len(entries) + 8
	return c
}
