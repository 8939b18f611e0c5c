package conns

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
)

// TestRefusedConn calls every method of a connection whose configuration was refused: none panics,
// and each that returns an error returns the refusal.
func TestRefusedConn(t *testing.T) {
	future := time.Now().Add(time.Hour)
	config := &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10, ServerName: "refused.test"}
	type call struct {
		tells bool // that the configuration was refused
		fails bool
		do    func(c *ossl.Conn, conn net.Conn) error
	}
	quiet := func(do func(c *ossl.Conn)) call {
		return call{do: func(c *ossl.Conn, _ net.Conn) error {
			do(c)
			return nil
		}}
	}
	calls := map[string]call{
		"Handshake":        {tells: true, do: func(c *ossl.Conn, _ net.Conn) error { return c.Handshake() }},
		"HandshakeContext": {tells: true, do: func(c *ossl.Conn, _ net.Conn) error { return c.HandshakeContext(t.Context()) }},
		"WaitRead":         {tells: true, do: func(c *ossl.Conn, _ net.Conn) error { return c.WaitRead() }},
		"Read": {tells: true, do: func(c *ossl.Conn, _ net.Conn) error {
			_, err := c.Read(make([]byte, 1))
			return err
		}},
		"Write": {tells: true, do: func(c *ossl.Conn, _ net.Conn) error {
			_, err := c.Write(make([]byte, 1))
			return err
		}},
		"SendFile": {tells: true, do: func(c *ossl.Conn, _ net.Conn) error {
			_, err := c.SendFile(os.Stdin, 1)
			return err
		}},
		"CloseWrite":     {fails: true, do: func(c *ossl.Conn, _ net.Conn) error { return c.CloseWrite() }},
		"VerifyHostname": {fails: true, do: func(c *ossl.Conn, _ net.Conn) error { return c.VerifyHostname("refused.test") }},
		"ExportKeyingMaterial": {fails: true, do: func(c *ossl.Conn, _ net.Conn) error {
			_, err := c.ExportKeyingMaterial("EXPORTER-test", nil, 32)
			return err
		}},
		"Close":            {do: func(c *ossl.Conn, _ net.Conn) error { return c.Close() }},
		"SetDeadline":      {do: func(c *ossl.Conn, _ net.Conn) error { return c.SetDeadline(future) }},
		"SetReadDeadline":  {do: func(c *ossl.Conn, _ net.Conn) error { return c.SetReadDeadline(future) }},
		"SetWriteDeadline": {do: func(c *ossl.Conn, _ net.Conn) error { return c.SetWriteDeadline(future) }},
		"LocalAddr":        quiet(func(c *ossl.Conn) { c.LocalAddr() }),
		"RemoteAddr":       quiet(func(c *ossl.Conn) { c.RemoteAddr() }),
		"NetConn": {do: func(c *ossl.Conn, conn net.Conn) error {
			if c.NetConn() != conn {
				return errors.New("another connection")
			}
			return nil
		}},
		"ConnectionState": quiet(func(c *ossl.Conn) {
			if state := c.ConnectionState(); state.HandshakeComplete || state.Version != 0 {
				t.Errorf("the state of a refused connection: %+v", state)
			}
		}),
		"OCSPResponse": quiet(func(c *ossl.Conn) {
			if c.OCSPResponse() != nil {
				t.Error("an OCSP response of nobody")
			}
		}),
		"KernelTLS": quiet(func(c *ossl.Conn) {
			if c.KernelTLS() {
				t.Error("the kernel seals for a refused connection")
			}
		}),
		"FIPS": quiet(func(c *ossl.Conn) {
			if c.FIPS() != nil {
				t.Error("a refused connection is in FIPS mode")
			}
		}),
	}
	methods := reflect.TypeFor[*ossl.Conn]()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		test, known := calls[name]
		if !known {
			t.Errorf("%s is not called here", name)
			continue
		}
		for role, end := range map[string]func(net.Conn, *tls.Config) *ossl.Conn{"client": ossl.Client, "server": ossl.Server} {
			t.Run(name+"/"+role, func(t *testing.T) {
				conn, peer := net.Pipe()
				defer peer.Close()
				defer conn.Close()
				c := end(conn, config)
				for range 2 { // the second time, a handshake has been refused
					err := test.do(c, conn)
					var refused *ossl.ConfigError
					switch {
					case test.tells && !errors.As(err, &refused) && !errors.Is(err, ossl.ErrUnavailable):
						t.Errorf("%v, want the refusal", err)
					case test.fails && err == nil:
						t.Error("it succeeds")
					case !test.tells && !test.fails && err != nil:
						t.Error(err)
					}
					if name == "Close" {
						break
					}
					c.Handshake()
				}
			})
		}
	}
}
