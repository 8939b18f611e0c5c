// Package measure compares TLS implementations, by the measurements of package bench: in rounds, so
// that other load on the machine affects all of them.
package measure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench"
	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/rounds"
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
	// Benchmark names the benchmark of package bench that measures the same, or has the same form.
	Benchmark string
	Unit      Unit
	Bytes     int // that an operation moves, if Unit is Throughput

	// One of these is set.
	make func(Ends) (bench.Measure, error)
	once func(context.Context, Ends) (float64, error) // one figure, which takes as long as it takes

	kernel bool // it needs kernel TLS

	Figures [][]float64 // of each engine, by rounds
}

// An Engine is a TLS implementation.
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

// Both returns Ends whose server and client have the same implementation.
func Both(impl bench.Impl) Ends { return Ends{impl, impl} }

// A local engine measures in this process.
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

// Lacks returns false: Rows has left out the rows that this process can't measure.
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

// Options are the options of [Run].
type Options struct {
	Rounds   int
	Duration time.Duration // of all rounds together, without rows that take as long as they take
	// Step is called before each measurement.
	Step func(round int, what string)
}

// Run measures all rows with all engines: in each round every row has a slice of time for each
// engine, one right after the other.
func Run(ctx context.Context, rows []*Row, engines []Engine, o Options) error {
	type turn struct {
		row    *Row
		engine int
	}
	var once, timed [][]turn // by rows
	for _, row := range rows {
		var turns []turn
		for i := range engines {
			turns = append(turns, turn{row, i})
		}
		if row.once != nil { // it takes long, and hardly varies
			once = append(once, turns)
		} else {
			timed = append(timed, turns)
		}
	}
	slice := max(1, o.Duration/time.Duration(max(1, o.Rounds*len(timed)*len(engines)))) // in no time nothing is measured
	take := func(round int, t turn) (float64, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		engine := engines[t.engine]
		o.Step(round, t.row.Name+", "+engine.Name())
		figure, err := engine.Measure(ctx, t.row, slice)
		if err != nil && ctx.Err() != nil { // Ctrl-C has killed other processes too, which is no failure
			return 0, ctx.Err()
		}
		if err != nil {
			return 0, fmt.Errorf("%s, %s: %w", t.row.Name, engine.Name(), err)
		}
		return figure, nil
	}
	seed := rand.Uint64()
	measured, err := rounds.Take(1, seed, once, take)
	if err != nil {
		return err
	}
	repeated, err := rounds.Take(o.Rounds, seed, timed, take)
	if err != nil {
		return err
	}
	maps.Copy(measured, repeated)
	for _, row := range rows {
		row.Figures = nil
		for i := range engines {
			row.Figures = append(row.Figures, measured[turn{row, i}])
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
func (r *Row) Median(engine int) float64 { return rounds.Median(r.Figures[engine]) }

// A Comparison is the ratio of an engine's figures to another one's, which are times, or memory, in
// every row: below 1, the first engine is faster, or takes less.
type Comparison struct{ rounds.Ratio }

// Compare returns the ratio of an engine's figures to another engine's.
func (r *Row) Compare(engine, to int) Comparison {
	return Comparison{rounds.Compare(r.Figures[engine], r.Figures[to])}
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
	case c.Median > same && c.Low > 1:
		return Slower
	case c.Median < 1/same && c.High < 1:
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
		return fmt.Sprintf("%.2fx %s", c.Median, more)
	case Faster:
		return fmt.Sprintf("%.2fx %s", 1/c.Median, less)
	case Unclear:
		return "can't tell"
	}
	return "about the same"
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
