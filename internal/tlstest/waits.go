package tlstest

import (
	"net"
	"runtime"
	"sync/atomic"
	"testing"
)

// WaitUntil waits until ok returns true, as the result of other goroutines.
func WaitUntil(t *testing.T, ok func() bool) {
	t.Helper()
	for !ok() {
		if t.Context().Err() != nil {
			t.Fatal("the test has ended")
		}
		runtime.Gosched()
	}
}

// A WriteCounter counts the Writes of the underlying connection, which are system calls on a
// socket.
type WriteCounter struct {
	net.Conn
	Writes atomic.Int64
}

// Write implements net.Conn.
func (c *WriteCounter) Write(b []byte) (int, error) {
	c.Writes.Add(1)
	return c.Conn.Write(b)
}
