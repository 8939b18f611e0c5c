//go:build cgo || ossl_nocgo

package differential

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// serverKinds are the configurations of TestServerNameOfFailure's servers.
var serverKinds = []struct {
	name string
	edit func(*tls.Config)
	opts []ossl.Option
}{
	{"plain", nil, nil},
	{"tickets", func(c *tls.Config) { c.SessionTicketsDisabled = false }, nil},
	{"session cache", nil, []ossl.Option{ossl.WithSessionCache(session.NewCache(10))}},
	{"two certificates", func(c *tls.Config) { c.Certificates = append(c.Certificates, tlstest.ServerCert(tlstest.RSA2048)) }, nil},
	{"GetCertificate", func(c *tls.Config) {
		cert := c.Certificates[0]
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
	}, nil},
	{"GetConfigForClient", func(c *tls.Config) {
		chosen := c.Clone()
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
		c.VerifyConnection = nil
	}, nil},
	{"client certificates", func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert }, nil},
}

// A failure is a way in which a handshake fails.
type failure struct {
	name   string
	early  bool // crypto/tls fails before it notes the name, in TLS 1.3 at least
	client func(*tls.Config)
	server func(*tls.Config)
	leave  bool // the client hangs up after its hello
}

var failures = []failure{
	{name: "the client distrusts", client: func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }},
	{name: "the client hangs up", leave: true},
	{name: "no protocol", early: true, client: tlstest.Protocols("a"), server: tlstest.Protocols("b")},
	{name: "no group", early: true, client: tlstest.Curves(tls.CurveP521), server: tlstest.Curves(tls.CurveP256)},
	{name: "VerifyConnection", server: func(c *tls.Config) {
		c.VerifyConnection = func(tls.ConnectionState) error { return tlstest.ErrDenied }
	}},
	{name: "VerifyPeerCertificate", client: tlstest.Certificates(tlstest.ClientCert(tlstest.P256)), server: func(c *tls.Config) {
		c.ClientAuth = tls.RequireAnyClientCert
		c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { return tlstest.ErrDenied }
	}},
	{name: "no client certificate", server: tlstest.AskClient(tls.RequireAndVerifyClientCert)},
	{name: "GetCertificate fails", server: func(c *tls.Config) {
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, tlstest.ErrDenied }
	}},
	{name: "GetConfigForClient fails", early: true, server: func(c *tls.Config) {
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, tlstest.ErrDenied }
	}},
	{name: "GetConfigForClient's can't be used", early: true, server: func(c *tls.Config) {
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return &tls.Config{}, nil }
	}},
}

// TestServerNameOfFailure checks that a server's ConnectionState has the name that the client asked
// for after every failure that happens after the hello was read. crypto/tls's state has it too,
// unless the handshake fails early.
func TestServerNameOfFailure(t *testing.T) {
	for _, version := range tlstest.Versions {
		for _, kind := range serverKinds {
			for _, failure := range failures {
				t.Run(fmt.Sprintf("%s/%s/%s", tlstest.VersionName(version), kind.name, failure.name), func(t *testing.T) {
					config := func() *tls.Config {
						c := tlstest.ServerConfig(tlstest.Only(version))
						chooses := kind.name == "GetConfigForClient"
						if kind.edit != nil && !chooses {
							kind.edit(c)
						}
						if failure.server != nil {
							failure.server(c)
						}
						if chooses && c.GetConfigForClient == nil { // the configuration that it returns fails
							kind.edit(c)
						}
						return c
					}
					failure.run(t, version, tlstest.Std, config())
					failure.run(t, version, ossltest.Optioned{Options: kind.opts}, config())
				})
			}
		}
	}
}

// run makes a handshake fail, and checks the name that the server has.
func (f *failure) run(t *testing.T, version uint16, server tlstest.Impl, config *tls.Config) {
	edits := opts(tlstest.Only(version))
	if f.client != nil {
		edits = append(edits, f.client)
	}
	a, b := tlstest.NewPipe()
	client := net.Conn(a)
	if f.leave {
		client = &hangsUp{a}
	}
	c, s := tlstest.Std.Client(client, tlstest.ClientConfig(edits...)), server.Server(b, config)
	go func() {
		c.Handshake()
		c.Read(make([]byte, 1))
		c.Close()
	}()
	err := s.Handshake()
	if err == nil { // refused by a TLS 1.3 client, or after its Finished
		_, err = s.Read(make([]byte, 1))
	}
	if err == nil {
		t.Errorf("%s: no failure", server.Name())
	}
	got := s.ConnectionState().ServerName
	if got != tlstest.ServerName && (server != tlstest.Std || !f.early) {
		t.Errorf("%s: after %v the name is %q", server.Name(), err, got)
	}
	s.Close()
	a.Close()
}

// TestServerNameOfResumptionFailure checks the same for handshakes that would resume a session.
func TestServerNameOfResumptionFailure(t *testing.T) {
	for _, version := range tlstest.Versions {
		for _, cached := range []bool{false, true} {
			var opts []ossl.Option
			cc, sc := tlstest.Resuming(version)
			if cached {
				opts = []ossl.Option{ossl.WithSessionCache(session.NewCache(10))}
			}
			sc.VerifyConnection = func(state tls.ConnectionState) error {
				if state.DidResume {
					return tlstest.ErrDenied
				}
				return nil
			}
			server, err := ossl.NewContext(sc, opts...)
			if err != nil {
				t.Fatal(err)
			}
			client := func(conn net.Conn) tlstest.Conn { return tlstest.Std.Client(conn, cc) }
			tlstest.Visit(t, client, func(conn net.Conn) tlstest.Conn { return server.Server(conn) })
			a, b := tlstest.Buffered()
			c, s := client(a), server.Server(b)
			go c.Handshake()
			if err := s.Handshake(); !errors.Is(err, tlstest.ErrDenied) {
				t.Errorf("%s, cache %v: %v", tlstest.VersionName(version), cached, err)
			}
			if got := s.ConnectionState().ServerName; got != tlstest.ServerName {
				t.Errorf("%s, cache %v: the name is %q", tlstest.VersionName(version), cached, got)
			}
			a.Close()
			s.Close()
		}
	}
}

// TestServerNameOfInterrupted interrupts a server's handshake from outside, while it waits for the
// client's answer.
func TestServerNameOfInterrupted(t *testing.T) {
	for _, version := range tlstest.Versions {
		for _, how := range []struct {
			name string
			end  func(s tlstest.Conn, cancel func())
			want error
		}{
			{"deadline", func(s tlstest.Conn, _ func()) { s.SetDeadline(time.Now().Add(-time.Second)) }, os.ErrDeadlineExceeded},
			{"context", func(_ tlstest.Conn, cancel func()) { cancel() }, context.Canceled},
			{"Close", func(s tlstest.Conn, _ func()) { s.Close() }, nil},
			{"NetConn.Close", func(s tlstest.Conn, _ func()) { s.NetConn().Close() }, nil},
		} {
			for _, impl := range []tlstest.Impl{tlstest.Std, ossltest.UnderTest} {
				a, b := tlstest.NewPipe()
				c := tlstest.Std.Client(&onlyRecords{Conn: a, n: 1}, tlstest.ClientConfig(tlstest.Only(version)))
				s := impl.Server(b, tlstest.ServerConfig(tlstest.Only(version)))
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan error, 1)
				go func() {
					c.Handshake()
					c.Read(make([]byte, 1))
				}()
				go func() { done <- s.HandshakeContext(ctx) }()
				if !a.WaitStuck() { // the client's flight stays with it, so both wait
					t.Fatal("nobody waits")
				}
				how.end(s, cancel)
				err := <-done
				if err == nil || how.want != nil && !errors.Is(err, how.want) {
					t.Errorf("%s, %s, %s: %v", impl.Name(), tlstest.VersionName(version), how.name, err)
				}
				if got := s.ConnectionState().ServerName; got != tlstest.ServerName {
					t.Errorf("%s, %s, %s: the name is %q", impl.Name(), tlstest.VersionName(version), how.name, got)
				}
				cancel()
				a.Close()
				b.Close()
			}
		}
	}
}

// hangsUp closes its writing side after the first Write.
type hangsUp struct{ *tlstest.PipeConn }

func (c *hangsUp) Write(b []byte) (int, error) {
	n, err := c.PipeConn.Write(b)
	c.CloseWrite()
	return n, err
}
