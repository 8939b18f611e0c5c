package conns_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// A shortConn writes a byte less than it should when short is set, and returns no error.
type shortConn struct {
	net.Conn
	short bool
}

func (c *shortConn) Write(b []byte) (int, error) {
	if c.short {
		b = b[:len(b)-1]
	}
	return c.Conn.Write(b)
}

// TestShortWrite: a connection that loses a part of a record returns an error.
func TestShortWrite(t *testing.T) {
	for _, path := range []ossl.RecordPath{ossl.RecordsDirect, ossl.RecordsLibssl} {
		ctx, err := ossl.NewContext(tlstest.ClientConfig(), ossl.WithRecordPath(path))
		if err != nil {
			t.Fatal(err)
		}
		for name, write := range map[string]func(c *ossl.Conn) error{
			"Write": func(c *ossl.Conn) error {
				_, err := c.Write([]byte("data"))
				return err
			},
			"handshake": func(c *ossl.Conn) error { return c.Handshake() },
		} {
			a, b := tlstest.Loopback()
			go func() {
				server := tls.Server(b, tlstest.ServerConfig())
				_, _ = io.Copy(io.Discard, server)
				_ = server.Close()
			}()
			short := &shortConn{Conn: a, short: name == "handshake"}
			c := ctx.Client(short, "")
			if name != "handshake" {
				if err := c.Handshake(); err != nil {
					t.Fatal(err)
				}
				short.short = true
			}
			if err := write(c); !errors.Is(err, io.ErrShortWrite) {
				t.Errorf("%v, %s: %v", path, name, err)
			}
			if name != "handshake" {
				if err := write(c); err == nil {
					t.Errorf("%v: a further Write succeeds", path)
				}
			}
			_ = c.Close()
		}
	}
}
