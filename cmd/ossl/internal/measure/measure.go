// Package measure compares implementations of TLS, by the measurements of package bench: in rounds,
// so that other load on the machine affects all of them.
package measure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/ossl-go/ossl/bench"
)

// A Unit is the form in which a row's figures are shown.
type Unit string

// The units. Figures are always kept as nanoseconds for an operation, except of memory.
const (
	PerOperation Unit = "time"       // nanoseconds for an operation
	PerSecond    Unit = "rate"       // operations in a second
	Throughput   Unit = "throughput" // bytes in a second
	Memory       Unit = "memory"     // bytes
)

// A Row is one measurement, which is made with each engine.
type Row struct {
	Section string
	Name    string
	// Benchmark names the benchmark of package bench that measures the same, or one of the same form.
	Benchmark string
	Unit      Unit
	Bytes     int // that an operation moves, if Unit is Throughput

	// One of these is set.
	make func(Ends) (bench.Measure, error)
	once func(context.Context, Ends) (float64, error) // one figure, which takes as long as it takes

	kernel bool // it needs kernel TLS

	Figures [][]float64 // of each engine, by rounds
}

// An Engine is an implementation of TLS.
type Engine interface {
	Name() string
	// Lacks reports whether the engine can't measure a row.
	Lacks(row *Row) bool
	// Measure measures a row for about d, and returns its figure.
	Measure(ctx context.Context, row *Row, d time.Duration) (float64, error)
	Close() error
}

// Ends are the implementations of a connection's two ends.
type Ends struct{ Server, Client bench.Impl }

// Both returns the ends of connections whose ends have the same implementation.
func Both(impl bench.Impl) Ends { return Ends{impl, impl} }

// A local engine is one of this process.
type local Ends

// Local returns the engine of implementations in this process.
func Local(ends Ends) Engine { return local(ends) }

func (l local) Name() string {
	names := map[bench.Impl]string{bench.Std: "crypto/tls", bench.OSSL: "ossl"}
	if l.Server == l.Client {
		return names[l.Server]
	}
	return fmt.Sprintf("%s server, %s client", names[l.Server], names[l.Client])
}

// Lacks returns false: Rows has left out what this process can't do.
func (l local) Lacks(*Row) bool { return false }

func (l local) Close() error { return nil }

// Measure measures on new connections: the speed of a stream depends on the addresses of its
// buffers, which should differ from round to round, not from engine to engine.
func (l local) Measure(ctx context.Context, row *Row, d time.Duration) (figure float64, err error) {
	if row.once != nil {
		return row.once(ctx, Ends(l))
	}
	m, err := row.make(Ends(l))
	if err != nil {
		return 0, err
	}
	defer func() {
		_, closeErr := m.Close()
		err = errors.Join(err, closeErr)
	}()
	runtime.GC() // otherwise this slice would pay for garbage of the previous one
	const warmUp = 10
	if _, _, err := bench.TimeFor(m, d/warmUp); err != nil {
		return 0, err
	}
	ops, elapsed, err := bench.TimeFor(m, d-d/warmUp)
	if err != nil {
		return 0, err
	}
	return float64(elapsed) / float64(ops), nil
}

// Options say how Run measures.
type Options struct {
	Rounds   int
	Duration time.Duration // of all rounds together, without rows that take as long as they take
	// Step is called before each measurement.
	Step func(round int, what string)
}

// Run measures all rows with all engines: in each round every row has a slice of time for each
// engine, one right after the other.
func Run(ctx context.Context, rows []*Row, engines []Engine, o Options) error {
	timed := 0
	for _, row := range rows {
		row.Figures = make([][]float64, len(engines))
		if row.once == nil {
			timed++
		}
	}
	slice := max(1, o.Duration/time.Duration(max(1, o.Rounds*timed*len(engines)))) // in no time nothing is measured
	for round := range o.Rounds {
		for _, row := range rows {
			if row.once != nil && round > 0 { // it takes long, and hardly varies
				continue
			}
			for i, engine := range engines {
				if err := ctx.Err(); err != nil {
					return err
				}
				o.Step(round, row.Name+", "+engine.Name())
				figure, err := engine.Measure(ctx, row, slice)
				if err != nil && ctx.Err() != nil { // Ctrl-C has ended other processes too, which is no failure
					return ctx.Err()
				}
				if err != nil {
					return fmt.Errorf("%s, %s: %w", row.Name, engine.Name(), err)
				}
				row.Figures[i] = append(row.Figures[i], figure)
			}
		}
	}
	return nil
}

// Steps returns the number of calls of Step.
func Steps(rows []*Row, engines []Engine, rounds int) (steps int) {
	for _, row := range rows {
		if row.once != nil {
			steps += len(engines)
		} else {
			steps += len(engines) * rounds
		}
	}
	return steps
}

// Median returns the median figure of an engine.
func (r *Row) Median(engine int) float64 { return median(r.Figures[engine]) }

// A Comparison is the ratio of two engines' figures, as rounds give it.
type Comparison struct {
	// Ratio is the ratio of the medians: below 1, the first engine is faster, or takes less. It is
	// between Low and High with a confidence of 90%.
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"ratio_low"`
	High  float64 `json:"ratio_high"`
	Once  bool    `json:"-"` // there was one round: Low and High are the Ratio, and say nothing
}

// Compare returns the ratio of an engine's figures to those of another one.
func (r *Row) Compare(engine, to int) Comparison { return Compare(r.Figures[engine], r.Figures[to]) }

// Compare returns the ratio of figures to others of the same rounds. Its range is that of the
// bootstrap: ratios that might have been measured in other rounds of the same kind. The two figures
// of a round stay together.
func Compare(figures, to []float64) Comparison {
	c := Comparison{Ratio: median(figures) / median(to), Once: len(figures) == 1}
	const draws = 1000
	random := rand.New(rand.NewPCG(1, 2)) // the same figures always have the same result
	ratios := make([]float64, draws)
	drawn, drawnTo := make([]float64, len(figures)), make([]float64, len(figures))
	for i := range ratios {
		for j := range figures {
			k := random.IntN(len(figures))
			drawn[j], drawnTo[j] = figures[k], to[k]
		}
		ratios[i] = median(drawn) / median(drawnTo)
	}
	c.Low, c.High = min(c.Ratio, quantile(ratios, 0.05)), max(c.Ratio, quantile(ratios, 0.95))
	return c
}

// median returns the median, which of an even number of values is between the two in the middle.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// quantile returns the value below which about the fraction q of the values lies.
func quantile(values []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[int(q*float64(len(s)-1)+0.5)]
}

// same is the largest ratio that counts as no difference. If the range goes beyond wide, in either
// direction, the measurement doesn't show that there is no difference.
const same, wide = 1.03, 1.1

// A Verdict is the result of a comparison.
type Verdict int

// The verdicts.
const (
	AsFast Verdict = iota
	Faster
	Slower
	Unclear // the rounds differ too much
)

// Verdict compares the engines. A difference that is small, or that may be chance, doesn't count.
func (c Comparison) Verdict() Verdict {
	switch {
	case c.Ratio > same && c.Low > 1:
		return Slower
	case c.Ratio < 1/same && c.High < 1:
		return Faster
	case c.Low < 1/wide || c.High > wide:
		return Unclear
	}
	return AsFast
}

// Words returns the verdict with the ratio, in words for a unit.
func (c Comparison) Words(unit Unit) string {
	more, less := "slower", "faster"
	if unit == Memory {
		more, less = "more", "less"
	}
	switch c.Verdict() {
	case Slower:
		return fmt.Sprintf("%.2fx %s", c.Ratio, more)
	case Faster:
		return fmt.Sprintf("%.2fx %s", 1/c.Ratio, less)
	case Unclear:
		return "can't tell"
	}
	return "about the same"
}

// Spread returns the range of the ratio, in the direction that Words uses.
func (c Comparison) Spread() string {
	if c.Once {
		return "one round"
	}
	low, high := c.Low, c.High
	if c.Verdict() == Faster {
		low, high = 1/c.High, 1/c.Low
	}
	return fmt.Sprintf("%.2f - %.2f", low, high)
}

// Figure formats a figure in the row's unit.
func (r *Row) Figure(figure float64) string {
	switch r.Unit {
	case PerSecond:
		return fmt.Sprintf("%.0f /s  ", 1e9/figure)
	case Throughput:
		return fmt.Sprintf("%.0f MB/s", float64(r.Bytes)/figure*1e9/1e6)
	case Memory:
		return fmt.Sprintf("%.1f KB  ", figure/1000)
	}
	if figure < 100e3 {
		return fmt.Sprintf("%.1f µs  ", figure/1e3)
	}
	return fmt.Sprintf("%.0f µs  ", figure/1e3)
}
