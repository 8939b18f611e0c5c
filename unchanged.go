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
	case err != nil: // the mode is unknown
		c, mode = &Conn{conn: conn, isClient: isClient, configErr: err}, unchanged.Require
	case mode == unchanged.Off:
		return nil
	default:
		c = s.engine(conn, config, role)
	}
	unavailable := errors.Is(c.configErr, ErrUnavailable)
	if unavailable {
		loadFailure.Store(&c.configErr)
	}
	switch err := c.configErr; {
	case err == nil:
		counter.Took(role)
	case mode == unchanged.Require || !unavailable && !errors.As(err, new(*ConfigError)):
		counter.Refused(role, err)
	default:
		counter.Left(role, err)
		c.unpin()
		return nil
	}
	return c
}

// HandedOver reports whether crypto/tls takes over a server's connection, whose handshake returned err.
// hello has the bytes that were received, in records. GetConfigForClient is to return config.
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
