package httptls_test

import (
	"net"
	"net/http"
	"sync"
	"testing"
)

// A firstReads notes for each accepted connection how much the first Read after the first Write
// returned: in TLS 1.3 the client's last flight, and what came with it.
type firstReads struct {
	net.Listener
	mu    sync.Mutex
	sizes []int
}

func (l *firstReads) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &firstReadConn{Conn: conn, of: l}, nil
}

type firstReadConn struct {
	net.Conn
	of    *firstReads
	mu    sync.Mutex
	wrote bool
	noted bool
}

func (c *firstReadConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.wrote = true
	c.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *firstReadConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrote && !c.noted && n > 0 {
		c.noted = true
		c.of.mu.Lock()
		c.of.sizes = append(c.of.sizes, n)
		c.of.mu.Unlock()
	}
	return n, err
}

// TestFirstRequestComesWithFinished checks that the first request of a connection, or the HTTP/2
// preface, leaves with the last message of the client's handshake.
func TestFirstRequestComesWithFinished(t *testing.T) {
	// ChangeCipherSpec, and a record with a Finished of SHA-384, the longest.
	const flight = 5 + 1 + 5 + 4 + 48 + 1 + 16
	for _, http2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP/1.1", true: "HTTP/2"}[http2], func(t *testing.T) {
			l := &firstReads{Listener: listen(t)}
			s := netHTTP.startOn(t, l, &http.Server{Handler: http.HandlerFunc(hello)})
			c := openSSL.client(t, nil, http2)
			const visits = 5
			for range visits {
				fetch(t, c, s.url("/"))
				c.CloseIdleConnections()
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, n := range l.sizes {
				if n <= flight {
					t.Errorf("the server got %d bytes at first, which is no more than the flight: %v", n, l.sizes)
				}
			}
			if len(l.sizes) != visits {
				t.Errorf("%d connections, not %d", len(l.sizes), visits)
			}
		})
	}
}
