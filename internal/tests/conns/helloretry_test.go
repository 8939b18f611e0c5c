//go:build cgo || ossl_nocgo

package conns

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// TestSecondHelloMustNotChange answers a HelloRetryRequest with a ClientHello that asks for another
// name, or another protocol, than the first: the configuration and the certificate that a server
// chooses by the first must not be used for the requests of the second.
func TestSecondHelloMustNotChange(t *testing.T) {
	for _, change := range []struct{ name, from, to string }{
		{"nothing", "public", "public"},
		{"name", "public", "secret"},
		{"protocol", "proto1", "proto2"},
	} {
		for _, way := range []string{"GetConfigForClient", "tickets", "cache", "plain"} {
			t.Run(change.name+"/"+way, func(t *testing.T) {
				cc, sc := tlstest.ClientConfig(), tlstest.ServerConfig()
				cc.ServerName, cc.NextProtos = "public.test", []string{"proto1"}
				cc.InsecureSkipVerify = true
				cc.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
				sc.CurvePreferences = []tls.CurveID{tls.CurveP256}
				sc.NextProtos = []string{"proto1", "proto2"}
				sc.SessionTicketsDisabled = way != "tickets"
				var seen []string
				sc.VerifyConnection = func(state tls.ConnectionState) error {
					seen = append(seen, state.ServerName, state.NegotiatedProtocol)
					return nil
				}
				var opts []ossl.Option
				switch way {
				case "GetConfigForClient":
					chosen := sc
					sc = sc.Clone()
					sc.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
				case "cache":
					opts = append(opts, ossl.WithSessionCache(session.NewCache(8)))
				}
				server := ossltest.NewContext(t, sc, opts...)
				a, b := tlstest.Buffered()
				c, s := tls.Client(&secondHello{Conn: a, from: change.from, to: change.to}, cc), server.Server(b)
				done := make(chan error, 1)
				go func() {
					done <- c.Handshake()
					c.Close()
				}()
				err := s.Handshake()
				s.Close()
				remote := <-done
				if change.from == change.to {
					if err != nil || remote != nil {
						t.Fatalf("server: %v, client: %v", err, remote)
					}
					return
				}
				var alert tls.AlertError
				if !errors.As(err, &alert) || alert != 47 || len(seen) > 0 {
					t.Errorf("server: %v, after it accepted %q", err, seen)
				}
				if remote == nil || !strings.Contains(remote.Error(), "remote error: tls: illegal parameter") {
					t.Errorf("client: %v", remote)
				}
			})
		}
	}
}

// secondHello changes a string in the second ClientHello that is written.
type secondHello struct {
	net.Conn
	from, to string
	hellos   int
}

func (c *secondHello) Write(b []byte) (int, error) {
	n := len(b)
	for rest := b; len(rest) >= 6; rest = rest[min(len(rest), 5+int(rest[3])<<8+int(rest[4])):] {
		if rest[0] == 22 && rest[5] == 1 {
			if c.hellos++; c.hellos == 2 {
				b = bytes.ReplaceAll(b, []byte(c.from), []byte(c.to))
			}
		}
	}
	if _, err := c.Conn.Write(b); err != nil {
		return 0, err
	}
	return n, nil
}
