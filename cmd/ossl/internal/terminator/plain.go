package terminator

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
)

// checkPlain checks the settings of a server whose clients have no TLS. All that it doesn't do is refused:
// nobody must take it for a server with TLS.
func (c *Config) checkPlain() error {
	if !c.Plain {
		if c.InsecureListen {
			return errors.New("insecure-listen needs plain")
		}
		return nil
	}
	if len(c.Sites) != 1 || len(c.Sites[0].Names) > 0 {
		return errors.New("plain needs one site without names: clients without TLS send none")
	}
	s := &c.Sites[0]
	if name := firstSet(setting{"cert", len(s.Pairs) > 0}, setting{"acme", s.ACME}, setting{"client-ca", len(s.ClientCA) > 0},
		setting{"client-optional", s.ClientOptional}, setting{"client-allow", len(s.ClientAllow) > 0},
		setting{"alpn", len(s.ALPN) > 0}, setting{"policy", c.Policy != ""}, setting{"kernel-tls", c.KernelTLS},
		setting{"ticket-key", len(c.TicketKeys) > 0}, setting{"sessions", c.Sessions != 0}, setting{"redis", c.Redis != ""},
		setting{"redirect", len(c.Redirect) > 0}, setting{"handshakes", c.Limits.Handshakes > 0},
		setting{"crl", len(c.CRLs) > 0}, setting{"crl-soft-fail", c.CRLSoftFail},
	); name != "" {
		return fmt.Errorf("%s is for clients with TLS: it can't be given with plain", name)
	}
	return nil
}

// checkLocal returns an error if other machines reach the listener of a server without TLS for its clients.
func checkLocal(l net.Listener) error {
	switch address := l.Addr().(type) {
	case *net.UnixAddr:
		return nil
	case *net.TCPAddr:
		if address.IP.IsLoopback() {
			return nil
		}
	}
	return fmt.Errorf("listen %s: with plain, all who reach this address use the backend as this server, without TLS: "+
		"listen on a loopback address or a Unix socket, or give insecure-listen", l.Addr())
}

// An endingConn is a connection under crypto/tls, which takes its end for the end of the data, even
// without close_notify. crypto/tls reads no further when it has close_notify.
type endingConn struct {
	net.Conn
	ended bool
}

func (c *endingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, io.EOF) {
		c.ended = true
	}
	return n, err
}

func (c *endingConn) NetConn() net.Conn { return c.Conn }

// A strictConn is a crypto/tls connection whose end without close_notify is an error, as in package
// ossl.
type strictConn struct {
	*tls.Conn
	under *endingConn
}

func newStrictClient(conn net.Conn, config *tls.Config) *strictConn {
	under := &endingConn{Conn: conn}
	return &strictConn{tls.Client(under, config), under}
}

func (c *strictConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, io.EOF) && c.under.ended {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
