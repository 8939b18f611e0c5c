package promossl_test

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// A chart draws series over time as SVG. Its colors are variables of the page, for light and dark.
type chart struct {
	width, height float64
	unit          string // of the values
	seconds       []float64
	names         []string // of the series, from the bottom to the top of a stack
	colors        []int    // the number of each series' color on the page
	series        [][]float64
}

// The margins of a chart hold the labels of its axes.
const left, right, top, bottom = 44, 10, 22, 34

// stack returns the lower and upper bounds of the stacked values.
func (c *chart) stack() (lower, upper [][]float64) {
	sum := make([]float64, len(c.seconds))
	for _, values := range c.series {
		lower = append(lower, append([]float64{}, sum...))
		for i, v := range values {
			sum[i] += v
		}
		upper = append(upper, append([]float64{}, sum...))
	}
	return lower, upper
}

// bars draws stacked bars.
func (c *chart) bars() template.HTML {
	lower, upper := c.stack()
	var b strings.Builder
	y := c.begin(&b, upper)
	step := c.x(1) - c.x(0)
	for i, values := range c.series {
		fmt.Fprintf(&b, `<g fill="var(--s%d)">`, c.colors[i])
		for j, v := range values {
			if v > 0 {
				fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, c.x(j)-step*.4, y(upper[i][j]), step*.8,
					max(y(lower[i][j])-y(upper[i][j])-.5, .8))
			}
		}
		b.WriteString(`</g>`)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// lines draws a line for each series.
func (c *chart) lines() template.HTML {
	var b strings.Builder
	y := c.begin(&b, c.series)
	for i, values := range c.series {
		fmt.Fprintf(&b, `<polyline fill="none" stroke-width="2" stroke-linejoin="round" stroke="var(--s%d)" points="`, c.colors[i])
		for j, v := range values {
			fmt.Fprintf(&b, "%.1f,%.1f ", c.x(j), y(v))
		}
		b.WriteString(`"/>`)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// x returns the place of a sample.
func (c *chart) x(i int) float64 { return c.at(c.seconds[0] + float64(i)*c.interval()) }

func (c *chart) interval() float64 {
	return (c.seconds[len(c.seconds)-1] - c.seconds[0]) / float64(max(1, len(c.seconds)-1))
}

// at returns the place of a time.
func (c *chart) at(seconds float64) float64 {
	return left + (c.width-left-right)*seconds/(c.seconds[len(c.seconds)-1]+c.interval()/2)
}

// begin draws the axes with their units, and returns the scale of the values.
func (c *chart) begin(b *strings.Builder, values [][]float64) (y func(float64) float64) {
	highest := 0.0
	for _, v := range values {
		for _, v := range v {
			highest = max(highest, v)
		}
	}
	tick := niceStep(highest / 4)
	limit := tick * math.Ceil(max(highest, tick)/tick)
	y = func(v float64) float64 { return c.height - bottom - (c.height-top-bottom)*v/limit }
	fmt.Fprintf(b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, c.width, c.height,
		html.EscapeString(c.unit+": "+strings.Join(c.names, ", ")))
	fmt.Fprintf(b, `<text x="0" y="11">%s</text>`, html.EscapeString(c.unit))
	for v := 0.0; v <= limit+tick/2; v += tick {
		class := "grid"
		if v == 0 {
			class = "axis"
		}
		fmt.Fprintf(b, `<line class="%s" x1="%d" x2="%.1f" y1="%.1f" y2="%.1f"/>`, class, left, c.width-right, y(v), y(v))
		fmt.Fprintf(b, `<text class="tick" text-anchor="end" x="%d" y="%.1f">%s</text>`, left-6, y(v)+4, number(v, tick))
	}
	end := c.seconds[len(c.seconds)-1]
	tick = niceStep(end / (c.width / 80))
	for s := 0.0; s <= end; s += tick {
		fmt.Fprintf(b, `<text class="tick" text-anchor="middle" x="%.1f" y="%.1f">%s</text>`, c.at(s), c.height-bottom+15,
			number(s, tick))
	}
	fmt.Fprintf(b, `<text text-anchor="end" x="%.1f" y="%.1f">seconds since the start</text>`, c.width-right, c.height-2)
	return y
}

// niceStep returns the smallest of 1, 2 and 5 times a power of ten that is at least v.
func niceStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= v*(1-1e-9) {
			return n * power
		}
	}
	return 10 * power
}

// number prints a multiple of step.
func number(v, step float64) string {
	digits := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	text := fmt.Sprintf("%.*f", digits, v)
	if digits == 0 && len(text) > 4 { // thousands
		text = text[:len(text)-3] + "\u2009" + text[len(text)-3:]
	}
	return text
}
