package httptls

import (
	"io"
	"net"

	"github.com/ossl-go/ossl"
)

// TLSConn returns the TLS connection of a Server's request or of a Transport's, from the net.Conn
// that Hijack or a hook such as ConnState or [net/http/httptrace.ClientTrace.GotConn] gives. That
// may be of another type, with the methods of an *ossl.Conn. ok is false if conn is not a TLS
// connection.
func TLSConn(conn net.Conn) (c *ossl.Conn, ok bool) {
	switch conn := conn.(type) {
	case *ossl.Conn:
		return conn, true
	case interface{ tlsConn() *ossl.Conn }:
		return conn.tlsConn(), true
	}
	return nil, false
}

// unwrapped returns the TLS connection of conn, or conn itself if it has none.
func unwrapped(conn net.Conn) net.Conn {
	if c, ok := TLSConn(conn); ok {
		return c
	}
	return conn
}

// A writingConn is a connection without ReadFrom.
//
// If a server's connection has ReadFrom, net/http calls it for io.Copy and for files. Before that
// it sends the header and the first 512 bytes alone, and gives up the Content-Length of a short
// response. This pays if ReadFrom uses sendfile(2). Otherwise it costs small responses a record, a
// system call and an allocation, and is not what net/http does over crypto/tls.
type writingConn struct {
	*ossl.Conn
	//lint:ignore U1000 it only hides a method
	noReadFrom
}

func (c *writingConn) tlsConn() *ossl.Conn { return c.Conn }

// A noReadFrom hides the ReadFrom of a type that is embedded beside it: neither is promoted.
//
//lint:ignore U1000 see writingConn
type noReadFrom struct{}

//lint:ignore U1000 see writingConn
func (noReadFrom) ReadFrom(io.Reader) (int64, error) { panic("not promoted") }
