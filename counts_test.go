//go:build cgo || ossl_nocgo

package ossl_test

import (
	"crypto/tls"
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// Tests of speed check counts, which are the same on every machine.
const (
	maxPairCrossings  = 12 // connect, handshake, echo, close, on both sides
	maxEchoCrossings  = 4  // one more echo
	maxPairAllocation = 60 // Go allocations of such a pair; crypto/tls makes about 870
)

// talk runs one connection with echoes over a and b, and returns the number of crossings on both
// sides.
func talk(t testing.TB, p ossltest.Contexts, a, b net.Conn, message []byte, echoes int) (crossings uint64) {
	server := p.Server.Server(b)
	done := make(chan error, 1)
	go func() {
		buf := make([]byte, len(message))
		for range echoes {
			if _, err := io.ReadFull(server, buf); err != nil {
				done <- err
				return
			}
			if _, err := server.Write(buf); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	client := p.Client.Client(a, "")
	buf := make([]byte, len(message))
	for range echoes {
		if _, err := client.Write(message); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(client, buf); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	crossings = client.Crossings() + server.Crossings() + 2 // and a Close at each end
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	return crossings
}

func TestCrossings(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			p := ossltest.NewContexts(t, func(c, s *tls.Config) { c.MaxVersion = version })
			count := func(echoes int) uint64 {
				a, b := tlstest.Buffered()
				return talk(t, p, a, b, []byte("PING\n"), echoes)
			}
			one, eleven := count(1), count(11)
			t.Logf("%d crossings for a pair with one echo, %d for each further echo", one, (eleven-one)/10)
			if one > maxPairCrossings {
				t.Errorf("%d crossings for a pair, want at most %d", one, maxPairCrossings)
			}
			if eleven-one > 10*maxEchoCrossings {
				t.Errorf("%d crossings for ten echoes, want at most %d", eleven-one, 10*maxEchoCrossings)
			}
		})
	}
}

func TestAllocations(t *testing.T) {
	if ossltest.Race {
		t.Skip("the race detector and AddressSanitizer allocate")
	}
	p := ossltest.NewContexts(t, nil)
	message := []byte("PING\n")
	pair := testing.AllocsPerRun(50, func() {
		a, b := tlstest.Buffered()
		talk(t, p, a, b, message, 1)
	})
	pipe := testing.AllocsPerRun(50, func() {
		a, b := tlstest.Buffered()
		a.Close()
		b.Close()
	})
	t.Logf("%.0f allocations for a pair, %.0f of them the pipe's", pair, pipe)
	if pair-pipe > maxPairAllocation {
		t.Errorf("%.0f allocations for a pair, want at most %d", pair-pipe, maxPairAllocation)
	}
}

func TestEchoAllocatesNothing(t *testing.T) {
	if ossltest.Race {
		t.Skip("the race detector and AddressSanitizer allocate")
	}
	p := ossltest.NewContexts(t, nil)
	a, b := tlstest.Loopback()
	client, server := p.Client.Client(a, ""), p.Server.Server(b)
	defer client.Close()
	defer server.Close()
	go func() {
		buf := make([]byte, 5)
		for {
			if _, err := io.ReadFull(server, buf); err != nil {
				return
			}
			if _, err := server.Write(buf); err != nil {
				return
			}
		}
	}()
	message, buf := []byte("PING\n"), make([]byte, 5)
	echo := func() {
		if _, err := client.Write(message); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(client, buf); err != nil {
			t.Fatal(err)
		}
	}
	echo()
	runtime.GC() // a collection empties the buffer pools; let it be over
	if n := testing.AllocsPerRun(200, echo); n >= 1 {
		t.Errorf("%.1f allocations an echo", n)
	}
}
