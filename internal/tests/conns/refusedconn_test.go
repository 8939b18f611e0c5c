package conns

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
)

// A refusedCall is a call of a method of a connection whose configuration was refused.
type refusedCall struct {
	refuses bool // it returns the refusal
	fails   bool // it returns another error
	do      func(t *testing.T, c *ossl.Conn, conn net.Conn) error
}

// without returns the call of a method that returns no error.
func without(do func(t *testing.T, c *ossl.Conn)) refusedCall {
	return refusedCall{do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error {
		do(t, c)
		return nil
	}}
}

var future = time.Now().Add(time.Hour)

// refusedCalls holds a call of each method, by its name.
var refusedCalls = map[string]refusedCall{
	"Handshake": {refuses: true, do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error { return c.Handshake() }},
	"HandshakeContext": {refuses: true, do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error {
		return c.HandshakeContext(t.Context())
	}},
	"HandshakeForWrite": {refuses: true, do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error {
		return c.HandshakeForWrite(t.Context())
	}},
	"WaitRead": {refuses: true, do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error { return c.WaitRead() }},
	"Read": {refuses: true, do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error {
		_, err := c.Read(make([]byte, 1))
		return err
	}},
	"Write": {refuses: true, do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error {
		_, err := c.Write(make([]byte, 1))
		return err
	}},
	"SendFile": {refuses: true, do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error {
		_, err := c.SendFile(os.Stdin, 1)
		return err
	}},
	"ReadFrom": {refuses: true, do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error {
		_, err := c.ReadFrom(strings.NewReader("text"))
		return err
	}},
	"Detach": {fails: true, do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error {
		_, err := c.Detach(t.Context())
		return err
	}},
	"CloseWrite": {fails: true, do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error { return c.CloseWrite() }},
	"VerifyHostname": {fails: true, do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error {
		return c.VerifyHostname("refused.test")
	}},
	"ExportKeyingMaterial": {fails: true, do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error {
		_, err := c.ExportKeyingMaterial("EXPORTER-test", nil, 32)
		return err
	}},
	"Close":            {do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error { return c.Close() }},
	"SetDeadline":      {do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error { return c.SetDeadline(future) }},
	"SetReadDeadline":  {do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error { return c.SetReadDeadline(future) }},
	"SetWriteDeadline": {do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error { return c.SetWriteDeadline(future) }},
	"LocalAddr":        without(func(t *testing.T, c *ossl.Conn) { c.LocalAddr() }),
	"RemoteAddr":       without(func(t *testing.T, c *ossl.Conn) { c.RemoteAddr() }),
	"NetConn": {do: func(t *testing.T, c *ossl.Conn, conn net.Conn) error {
		if c.NetConn() != conn {
			return errors.New("another connection")
		}
		return nil
	}},
	"ConnectionState": without(func(t *testing.T, c *ossl.Conn) {
		if state := c.ConnectionState(); state.HandshakeComplete || state.Version != 0 {
			t.Errorf("the state of a refused connection: %+v", state)
		}
	}),
	"OCSPResponse": without(func(t *testing.T, c *ossl.Conn) {
		if c.OCSPResponse() != nil {
			t.Error("an OCSP response without a peer")
		}
	}),
	"ChannelBinding": {fails: true, do: func(t *testing.T, c *ossl.Conn, _ net.Conn) error {
		_, err := c.ChannelBinding("tls-exporter")
		return err
	}},
	"PSKIdentity": without(func(t *testing.T, c *ossl.Conn) {
		if identity := c.PSKIdentity(); identity != nil {
			t.Errorf("a refused connection has the identity %q", identity)
		}
	}),
	"KernelTLS": without(func(t *testing.T, c *ossl.Conn) {
		if c.KernelTLS() {
			t.Error("the kernel seals for a refused connection")
		}
	}),
	"SetIdle": without(func(t *testing.T, c *ossl.Conn) { c.SetIdle(true) }),
	"SendsFiles": without(func(t *testing.T, c *ossl.Conn) {
		if c.SendsFiles() {
			t.Error("a refused connection sends files")
		}
	}),
	"FIPS": without(func(t *testing.T, c *ossl.Conn) {
		if c.FIPS() != nil {
			t.Error("a refused connection is in FIPS mode")
		}
	}),
}

// TestRefusedConn calls every method of a connection whose configuration was refused. None panics,
// and each method that runs the handshake returns the refusal.
func TestRefusedConn(t *testing.T) {
	config := &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10, ServerName: "refused.test"}
	methods := reflect.TypeFor[*ossl.Conn]()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		test, known := refusedCalls[name]
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
					err := test.do(t, c, conn)
					var refused *ossl.ConfigError
					switch {
					case test.refuses && !errors.As(err, &refused) && !errors.Is(err, ossl.ErrUnavailable):
						t.Errorf("%v, want the refusal", err)
					case test.fails && err == nil:
						t.Error("it succeeds")
					case !test.refuses && !test.fails && err != nil:
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
