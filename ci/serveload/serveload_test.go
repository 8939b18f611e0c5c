//go:build linux

package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/ci/internal/load"
	"github.com/ossl-go/ossl/internal/tlstest"
)

func TestRows(t *testing.T) {
	names := map[string]bool{}
	for _, r := range allRows() {
		if names[r.String()] {
			t.Errorf("two rows are called %q", r)
		}
		names[r.String()] = true
		if !slices.Contains(r.stacks(), stackOSSL) || len(r.stacks()) < 3 {
			t.Errorf("%s has the servers %q", r, r.stacks())
		}
	}
	turns, memory := selectRows(regexp.MustCompile("^(TCP proxy: new|an idle)"))
	if len(turns) != 2 || len(memory) != 2 {
		t.Errorf("rows are %v and %v, want two of each", turns, memory)
	}
	for _, r := range memory {
		if r.demand != waits {
			t.Errorf("%s is not a row of idle clients", r)
		}
	}
}

// TestRoundOrder checks that a round has each turn once, those of a row together, and that neither
// rows nor servers have a fixed order.
func TestRoundOrder(t *testing.T) {
	rows, _ := selectRows(regexp.MustCompile("TCP proxy"))
	random := rand.New(rand.NewPCG(1, 2))
	first := map[turn]bool{}
	for range 200 {
		turns := roundOrder(random, rows)
		first[turns[0]] = true
		if want := len(rows) * len(stacksOf[tcp]); len(turns) != want {
			t.Fatalf("%d turns, want %d", len(turns), want)
		}
		seen := map[turn]bool{}
		var order []row
		for _, turn := range turns {
			if seen[turn] {
				t.Fatalf("%v is there twice", turn)
			}
			seen[turn] = true
			if len(order) == 0 || order[len(order)-1] != turn.row {
				order = append(order, turn.row)
			}
		}
		if len(order) != len(rows) {
			t.Fatalf("rows are torn apart: %v", order)
		}
	}
	if want := len(rows) * len(stacksOf[tcp]); len(first) != want {
		t.Errorf("rounds begin with %d of the %d turns", len(first), want)
	}
	if !slices.Equal(roundOrder(rand.New(rand.NewPCG(7, 0)), rows), roundOrder(rand.New(rand.NewPCG(7, 0)), rows)) {
		t.Error("the same seed gives another order")
	}
}

func TestFlags(t *testing.T) {
	const programs = "-ossl o -client c -nginx n -stunnel s -hitch h -wrk w -h2load l "
	r, f, err := parse(strings.Fields(programs+"-rounds 1 -turn 100ms -idle 30 -run x"), io.Discard)
	if err != nil || f.rounds != 1 || r.turn != 100*time.Millisecond || r.idle != 30 || r.programs[stackGo] != "o" ||
		r.librun != "x" {
		t.Fatalf("%+v, %+v, %v", r, f, err)
	}
	for _, args := range []string{"", strings.Replace(programs, "-hitch h", "", 1), programs + "more", programs + "-rounds 0",
		programs + "-turn 0", programs + "-idle 0", programs + "-clients 0"} {
		if _, _, err := parse(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

func TestParseWrk(t *testing.T) {
	s, bytes, err := parseWrk("Requests/sec: 1.00\nturn 250 1048576 1002003 0\n")
	if err != nil || s.work != 250 || bytes != 1048576 || s.took != 1002003*time.Microsecond {
		t.Errorf("%+v, %d, %v", s, bytes, err)
	}
	for name, bad := range map[string]string{
		"nothing":    "",
		"an error":   "turn 250 1048576 1002003 1\n",
		"no request": "turn 0 0 1002003 0\n",
		"a part":     "turn 250 1048576\n",
		"an excess":  "turn 99999999999999999999 1 1 0\n",
	} {
		if s, _, err := parseWrk(bad); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestParseH2load(t *testing.T) {
	const good = "Cipher: TLS_AES_128_GCM_SHA256\nfinished in 2.00s, 1500.00 req/s, 1.2MB/s\n" +
		"requests: 3000 total, 3000 started, 3000 done, 3000 succeeded, 0 failed, 0 errored, 0 timeout\n"
	if s, err := parseH2load(good); err != nil || s.work != 3000 || s.took != 2*time.Second {
		t.Errorf("%+v, %v", s, err)
	}
	for name, bad := range map[string]string{
		"nothing":       "",
		"a failure":     strings.Replace(good, "0 failed", "1 failed", 1),
		"another suite": strings.Replace(good, "128", "256", 1),
		"no request":    strings.NewReplacer("3000 succ", "0 succ", "1500.00", "0.00").Replace(good),
	} {
		if s, err := parseH2load(bad); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestParseRSS(t *testing.T) {
	const text = "55d0-7ffe ---p 00000000 00:00 0    [rollup]\nRss:                1564 kB\nPss:                 300 kB\n"
	if n, err := parseRSS(text); n != 1564 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := parseRSS("Pss: 300 kB\n"); err == nil {
		t.Error("a text without Rss is accepted")
	}
}

// TestTable checks that ratios are of turns in the same round: the machine is twice as fast in each.
func TestTable(t *testing.T) {
	rows, memory := selectRows(regexp.MustCompile("^(TCP proxy: (10 MB|kept)|an idle client: after a request)"))
	rows = append(rows, memory...)
	res := newResults()
	speed := 1.0
	for round, ratio := range []float64{1.3, 1.1, 1.2} {
		for _, row := range rows[:2] {
			unit := 1000.0 // requests a second
			if row.perByte() {
				unit = 100e6
			}
			for _, stack := range row.stacks() {
				work := unit * speed
				if stack == stackOSSL {
					work *= ratio
				}
				res.samples.Add(turn{row, stack}, round, sample{work: work, took: time.Second, spent: time.Second / 2})
			}
		}
		speed *= 2
	}
	for i, stack := range memory[0].stacks() {
		res.memory[turn{memory[0], stack}] = float64(1000 * (i + 1))
	}
	var b strings.Builder
	res.print(&b, rows)
	for _, want := range []string{
		"\n| TCP proxy: kept, 1 KB | ossl | 2200 | 227.3 us |  |  |\n",
		"\n|  | hitch | 2000 | 250.0 us | 1.20 (1.15-1.25) | 0.83 (0.80-0.87) |\n",
		"\n| TCP proxy: 10 MB | ossl | 220 MB | 440 MB/s |  |  |\n",
		"\n| an idle client: after a request | ossl | 1.0 KB |  |\n",
		"\n|  | nginx | 3.0 KB | 0.33 |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &b)
		}
	}
	b.Reset()
	res.writeTSV(&b, rows)
	if n := strings.Count(b.String(), "\n"); n != 1+2*4*3+3 {
		t.Errorf("%d lines of TSV:\n%s", n, &b)
	}
	for line := range strings.Lines(b.String()) {
		if strings.Count(line, "\t") != 6 {
			t.Errorf("not 7 fields: %q", line)
		}
	}
}

// TestLegend checks that no line is wider than 100 columns.
func TestLegend(t *testing.T) {
	r := &runner{turn: time.Second, clients: 16, idle: 10_000}
	for line := range strings.Lines(legend(15, r, 1<<63)) {
		if len(strings.TrimSuffix(line, "\n")) > 100 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
}

// TestIdle connects idle clients, which then have requests answered, and some to a server that
// answers wrongly.
func TestIdle(t *testing.T) {
	for _, test := range []struct {
		name string
		size int
		ok   bool
	}{{"1 KB", smallFile, true}, {"another size", smallFile + 1, false}} {
		t.Run(test.name, func(t *testing.T) {
			web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, strings.Repeat("x", test.size))
			}))
			certificate := tlstest.New(tlstest.Options{Kind: tlstest.P256, Names: []string{load.ServerName}})
			web.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that end early, of a failure
			web.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
			web.StartTLS()
			defer web.Close()
			_, port, err := net.SplitHostPort(web.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			clients, err := new(runner).connect(t.Context(), &server{port: port}, 40, true)
			defer closeAll(clients)
			if (err == nil) != test.ok {
				t.Fatalf("%d clients, %v", len(clients), err)
			}
			for i, c := range clients {
				if !test.ok {
					continue
				}
				if err := c.ask(); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
			}
		})
	}
}
