package zoo

import (
	"io"
	"net"
	"sync"
	"time"
)

// limiter returns a function that allows n calls in any second.
func limiter(n int) func() bool {
	var mu sync.Mutex
	var recent []time.Time
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		for len(recent) > 0 && now.Sub(recent[0]) > time.Second {
			recent = recent[1:]
		}
		if len(recent) >= n {
			return false
		}
		recent = append(recent, now)
		return true
	}
}

// Limit puts a relay before each address of the server that accepts connections. It lets n connections a second pass, and
// closes or resets the others.
func (r *Running) Limit(n int, reset bool) error {
	servers := r.Addresses
	r.Addresses = nil
	for _, address := range servers {
		if conn, err := net.Dial("tcp", address.String()); err != nil {
			r.Addresses = append(r.Addresses, address) // it is as dead behind a relay
			continue
		} else if err := conn.Close(); err != nil {
			return err
		}
		allow := limiter(n)
		err := r.listen(address.Addr().String(), func(conn net.Conn) {
			if allow() {
				relay(conn, address.String())
			} else if reset {
				conn.(*net.TCPConn).SetLinger(0)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// relay passes bytes between a client and a server. The end of one direction passes as well.
func relay(client net.Conn, address string) {
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		if _, err := io.Copy(to, from); err != nil {
			to.Close() // a reset passes as an end
			return
		}
		to.(*net.TCPConn).CloseWrite()
	}
	both.Go(func() { pass(server, client) })
	both.Go(func() { pass(client, server) })
	both.Wait()
}
