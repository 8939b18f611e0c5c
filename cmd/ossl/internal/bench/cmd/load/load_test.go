//go:build linux

package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/rounds"
	"github.com/ossl-go/ossl/internal/tlstest"
)

func TestRows(t *testing.T) {
	servers := &runner{programs: map[string]string{stackOSSL: "ossl"}}
	bare := &runner{slack: 1, variants: []string{"x"}, programs: map[string]string{stackNginx: "nginx"}}
	many := &runner{processors: []int{1, 2, 8}, programs: map[string]string{stackNginx: "nginx"}}
	names := map[string]bool{}
	for _, run := range []*runner{servers, bare, many} {
		for _, row := range run.allRows() {
			if names[row.String()] {
				t.Errorf("two rows are called %q", row)
			}
			names[row.String()] = true
			if stacks := run.stacks(row); !slices.Contains(stacks, stackOSSL) || len(stacks) < 3 || row.bare() != (run != servers) {
				t.Errorf("%s has the servers %q", row, stacks)
			}
		}
	}
	if rows, _ := many.selectRows(regexp.MustCompile("to (1|8): 1.3 P256 full")); len(rows) != 2 || rows[1].processors != 8 {
		t.Errorf("rows are %v, want those of 1 and 8 processors", rows)
	}
	turns, memory := servers.selectRows(regexp.MustCompile("^(TCP proxy: new|an idle)"))
	if len(turns) != 2 || len(memory) != 2 {
		t.Errorf("rows are %v and %v, want two of each", turns, memory)
	}
	for _, r := range memory {
		if r.demand != waits {
			t.Errorf("%s is not a row of idle clients", r)
		}
	}
	for name, want := range map[string][]string{
		"loaded 1.3 P256 full":           {stackOSSL, stackStd, "x", stackNginx},
		"slack 1.2 RSA2048 resumed 1KB":  {stackOSSL, stackStd, "x", stackNginx},
		"loaded 1.2 P256 resumed by id$": {stackOSSL, "x", stackNginx},
	} {
		rows, _ := bare.selectRows(regexp.MustCompile("^" + name))
		if len(rows) == 0 || !slices.Equal(bare.stacks(rows[0]), want) {
			t.Errorf("%s: rows are %v", name, rows)
		}
	}
}

func TestFlags(t *testing.T) {
	const programs = "-ossl o -client c -nginx n -stunnel s -hitch h -wrk w -h2load l "
	r, f, err := parse(strings.Fields(programs+"-rounds 1 -turn 100ms -idle 30 -run x"), io.Discard)
	if err != nil || f.rounds != 1 || r.turn != 100*time.Millisecond || r.idle != 30 || r.programs[stackGo] != "o" ||
		r.librun != "x" {
		t.Fatalf("%+v, %+v, %v", r, f, err)
	}
	r, f, err = parse(strings.Fields("-client c -aa -variant x=/bin/y -rounds 1 -full 20 -resumed 30"), io.Discard)
	if err != nil || f.rounds != 1 || r.full != 20 || r.resumed != 30 || !slices.Equal(r.variants, []string{"x", stackAgain}) {
		t.Fatalf("%+v, %+v, %v", r, f, err)
	}
	r, _, err = parse(strings.Fields("-client c -nginx n -processors 1"), io.Discard)
	if err != nil || !slices.Equal(r.processors, []int{1}) {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, bad := range []string{"", "2", "1,x", "1,3,2", "1,1000000"} {
		if _, _, err := parse([]string{"-client", "c", "-nginx", "n", "-processors", bad}, io.Discard); err == nil {
			t.Errorf("-processors %q is accepted", bad)
		}
	}
	for _, args := range []string{"", "-client c -processors 1", "-client c -nginx n -processors 1 -aa",
		programs + "-processors 1", "-client c more", "-client c -variant x", "-client c -variant ossl=y", "-client c -variant =y",
		"-client c -variant x=y -variant x=z", "-client c -slack -1ms", "-client c -full -1",
		strings.Replace(programs, "-hitch h", "", 1), programs + "more", programs + "-rounds 0",
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

func TestTable(t *testing.T) {
	run := &runner{programs: map[string]string{stackOSSL: "ossl"}}
	rows, memory := run.selectRows(regexp.MustCompile("^(TCP proxy: (10 MB|kept)|an idle client: after a request)"))
	res := results{memory: map[turn]float64{}, samples: rounds.Samples[turn, sample]{}}
	for _, row := range rows {
		unit, turns := 1000.0, []turn{} // requests a second
		if row.perByte() {
			unit = 100e6
		}
		for _, stack := range run.stacks(row) {
			turns = append(turns, turn{row, stack})
		}
		res.rows = append(res.rows, turns)
		for _, ratio := range []float64{1.3, 1.1, 1.2} {
			for _, at := range turns {
				work := unit
				if at.stack == stackOSSL {
					work *= ratio
				}
				res.samples[at] = append(res.samples[at], sample{work: work, took: time.Second, spent: time.Second / 2})
			}
		}
	}
	for i, stack := range run.stacks(memory[0]) {
		res.memory[turn{memory[0], stack}] = float64(1000 * (i + 1))
	}
	var b strings.Builder
	res.print(&b)
	res.printMemory(&b, memory, run)
	for _, want := range []string{
		"\n| TCP proxy: kept, 1 KB | ossl | 1200 | 416.7 us |  |  |\n",
		"\n|  | hitch | 1000 | 500.0 us | 1.20 (1.10-1.30) | 0.83 (0.77-0.91) |\n",
		"\n| TCP proxy: 10 MB | ossl | 120 MB | 240 MB/s |  |  |\n",
		"\n| an idle client: after a request | ossl | 1.0 KB |  |\n",
		"\n|  | nginx | 3.0 KB | 0.33 |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &b)
		}
	}
	b.Reset()
	res.writeTSV(&b)
	if n := strings.Count(b.String(), "\n"); n != 1+2*4*3 {
		t.Errorf("%d lines of TSV:\n%s", n, &b)
	}
}

// TestTableOfProcessors checks that a ratio to one processor is that of a processor's work, or of the time for it.
func TestTableOfProcessors(t *testing.T) {
	run := &runner{processors: []int{1, 4}}
	rows, _ := run.selectRows(regexp.MustCompile("P256 (full|kept)"))
	res := results{samples: rounds.Samples[turn, sample]{}}
	for _, row := range rows {
		var turns []turn
		for _, stack := range run.stacks(row) {
			at := turn{row, stack}
			turns = append(turns, at)
			work := 1000.0
			if row.processors > 1 && stack != stackNginx {
				work = 2000
			} else if row.processors > 1 {
				work = 4000
			}
			res.samples[at] = []sample{{work, time.Second, time.Second / 2}, {work, time.Second, time.Second / 2}}
		}
		res.rows = append(res.rows, turns)
	}
	var b strings.Builder
	res.printScaled(&b)
	const same = "1.00 (1.00-1.00)"
	for _, want := range []string{
		"\n## 1.3 P256 full\n\n|", "\n## 1.3 P256 kept 1KB\n\n|",
		"\n| 1 | ossl | 1000 |  | 500.0 us |  | " + same + " | " + same + " |\n",
		"\n| 4 | ossl | 2000 | 0.50 (0.50-0.50) | 250.0 us | 0.50 (0.50-0.50) | 0.50 (0.50-0.50) | 2.00 (2.00-2.00) |\n",
		"\n|  | nginx | 4000 | " + same + " | 125.0 us | 0.25 (0.25-0.25) |  |  |\n",
	} {
		if n := strings.Count(b.String(), want); n == 0 {
			t.Errorf("the page lacks %q:\n%s", want, &b)
		}
	}
}

// TestShared: processes that share a port also resume one another's sessions.
func TestShared(t *testing.T) {
	dir := t.TempDir()
	if err := writeCerts(dir, []tlstest.KeyKind{tlstest.P256}); err != nil {
		t.Fatal(err)
	}
	s := serving{stack: stackOSSL, way: byTicket, cert: filepath.Join(dir, "P256.pem"), key: filepath.Join(dir, "P256.key"),
		shared: true}
	first, err := s.listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: tlstest.CA().Pool(), ServerName: serverName, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	for i, l := range []net.Listener{first, nil} {
		if l == nil { // closes the first one, after it shares its port
			if l, err = s.listen(first.Addr().String()); err != nil {
				t.Fatal(err)
			}
			first.Close()
		}
		defer l.Close()
		wrap, err := s.open() // as another process does
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := l.Accept(); err == nil {
				attend(wrap(conn), true)
			}
		}()
		conn, err := tls.Dial("tcp", first.Addr().String(), config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 4096)); err != nil { // and so the ticket
			t.Fatal(err)
		}
		if resumed := conn.ConnectionState().DidResume; resumed != (i == 1) {
			t.Errorf("connection %d: resumed is %v", i+1, resumed)
		}
		conn.Close()
	}
}

// TestLegend checks that no line is wider than 100 columns.
func TestLegend(t *testing.T) {
	for _, ossl := range []string{"", "ossl"} {
		r := &runner{programs: map[string]string{stackOSSL: ossl}, turn: time.Second, slack: 1, clients: 16, idle: 10_000}
		legend := r.legend(15, 1<<63)
		r.processors = []int{1}
		few := r.scaledLegend(15, 1<<63)
		if !strings.Contains(few, "**1 processors show nothing") {
			t.Errorf("one processor: %s", few)
		}
		for line := range strings.Lines(legend + few) {
			if len(strings.TrimSuffix(line, "\n")) > 100 {
				t.Errorf("%d columns: %s", len(line)-1, line)
			}
		}
	}
}

// TestVisitNotReady: a client that must not begin exits at once, and not when its time is over.
func TestVisitNotReady(t *testing.T) {
	client := filepath.Join(t.TempDir(), "client")
	if err := os.WriteFile(client, []byte("#!/bin/sh\necho ready\nexec cat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("not ready")
	r := &runner{programs: map[string]string{clientC: client}, turn: time.Hour}
	if _, err := r.visit(t.Context(), row{}, &server{}, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

// TestStartRelaxed: a program has the slack, and the thread that starts it keeps its own.
func TestStartRelaxed(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_TIMERSLACK, 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	for _, slack := range []time.Duration{2 * time.Millisecond, 0} {
		var out strings.Builder
		cmd := exec.Command("cat", "/proc/self/timerslack_ns")
		cmd.Stdout = &out
		if err := startRelaxed(cmd, slack); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		want := cmp.Or(int(slack), int(own))
		if got := strings.TrimSpace(out.String()); got != strconv.Itoa(want) {
			t.Errorf("slack %v: the program has %s, want %d", slack, got, want)
		}
		if now, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_TIMERSLACK, 0, 0); now != own || errno != 0 {
			t.Errorf("slack %v: the thread has %d, %v, want %d", slack, now, errno, own)
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
			certificate := tlstest.New(tlstest.Options{Kind: tlstest.P256, Names: []string{serverName}})
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
