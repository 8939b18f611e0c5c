package promossl_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/promossl"
)

// watched has the statistics of a Watch that don't change.
type watched ossl.WatchStats

func (w watched) Stats() ossl.WatchStats { return ossl.WatchStats(w) }

// TestWatchMetrics compares all metrics of known numbers, of two Watches in one registry.
func TestWatchMetrics(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	at := time.UnixMilli(1_234_567_890_250)
	r.MustRegister(promossl.NewWatchCollector("roots", watched{Used: 3, Refused: 4, Since: at, Checked: at.Add(time.Second),
		Err: errors.New("refused")}))
	r.MustRegister(promossl.NewWatchCollector("new", watched{}))
	const want = `ossl_watch_changes_total{result="refused",watch="new"} 0
ossl_watch_changes_total{result="refused",watch="roots"} 4
ossl_watch_changes_total{result="used",watch="new"} 0
ossl_watch_changes_total{result="used",watch="roots"} 3
ossl_watch_checked_timestamp_seconds{watch="roots"} 1.23456789125e+09
ossl_watch_failing{watch="new"} 0
ossl_watch_failing{watch="roots"} 1
ossl_watch_used_timestamp_seconds{watch="roots"} 1.23456789025e+09
`
	if got := gather(t, r); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	problems, err := testutil.GatherAndLint(r)
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	if err := r.Register(promossl.NewWatchCollector("roots", watched{})); err == nil {
		t.Error("two Watches with one name")
	}
}

// TestWatchFails exports the statistics of a Watch whose file can't be used any more.
func TestWatchFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("good")
	w := ossl.NewWatch(func() error {
		if b, err := os.ReadFile(file); err != nil || string(b) != "good" {
			return errors.Join(errors.New("it isn't good"), err)
		}
		return nil
	}, file)
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(promossl.NewWatchCollector("file", w))
	if err := w.Reload(); err != nil {
		t.Fatal(err)
	}
	if text := gather(t, r); !strings.Contains(text, `ossl_watch_failing{watch="file"} 0`) {
		t.Error(text)
	}
	write("bad")
	if err := w.Reload(); err == nil {
		t.Fatal("bad contents are used")
	}
	text := gather(t, r)
	for _, want := range []string{
		`ossl_watch_failing{watch="file"} 1`, `result="used",watch="file"} 1`, `result="refused",watch="file"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
