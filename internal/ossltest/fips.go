package ossltest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// envTestFIPS names an environment variable that, if set, makes the tests of connections run in
// FIPS mode. ci/matrix sets it for a library with a module. The tests compare with crypto/tls,
// which must then be in its own FIPS mode: GODEBUG=fips140=on.
const envTestFIPS = "OSSL_TEST_FIPS"

// InFIPS reports whether the tests of connections are run in FIPS mode.
var InFIPS = os.Getenv(envTestFIPS) != ""

// RequireFIPS reports whether the environment asks every Context for FIPS mode. Tests of FIPS mode
// then fail rather than skip.
var RequireFIPS = os.Getenv("OSSL_FIPS") == "require"

// FIPSGroups are the approved groups in tlstest.Groups.
var FIPSGroups = []tls.CurveID{tls.CurveP256, tls.CurveP384, tls.CurveP521}

func init() {
	if InFIPS {
		UnderTest = FIPSImpl{}
	}
	if InFIPS || Race { // crypto/tls's X25519 is Go code, which the race detector makes ten times as slow as P-256
		tlstest.Groups = FIPSGroups
	}
}

// NeedFIPS skips a test if there is no FIPS module.
func NeedFIPS(t testing.TB) {
	t.Helper()
	if Library().FIPS {
		return
	}
	if RequireFIPS || InFIPS {
		t.Fatalf("OpenSSL %s has no FIPS module that works", Version())
	}
	t.Skipf("OpenSSL %s has no FIPS module here", Version())
}

// FIPSImpl is package ossl in FIPS mode.
type FIPSImpl struct{}

// Name implements tlstest.Impl. The name is Impl's, so that docs/COMPATIBILITY.md is for both.
func (FIPSImpl) Name() string { return Impl{}.Name() }

// Client implements tlstest.Impl.
func (FIPSImpl) Client(conn net.Conn, config *tls.Config) tlstest.Conn {
	ctx, err := fipsContext(config)
	if err != nil {
		return brokenConn{conn, err}
	}
	return ctx.Client(conn, "")
}

// Server implements tlstest.Impl.
func (FIPSImpl) Server(conn net.Conn, config *tls.Config) tlstest.Conn {
	ctx, err := fipsContext(config)
	if err != nil {
		return brokenConn{conn, err}
	}
	return ctx.Server(conn)
}

// A brokenConn is a connection whose configuration was refused.
type brokenConn struct {
	net.Conn
	err error
}

func (c brokenConn) Handshake() error                                         { return c.err }
func (c brokenConn) HandshakeContext(context.Context) error                   { return c.err }
func (c brokenConn) Read([]byte) (int, error)                                 { return 0, c.err }
func (c brokenConn) Write([]byte) (int, error)                                { return 0, c.err }
func (c brokenConn) CloseWrite() error                                        { return c.err }
func (c brokenConn) ConnectionState() tls.ConnectionState                     { return tls.ConnectionState{} }
func (c brokenConn) ExportKeyingMaterial(string, []byte, int) ([]byte, error) { return nil, c.err }
func (c brokenConn) NetConn() net.Conn                                        { return c.Conn }
func (c brokenConn) OCSPResponse() []byte                                     { return nil }
func (c brokenConn) VerifyHostname(string) error                              { return c.err }

// fipsContext returns a Context in FIPS mode.
func fipsContext(config *tls.Config, opts ...ossl.Option) (*ossl.Context, error) {
	return ossl.NewContext(WithSessions(config), append(opts[:len(opts):len(opts)], ossl.WithFIPS())...)
}

// AsTests returns the options that the environment sets for the Contexts of tests.
func AsTests() []ossl.Option {
	if !InFIPS {
		return nil
	}
	return []ossl.Option{ossl.WithFIPS()}
}

// TrustedRoots are the roots that go with tlstest's certificates.
func TrustedRoots() ossl.Roots {
	return ossl.Roots{Certificates: []*x509.Certificate{tlstest.CA().Cert}}
}

// Approved makes a configuration of tlstest one that FIPS mode takes.
func Approved(c *tls.Config) {
	c.CurvePreferences = FIPSGroups
	c.RootCAs, c.ClientCAs = nil, nil
}

// FIPSOptions returns the options of a Context in FIPS mode that trusts tlstest's certificates, and
// more.
func FIPSOptions(more ...ossl.Option) []ossl.Option {
	return append([]ossl.Option{ossl.WithFIPS(), ossl.WithRoots(TrustedRoots()), ossl.WithClientRoots(TrustedRoots())}, more...)
}

// FIPSClient returns a client's Context in FIPS mode.
func FIPSClient(t testing.TB, edits ...func(*tls.Config)) *ossl.Context {
	t.Helper()
	return NewPlainContext(t, tlstest.ClientConfig(append(edits, Approved)...), FIPSOptions()...)
}

// FIPSServer returns a server's Context in FIPS mode.
func FIPSServer(t testing.TB, edits ...func(*tls.Config)) *ossl.Context {
	t.Helper()
	return NewPlainContext(t, tlstest.ServerConfig(append(edits, Approved)...), FIPSOptions()...)
}
