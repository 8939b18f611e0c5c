//go:build cgo

package ossl_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// envTestFIPS, if set, has the tests of connections run in FIPS mode, as ci/matrix does where there is a module. Crypto/tls must
// be in its own then, since it says what is right: GODEBUG=fips140=on.
const envTestFIPS = "OSSL_TEST_FIPS"

var testsInFIPS = os.Getenv(envTestFIPS) != ""

// requireFIPS is what the environment asks of every Context: tests of FIPS mode then fail where they would be skipped.
var requireFIPS = os.Getenv("OSSL_FIPS") == "require"

// fipsGroups are those of tlstest.Groups that are approved.
var fipsGroups = []tls.CurveID{tls.CurveP256, tls.CurveP384, tls.CurveP521}

// notInFIPS are tests of what FIPS mode refuses, by a regular expression for -skip.
var notInFIPS = []struct{ tests, reason string }{
	{"TestFIPS.*", "they are run by themselves, with crypto/tls outside of its FIPS mode"},
	{"TestHostPolicy.*|TestInteropHostPolicy", "they have an openssl.cnf of their own, without a module: TestFIPSUnderPolicy"},
	{"TestThousandSlowSigners|TestSigner.*|TestHangingSigners.*/Sign", "keys that are a crypto.Signer are refused"},
	{"TestKey.*|TestMaxSigners|TestLoadX509KeyPair", "so are keys that OpenSSL has loaded outside of the module"},
	{"TestGetConfigForClient|TestDifferentialGetConfig|TestChosenPolicyIsNotResumedAround",
		"a configuration that is chosen can't have ClientCAs of its own"},
	{"TestDefaultGroups.*", "they are about groups that FIPS mode refuses"},
	{"TestAllocations", "every chain is verified by the module"},
	{"TestDifferentialSuite/.*(CHACHA20|AES_(128|256)_CBC_SHA|TLS_RSA|order).*", "the suites are refused by name"},
	{"TestDifferentialGroup/.*/(X25519.*|two_lists)|TestDifferentialNothingShared/group", "X25519 is refused by name"},
	{"TestDifferentialCertificates/.*/.*/any_usage", "libcrypto doesn't take anyExtendedKeyUsage for a purpose"},
	{"TestDifferentialCertificates/.*/.*/RSA-1024", "the error is crypto/x509's, with libcrypto's words"},
	{"TestSecondHello.*|TestResumeAfterHelloRetry", "they are made with X25519"},
	{"TestHTTP2Hello/suites_named|TestNotTakenOver", "the suites are refused by name"},
	{"TestTakenOver|TestTakeoverCountsTwice|TestRecordSizes|FuzzRecordPaths",
		"they are about ChaCha20 too, and own records of TLS 1.2"},
	{"TestSuiteNoLongerAllowed|TestTicketKeys/S.*", "SetSessionTicketKeys is refused"},
}

func init() {
	if !testsInFIPS {
		return
	}
	underTest = fipsImpl{}
	tlstest.Groups = fipsGroups
}

// beforeTests are called before the first test.
var beforeTests []func()

// TestMain leaves out what is not for FIPS mode, and says so, in words that ci/matrixrun reads.
func TestMain(m *testing.M) {
	if testsInFIPS {
		flag.Parse()
		var patterns []string
		for _, n := range notInFIPS {
			fmt.Printf("left out: %s: %s\n", n.tests, n.reason)
			patterns = append(patterns, n.tests)
		}
		if more := flag.Lookup("test.skip").Value.String(); more != "" {
			patterns = append(patterns, more)
		}
		flag.Set("test.skip", strings.Join(patterns, "|"))
	}
	for _, f := range beforeTests {
		f()
	}
	os.Exit(m.Run())
}

// needFIPS skips a test where there is no FIPS module.
func needFIPS(t testing.TB) {
	t.Helper()
	if library().FIPS {
		return
	}
	if requireFIPS || testsInFIPS {
		t.Fatalf("OpenSSL %s has no FIPS module that works", libraryVersion())
	}
	t.Skipf("OpenSSL %s has no FIPS module here", libraryVersion())
}

// fipsImpl is this package in FIPS mode.
type fipsImpl struct{}

func (fipsImpl) Name() string { return osslImpl{}.Name() } // so that docs/COMPATIBILITY.md is for both

func (fipsImpl) Client(conn net.Conn, config *tls.Config) tlstest.Conn {
	ctx, err := fipsContext(config)
	if err != nil {
		return brokenConn{conn, err}
	}
	return ctx.Client(conn, "")
}

func (fipsImpl) Server(conn net.Conn, config *tls.Config) tlstest.Conn {
	ctx, err := fipsContext(config)
	if err != nil {
		return brokenConn{conn, err}
	}
	return ctx.Server(conn)
}

// brokenConn is one whose configuration was refused.
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

func fipsContext(config *tls.Config, opts ...ossl.Option) (*ossl.Context, error) {
	config, more, err := forFIPS(withSessions(config))
	if err != nil {
		return nil, err
	}
	return ossl.NewContext(config, append(more, opts...)...)
}

// forFIPS moves the pools of a configuration to where FIPS mode wants them.
func forFIPS(config *tls.Config) (*tls.Config, []ossl.Option, error) {
	if config == nil {
		return nil, []ossl.Option{ossl.WithFIPS()}, nil
	}
	config = config.Clone()
	list := []ossl.Option{ossl.WithFIPS()}
	if config.RootCAs != nil {
		roots, err := rootsOf(config.RootCAs)
		if err != nil {
			return nil, nil, err
		}
		config.RootCAs = nil
		list = append(list, ossl.WithRoots(roots))
	}
	if config.ClientCAs != nil {
		roots, err := rootsOf(config.ClientCAs)
		if err != nil {
			return nil, nil, err
		}
		config.ClientCAs = nil
		list = append(list, ossl.WithClientRoots(roots))
	}
	return config, list, nil
}

// rootsOf finds out what a pool of the tests holds: a pool doesn't tell.
func rootsOf(pool *x509.CertPool) (ossl.Roots, error) {
	known := [][]*x509.Certificate{
		{tlstest.CA().Cert},
		{tlstest.OtherCA().Cert},
		{tlstest.Intermediate().Cert},
		{tlstest.CA().Cert, tlstest.OtherCA().Cert},
	}
	for _, certs := range known {
		same := x509.NewCertPool()
		for _, cert := range certs {
			same.AddCert(cert)
		}
		if same.Equal(pool) {
			return ossl.Roots{Certificates: certs}, nil
		}
	}
	if pool.Equal(x509.NewCertPool()) { // nobody is trusted
		return ossl.Roots{Certificates: []*x509.Certificate{nobody.Cert}}, nil
	}
	return ossl.Roots{}, errors.New("a pool that the tests don't know")
}

var nobody = tlstest.NewAuthority("tlstest nobody", nil, nil)

// asTests applies what the environment asks for to a configuration that is given to NewContext.
func asTests(config *tls.Config) (*tls.Config, []ossl.Option, error) {
	if !testsInFIPS {
		return config, nil, nil
	}
	return forFIPS(config)
}
