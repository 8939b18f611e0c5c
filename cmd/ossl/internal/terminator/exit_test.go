package terminator

import (
	"net"
	"testing"
	"time"
)

// TestExitAfterStay: a Read that was woken for a connection to leave goes on if the connection shall stay after
// all, unless net/http's own deadline is over.
func TestExitAfterStay(t *testing.T) {
	conn, peer := net.Pipe()
	defer conn.Close()
	defer peer.Close()
	for _, c := range []struct {
		name     string
		deadline time.Time
		want     exitResult
	}{
		{"no deadline", time.Time{}, exitClosed},
		{"later", time.Now().Add(time.Hour), exitClosed},
		{"over", time.Now().Add(-time.Hour), exitNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := new(exit)
			e.setIdle(conn, true, true)
			if err := e.setDeadline(conn, c.deadline); err != nil {
				t.Fatal(err)
			}
			e.ask(conn)
			if _, err := conn.Read(make([]byte, 1)); !isTimeout(err) {
				t.Fatal(err)
			}
			e.stay(conn)
			if got := e.take(conn, true); got != c.want {
				t.Errorf("%v, not %v", got, c.want)
			}
		})
	}
}
