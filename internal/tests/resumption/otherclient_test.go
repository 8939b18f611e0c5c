//go:build cgo || ossl_nocgo

package resumption

import (
	"bytes"
	"crypto/tls"
	"errors"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestOtherClientCertificate offers a session only with the client certificate that it was made
// with. crypto/tls offers it with any certificate, so that the server mistakes the client for
// another one.
func TestOtherClientCertificate(t *testing.T) {
	alice, bob := tlstest.ClientCert(tlstest.P256), tlstest.New(tlstest.Options{Names: []string{"bob"}})
	static := func(certs ...tls.Certificate) func(*tls.Config) {
		return func(c *tls.Config) { c.Certificates = certs }
	}
	calls := 0
	dynamic := func(cert *tls.Certificate, err error) func(*tls.Config) {
		return func(c *tls.Config) {
			c.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if calls++; info.Context() == nil || len(info.SignatureSchemes) == 0 || info.Version == 0 {
					t.Errorf("incomplete: %+v", info)
				}
				return cert, err
			}
		}
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, test := range []struct {
			name          string
			first, second func(*tls.Config)
			resumed       bool
			want          *tls.Certificate // that the server has of the second
		}{
			{"the same", static(alice), static(alice), true, &alice},
			{"another one", static(alice), static(bob), false, &bob},
			{"none", static(alice), static(), false, nil},
			{"one of several", static(alice), static(bob, alice), true, &alice},
			{"none before", static(), static(bob), false, &bob},
			{"none before, and none", static(), static(), true, nil},
			{"the callback's after a fixed one", static(alice), dynamic(&alice, nil), false, &alice},
			{"another one of the callback", dynamic(&alice, nil), dynamic(&bob, nil), false, &bob},
			{"the callback's again", dynamic(&alice, nil), dynamic(&alice, nil), true, &alice},
			{"the callback's none", dynamic(&alice, nil), dynamic(new(tls.Certificate), nil), false, nil},
			{"none of the callback", dynamic(new(tls.Certificate), nil), dynamic(new(tls.Certificate), nil), true, nil},
			{"one after none of the callback", dynamic(new(tls.Certificate), nil), dynamic(&bob, nil), false, &bob},
			{"fixed after the callback", dynamic(&alice, nil), static(alice), true, &alice},
		} {
			t.Run(test.name+"/"+tls.VersionName(version), func(t *testing.T) {
				cc, sc := tlstest.Resuming(version)
				sc.ClientAuth, sc.ClientCAs = tls.VerifyClientCertIfGiven, tlstest.CA().Pool()
				server := ossltest.Server(t, sc)
				first, second := cc.Clone(), cc.Clone()
				test.first(first)
				test.second(second)
				tlstest.WantResumed(t, ossltest.Client(t, first), server, false)
				tlstest.WantResumed(t, ossltest.Client(t, first), server, true) // its new ticket has the identity too
				c, s := tlstest.Visit(t, ossltest.Client(t, second), server)
				if c.DidResume != test.resumed {
					t.Errorf("resumed: %v", c.DidResume)
				}
				switch certs := s.PeerCertificates; {
				case test.want == nil && len(certs) > 0:
					t.Errorf("the server takes the client for %v", certs[0].Subject)
				case test.want != nil && (len(certs) == 0 || !bytes.Equal(certs[0].Raw, test.want.Certificate[0])):
					t.Error("the server doesn't take the client for the certificate's owner")
				}
			})
		}
		t.Run("not asked/"+tls.VersionName(version), func(t *testing.T) {
			cc, sc := tlstest.Resuming(version)
			server, other := ossltest.Server(t, sc), cc.Clone()
			calls = 0
			dynamic(&bob, nil)(other)
			tlstest.WantResumed(t, ossltest.Client(t, cc), server, false)
			tlstest.WantResumed(t, ossltest.Client(t, other), server, true)
			if calls > 0 {
				t.Error("the callback is called without a request")
			}
		})
		t.Run("the callback fails/"+tls.VersionName(version), func(t *testing.T) {
			cc, sc := tlstest.Resuming(version)
			sc.ClientAuth, sc.ClientCAs = tls.VerifyClientCertIfGiven, tlstest.CA().Pool()
			server, first, second := ossltest.Server(t, sc), cc.Clone(), cc.Clone()
			dynamic(&alice, nil)(first)
			failure := errors.New("the token is gone")
			dynamic(nil, failure)(second)
			tlstest.WantResumed(t, ossltest.Client(t, first), server, false)
			if _, _, err := tlstest.TryVisit(ossltest.Client(t, second), server); !errors.Is(err, failure) {
				t.Errorf("error %v", err)
			}
		})
	}
}
