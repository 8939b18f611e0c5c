//go:build cgo || ossl_nocgo

package ossl_test

import (
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// A service is the client of a key management service. Its signatures need a context.
type service struct {
	key   crypto.Signer
	calls chan context.Context // has the context of each call
	hangs bool
}

func newService(cert *tls.Certificate, hangs bool) *service {
	s := &service{cert.PrivateKey.(crypto.Signer), make(chan context.Context, 1), hangs}
	cert.PrivateKey = s
	return s
}

func (s *service) Public() crypto.PublicKey { return s.key.Public() }

func (s *service) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("Sign was called")
}

func (s *service) SignContext(ctx context.Context, rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	s.calls <- ctx
	if s.hangs {
		<-ctx.Done()
		return nil, fmt.Errorf("gave up: %w", context.Cause(ctx))
	}
	return s.key.Sign(rand, digest, opts)
}

var _ ossl.ContextSigner = (*service)(nil)

// overSockets returns a client and a server whose certificate, or the client's if it is the client that signs,
// has a service's key.
func overSockets(t *testing.T, kind tlstest.KeyKind, version uint16, clientSigns, hangs bool) (
	client, server *ossl.Conn, service *service) {
	c := ossltest.NewContexts(t, func(client, server *tls.Config) {
		tlstest.Only(version)(client)
		cert := tlstest.ServerCert(kind)
		if clientSigns {
			cert = tlstest.ClientCert(kind)
			tlstest.AskClient(tls.RequireAndVerifyClientCert)(server)
			defer func() { tlstest.SendCertificate(cert)(client) }()
		} else {
			defer func() { server.Certificates = []tls.Certificate{cert} }()
		}
		service = newService(&cert, hangs)
	})
	a, b := tlstest.Sockets("tcp", "127.0.0.1:0")
	t.Cleanup(func() { a.Close(); b.Close() })
	return c.Client.Client(a, ""), c.Server.Server(b), service
}

type valueKey struct{}

// TestSignerContext: SignContext is called in place of Sign, with the values of the handshake's context, which is
// over after the handshake.
func TestSignerContext(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, kind := range []tlstest.KeyKind{tlstest.P256, tlstest.RSA2048} {
			for _, clientSigns := range []bool{false, true} {
				client, server, service := overSockets(t, kind, version, clientSigns, false)
				ctx := context.WithValue(t.Context(), valueKey{}, "value")
				ended := make(chan error, 1)
				go func() { ended <- server.HandshakeContext(ctx) }()
				if err := client.HandshakeContext(ctx); err != nil {
					t.Error(err)
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
				called := <-service.calls
				if called.Value(valueKey{}) != "value" || called.Err() == nil {
					t.Errorf("the signer's context has the value %v and the error %v", called.Value(valueKey{}), called.Err())
				}
			}
		}
	}
}

// TestSignerContextEnds: a signer that waits for its context stops when the handshake can't succeed any more.
func TestSignerContextEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(cancel func(), signing *ossl.Conn, peer *ossl.Conn)
		want error
	}{
		"context":  {func(cancel func(), _, _ *ossl.Conn) { cancel() }, context.Canceled},
		"Close":    {func(_ func(), signing, _ *ossl.Conn) { signing.Close() }, net.ErrClosed},
		"deadline": {func(_ func(), signing, _ *ossl.Conn) { signing.SetDeadline(time.Now()) }, os.ErrDeadlineExceeded},
		"peer":     {func(_ func(), _, peer *ossl.Conn) { peer.NetConn().Close() }, io.EOF},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, clientSigns := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/client signs %v", name, tls.VersionName(version), clientSigns), func(t *testing.T) {
					t.Parallel()
					signing, peer, service := overSockets(t, tlstest.P256, version, clientSigns, true)
					if !clientSigns {
						signing, peer = peer, signing
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					ended := make(chan error, 1)
					go func() { ended <- signing.HandshakeContext(ctx) }()
					go func() { _ = peer.Handshake() }()
					called := <-service.calls
					c.end(cancel, signing, peer)
					select {
					case err := <-ended:
						if !errors.Is(err, c.want) {
							t.Errorf("%v, want %v", err, c.want)
						}
					case <-time.After(tlstest.Patience):
						t.Fatal("the signer is still waiting")
					}
					if cause := context.Cause(called); !errors.Is(cause, c.want) {
						t.Errorf("the cause is %v, want %v", cause, c.want)
					}
				})
			}
		}
	}
}

// TestSignerContextPanics: a panic of the signer reaches the caller.
func TestSignerContextPanics(t *testing.T) {
	client, server, service := overSockets(t, tlstest.P256, tls.VersionTLS13, false, false)
	close(service.calls)
	go func() { _ = client.Handshake() }()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	t.Error(server.Handshake())
}
