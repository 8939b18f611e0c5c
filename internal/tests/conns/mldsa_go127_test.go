//go:build (cgo || ossl_nocgo) && go1.27

package conns

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

func needMLDSA(t *testing.T) {
	t.Helper()
	if requires := requiredForMLDSA(); requires != "" {
		t.Skipf("OpenSSL %s has no ML-DSA; 3.5 has", ossltest.Version())
	}
}

// bigChains returns certificates for a client and a server with ML-DSA-87 keys, two intermediate
// authorities and a root: 23 KB each. The pool has the root.
func bigChains() (client, server tls.Certificate, pool *x509.CertPool) {
	root := tlstest.NewAuthorityOf(tlstest.MLDSA87, "big root", nil, nil)
	upper := tlstest.NewAuthorityOf(tlstest.MLDSA87, "big upper", root, nil)
	lower := tlstest.NewAuthorityOf(tlstest.MLDSA87, "big lower", upper, nil)
	leaf := func(name string) tls.Certificate {
		return tlstest.New(tlstest.Options{Kind: tlstest.MLDSA87, Names: []string{name}, Issuer: lower,
			Chain: []*x509.Certificate{lower.Cert, upper.Cert}})
	}
	return leaf(tlstest.ClientName), leaf(tlstest.ServerName), root.Pool()
}

// TestMLDSAResumption checks that connections with large chains on both sides are taken over by
// ossl's records, and resumed; the session has the client's chain.
func TestMLDSAResumption(t *testing.T) {
	needMLDSA(t)
	clientCert, serverCert, pool := bigChains()
	if n := len(clientCert.Certificate[0]) + len(clientCert.Certificate[1]) + len(clientCert.Certificate[2]); n < 20<<10 {
		t.Fatalf("a chain of %d bytes", n)
	}
	client, server := tlstest.Resuming(tls.VersionTLS13)
	client.RootCAs, server.ClientCAs = pool, pool
	client.Certificates, server.Certificates = []tls.Certificate{clientCert}, []tls.Certificate{serverCert}
	server.ClientAuth = tls.RequireAndVerifyClientCert
	for _, path := range []ossl.RecordPath{ossl.RecordsDirect, ossl.RecordsLibssl} {
		for _, std := range []bool{false, true} {
			client := client.Clone()
			client.ClientSessionCache = tls.NewLRUClientSessionCache(0)
			cc := func(c net.Conn) tlstest.Conn { return tlstest.Std.Client(c, client) }
			if !std {
				cc = ossltest.Client(t, client, ossl.WithRecordPath(path))
			}
			sc := ossltest.Server(t, server, ossl.WithRecordPath(path))
			for visit := range 3 {
				c, s := tlstest.Visit(t, cc, sc)
				if c.DidResume != (visit > 0) || s.DidResume != (visit > 0) {
					t.Errorf("%v, client of crypto/tls: %v: visit %d: client resumed: %v, server: %v", path, std, visit,
						c.DidResume, s.DidResume)
				}
				if len(s.PeerCertificates) != 3 || len(s.VerifiedChains) != 1 || len(s.VerifiedChains[0]) != 4 {
					t.Errorf("%v: visit %d: the server has %d certificates and %d chains", path, visit, len(s.PeerCertificates),
						len(s.VerifiedChains))
				}
			}
		}
	}
}

// TestMLDSAOptions: WithSignatureAlgorithms adds no algorithm and leaves none in by itself, and
// algorithms that can't be used are refused.
func TestMLDSAOptions(t *testing.T) {
	needMLDSA(t)
	both := tlstest.Certificates(tlstest.ServerCert(tlstest.P256), tlstest.ServerCert(tlstest.MLDSA65))
	for _, test := range []struct {
		offered []tls.SignatureScheme
		want    x509.PublicKeyAlgorithm // of the server's certificate, 0 if there is none
	}{
		{[]tls.SignatureScheme{tls.MLDSA65, tls.ECDSAWithP256AndSHA256}, x509.ECDSA}, // the server's first
		{[]tls.SignatureScheme{tls.MLDSA65}, x509.MLDSA},
		{[]tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}, x509.ECDSA},
		{[]tls.SignatureScheme{tls.MLDSA44}, 0},
	} {
		client := ossltest.Optioned{Options: []ossl.Option{ossl.WithSignatureAlgorithms(test.offered...)}}
		for _, server := range []tlstest.Impl{tlstest.Std, ossltest.UnderTest} {
			t.Run(fmt.Sprintf("%v/%s", test.offered, server.Name()), func(t *testing.T) {
				o := tlstest.Run(tlstest.Pairing{Client: client, Server: server}, tlstest.Case{
					Client: tlstest.ClientWith(tlstest.Only(tls.VersionTLS13)), Server: tlstest.ServerWith(both)})
				if test.want == 0 {
					if o.Client.HandshakeErr == nil || o.Server.HandshakeErr == nil {
						t.Errorf("client: %v, server: %v", o.Client.HandshakeErr, o.Server.HandshakeErr)
					}
					return
				}
				if err := o.Client.HandshakeErr; err != nil {
					t.Fatal(err)
				}
				if got := o.Client.ConnState.PeerCertificates[0].PublicKeyAlgorithm; got != test.want {
					t.Errorf("a certificate for %v, want %v", got, test.want)
				}
			})
		}
	}
	only12 := tlstest.Only(tls.VersionTLS12)
	refusedMLDSA(t, tlstest.ClientConfig(only12), "WithSignatureAlgorithms", "ML-DSA-44 requires TLS 1.3",
		ossl.WithSignatureAlgorithms(tls.MLDSA44, tls.ECDSAWithP256AndSHA256))
	var refused *ossl.ConfigError
	listener, err := ossl.Listen("tcp", "127.0.0.1:0",
		tlstest.ServerConfig(only12, tlstest.Certificates(tlstest.ServerCert(tlstest.MLDSA44))))
	if !errors.As(err, &refused) || refused.Field != "Certificates" {
		t.Errorf("a TLS 1.2 server: got %v", err)
	}
	if err == nil {
		listener.Close()
	}
	other := tlstest.ServerCert(tlstest.MLDSA44)
	other.PrivateKey = tlstest.Key(tlstest.MLDSA65, "leaf")
	refusedMLDSA(t, tlstest.ServerConfig(tlstest.Certificates(other)), "Certificates", "does not belong")
	other.PrivateKey = tlstest.Key(tlstest.MLDSA44, "another")
	refusedMLDSA(t, tlstest.ServerConfig(tlstest.Certificates(other)), "Certificates", "does not belong")
}
