package dbtls

import (
	"context"
	"fmt"
	"net"
	"time"
)

// A DialFunc is a method of a [Dialer], such as [Dialer.DialPostgres], as a value with methods: for
// drivers whose hook for dialing is an interface. It implements Dialer and DialerContext of lib/pq,
// and CustomDialer of nats.go.
//
// The function may be another one that calls such a method. Since drivers begin no TLS on its
// connections, the methods of DialFunc refuse a connection that [TLSConn] finds no TLS in.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// DialContext calls f.
func (f DialFunc) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := f(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if _, ok := TLSConn(conn); !ok {
		conn.Close()
		return nil, &Error{"TLS", "connection", fmt.Errorf("the DialFunc returned a %T, which has no TLS of a Dialer", conn)}
	}
	return conn, nil
}

// Dial calls f without a context. A Dialer's method then takes at most one minute, or the time that
// the Dialer's NetDialer sets.
func (f DialFunc) Dial(network, addr string) (net.Conn, error) {
	return f.DialContext(context.Background(), network, addr)
}

// DialTimeout calls f with a context that expires after timeout. As with [net.DialTimeout], 0 means
// no timeout: it is then like Dial.
func (f DialFunc) DialTimeout(network, addr string, timeout time.Duration) (net.Conn, error) {
	if timeout == 0 {
		return f.Dial(network, addr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return f.DialContext(ctx, network, addr)
}

// SkipTLSHandshake returns true. It tells nats.go that the connections have TLS already.
func (f DialFunc) SkipTLSHandshake() bool { return true }
