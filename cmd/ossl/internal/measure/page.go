package measure

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// WriteHTML writes the report as one page that needs nothing else: tables, and charts as SVG.
func (r *Report) WriteHTML(w io.Writer) error {
	type tableRow struct {
		Name    string
		Figures []string
		Ratios  []string
		Words   []string
		Classes []string
	}
	type section struct {
		Title string
		Chart template.HTML
		Note  string
		Rows  []tableRow
	}
	page := struct {
		*Report
		Day      string
		Sections []section
	}{Report: r, Day: r.Date.Format(time.DateOnly)}
	for _, s := range Sections {
		rows := r.Section(s.Name)
		if len(rows) == 0 {
			continue
		}
		part := section{Title: s.Title, Chart: template.HTML(r.chart(rows)), Note: notes[s.Name]}
		for _, row := range rows {
			t := tableRow{Name: row.Name}
			for i := range r.Engines {
				t.Figures = append(t.Figures, strings.TrimSpace(row.Figure(row.Median(i))))
				if i == 0 {
					continue
				}
				c := row.Compare(i, 0)
				t.Ratios = append(t.Ratios, c.String())
				t.Words = append(t.Words, c.Words(row.Unit))
				t.Classes = append(t.Classes, map[Verdict]string{Faster: "faster", Slower: "slower"}[c.Verdict()])
			}
			part.Rows = append(part.Rows, t)
		}
		page.Sections = append(page.Sections, part)
	}
	return pageTemplate.Execute(w, page)
}

var notes = map[string]string{
	"handshakes": "Both ends in one process, without connecting and closing. ossl's clients remember the chains that they have " +
		"verified, unless the row says no chain cache; crypto/tls verifies each time.",
	"resumption":  "TLS 1.3 resumes with a key exchange, so it saves an ECDSA server little, whatever the implementation.",
	"connections": "Connecting, the handshake, one round trip, closing.",
	"http": "One client and one server in this process, one request at a time: the time of a request, not the capacity of " +
		"a server.",
	"grpc":   "One client and one server in this process, one call at a time. A new connection is a new channel, with its close.",
	"memory": "Resident memory of a server's process for each of 2000 connections that wait for a request.",
}

// The measures of a chart, in SVG's units.
const (
	chartWidth = 900
	nameWidth  = 300
	barHeight  = 14
	rowGap     = 14
	topHeight  = 34
	axisHeight = 44
	keyWidth   = 220 // of an engine's name, with its colour
)

// chart draws the ratio of each engine to the first one: a bar from 1 to the ratio, on a logarithmic
// scale, and a line for its range.
func (r *Report) chart(rows []*Row) string {
	low, high := 0.8, 1.25
	for _, row := range rows {
		for i := 1; i < len(r.Engines); i++ {
			c := row.Compare(i, 0)
			low, high = min(low, c.Low), max(high, c.High)
		}
	}
	low, high = math.Pow(2, math.Floor(math.Log2(low)*2)/2), math.Pow(2, math.Ceil(math.Log2(high)*2)/2)
	x := func(ratio float64) float64 {
		return nameWidth + (chartWidth-nameWidth-40)*math.Log(ratio/low)/math.Log(high/low)
	}
	bars := len(r.Engines) - 1
	height := topHeight + len(rows)*(bars*barHeight+rowGap) + axisHeight
	bottom := height - axisHeight

	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="ratio to %s">`, chartWidth, height, r.Engines[0])
	b.WriteString("\n")
	for i := 1; i <= bars; i++ {
		at := min(nameWidth, chartWidth-bars*keyWidth) + (i-1)*keyWidth
		fmt.Fprintf(&b, `<rect class="bar e%d" x="%d" y="4" width="12" height="12"/><text x="%d" y="14">%s</text>`+"\n", i, at, at+18,
			template.HTMLEscapeString(r.Engines[i]))
	}
	for step := math.Round(math.Log2(low) * 2); step <= math.Round(math.Log2(high)*2); step++ {
		ratio := math.Pow(2, step/2)
		class := "grid"
		if step == 0 {
			class = "grid one"
		}
		fmt.Fprintf(&b, `<line class="%s" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, class, x(ratio), x(ratio), topHeight-8, bottom)
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%d">%.2g</text>`+"\n", x(ratio), bottom+16, ratio)
	}
	for n, row := range rows {
		top := topHeight + n*(bars*barHeight+rowGap)
		fmt.Fprintf(&b, `<text class="name" x="%d" y="%d">%s</text>`+"\n", nameWidth-12, top+bars*barHeight/2+5,
			template.HTMLEscapeString(row.Name))
		for i := 1; i <= bars; i++ {
			c, y := row.Compare(i, 0), top+(i-1)*barHeight
			from, to := min(x(1), x(c.Median)), max(x(1), x(c.Median))
			middle := float64(y) + barHeight/2 - 1
			title := fmt.Sprintf("%s, %s: %s", row.Name, r.Engines[i], c.String())
			fmt.Fprintf(&b, `<rect class="bar e%d" x="%.1f" y="%d" width="%.1f" height="%d"><title>%s</title></rect>`, i, from, y,
				max(1, to-from), barHeight-2, template.HTMLEscapeString(title))
			fmt.Fprintf(&b, `<line class="range" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+"\n", x(c.Low), x(c.High), middle, middle)
		}
	}
	fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%d">%s, as a ratio to %s: below 1 is better</text>`+"\n", (x(low)+x(high))/2,
		bottom+34, chartLabel(rows[0].Unit), template.HTMLEscapeString(r.Engines[0]))
	b.WriteString("</svg>")
	return b.String()
}

func chartLabel(unit Unit) string {
	if unit == Memory {
		return "memory"
	}
	return "time for the same work"
}
