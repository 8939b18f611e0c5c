//go:build cgo || ossl_nocgo

package conns

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// dials are ways to make clients of a configuration.
var dials = map[string]func(addr string, c *tls.Config) (net.Conn, error){
	"crypto/tls": func(addr string, c *tls.Config) (net.Conn, error) { return tls.Dial("tcp", addr, c) },
	"Dial":       func(addr string, c *tls.Config) (net.Conn, error) { return ossl.Dial("tcp", addr, c) },
	"Client": func(addr string, c *tls.Config) (net.Conn, error) {
		raw, err := net.Dial("tcp", addr)
		return ossl.Client(raw, c), err
	},
}

// accepts are ways to make servers of a configuration.
var accepts = map[string]func(net.Listener, *tls.Config) func() (net.Conn, error){
	"crypto/tls":  func(l net.Listener, c *tls.Config) func() (net.Conn, error) { return tls.NewListener(l, c).Accept },
	"NewListener": func(l net.Listener, c *tls.Config) func() (net.Conn, error) { return ossl.NewListener(l, c).Accept },
	"Server": func(l net.Listener, c *tls.Config) func() (net.Conn, error) {
		return func() (net.Conn, error) { raw, err := l.Accept(); return ossl.Server(raw, c), err }
	},
	"GetConfigForClient": func(l net.Listener, c *tls.Config) func() (net.Conn, error) {
		choose := func(*tls.ClientHelloInfo) (*tls.Config, error) { return c, nil }
		return ossl.NewListener(l, &tls.Config{GetConfigForClient: choose}).Accept
	},
}

// describe makes a connection, and describes it by the states of client and server, or as refused.
func describe(dial, accept func() (net.Conn, error)) string {
	end := func(open func() (net.Conn, error), talk func(net.Conn) error) (state tls.ConnectionState, err error) {
		conn, err := open()
		if err == nil {
			defer conn.Close()
			err = talk(conn)
			state = conn.(interface{ ConnectionState() tls.ConnectionState }).ConnectionState()
		}
		return state, err
	}
	var c, s tls.ConnectionState
	var clientErr, serverErr error
	var server sync.WaitGroup
	server.Go(func() {
		s, serverErr = end(accept, func(conn net.Conn) error { _, err := conn.Write([]byte("x")); return err })
	})
	c, clientErr = end(dial, func(conn net.Conn) error { _, err := io.ReadFull(conn, make([]byte, 1)); return err })
	if server.Wait(); clientErr != nil || serverErr != nil {
		return "refused"
	}
	name := func(certs []*x509.Certificate) string { return strings.Trim(tlstest.CertNames(certs), "[]") }
	return fmt.Sprintf("%q to %q, %s, %s, %v, %q", name(s.PeerCertificates), name(c.PeerCertificates),
		tls.VersionName(c.Version), tls.CipherSuiteName(c.CipherSuite), c.CurveID, c.NegotiatedProtocol)
}

// TestChangesAreSeen changes a configuration between two connections that the drop-in functions
// make with it, by setting a field or by changing a field's value in place. As with crypto/tls, the
// second connection has the new values. libcurl reused connections that were made with other values
// (CVE-2021-22890, CVE-2021-22924, CVE-2022-27782, CVE-2026-8932, CVE-2026-11564).
func TestChangesAreSeen(t *testing.T) {
	type config = tls.Config
	const client, server = tlstest.ClientRole, tlstest.ServerRole
	alice := tlstest.New(tlstest.Options{Names: []string{"alice"}})
	bob := tlstest.New(tlstest.Options{Names: []string{"bob", tlstest.ServerName}, Key: tlstest.Key(tlstest.P256, "bob")})
	keep := func(*config) {}
	isAlice := func(c *config) {
		c.Certificates = []tls.Certificate{{Certificate: [][]byte{alice.Certificate[0]}, PrivateKey: alice.PrivateKey}}
	}
	old := func(c *config) { c.MaxVersion = tls.VersionTLS12 }
	verify, asks := tlstest.AskClient(tls.RequireAndVerifyClientCert), tlstest.AskClient(tls.VerifyClientCertIfGiven)
	for _, test := range []struct {
		role       tlstest.Role // the end whose configuration changes
		name       string
		base, edit func(*config)
		want       string // a part of the second connection's description, and not of the first one's
	}{
		{client, "RootCAs", keep, func(c *config) { c.RootCAs = tlstest.OtherCA().Pool() }, "refused"},
		{client, "within RootCAs", keep, func(c *config) { *c.RootCAs = *tlstest.OtherCA().Pool() }, "refused"},
		{client, "ServerName", keep, func(c *config) { c.ServerName = tlstest.OtherName }, "refused"},
		{client, "no ServerName, CVE-2025-27809", keep, func(c *config) { c.ServerName = "" }, "refused"},
		{client, "Time", keep, func(c *config) { c.Time = func() time.Time { return time.Unix(1, 0) } }, "refused"},
		{client, "VerifyConnection", keep, tlstest.DenyConn, "refused"},
		{client, "Certificates", isAlice, tlstest.Certificates(bob), `"bob`},
		{client, "within Certificates", isAlice, func(c *config) { c.Certificates[0] = bob }, `"bob`},
		{client, "within a certificate", isAlice, func(c *config) {
			c.Certificates[0].Certificate[0], c.Certificates[0].PrivateKey = bob.Certificate[0], bob.PrivateKey
		}, `"bob`},
		{client, "no Certificates", isAlice, tlstest.Certificates(), `"" to`},
		{client, "within NextProtos", func(c *config) { c.NextProtos = []string{"a"} },
			func(c *config) { c.NextProtos[0] = "b" }, `"b"`},
		{client, "MinVersion", old, tlstest.Only(tls.VersionTLS13), "TLS 1.3"},
		{client, "within CurvePreferences", func(c *config) { c.CurvePreferences = []tls.CurveID{tls.CurveP256} },
			func(c *config) { c.CurvePreferences[0] = tls.CurveP384 }, "P384"},
		{server, "ClientAuth", func(c *config) { c.ClientAuth, c.ClientCAs = tls.NoClientCert, tlstest.OtherCA().Pool() },
			func(c *config) { c.ClientAuth = tls.RequireAndVerifyClientCert }, "refused"},
		{server, "ClientCAs", verify, func(c *config) { c.ClientCAs = tlstest.OtherCA().Pool() }, "refused"},
		{server, "within ClientCAs", verify, func(c *config) { *c.ClientCAs = *tlstest.OtherCA().Pool() }, "refused"},
		{server, "VerifyConnection", keep, tlstest.DenyConn, "refused"},
		{server, "within Certificates", keep, func(c *config) { c.Certificates[0] = bob }, `to "bob`},
	} {
		for clientWay, dial := range dials {
			for serverWay, accept := range accepts {
				if test.role == client && serverWay != "crypto/tls" || test.role == server && clientWay != "crypto/tls" {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s to %s", test.role, test.name, clientWay, serverWay), func(t *testing.T) {
					l, err := net.Listen("tcp", "127.0.0.1:0")
					if err != nil {
						t.Fatal(err)
					}
					defer l.Close()
					cc, sc := tlstest.ClientConfig(), tlstest.ServerConfig(tlstest.Protocols("a", "b"), asks)
					changed := cc
					if test.role == server {
						changed = sc
						tlstest.SendCertificate(alice)(cc)
					}
					test.base(changed)
					dial, accept := func() (net.Conn, error) { return dial(l.Addr().String(), cc) }, accept(l, sc)
					if got := describe(dial, accept); got == "refused" || strings.Contains(got, test.want) {
						t.Fatal("before:", got)
					}
					test.edit(changed)
					if got := describe(dial, accept); !strings.Contains(got, test.want) {
						t.Errorf("after: %s, want %s", got, test.want)
					}
				})
			}
		}
	}
}

// TestKeysChangeUnderLoad sets ticket keys, as crypto/tls allows, and copies the configuration,
// while servers are made with it (CVE-2024-0397).
func TestKeysChangeUnderLoad(t *testing.T) {
	config := tlstest.ServerConfig(func(c *tls.Config) { c.SessionTicketsDisabled = false })
	server := func(raw net.Conn) tlstest.Conn { return ossl.Server(raw, config) }
	var all sync.WaitGroup
	for i := range byte(20) {
		all.Go(func() {
			config.SetSessionTicketKeys([][32]byte{{1, i}, {2, i}})
			if _, _, err := tlstest.TryVisit(tlstest.StdClient(tlstest.ClientConfig()), server); err != nil || config.Clone() == nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
