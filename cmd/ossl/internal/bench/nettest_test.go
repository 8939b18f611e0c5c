package bench_test

import (
	"flag"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestConn runs x/net's test of net.Conn on *ossl.Conn over TCP. It lives here because the core
// requires no modules.
//
// Three of its eleven subtests go on writing after a Write has timed out, which neither *tls.Conn
// nor *ossl.Conn supports: part of a record may be on the wire. crypto/tls fails the same three.
// Only these get [lateWriter]s around the connections.
func TestConn(t *testing.T) {
	server, err := ossl.NewContext(tlstest.ServerConfig())
	if err != nil {
		t.Fatal(err)
	}
	client, err := ossl.NewContext(tlstest.ClientConfig())
	if err != nil {
		t.Fatal(err)
	}
	// nettest doesn't reveal which subtest a pipe is for, so they are counted; if not all run, all get
	// lateWriters.
	all := !strings.Contains(flag.Lookup("test.run").Value.String(), "/")
	writesOn := map[int]bool{7: true, 9: true, 11: true} // PastTimeout, FutureTimeout, ConcurrentMethods
	pipes := 0
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		pipes++
		rawClient, rawServer := tlstest.Loopback()
		c, s := client.Client(rawClient, ""), server.Server(rawServer)
		done := make(chan error, 1)
		go func() { done <- s.Handshake() }()
		if err := c.Handshake(); err != nil {
			return nil, nil, nil, err
		}
		if err := <-done; err != nil {
			return nil, nil, nil, err
		}
		stop = func() {
			rawClient.Close() // a Write that still waits delays close_notify
			rawServer.Close()
			c.Close()
			s.Close()
		}
		if all && !writesOn[pipes] {
			return c, s, func() { c.Close(); s.Close() }, nil
		}
		return &lateWriter{Conn: c}, &lateWriter{Conn: s}, stop, nil
	})
	if all && pipes != 11 {
		t.Errorf("nettest made %d pipes: which subtests need a lateWriter has to be counted anew", pipes)
	}
}

// A lateWriter gives a connection write deadlines that don't end writing: a Write that times out
// continues by itself.
type lateWriter struct {
	*ossl.Conn

	mu      sync.Mutex
	last    chan struct{} // closed when the last Write that began has returned; nil if there was none
	expired chan struct{} // closed when the write deadline has passed; nil if there is none
	timer   *time.Timer
}

func (w *lateWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	expired, before, ended := w.expired, w.last, make(chan struct{})
	select {
	case <-expired:
		w.mu.Unlock()
		return 0, os.ErrDeadlineExceeded
	default:
	}
	w.last = ended // here, since goroutines don't start in the order of their go statements
	w.mu.Unlock()
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	p = append([]byte(nil), p...)
	go func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		n, err := w.Conn.Write(p)
		done <- result{n, err}
	}()
	for {
		select {
		case r := <-done:
			return r.n, r.err
		case <-expired:
			return 0, os.ErrDeadlineExceeded
		case <-time.After(time.Millisecond): // the deadline may have changed
			w.mu.Lock()
			expired = w.expired
			w.mu.Unlock()
		}
	}
}

func (w *lateWriter) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.expired, w.timer = nil, nil
	if !t.IsZero() {
		expired := make(chan struct{})
		w.expired = expired
		if left := time.Until(t); left <= 0 {
			close(expired)
		} else {
			w.timer = time.AfterFunc(left, func() { close(expired) })
		}
	}
	return nil
}

func (w *lateWriter) SetDeadline(t time.Time) error {
	w.SetWriteDeadline(t)
	return w.Conn.SetReadDeadline(t)
}
