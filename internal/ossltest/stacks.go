package ossltest

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// NewTLS returns a client or a server of the stack "std", which is crypto/tls, or "ossl".
func NewTLS(stack string, server bool, conn net.Conn, config *tls.Config) tlstest.Conn {
	switch {
	case stack == "std" && server:
		return tlstest.Std.Server(conn, config)
	case stack == "std":
		return tlstest.Std.Client(conn, config)
	case server:
		return ossl.Server(conn, config)
	}
	return ossl.Client(conn, config)
}

// Exchange runs a handshake between two stacks over a buffered pipe and sends a byte each way. It
// returns the errors of both sides.
func Exchange(clientStack, serverStack string, client, server *tls.Config) (clientErr, serverErr error) {
	a, b := tlstest.Buffered()
	limit := time.Now().Add(tlstest.Patience)
	_ = a.SetDeadline(limit)
	_ = b.SetDeadline(limit)
	use := func(c tlstest.Conn) error {
		defer c.Close()
		if err := c.HandshakeContext(context.Background()); err != nil {
			return err
		}
		if _, err := c.Write([]byte{1}); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 1))
		return err
	}
	done := make(chan error)
	go func() { done <- use(NewTLS(serverStack, true, b, server)) }()
	clientErr = use(NewTLS(clientStack, false, a, client))
	return clientErr, <-done
}
