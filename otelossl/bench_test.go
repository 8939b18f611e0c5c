//go:build linux

package otelossl_test

import (
	"io"
	"net"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/otelossl"
)

// A variant is a way to observe connections on both sides.
type variant struct {
	name           string
	client, server *ossl.Context
	c, s           *ossl.Conn // for messages

	cpu    []time.Duration // of each round
	allocs uint64
}

// instrumentations are an Instrumentation without spans, and those whose spans are not sampled and
// are recorded.
func instrumentations(b *testing.B) (plain, unsampled, recorded *otelossl.Instrumentation) {
	meters := otelossl.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())))
	with := func(s sdktrace.Sampler) *otelossl.Instrumentation {
		tracers := otelossl.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(s)))
		return newInstrumentation(b, fixed{}, meters, tracers)
	}
	off := otelossl.WithTracerProvider(noop.NewTracerProvider())
	return newInstrumentation(b, fixed{}, meters, off), with(sdktrace.NeverSample()), with(sdktrace.AlwaysSample())
}

// variants are compared with the first.
func variants(b *testing.B) []*variant {
	plain, unsampled, recorded := instrumentations(b)
	var all []*variant
	for _, v := range []struct {
		name string
		opts []ossl.Option
	}{
		{"none", nil},
		{"empty", []ossl.Option{ossl.WithEvents(func(ossl.Event) {})}},
		{"metrics", []ossl.Option{plain.Events("web")}},
		{"unsampled", []ossl.Option{unsampled.Events("web")}},
		{"spans", []ossl.Option{recorded.Events("web")}},
	} {
		cc, sc := configs(b)
		all = append(all, &variant{name: v.name, client: newContext(b, cc, v.opts...), server: newContext(b, sc, v.opts...)})
	}
	return all
}

// connect makes a connection through memory.
func (v *variant) connect(b *testing.B) (c, s *ossl.Conn) {
	rawClient, rawServer := net.Pipe()
	c, s = v.client.Client(rawClient, ""), v.server.Server(rawServer)
	done := make(chan error, 1)
	go func() { done <- s.Handshake() }()
	if err := c.Handshake(); err != nil {
		b.Fatal(err)
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	return c, s
}

// compareCost does rounds of ops operations of each variant in turn. It reports the processor time of
// the process for an operation of the first variant, and the quartiles of the ratio of each other
// variant to it, so that a machine that is busy with other work slows all of them.
func compareCost(b *testing.B, all []*variant, ops int, operation func(v *variant)) {
	for _, v := range all {
		operation(v) // not counted
	}
	for b.Loop() {
		for _, v := range all {
			start, allocs := used(b)
			for range ops {
				operation(v)
			}
			end, more := used(b)
			v.cpu = append(v.cpu, (end-start)/time.Duration(ops))
			v.allocs += more - allocs
		}
	}
	for _, v := range all {
		b.ReportMetric(float64(v.allocs)/float64(ops*b.N), v.name+"-allocs/op")
		if v == all[0] {
			b.ReportMetric(float64(quartile(v.cpu, 2).Nanoseconds()), v.name+"-cpu-ns/op")
			continue
		}
		ratios := make([]float64, len(v.cpu))
		for i := range ratios {
			ratios[i] = float64(v.cpu[i]) / float64(all[0].cpu[i])
		}
		for q, name := range []string{"q1", "median", "q3"} {
			b.ReportMetric(quartile(ratios, q+1), v.name+"/"+all[0].name+"-"+name)
		}
	}
}

func quartile[T int64 | float64 | time.Duration](values []T, q int) T {
	values = slices.Sorted(slices.Values(values))
	return values[(len(values)-1)*q/4]
}

// used returns the processor time and the allocations of the process.
func used(b *testing.B) (time.Duration, uint64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), m.Mallocs
}

// BenchmarkHandshake compares full TLS 1.3 handshakes, both sides together.
func BenchmarkHandshake(b *testing.B) {
	compareCost(b, variants(b), 20, func(v *variant) {
		c, s := v.connect(b)
		go io.Copy(io.Discard, s) // so that Close of the client need not wait
		_ = c.Close()
		_ = s.Close()
	})
}

// BenchmarkMessage compares round trips of 64 bytes.
func BenchmarkMessage(b *testing.B) {
	all := variants(b)
	message := make([]byte, 64)
	for _, v := range all {
		v.c, v.s = v.connect(b)
		defer v.c.Close()
		go io.Copy(v.s, v.s)
	}
	compareCost(b, all, 1000, func(v *variant) {
		if _, err := v.c.Write(message); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(v.c, message); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkEvent is the time for the event of a handshake that has succeeded.
func BenchmarkEvent(b *testing.B) {
	var event ossl.Event
	cc, sc := configs(b)
	v := &variant{server: newContext(b, sc), client: newContext(b, cc, ossl.WithEvents(func(e ossl.Event) {
		if e, ok := e.(*ossl.HandshakeEvent); ok {
			event = e
		}
	}))}
	c, s := v.connect(b)
	go io.Copy(io.Discard, s)
	defer c.Close()
	plain, unsampled, recorded := instrumentations(b)
	for _, bench := range []struct {
		name string
		tel  *otelossl.Instrumentation
	}{{"metrics", plain}, {"unsampled", unsampled}, {"spans", recorded}} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bench.tel.Report("web", event)
			}
		})
	}
}
