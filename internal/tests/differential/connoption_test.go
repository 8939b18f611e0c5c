//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// perConn is this package with the configuration's VerifyConnection given to each connection
// instead.
type perConn struct{ ossltest.Impl }

func (perConn) split(config *tls.Config) (*ossl.Context, []ossl.ConnOption) {
	config = config.Clone()
	verify := config.VerifyConnection
	config.VerifyConnection = nil
	ctx, err := ossl.NewContext(config)
	if err != nil {
		panic(err)
	}
	if verify == nil {
		return ctx, nil
	}
	return ctx, []ossl.ConnOption{ossl.WithVerification(verify)}
}

func (p perConn) Client(conn net.Conn, config *tls.Config) tlstest.Conn {
	ctx, opts := p.split(config)
	return ctx.Client(conn, "", opts...)
}

func (p perConn) Server(conn net.Conn, config *tls.Config) tlstest.Conn {
	ctx, opts := p.split(config)
	return ctx.Server(conn, opts...)
}

// TestConnVerification refuses with WithVerification in each case in which VerifyConnection can,
// with the same errors and alerts.
func TestConnVerification(t *testing.T) {
	for _, version := range tlstest.Versions {
		ran := 0
		for _, d := range denials() {
			if !strings.Contains(d.name, "VerifyConnection") {
				continue
			}
			ran++
			t.Run(fmt.Sprintf("%s/%s/%s", tlstest.VersionName(version), d.side, d.name), func(t *testing.T) {
				for _, peer := range []tlstest.Impl{tlstest.Std, ossltest.UnderTest} {
					deny(t, version, d, perConn{}, peer)
				}
			})
		}
		if ran < 6 {
			t.Errorf("%d denials by VerifyConnection found", ran)
		}
	}
}

// TestConnVerificationOnlyRefuses uses the configuration's VerifyConnection and several of a
// connection's own: all must accept, in order.
func TestConnVerificationOnlyRefuses(t *testing.T) {
	const all = "config one two"
	for _, refuses := range []string{"", "config", "one", "two"} {
		for _, role := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
			t.Run(fmt.Sprintf("%s/%q", role, refuses), func(t *testing.T) {
				var asked []string
				decide := func(name string) func(tls.ConnectionState) error {
					return func(state tls.ConnectionState) error {
						asked = append(asked, name)
						if len(state.PeerCertificates) == 0 {
							t.Errorf("%s is told no certificate", name)
						}
						if name == refuses {
							return tlstest.ErrDenied
						}
						return nil
					}
				}
				mutual := opts(tlstest.Certificates(tlstest.ClientCert(tlstest.P256)))
				client := tlstest.ClientConfig(mutual...)
				server := tlstest.ServerConfig(tlstest.AskClient(tls.RequireAndVerifyClientCert))
				a, b := tlstest.Buffered()
				defer a.Close()
				defer b.Close()
				own := []ossl.ConnOption{ossl.WithVerification(decide("one")), ossl.WithVerification(decide("two"))}
				var under, peer tlstest.Conn
				if role == tlstest.ClientRole {
					client.VerifyConnection = decide("config")
					under, peer = ossltest.NewContext(t, client).Client(a, "", own...), tlstest.Std.Server(b, server)
				} else {
					server.VerifyConnection = decide("config")
					under, peer = ossltest.NewContext(t, server).Server(b, own...), tlstest.Std.Client(a, client)
				}
				go peer.Handshake()
				err := under.Handshake()
				if want := refuses != ""; errors.Is(err, tlstest.ErrDenied) != want || (err != nil) != want {
					t.Errorf("handshake: %v", err)
				}
				want := strings.Fields(all)
				if refuses != "" {
					want = want[:slices.Index(want, refuses)+1]
				}
				if !slices.Equal(asked, want) {
					t.Errorf("asked %v, want %v", asked, want)
				}
			})
		}
	}
}

// TestClientProtocolOrder compares whose order decides. The default is crypto/tls's, which
// TestDifferentialALPN tests.
func TestClientProtocolOrder(t *testing.T) {
	for _, test := range []struct{ name, client, server, byServer, byClient string }{
		{"both in common", "a b", "b a", "b", "a"},
		{"the client's first is unknown", "x a b", "b a", "b", "a"},
		{"one in common", "x a", "y a", "a", "a"},
		{"a prefix is no match", "ab a", "a b", "a", "a"},
		{"none offered", "", "a b", "", ""},
		{"none known", "a b", "", "", ""},
		{"HTTP/1.1 alone", "http/1.1", "h2", "", ""},
		{"nothing in common", "x", "a b", "refused", "refused"},
	} {
		for _, byClient := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/byClient=%t", test.name, byClient), func(t *testing.T) {
				client := tlstest.ClientConfig(tlstest.Protocols(strings.Fields(test.client)...))
				server := tlstest.ServerConfig(tlstest.Protocols(strings.Fields(test.server)...))
				want := test.byServer
				var opts []ossl.Option
				if byClient {
					want, opts = test.byClient, append(opts, ossl.WithClientProtocolOrder())
				}
				a, b := tlstest.Buffered()
				defer a.Close()
				defer b.Close()
				under, peer := ossltest.NewContext(t, server, opts...).Server(b), tls.Client(a, client)
				done := make(chan error, 1)
				go func() { done <- under.Handshake() }()
				err := peer.Handshake()
				serverErr := <-done
				got := under.ConnectionState().NegotiatedProtocol
				if err != nil || serverErr != nil {
					var alert tls.AlertError
					if !errors.As(serverErr, &alert) || alert != 120 || err == nil { // no_application_protocol
						t.Fatalf("client: %v; server: %v", err, serverErr)
					}
					got = "refused"
				}
				if got != want {
					t.Errorf("chose %q, want %q", got, want)
				}
			})
		}
	}
}
