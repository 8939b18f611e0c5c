//go:build linux

package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"runtime"
	"strings"
	"time"

	"github.com/ossl-go/ossl/ci/internal/load"
)

// parseRow returns the row of that name.
func parseRow(name string) (row, error) {
	for _, r := range allRows() {
		if r.String() == name {
			return r, nil
		}
	}
	return row{}, fmt.Errorf("no row %q", name)
}

// serveCold does a turn of a cold or warm row, and prints the number of connections and the
// server's processor time for them, in nanoseconds.
func serveCold(s serving, d time.Duration, megabytes float64, most int, w io.Writer) error {
	r, err := parseRow(s.row)
	if err != nil {
		return err
	}
	if r.place == loaded || r.way == byID || r.kind == "none" {
		return fmt.Errorf("%s is no cold row", r)
	}
	wrap, _, err := s.open()
	if err != nil {
		return err
	}
	evict := func() {}
	if r.place == cold {
		e, err := newEvictor(evicted(megabytes))
		if err != nil {
			return err
		}
		evict = e.evict
	}
	n, used, err := lockstep(r, wrap, evict, d, most)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, n, int64(used))
	return err
}

// errDone is the result of a step if the server is done with a connection.
var errDone = errors.New("the connection is done")

// lockstep makes connections for a time. The server runs in a coroutine on the client's thread,
// until it waits for bytes, and evict runs before each such step.
func lockstep(r row, wrap func(net.Conn) net.Conn, evict func(), d time.Duration, most int,
) (n int, used time.Duration, err error) {
	runtime.LockOSThread() // the coroutine of iter.Pull stays on the thread that made it
	defer runtime.UnlockOSThread()
	up, down := new(bytes.Buffer), new(bytes.Buffer)
	closed := false // the client's direction
	var pause func(error) bool
	next, stop := iter.Pull(func(yield func(error) bool) {
		pause = yield
		for {
			attend(wrap(&memoryConn{in: up, out: down, wait: func() error {
				if closed {
					return io.EOF
				}
				if !yield(nil) {
					return net.ErrClosed
				}
				return nil
			}}), r.request)
			if !pause(errDone) {
				return
			}
		}
	})
	defer stop()

	reading, err := clockStep()
	if err != nil {
		return 0, 0, err
	}
	done := false
	step := func() error {
		if done {
			return io.EOF
		}
		evict()
		start, err := load.Clock(load.ThreadClock)
		if err != nil {
			return err
		}
		said, _ := next()
		end, err := load.Clock(load.ThreadClock)
		used += end - start - reading
		done = said == errDone
		return err
	}
	config := clientConfig(r)
	connection := func(resumed bool) error {
		up.Reset()
		down.Reset()
		closed, done = false, false
		client := tls.Client(&memoryConn{in: down, out: up, wait: step}, config)
		if err := talk(client, r.request, func() { closed = true }); err != nil {
			return err
		}
		for steps := 0; !done; steps++ {
			if steps > 4 {
				return errors.New("the server waits after its client's end")
			}
			if err := step(); err != nil {
				return err
			}
		}
		if client.ConnectionState().DidResume != resumed {
			return fmt.Errorf("resumed: %v", !resumed)
		}
		return nil
	}
	for i := range load.WarmUp {
		if err := connection(r.kind == "resumed" && i > 0); err != nil {
			return 0, 0, err
		}
	}
	used = 0
	for start := time.Now(); (most == 0 || n < most) && (n == 0 || time.Since(start) < d); n++ {
		if err := connection(r.kind == "resumed"); err != nil {
			return 0, 0, err
		}
	}
	return n, used, nil
}

// clientConfig is of all servers' client in memory.
func clientConfig(r row) *tls.Config {
	config := &tls.Config{InsecureSkipVerify: true, ServerName: load.ServerName,
		CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256}, MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS13,
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}}
	if r.version == "1.2" {
		config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	}
	if r.kind == "resumed" {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	}
	return config
}

// talk is the client's part of a connection.
func talk(client *tls.Conn, request bool, ended func()) error {
	if err := client.Handshake(); err != nil {
		return err
	}
	if request {
		const head = "GET / HTTP/1.1\r\nHost: localhost\r\nX-Filler: "
		text := head + strings.Repeat("x", requestSize-len(head)-4) + "\r\n\r\n"
		if _, err := client.Write([]byte(text)); err != nil {
			return err
		}
		got := make([]byte, len(answer))
		if _, err := io.ReadFull(client, got); err != nil {
			return err
		}
		if !bytes.Equal(got, answer) {
			return errors.New("another answer")
		}
	}
	if err := client.CloseWrite(); err != nil {
		return err
	}
	ended()
	if n, err := client.Read(make([]byte, 64)); err != io.EOF { // the tickets, and the server's end
		return fmt.Errorf("not the end: %d bytes, %w", n, err)
	}
	return nil
}

// clockStep returns the time for reading the clock.
func clockStep() (time.Duration, error) {
	least := time.Second
	for range 100 {
		start, err := load.Clock(load.ThreadClock)
		if err != nil {
			return 0, err
		}
		end, _ := load.Clock(load.ThreadClock)
		least = min(least, end-start)
	}
	return least, nil
}

// A memoryConn is an end's transport.
type memoryConn struct {
	in, out *bytes.Buffer
	wait    func() error // returns when the other end has run
}

func (c *memoryConn) Read(p []byte) (int, error) {
	for range 8 {
		if c.in.Len() > 0 {
			return c.in.Read(p)
		}
		if err := c.wait(); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("both ends wait")
}

func (c *memoryConn) Write(p []byte) (int, error)      { return c.out.Write(p) }
func (c *memoryConn) Close() error                     { return nil }
func (c *memoryConn) LocalAddr() net.Addr              { return memoryAddr{} }
func (c *memoryConn) RemoteAddr() net.Addr             { return memoryAddr{} }
func (c *memoryConn) SetDeadline(time.Time) error      { return nil }
func (c *memoryConn) SetReadDeadline(time.Time) error  { return nil }
func (c *memoryConn) SetWriteDeadline(time.Time) error { return nil }

type memoryAddr struct{}

func (memoryAddr) Network() string { return "memory" }
func (memoryAddr) String() string  { return "memory" }
