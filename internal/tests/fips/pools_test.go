package fips_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestFIPSPools: RootCAs and ClientCAs have the same effect in FIPS mode as otherwise, also in a
// configuration that GetConfigForClient returns.
func TestFIPSPools(t *testing.T) {
	ossltest.NeedFIPS(t)
	t.Setenv("SSL_CERT_DIR", t.TempDir())
	t.Setenv("SSL_CERT_FILE", "/nonexistent.pem") // the system trusts no authority
	right, wrong, none := tlstest.CA().Pool(), tlstest.OtherCA().Pool(), x509.NewCertPool()
	client := func(roots *x509.CertPool, opts ...ossl.Option) *ossl.Context {
		return ossltest.NewPlainContext(t, tlstest.ClientConfig(ossltest.Approved,
			tlstest.Certificates(tlstest.ClientCert(tlstest.P256)), func(c *tls.Config) { c.RootCAs = roots }),
			append(opts, ossl.WithFIPS())...)
	}
	config := func(cas *x509.CertPool) *tls.Config {
		return tlstest.ServerConfig(ossltest.Approved, tlstest.AskClient(tls.RequireAndVerifyClientCert),
			func(c *tls.Config) { c.ClientCAs = cas })
	}
	server := func(config *tls.Config, opts ...ossl.Option) *ossl.Context {
		return ossltest.NewPlainContext(t, config, append(opts, ossl.WithFIPS())...)
	}
	choosing := func(first, chosen *x509.CertPool) *tls.Config {
		c := config(first)
		other := c.Clone()
		other.ClientCAs = chosen
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return other, nil }
		return c
	}
	roots := ossl.WithClientRoots(ossltest.TrustedRoots())
	for _, test := range []struct {
		name           string
		client, server *ossl.Context
		refused        string // by "client", by "server", or by neither
	}{
		{"both trusted", client(right), server(config(right)), ""},
		{"another authority of the server", client(wrong), server(config(right)), "client"},
		{"no authority of the server", client(none), server(config(right)), "client"},
		{"the system's authorities of the server", client(nil), server(config(right)), "client"},
		{"another authority of the client", client(right), server(config(wrong)), "server"},
		{"no authority of the client", client(right), server(config(none)), "server"},
		{"the system's authorities of the client", client(right), server(config(nil)), "server"},
		{"a chosen configuration that trusts", client(right), server(choosing(wrong, right)), ""},
		{"a chosen configuration that doesn't", client(right), server(choosing(right, wrong)), "server"},
		{"a chosen configuration with the system's", client(right), server(choosing(right, nil)), "server"},
		{"a chosen configuration with WithClientRoots", client(right), server(choosing(nil, nil), roots), ""},
		{"a chosen configuration with its own in their place", client(right), server(choosing(nil, wrong), roots), "server"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := tlstest.TryVisit(ossltest.ClientOf(test.client), ossltest.ServerOf(test.server))
			var unknown x509.UnknownAuthorityError
			var alert *tls.CertificateVerificationError
			switch {
			case test.refused == "" && err != nil:
				t.Error(err)
			case test.refused != "" && err == nil:
				t.Error("accepted")
			case test.refused == "client" && !(errors.As(err, &unknown) && errors.As(err, &alert)):
				t.Errorf("%v", err)
			}
		})
	}

	constrained := tlstest.CA().Pool()
	constrained.AddCertWithConstraint(tlstest.OtherCA().Cert, func([]*x509.Certificate) error { return nil })
	for field, config := range map[string]*tls.Config{
		"RootCAs": {RootCAs: constrained}, "ClientCAs": {ClientCAs: constrained},
	} {
		var refused *ossl.ConfigError
		if _, err := ossl.NewContext(config, ossl.WithFIPS()); !errors.As(err, &refused) || refused.Field != field {
			t.Errorf("%s with a constraint: %v", field, err)
		}
	}
}

// TestFIPSPoolsOfSessions: a session that was made while the server trusted one pool is resumed only
// under a pool that trusts the client too. One of the others has an authority of the same name.
func TestFIPSPoolsOfSessions(t *testing.T) {
	ossltest.NeedFIPS(t)
	right := tlstest.CA().Pool()
	impostor := tlstest.NewAuthorityOf(tlstest.P384, tlstest.CA().Cert.Subject.CommonName, nil, nil).Pool()
	for _, version := range tlstest.Versions {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			cc := tlstest.ClientConfig(tlstest.Only(version), ossltest.Approved,
				tlstest.Certificates(tlstest.ClientCert(tlstest.P256)))
			cc.ClientSessionCache = tls.NewLRUClientSessionCache(4)
			var pool atomic.Pointer[x509.CertPool]
			pool.Store(right)
			sc := tlstest.ServerConfig(tlstest.Only(version), tlstest.AskClient(tls.RequireAndVerifyClientCert), ossltest.Approved)
			sc.SessionTicketsDisabled = false
			base := sc.Clone()
			sc.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
				chosen := base.Clone()
				chosen.ClientCAs = pool.Load()
				return chosen, nil
			}
			client := ossltest.ClientOf(ossltest.NewPlainContext(t, cc, ossltest.FIPSOptions()...))
			server := ossltest.ServerOf(ossltest.NewPlainContext(t, sc, ossl.WithFIPS()))
			first, _ := tlstest.Visit(t, client, server)
			if again, _ := tlstest.Visit(t, client, server); first.DidResume || !again.DidResume {
				t.Fatalf("DidResume: %v, then %v", first.DidResume, again.DidResume)
			}
			for name, other := range map[string]*x509.CertPool{
				"another": tlstest.OtherCA().Pool(), "an empty": x509.NewCertPool(), "the impostor's": impostor,
			} {
				pool.Store(other)
				if _, _, err := tlstest.TryVisit(client, server); err == nil {
					t.Errorf("%s pool: accepted", name)
				}
				pool.Store(right)
				tlstest.Visit(t, client, server) // for a session
			}
		})
	}
}
