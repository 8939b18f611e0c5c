//go:build cgo || ossl_nocgo

package ossl

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestTrim checks when memory is returned: once after a fall far below a peak, but not more often
// than every ten seconds, and whether the numbers are looked at again.
func TestTrim(t *testing.T) {
	trims := 0
	m := &trimmer{trim: func() { trims++ }}
	start := time.Now()
	for i, step := range []struct {
		after            time.Duration
		handshakes, open int64
		trims            int
		again            bool
	}{
		{0, burst - 1, 0, 0, false},
		{0, 0, 0, 0, false},
		{0, 4000, 0, 0, true},
		{2, 1000, 3000, 0, true}, // not below a quarter
		{4, 999, 3001, 1, true},  // the handshakes have fallen
		{6, 0, 3001, 1, true},
		{8, 0, 0, 1, true}, // the connections have fallen, too early
		{14, 0, 0, 2, false},
		{16, 0, 0, 2, false},
		{18, 600, 0, 2, true},
		{20, 0, 0, 2, true},
		{24, 0, 0, 3, false},
	} {
		again := m.look(step.handshakes, step.open, start.Add(step.after*time.Second))
		if again != step.again || trims != step.trims {
			t.Errorf("step %d: look again %v, %d trims; want %v, %d", i, again, trims, step.again, step.trims)
		}
	}
}

// held returns Contexts whose handshakes stop in a callback of the server until release is called. begun
// receives a value for each that has come there.
func held(t *testing.T, opts ...Option) (server, client *Context, begun chan struct{}, release func()) {
	t.Helper()
	begun = make(chan struct{}, 10000)
	gate := make(chan struct{})
	config := tlstest.ServerConfig()
	server = contextOf(t, tlstest.ServerConfig(func(c *tls.Config) {
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			begun <- struct{}{}
			<-gate
			return config, nil
		}
	}), opts...)
	return server, contextOf(t, tlstest.ClientConfig()), begun, sync.OnceFunc(func() { close(gate) })
}

// TestTrimAfterBurst has hundreds of handshakes at once, and checks that their end is noticed.
func TestTrimAfterBurst(t *testing.T) {
	if !libssl.CanTrimHeap() {
		return // the C library isn't glibc
	}
	server, client, begun, release := held(t)
	defer release()
	before, trims := memory.handshakes.Load(), memory.trimmed.Load()
	var all sync.WaitGroup
	for range burst {
		all.Go(func() {
			a, b := tlstest.Buffered()
			c, s := client.Client(a, tlstest.ServerName), server.Server(b)
			done := make(chan error, 1)
			go func() { done <- s.Handshake() }()
			if clientErr, serverErr := c.Handshake(), <-done; clientErr != nil || serverErr != nil {
				t.Error(clientErr, serverErr)
			}
			c.Close()
			s.Close()
		})
	}
	for range burst {
		<-begun
	}
	if n := memory.handshakes.Load() - before; n != 2*burst {
		t.Errorf("%d handshakes are counted, of %d", n, 2*burst)
	}
	if !memory.watching.Load() {
		t.Fatal("nothing will look at the numbers")
	}
	release()
	all.Wait()
	if n := memory.handshakes.Load() - before; n != 0 {
		t.Errorf("%d handshakes are counted after their end", n)
	}
	for memory.trimmed.Load() == trims { // until the test times out
		time.Sleep(trimLook / 10)
	}
}

// TestMaxHandshakes checks that a server runs as many handshakes as it may, that others wait, and
// that an end of waiting by its context, its deadline or Close leaves the places to others.
func TestMaxHandshakes(t *testing.T) {
	if _, err := NewContext(tlstest.ServerConfig(), WithMaxHandshakes(0)); !isConfigError(err, "WithMaxHandshakes") {
		t.Errorf("0: %v", err)
	}
	const most = 2
	server, client, begun, release := held(t, WithMaxHandshakes(most))
	defer release()
	places := server.opts.handshakes
	var all sync.WaitGroup
	shake := func() (s *Conn, done chan error) {
		a, b := tlstest.Buffered()
		c := client.Client(a, tlstest.ServerName)
		s, done = server.Server(b), make(chan error, 1)
		all.Go(func() { _ = c.Handshake() })
		return s, done
	}
	var running []chan error
	for range most {
		s, done := shake()
		go func() { done <- s.Handshake() }()
		running = append(running, done)
	}
	for range most {
		<-begun
	}
	for name, stop := range map[string]struct {
		before func(*Conn)
		after  func(*Conn, context.CancelFunc)
		want   error
	}{
		"context": {func(*Conn) {}, func(_ *Conn, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"deadline": {func(c *Conn) { c.SetDeadline(time.Now().Add(50 * time.Millisecond)) }, func(*Conn, context.CancelFunc) {},
			os.ErrDeadlineExceeded},
		"Close": {func(*Conn) {}, func(c *Conn, _ context.CancelFunc) { c.Close() }, net.ErrClosed},
	} {
		s, done := shake()
		stop.before(s)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- s.HandshakeContext(ctx) }()
		for places.Waiting() == 0 && len(done) == 0 {
			time.Sleep(time.Millisecond)
		}
		stop.after(s, cancel)
		if err := <-done; !errors.Is(err, stop.want) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		s.Close()
		s.NetConn().Close()
	}
	for range 3 * most {
		s, done := shake()
		go func() { done <- s.Handshake() }()
		running = append(running, done)
	}
	for places.Waiting() < 3*most {
		time.Sleep(time.Millisecond)
	}
	if len(begun) > 0 {
		t.Errorf("%d handshakes too many have begun", len(begun))
	}
	release()
	for _, done := range running {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	if n := places.Free(); n != most {
		t.Errorf("%d places are free at the end, of %d", n, most)
	}
}

func isConfigError(err error, field string) bool {
	var e *ConfigError
	return errors.As(err, &e) && e.Field == field
}

// TestGateFollowsProcessors: the number of handshakes that compute inside C follows GOMAXPROCS.
func TestGateFollowsProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer func() { sizeSteps(stepGate()) }()
	defer runtime.GOMAXPROCS(before)
	for _, n := range []int{before + 3, before} {
		runtime.GOMAXPROCS(n)
		for range 100_000 { // it looks at each 256th, on average
			if steps().Free() == 4*n {
				break
			}
		}
		if free := steps().Free(); free != 4*n {
			t.Errorf("%d places for %d processors", free, n)
		}
	}
}
