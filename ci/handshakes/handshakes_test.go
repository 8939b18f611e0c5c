//go:build linux

package main

import (
	"cmp"
	"io"
	"math"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// TestRatio checks that ratios don't show the speed of the machine, which doubles in each round here.
func TestRatio(t *testing.T) {
	r := newResults()
	rows := allRows()
	a, b := turn{rows[0], "a"}, turn{rows[0], "b"}
	speed := 1.0
	for round, ratio := range []float64{1.3, 1.1, 1.2} {
		r.samples.Add(a, round, sample{micros: ratio * speed})
		r.samples.Add(b, round, sample{micros: speed})
		speed *= 2
	}
	r.samples.Add(a, 3, sample{micros: 100}) // b had no turn in this round
	r.samples.Add(turn{rows[1], "b"}, 3, sample{micros: 1})
	got, ok := r.ratio(a, "b")
	if !ok || !near(got.Low, 1.15) || !near(got.Median, 1.2) || !near(got.High, 1.25) {
		t.Errorf("ratio is %v, %v", got, ok)
	}
	if got, ok := r.ratio(a, "c"); ok {
		t.Errorf("ratio to a server without turns is %v", got)
	}
}

// TestRoundOrder checks that a round has each turn once, those of a row together, and that neither
// rows nor servers have a fixed order.
func TestRoundOrder(t *testing.T) {
	rows := new(runner).selectRows(regexp.MustCompile("1.2 P256 resumed"))
	stacks := []string{stackGo, stackOSSL, "variant", stackNginx}
	random := rand.New(rand.NewPCG(1, 2))
	first := map[turn]bool{}
	for range 200 {
		turns := roundOrder(random, rows, stacks)
		first[turns[0]] = true
		seen := map[turn]bool{}
		var order []row
		for _, turn := range turns {
			if seen[turn] || !turn.row.has(turn.stack) {
				t.Fatalf("%v is there twice, or should not be", turn)
			}
			seen[turn] = true
			if len(order) == 0 || order[len(order)-1] != turn.row {
				order = append(order, turn.row)
			}
		}
		if len(order) != len(rows) {
			t.Fatalf("rows are torn apart: %v", order)
		}
		want := 0
		for _, row := range rows {
			for _, stack := range stacks {
				if row.has(stack) {
					want++
				}
			}
		}
		if len(turns) != want {
			t.Fatalf("%d turns, want %d", len(turns), want)
		}
	}
	if len(first) < 10 { // of 3 rows with 2 to 4 servers each
		t.Errorf("rounds begin with only %d of the turns", len(first))
	}
	a := roundOrder(rand.New(rand.NewPCG(7, 0)), rows, stacks)
	b := roundOrder(rand.New(rand.NewPCG(7, 0)), rows, stacks)
	if !slices.Equal(a, b) {
		t.Error("the same seed gives another order")
	}
}

func TestRows(t *testing.T) {
	names := map[string]bool{}
	for _, r := range (&runner{slack: 1}).selectRows(regexp.MustCompile("")) {
		if names[r.String()] {
			t.Errorf("two rows are called %q", r)
		}
		names[r.String()] = true
	}
	for _, name := range []string{"loaded 1.3 P256 full", "loaded 1.2 RSA2048 resumed 1KB", "slack 1.2 P256 resumed by id"} {
		if !names[name] {
			t.Errorf("there is no row %q", name)
		}
	}
}

func TestFlags(t *testing.T) {
	r, f, err := parse(strings.Fields("-client c -aa -variant x=/bin/y -rounds 1 -full 20 -resumed 30"), io.Discard)
	if err != nil || f.rounds != 1 || r.full != 20 || r.resumed != 30 {
		t.Fatalf("%+v, %+v, %v", r, f, err)
	}
	if want := []string{stackGo, stackOSSL, "x", stackAgain}; !slices.Equal(r.stacks(), want) {
		t.Errorf("servers are %q, want %q", r.stacks(), want)
	}
	for _, args := range []string{"", "-client c more", "-client c -variant x", "-client c -variant ossl=y", "-client c -variant =y",
		"-client c -variant x=y -variant x=z", "-client c -variant seventeenletters=y", "-client c -rounds 0", "-client c -turn 0",
		"-client c -slack -1ms"} {
		if _, _, err := parse(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
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

func TestTable(t *testing.T) {
	r := newResults()
	rows := new(runner).selectRows(regexp.MustCompile("^loaded 1.3 P256 full$"))
	stacks := []string{stackGo, stackOSSL, "123456789abc", stackNginx}
	for i, stack := range stacks {
		r.samples.Add(turn{rows[0], stack}, 0, sample{micros: float64(1000 * (i + 1)), perSecond: 12345})
	}
	var b strings.Builder
	r.print(&b, rows, stacks)
	for line := range strings.Lines(legend + "\n" + b.String()) {
		if len(strings.TrimSuffix(line, "\n")) > 100 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	want := regexp.MustCompile(`\n  123456789abc  3000  1.50 1.50-1.50  3.00 3.00-3.00  0.75 0.75-0.75   12345\n`)
	if !want.MatchString(b.String()) {
		t.Errorf("the table is\n%s", &b)
	}
	b.Reset()
	r.writeTSV(&b, rows, stacks)
	if n := strings.Count(b.String(), "\n"); n != 5 { // with its head
		t.Errorf("%d lines of TSV:\n%s", n, &b)
	}
	for line := range strings.Lines(b.String()) {
		if strings.Count(line, "\t") != 4 {
			t.Errorf("not 5 fields: %q", line)
		}
	}
}
