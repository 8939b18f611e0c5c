//go:build ossl_unchanged

package ossl

import (
	"crypto/tls"
	"errors"
	"net"

	"github.com/ossl-go/ossl/internal/status"
	"github.com/ossl-go/ossl/internal/stdtls"
	"github.com/ossl-go/ossl/internal/unchanged"
)

// This file makes ossl the engine of crypto/tls's connections. It is compiled into the GOROOT that
// "ossl go" makes (cmd/ossl/internal/gofarm), where "crypto/tls" is that package's core.

// NewEngine returns the connection that takes over the methods of a crypto/tls connection, or nil if
// it stays crypto/tls's. It is called when the connection is first used.
func NewEngine(conn net.Conn, config *tls.Config, isClient bool) *Conn {
	if stdtls.IsPlain(conn) {
		return nil
	}
	role := unchanged.Server
	if isClient {
		role = unchanged.Client
	}
	status.Start(statusReport)
	counter, err := unchanged.Process()
	mode, s := unchanged.Require, settingsInForce()
	if err == nil {
		mode, err = s.mode(role)
	}
	var c *Conn
	switch {
	case err != nil:
		c = &Conn{conn: conn, isClient: isClient, configErr: err}
	case mode == unchanged.Off:
		return nil
	default:
		c = s.engine(conn, config, role)
	}
	switch err := c.refusal(); {
	case err == nil:
		counter.Took(role)
	case mode == unchanged.Require || !errors.As(err, new(*ConfigError)) && !errors.Is(err, ErrUnavailable):
		counter.Refused(role, err)
	default:
		counter.Left(role, err)
		c.unpin()
		return nil
	}
	return c
}

// refusal returns the reason why the connection can't be made with its configuration, or nil.
func (c *Conn) refusal() error {
	if c.configErr == nil && !c.isClient {
		return c.context().serveErr
	}
	return c.configErr
}

// HandedOver reports whether err, which a server's handshake returned, means that crypto/tls goes on
// with the connection. hello is what was received, in records. config is what GetConfigForClient
// is to return.
func (c *Conn) HandedOver(err error) (hello []byte, config *tls.Config, ok bool) {
	over, ok := err.(*handOver)
	if !ok {
		return nil, nil, false
	}
	config = over.config
	if over.cert != nil {
		config = config.Clone()
		config.Certificates = nil
		config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return over.cert, nil }
	}
	over.count.Do(func() { // other goroutines may have the error too
		if counter, err := unchanged.Process(); err == nil {
			counter.HandedOver(over.reason)
		}
	})
	return over.hello, config, true
}

// CountQUIC counts a connection of QUIC, which stays crypto/tls's.
func CountQUIC() {
	if counter, err := unchanged.Process(); err == nil {
		counter.QUIC()
	}
}
