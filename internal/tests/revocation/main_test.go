//go:build cgo || ossl_nocgo

package revocation

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"net"
	"sync"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

func TestMain(m *testing.M) {
	ossltest.Main(m, []ossltest.Exception{
		{Tests: "TestTwoPaths", Reason: "libcrypto finds one chain"},
		{Tests: "TestFIPSModesDontShare", Reason: "all Contexts are in FIPS mode"},
		{Tests: "TestRevokedAfterwards/remembered_chain", Reason: "no chain is remembered"},
	})
}

// A source is a CRLSource that tests change.
type source struct {
	mu    sync.Mutex
	lists map[string][]byte
}

func (s *source) get() (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.lists), nil
}

func (s *source) set(name string, list []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lists == nil {
		s.lists = make(map[string][]byte)
	}
	s.lists[name] = list
	if list == nil {
		delete(s.lists, name)
	}
}

func load(t *testing.T, s *source) *ossl.CRLs {
	t.Helper()
	lists, err := ossl.LoadCRLs(s.get)
	if err != nil {
		t.Fatal(err)
	}
	return lists
}

// loaded returns lists that tests don't change.
func loaded(t *testing.T, lists ...[]byte) *ossl.CRLs {
	t.Helper()
	s := new(source)
	for i, list := range lists {
		s.set(string(rune('a'+i)), list)
	}
	return load(t, s)
}

// revocationError returns the *ossl.RevocationError in err, or fails the test.
func revocationError(t *testing.T, err error) *ossl.RevocationError {
	t.Helper()
	var verification *tls.CertificateVerificationError
	var e *ossl.RevocationError
	if !errors.As(err, &verification) || !errors.As(err, &e) || len(verification.UnverifiedCertificates) == 0 {
		t.Fatalf("got %v", err)
	}
	return e
}

// paths are the record paths.
var paths = map[string]ossl.Option{
	"direct": ossl.WithRecordPath(ossl.RecordsAuto),
	"libssl": ossl.WithRecordPath(ossl.RecordsLibssl),
}

// A pair is a client and a server, and the certificate of the one that the other, with lists, judges.
type pair struct {
	version        uint16
	judged         tlstest.Role
	leaf           *x509.Certificate
	client, server *tls.Config
}

// newPair returns a pair whose sessions can be resumed. The judged one's certificate has an issuer, by
// default tlstest.CA, and the certificates after it in the chain.
func newPair(version uint16, judged tlstest.Role, issuer *tlstest.Authority, chain ...*x509.Certificate) *pair {
	p := &pair{version: version, judged: judged}
	p.client, p.server = tlstest.Resuming(version)
	name := tlstest.ServerName
	if judged == tlstest.ClientRole {
		name = tlstest.ClientName
	}
	cert := tlstest.New(tlstest.Options{Names: []string{name}, Issuer: issuer, Chain: chain})
	p.leaf = cert.Leaf
	if judged == tlstest.ClientRole {
		p.client.Certificates = []tls.Certificate{cert}
		p.server.ClientAuth, p.server.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
	} else {
		p.server.Certificates = []tls.Certificate{cert}
	}
	return p
}

// trust sets the pool that the judge trusts.
func (p *pair) trust(pool *x509.CertPool) {
	if p.judged == tlstest.ClientRole {
		p.server.ClientCAs = pool
	} else {
		p.client.RootCAs = pool
	}
}

// judge returns the configuration of the one with the lists.
func (p *pair) judge() *tls.Config {
	if p.judged == tlstest.ClientRole {
		return p.server
	}
	return p.client
}

// ends returns Ends on ossl: the judge has opts, and the other one the options peer. ctx is the judge's.
func (p *pair) ends(t *testing.T, opts []ossl.Option, peer ...ossl.Option) (client, server tlstest.End, ctx *ossl.Context) {
	t.Helper()
	if p.judged == tlstest.ClientRole {
		ctx = ossltest.NewContext(t, p.server, opts...)
		return ossltest.Client(t, p.client, peer...), ossltest.ServerOf(ctx), ctx
	}
	ctx = ossltest.NewContext(t, p.client, opts...)
	return ossltest.ClientOf(ctx), ossltest.Server(t, p.server, peer...), ctx
}

// stdEnds is ends with a judged one on crypto/tls.
func (p *pair) stdEnds(t *testing.T, opts []ossl.Option) (client, server tlstest.End, ctx *ossl.Context) {
	t.Helper()
	ctx = ossltest.NewContext(t, p.judge(), opts...)
	if p.judged == tlstest.ClientRole {
		return tlstest.StdClient(p.client), ossltest.ServerOf(ctx), ctx
	}
	return ossltest.ClientOf(ctx), tlstest.StdServer(p.server), ctx
}

// errs runs a connection whose handshake fails on the judge's side, and returns the judge's error and
// its peer's, which reads until it has the alert.
func (p *pair) errs(t *testing.T, client, server tlstest.End) (judge, peer error) {
	t.Helper()
	a, b := tlstest.Buffered()
	c, s := client(a), server(b)
	defer c.Close()
	defer s.Close()
	shake := func(conn tlstest.Conn, done chan<- error) {
		err := conn.Handshake()
		if err == nil { // a TLS 1.3 client learns of the refusal when it reads
			_, err = conn.Read(make([]byte, 1))
		}
		done <- err
	}
	fromClient, fromServer := make(chan error, 1), make(chan error, 1)
	go shake(c, fromClient)
	go shake(s, fromServer)
	if p.judged == tlstest.ClientRole {
		judge = <-fromServer
		s.Close()
		return judge, <-fromClient
	}
	judge = <-fromClient
	c.Close()
	return judge, <-fromServer
}

// wantAlert fails the test unless err is the judge's alert, as its peer sees it.
func (p *pair) wantAlert(t *testing.T, err error, alert uint8) {
	t.Helper()
	if err != nil && p.version == tls.VersionTLS13 && p.judged == tlstest.ServerRole && !ossltest.SealsRefusals() {
		return
	}
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" || op.Err.Error() != tls.AlertError(alert).Error() {
		t.Errorf("the peer got %v, want the alert %v", err, tls.AlertError(alert))
	}
}

// each runs a test for each version, judged role and record path.
func each(t *testing.T, test func(t *testing.T, version uint16, judged tlstest.Role, path ossl.Option)) {
	for _, version := range tlstest.Versions {
		for _, judged := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
			for name, path := range paths {
				t.Run(tlstest.VersionName(version)+"/"+string(judged)+"/"+name, func(t *testing.T) { test(t, version, judged, path) })
			}
		}
	}
}

// echo sends a byte both ways on a connection that is open.
func echo(t *testing.T, c, s io.ReadWriter) {
	t.Helper()
	for _, way := range []struct{ from, to io.ReadWriter }{{c, s}, {s, c}} {
		if _, err := way.from.Write([]byte{1}); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(way.to, make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
}
