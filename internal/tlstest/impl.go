package tlstest

import (
	"context"
	"crypto/tls"
	"net"
)

// A Conn is a TLS connection with the methods that the tests use, those that *tls.Conn and
// *ossl.Conn share.
type Conn interface {
	net.Conn
	CloseWrite() error
	ConnectionState() tls.ConnectionState
	ExportKeyingMaterial(label string, context []byte, length int) ([]byte, error)
	Handshake() error
	HandshakeContext(context.Context) error
	NetConn() net.Conn
	OCSPResponse() []byte
	VerifyHostname(host string) error
}

// An Impl makes connections of one TLS implementation.
type Impl interface {
	Name() string
	Client(net.Conn, *tls.Config) Conn
	Server(net.Conn, *tls.Config) Conn
}

// Std is crypto/tls.
var Std Impl = std{}

type std struct{}

func (std) Name() string                                  { return "std" }
func (std) Client(conn net.Conn, config *tls.Config) Conn { return stdConn{tls.Client(conn, config)} }
func (std) Server(conn net.Conn, config *tls.Config) Conn { return stdConn{tls.Server(conn, config)} }

type stdConn struct{ *tls.Conn }

func (c stdConn) ExportKeyingMaterial(label string, context []byte, length int) ([]byte, error) {
	state := c.ConnectionState()
	return state.ExportKeyingMaterial(label, context, length)
}

// A Pairing is an implementation for each side.
type Pairing struct{ Client, Server Impl }

// Name is the pairing as it appears in the names of subtests: client first.
func (p Pairing) Name() string { return p.Client.Name() + "-" + p.Server.Name() }

// Impl returns the implementation that plays a role.
func (p Pairing) Impl(r Role) Impl {
	if r == ClientRole {
		return p.Client
	}
	return p.Server
}

// Pairings returns all pairings of the implementations, the first with itself first of all.
func Pairings(impls ...Impl) []Pairing {
	var ps []Pairing
	for _, c := range impls {
		for _, s := range impls {
			ps = append(ps, Pairing{c, s})
		}
	}
	return ps
}
