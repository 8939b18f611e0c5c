package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ossl-go/ossl/bench"
)

// A unit is the form in which a row's figures are shown.
type unit string

const (
	perOperation unit = "time"       // nanoseconds per operation
	perSecond    unit = "rate"       // operations per second
	throughput   unit = "throughput" // bytes per second
)

// A demoRow is one row of the table.
type demoRow struct {
	Name string `json:"name"`
	// Benchmark names the benchmark of package bench that measures the same.
	Benchmark string `json:"benchmark"`
	Unit      unit   `json:"unit"`

	// Medians of the rounds, in nanoseconds per operation.
	Std  float64 `json:"std_ns"`
	OSSL float64 `json:"ossl_ns"`
	// Ratio is OSSL divided by Std: if it is below 1, ossl is faster. It is between Low and High
	// with a confidence of 90%.
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"ratio_low"`
	High  float64 `json:"ratio_high"`
	// Bytes is the number of bytes that an operation moves, if Unit is throughput.
	Bytes int `json:"bytes,omitempty"`

	make   func(bench.Impl) (bench.Measure, error)
	rounds map[bench.Impl][]float64
}

// demoRows returns the rows in the order in which they are measured and shown.
func demoRows(fips bool) []demoRow {
	handshake := func(p bench.Pair) func(bench.Impl) (bench.Measure, error) {
		return func(impl bench.Impl) (bench.Measure, error) {
			p.Server, p.Client = impl, impl
			return bench.NewHandshake(p)
		}
	}
	ecdsa := func(impl bench.Impl) bench.Pair { return bench.Pair{Server: impl, Client: impl, Cert: bench.P256} }
	bulk := func(size int) func(bench.Impl) (bench.Measure, error) {
		return func(impl bench.Impl) (bench.Measure, error) { return bench.NewBulk(ecdsa(impl), bench.Down, size) }
	}
	kex := bench.DefaultKex().String()
	rows := []demoRow{
		{
			Name: "handshake, ECDSA P-256", Unit: perOperation,
			Benchmark: "Handshake/cert=P256/mutual=false/kex=" + kex + "/chaincache=hit",
			make:      handshake(bench.Pair{Cert: bench.P256}),
		},
		{
			Name: "handshake, ECDSA P-256, no chain cache", Unit: perOperation,
			Benchmark: "Handshake/cert=P256/mutual=false/kex=" + kex + "/chaincache=off",
			make:      handshake(bench.Pair{Cert: bench.P256, NoChainCache: true}),
		},
		{
			Name: "handshake, ECDSA P-256, mutual", Unit: perOperation,
			Benchmark: "Handshake/cert=P256/mutual=true/kex=" + kex + "/chaincache=hit",
			make:      handshake(bench.Pair{Cert: bench.P256, Mutual: true}),
		},
		{
			Name: "handshake, RSA-2048", Unit: perOperation,
			Benchmark: "Handshake/cert=RSA2048/mutual=false/kex=" + kex + "/chaincache=hit",
			make:      handshake(bench.Pair{Cert: bench.RSA2048}),
		},
		{
			Name: "connections, ECDSA P-256", Unit: perSecond,
			Benchmark: "Connections/cert=P256",
			make:      func(impl bench.Impl) (bench.Measure, error) { return bench.NewConnections(ecdsa(impl)) },
		},
		{
			Name: "round trip", Unit: perOperation,
			Benchmark: "Latency",
			make:      func(impl bench.Impl) (bench.Measure, error) { return bench.NewLatency(ecdsa(impl)) },
		},
		{
			Name: "bulk, 1 MB writes", Unit: throughput, Bytes: 1 << 20,
			Benchmark: "Bulk/dir=down/write=1MB",
			make:      bulk(1 << 20),
		},
		{
			Name: "bulk, 16 KB writes", Unit: throughput, Bytes: 16 << 10,
			Benchmark: "Bulk/dir=down/write=16KB",
			make:      bulk(16 << 10),
		},
	}
	if fips { // in FIPS mode no chain is remembered: one row is enough
		return slices.DeleteFunc(rows, func(r demoRow) bool { return strings.Contains(r.Name, "chain cache") })
	}
	return rows
}

// add adds a round's time of one operation.
func (r *demoRow) add(impl bench.Impl, perOp time.Duration) {
	if r.rounds == nil {
		r.rounds = map[bench.Impl][]float64{}
	}
	r.rounds[impl] = append(r.rounds[impl], float64(perOp))
}

// summarize computes the medians and the ratio with its range from the rounds.
func (r *demoRow) summarize() {
	std, ossl := r.rounds[bench.Std], r.rounds[bench.OSSL]
	r.Std, r.OSSL = quantile(std, 0.5), quantile(ossl, 0.5)
	r.Ratio = r.OSSL / r.Std

	// The bootstrap: ratios that might have been measured in other rounds of the same kind. The two
	// figures of a round stay together.
	const draws = 1000
	random := rand.New(rand.NewPCG(1, 2)) // the same figures always have the same result
	ratios := make([]float64, draws)
	drawnStd, drawnOSSL := make([]float64, len(std)), make([]float64, len(std))
	for i := range ratios {
		for j := range std {
			k := random.IntN(len(std))
			drawnStd[j], drawnOSSL[j] = std[k], ossl[k]
		}
		ratios[i] = quantile(drawnOSSL, 0.5) / quantile(drawnStd, 0.5)
	}
	r.Low, r.High = min(r.Ratio, quantile(ratios, 0.05)), max(r.Ratio, quantile(ratios, 0.95))
}

// quantile returns the value below which about the fraction q of the values lies.
func quantile(values []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[int(q*float64(len(s)-1)+0.5)]
}
