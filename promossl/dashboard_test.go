package promossl_test

import (
	_ "embed"
	"flag"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/promossl"
)

var dashboard = flag.String("dashboard", "", "write the page of TestDashboard to this `file`")

// pace is the time from one scrape to the next if a page is written for people.
const pace = 50 * time.Millisecond

//go:embed testdata/dashboard.html
var pageText string

var pageTemplate = template.Must(template.New("dashboard").Parse(pageText))

// A page has the values of the template.
type page struct {
	Subtitle, Footer string
	Tiles            []tile
	Charts           []panel
	Small            []small
	Rows             []row
}

type tile struct{ Name, Value string }

type key struct {
	Name  string
	Color int
}

type panel struct {
	Title, Text string
	Wide        bool
	Keys        []key
	SVG         template.HTML
}

type small struct {
	Title, Detail string
	Count         int
	SVG           template.HTML
}

type row struct {
	When, Role, Class, Alert, Cause string
	Color, Count                    int
}

// colors are the colors of the classes.
var colors = map[string]int{
	"certificate_expired": 6, "refused": 8, "timeout": 3, "peer_closed": 1, "truncated": 2, "not_tls": 5, "peer_alert": 7,
	"certificate_untrusted": 4,
}

// TestDashboard runs a load with failures, scrapes the Collector at the same time, and writes a
// page with charts. All failures that the load made, and no others, must be on it with their
// numbers.
func TestDashboard(t *testing.T) {
	l := newLoad(t)
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(promossl.NewCollector(&l.contexts))
	start := time.Now()
	samples := []sample{take(t, r, 0)}
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := range steps {
		l.step(n)
		if *dashboard != "" {
			<-tick.C
		}
		samples = append(samples, take(t, r, time.Since(start)))
	}
	l.end()
	last := take(t, r, time.Since(start))
	samples[len(samples)-1].families = last.families

	l.check(last)
	file := *dashboard
	if file == "" {
		file = filepath.Join(t.TempDir(), "dashboard.html")
	}
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := pageTemplate.Execute(out, l.page(samples)); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	l.checkPage(file)
}

// wanted returns the failures that the load has made.
func (l *load) wanted() map[reason]int {
	all := map[reason]int{}
	for _, k := range kinds {
		for _, w := range k.want {
			all[w] += l.made[k.name]
		}
	}
	return all
}

// check compares the counts with the load's own.
func (l *load) check(s sample) {
	l.t.Helper()
	wanted, counted := l.wanted(), s.reasons()
	for r, n := range wanted {
		if counted[r] != n {
			l.t.Errorf("%d of %+v, want %d", counted[r], r, n)
		}
	}
	for r, n := range counted {
		if wanted[r] == 0 {
			l.t.Errorf("unexpected: %d of %+v", n, r)
		}
	}
	handshakes := l.made[kinds[0].name] + l.made["connections cut without close_notify"]
	for what, c := range map[string]struct{ got, want float64 }{
		"handshakes":        {s.sum("ossl_tls_handshakes_total", server), float64(handshakes)},
		"durations":         {float64(s.histogramCount("ossl_tls_handshake_seconds", server)), float64(handshakes)},
		"open connections":  {s.sum("ossl_tls_open_connections", nil), 0},
		"failed gets":       {s.by("ossl_tls_session_cache_gets_total", "result", server)["error"], float64(l.cache.failedGets.Load())},
		"failed puts":       {s.by("ossl_tls_session_cache_puts_total", "result", server)["error"], float64(l.cache.failedPuts.Load())},
		"bytes in and out":  {s.sum("ossl_tls_read_bytes_total", server), s.sum("ossl_tls_written_bytes_total", server)},
		"bytes of each end": {s.sum("ossl_tls_read_bytes_total", server), s.sum("ossl_tls_written_bytes_total", clients)},
	} {
		if c.got != c.want {
			l.t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	if l.cache.failedGets.Load() == 0 || l.cache.failedPuts.Load() == 0 {
		l.t.Error("the session cache has never failed")
	}
}

var server, clients = filter{"context": "frontend"}, filter{"context": "clients"}

func (s sample) histogramCount(metric string, f filter) (n uint64) {
	for _, m := range s.families[metric] {
		if f.matches(m) {
			n += m.GetHistogram().GetSampleCount()
		}
	}
	return n
}

// checkPage checks that the page shows each failure with its count, in the table and in a chart of
// its own, and that it needs nothing else.
func (l *load) checkPage(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		l.t.Fatal(err)
	}
	for r, n := range l.wanted() {
		line := fmt.Sprintf(`</i><code>%s</code></td><td><code>%s</code></td>`, r.class, r.alert)
		count := fmt.Sprintf(`<td class="n">%d</td>`, n)
		found := false
		for text := range strings.Lines(string(text)) {
			found = found || strings.Contains(text, "<td>"+r.role+"</td>") && strings.Contains(text, line) && strings.Contains(text, count)
		}
		heading := fmt.Sprintf("<h3><span>%s</span><span>%d</span></h3><p>%s</p>", title(r), n, detail(r))
		if !found || !strings.Contains(string(text), heading) {
			l.t.Errorf("the page doesn't show %d of %+v", n, r)
		}
	}
	for _, no := range []string{"<script", "http://", "https://", "NaN", "Inf", "ZgotmplZ", "<no value>"} {
		if strings.Contains(string(text), no) {
			l.t.Errorf("the page has %q", no)
		}
	}
	if len(text) > 100_000 {
		l.t.Errorf("the page has %d bytes", len(text))
	}
}

// page draws the charts.
func (l *load) page(samples []sample) page {
	last := samples[len(samples)-1]
	p := page{
		Subtitle: "A server with a session cache, and clients of which some misbehave.",
		Footer: fmt.Sprintf("%d scrapes of promossl's Collector. The page was made by its test: go test -run Dashboard -dashboard FILE",
			len(samples)),
	}
	if lib, err := ossl.Library(); err == nil {
		p.Subtitle += " " + lib.VersionText + "."
	}
	p.Tiles = tiles(last)
	p.Charts = panels(samples)
	for _, r := range l.reasonsInOrder() {
		p.Rows = append(p.Rows, row{when(r), r.role, r.class, r.alert, l.cause(r), colors[r.class], l.wanted()[r]})
		f := filter{"role": r.role, "class": r.class, "alert": r.alert}
		c := newChart(samples, rates(samples, r.metric, "", f), func(string) int { return colors[r.class] })
		c.width, c.height, c.unit, c.names = 350, 130, "failures per second", []string{title(r)}
		p.Small = append(p.Small, small{title(r), detail(r), last.reasons()[r], c.bars()})
	}
	return p
}
