package bench

import (
	"errors"
	"io"
	"testing"
	"time"
)

// forEachPairing runs f for all four pairings, with both kinds of handshake.
func forEachPairing(t *testing.T, f func(t *testing.T, p Pair)) {
	for _, p := range Pairings {
		p.Cert = P256
		t.Run("server="+string(p.Server)+"/client="+string(p.Client), func(t *testing.T) {
			for _, p.Mutual = range []bool{false, true} {
				f(t, p)
			}
		})
	}
}

// measure runs a Measure made by newMeasure for a while and closes it.
func measure(t *testing.T, newMeasure func() (Measure, error)) {
	t.Helper()
	m, err := newMeasure()
	if err != nil {
		t.Fatal(err)
	}
	ops, elapsed, err := TimeFor(m, 20*time.Millisecond)
	if err != nil {
		t.Error(err)
	}
	if ops == 0 || elapsed < 20*time.Millisecond {
		t.Errorf("%d operations in %v", ops, elapsed)
	}
	done, err := m.Close()
	if err != nil {
		t.Errorf("Close: %v", err)
	}
	if done < ops {
		t.Errorf("Close says %d operations, TimeFor %d", done, ops)
	}
}

func TestMeasures(t *testing.T) {
	makers := map[string]func(Pair) (Measure, error){
		"Handshake":   NewHandshake,
		"Latency":     NewLatency,
		"Connections": NewConnections,
		"BulkUp":      func(p Pair) (Measure, error) { return NewBulk(p, Up, 100_000) },
		"BulkDown":    func(p Pair) (Measure, error) { return NewBulk(p, Down, 1<<10) },
	}
	for name, newMeasure := range makers {
		t.Run(name, func(t *testing.T) {
			forEachPairing(t, func(t *testing.T, p Pair) {
				measure(t, func() (Measure, error) { return newMeasure(p) })
			})
		})
	}
}

// Plain TCP carries data but has no TLS: functions that need TLS return an error for it.
func TestPlain(t *testing.T) {
	t.Run("Latency", func(t *testing.T) { measure(t, func() (Measure, error) { return NewLatency(Plain) }) })
	t.Run("BulkUp", func(t *testing.T) { measure(t, func() (Measure, error) { return NewBulk(Plain, Up, 100_000) }) })
	t.Run("BulkDown", func(t *testing.T) { measure(t, func() (Measure, error) { return NewBulk(Plain, Down, 1<<10) }) })

	withCert, mixed := Plain, Plain
	withCert.Cert = P256
	mixed.Client = Std
	for name, try := range map[string]func() error{
		"Handshake":   func() error { _, err := NewHandshake(Plain); return err },
		"Connections": func() error { _, err := NewConnections(Plain); return err },
		"SplitCPU":    func() error { _, err := SplitCPU(Plain, LatencyScript(), 1, time.Second); return err },
		"certificate": func() error { _, err := NewLatency(withCert); return err },
		"mixed":       func() error { _, err := NewLatency(mixed); return err },
	} {
		t.Run(name, func(t *testing.T) {
			if err := try(); err == nil {
				t.Error("not refused")
			}
		})
	}
}

func TestUnusedMeasureCloses(t *testing.T) {
	p := Pair{Server: Std, Client: Std, Cert: P256}
	for _, newMeasure := range []func(Pair) (Measure, error){
		NewHandshake, NewLatency, NewConnections, func(p Pair) (Measure, error) { return NewBulk(p, Up, 1) },
	} {
		m, err := newMeasure(p)
		if err != nil {
			t.Fatal(err)
		}
		if ops, err := m.Close(); ops != 0 || err != nil {
			t.Errorf("%T: Close() = %d, %v", m, ops, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, p := range []Pair{
		{Server: Std, Client: Std, Cert: "DSA"},
		{Server: "gnutls", Client: Std, Cert: P256},
		{Server: Std, Client: "gnutls", Cert: P256},
	} {
		if _, err := p.Open(); err == nil {
			t.Errorf("%+v opens", p)
		}
	}
}

// A row must not measure something other than its name.
func TestCheckSeesOtherNegotiation(t *testing.T) {
	ends, err := (Pair{Server: Std, Client: Std, Cert: P256}).Open()
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := newLoopback()
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	if err := ends.try(tcp); err != nil {
		t.Fatal(err)
	}
	ends.pair.Mutual = true
	if err := ends.try(tcp); err == nil {
		t.Error("a one-way connection passes for a mutual one")
	}
}

func TestSplitCPU(t *testing.T) {
	scripts := map[string]Script{
		"Handshake": HandshakeScript(),
		"Latency":   LatencyScript(),
		"BulkUp":    BulkScript(Up, 1<<20),
		"BulkDown":  BulkScript(Down, 1<<20),
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			forEachPairing(t, func(t *testing.T, p Pair) {
				cpu, err := SplitCPU(p, script, 3, time.Second)
				if err != nil {
					t.Fatal(err)
				}
				if cpu.Client <= 0 || cpu.Server <= 0 {
					t.Errorf("%+v", cpu)
				}
			})
		})
	}
}

// In a one-way RSA handshake the server signs and the client verifies, which is many times cheaper:
// time must not be charged to the wrong end.
func TestSplitCPUTellsEndsApart(t *testing.T) {
	// Other load of the machine can be charged to an end too: a few milliseconds, so the end's own
	// time must be larger.
	cpu, err := SplitCPU(Pair{Server: Std, Client: Std, Cert: RSA2048}, HandshakeScript(), 100, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if cpu.Server <= cpu.Client {
		t.Errorf("server %v, client %v", cpu.Server, cpu.Client)
	}
}

func TestSplitCPUErrors(t *testing.T) {
	pair := Pair{Server: Std, Client: Std, Cert: P256}
	own := errors.New("own")
	read := func(c Conn) error {
		_, err := c.Read(make([]byte, 1))
		return err
	}
	for name, test := range map[string]struct {
		script Script
		want   error
	}{
		"both wait":       {Script{client: read, server: read}, errStuck},
		"client waits":    {Script{client: read, server: Conn.Handshake}, errStuck},
		"server waits":    {Script{client: Conn.Handshake, server: read}, errStuck},
		"client fails":    {Script{client: func(Conn) error { return own }, server: read}, own},
		"server fails":    {Script{client: read, server: func(Conn) error { return own }}, own},
		"client hangs up": {Script{client: func(c Conn) error { return errors.Join(c.Handshake(), c.Close()) }, server: read}, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := SplitCPU(pair, test.script, 1, time.Second); !errors.Is(err, test.want) {
				t.Errorf("error is %v, want %v", err, test.want)
			}
		})
	}
}

func TestIdleMemory(t *testing.T) {
	const n = 200
	for _, impl := range []Impl{Std, OSSL} {
		m, err := IdleMemory(impl, "", n)
		if err != nil {
			t.Fatal(err)
		}
		// Any connection has at least its own struct and its goroutine's stack.
		if m.GoHeap < 500 || m.GoStack < 2000 || m.RSS <= 0 {
			t.Errorf("%s: %+v", impl, m)
		}
		// libssl must remember at least two keys for a connection.
		if impl == OSSL && m.C < 1000 {
			t.Errorf("ossl: %+v: nothing in the C heap", m)
		}
	}
}

func TestIdleMemoryOfNothing(t *testing.T) {
	if _, err := IdleMemory("gnutls", "", 1); err == nil {
		t.Error("a server of an implementation that is none")
	}
}
