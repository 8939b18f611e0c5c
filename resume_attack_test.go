package ossl_test

import (
	"crypto/tls"
	"fmt"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// TestSessionOfAnotherLendsNoCertificate offers a session of a client with a certificate in a handshake that can't resume it: what
// identifies a session is sent in the clear, and libssl asks for it before anything proves that it is the client's. The session
// that is made then is the new client's, who has shown no certificate.
func TestSessionOfAnotherLendsNoCertificate(t *testing.T) {
	for _, store := range []string{"tickets", "cache"} {
		for _, auth := range []tls.ClientAuthType{tls.RequestClientCert, tls.VerifyClientCertIfGiven} {
			t.Run(fmt.Sprintf("%s/%v", store, auth), func(t *testing.T) {
				cc, sc := resuming(tls.VersionTLS13)
				sc.ClientAuth, sc.ClientCAs = auth, tlstest.CA().Pool()
				var opts []ossl.Option
				if store == "cache" {
					opts = append(opts, ossl.WithSessionCache(session.NewCache(8)))
				}
				server := osslServer(t, sc, opts...)
				cc.ClientSessionCache = new(oneSlot)
				mallory := osslClient(t, cc, ossl.WithTLS13CipherSuites(tls.TLS_AES_128_GCM_SHA256))
				cc = cc.Clone()
				cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
				alice := osslClient(t, cc, ossl.WithTLS13CipherSuites(tls.TLS_AES_256_GCM_SHA384)) // of another hash

				if _, s := visit(t, alice, server); len(s.PeerCertificates) == 0 {
					t.Fatal("no certificate")
				}
				for i, resumed := range []bool{false, true} {
					_, s := visit(t, mallory, server)
					if s.DidResume != resumed || len(s.PeerCertificates) > 0 || len(s.VerifiedChains) > 0 {
						t.Fatalf("visit %d: DidResume is %v, with %d certificates and %d chains", i, s.DidResume,
							len(s.PeerCertificates), len(s.VerifiedChains))
					}
				}
			})
		}
	}
}
