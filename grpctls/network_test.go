package grpctls_test

import (
	"context"
	"crypto/tls"
	"net"
)

type tlsState = tls.ConnectionState

// A network is a client's connection to a server that reports reads and can drop writes.
type network struct {
	addr    string
	read    chan int      // bytes of each Read
	stalled chan struct{} // closed: writes are dropped
}

func (n *network) dial(ctx context.Context, _ string) (net.Conn, error) {
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", n.addr)
	return networkConn{raw, n}, err
}

type networkConn struct {
	net.Conn
	n *network
}

func (c networkConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case c.n.read <- n:
	default:
	}
	return n, err
}

func (c networkConn) Write(b []byte) (int, error) {
	select {
	case <-c.n.stalled:
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

func drainChannel(c chan int) {
	for {
		select {
		case <-c:
		default:
			return
		}
	}
}
