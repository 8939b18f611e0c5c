package promossl_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/metrics"
)

const serverName = "server.test"

// scrape returns the metrics in Prometheus' text format.
func scrape(t *testing.T, g prometheus.Gatherer) []byte {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// An authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	leaf tls.Certificate // good for serverName, and for clients
}

func newAuthority(t testing.TB) *authority {
	a := &authority{pool: x509.NewCertPool()}
	a.cert, a.key = a.issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, time.Now().Add(time.Hour))
	a.pool.AddCert(a.cert)
	a.leaf = a.certificate(t, time.Now().Add(time.Hour))
	return a
}

// certificate returns a certificate that is good until a time.
func (a *authority) certificate(t testing.TB, until time.Time) tls.Certificate {
	leaf, key := a.issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: serverName}, DNSNames: []string{serverName}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, until)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}
}

// issue makes a certificate, which the authority signs if it has one itself.
func (a *authority) issue(t testing.TB, template *x509.Certificate, until time.Time) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), until.Add(-2*time.Hour), until
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func (a *authority) client() *tls.Config { return &tls.Config{RootCAs: a.pool, ServerName: serverName} }
func (a *authority) server() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{a.leaf}} }

func newContext(t testing.TB, contexts *metrics.Contexts, name string, config *tls.Config, opts ...ossl.Option) *ossl.Context {
	t.Helper()
	ctx, err := ossl.NewContext(config, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := contexts.Add(name, ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// sockets returns both sides of a connection over loopback.
func sockets(t testing.TB) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// visit makes a connection, which carries four bytes from the client, and closes it.
func visit(t testing.TB, client, server *ossl.Context) {
	t.Helper()
	rawClient, rawServer := sockets(t)
	done := make(chan error, 1)
	go func() {
		s := server.Server(rawServer)
		_, err := io.Copy(io.Discard, s)
		_ = s.Close() // before the caller reads statistics
		done <- err
	}()
	c := client.Client(rawClient, "")
	if _, err := c.Write([]byte("text")); err != nil {
		t.Error(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	_ = c.Close()
}
