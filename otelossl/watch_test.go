package otelossl_test

import (
	"errors"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/otelossl"
)

// watched has the statistics of a Watch that don't change.
type watched ossl.WatchStats

func (w watched) Stats() ossl.WatchStats { return ossl.WatchStats(w) }

// TestWatch compares all metrics of Watches with known numbers. Ages are compared in minutes.
func TestWatch(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	tel := newInstrumentation(t, fixed{}, otelossl.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	at := time.Now().Add(-time.Hour)
	roots, err := tel.Watch("roots",
		watched{Used: 3, Refused: 4, Since: at, Checked: at.Add(10 * time.Minute), Err: errors.New("refused")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tel.Watch("keys", watched{Used: 5}); err != nil {
		t.Fatal(err)
	}
	got := map[point]bool{}
	for p := range collect(t, reader) {
		if p.unit == "s" {
			p.value /= 60
		}
		got[p] = true
	}
	keys := point{"ossl.watch.changes", "{change}", "ossl.watch.name=keys,ossl.watch.result=used", 5}
	compare(t, got, keys,
		point{"ossl.watch.changes", "{change}", "ossl.watch.name=roots,ossl.watch.result=used", 3},
		point{"ossl.watch.changes", "{change}", "ossl.watch.name=roots,ossl.watch.result=refused", 4},
		point{"ossl.watch.age", "s", "ossl.watch.name=roots", 60},
		point{"ossl.watch.check.age", "s", "ossl.watch.name=roots", 50},
		point{"ossl.watch.failing", "1", "ossl.watch.name=roots", 1},
	)
	if err := roots.Unregister(); err != nil {
		t.Error(err)
	}
	compare(t, collect(t, reader), keys)
}

// TestWatchOfFiles exports the statistics of a Watch that has loaded nothing yet, and has loaded a folder.
func TestWatchOfFiles(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	tel := newInstrumentation(t, fixed{}, otelossl.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	w := ossl.NewWatch(func() error { return nil }, t.TempDir())
	if _, err := tel.Watch("folder", w); err != nil {
		t.Fatal(err)
	}
	used := point{"ossl.watch.changes", "{change}", "ossl.watch.name=folder,ossl.watch.result=used", 1}
	if collect(t, reader)[used] {
		t.Error("it was used before it was loaded")
	}
	if err := w.Reload(); err != nil {
		t.Fatal(err)
	}
	if !collect(t, reader)[used] {
		t.Error("it was loaded, and isn't used")
	}
}
