//go:build cgo || ossl_nocgo

package conns

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestSigner: a crypto.Signer that isn't a key serves both sides of every pairing, however the
// certificate is chosen.
func TestSigner(t *testing.T) {
	old := ossltest.Before3(t)
	for _, kind := range []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256, tlstest.P384, tlstest.P521, tlstest.Ed25519} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, stacks := range [][2]string{{"ossl", "std"}, {"std", "ossl"}, {"ossl", "ossl"}} {
				for _, chosen := range []string{"Certificates", "several", "callback", "GetConfigForClient"} {
					name := fmt.Sprintf("%s/%s/%s-%s/%s", kind, tls.VersionName(version), stacks[0], stacks[1], chosen)
					t.Run(name, func(t *testing.T) {
						if kind == tlstest.Ed25519 && old != "" {
							t.Skipf("%s: Ed25519 signers need 3.0: TestSignerEd25519Refused", old)
						}
						client, server := tlstest.PlainClient(version), tlstest.PlainServer(version)
						server.ClientAuth = tls.RequireAndVerifyClientCert
						clientCert, clientKey := tlstest.Opaque(kind, tlstest.ClientName)
						serverCert, serverKey := tlstest.Opaque(kind, tlstest.ServerName)
						switch chosen {
						case "Certificates":
							client.Certificates = []tls.Certificate{clientCert}
							server.Certificates = []tls.Certificate{serverCert}
						case "several":
							other := tlstest.New(tlstest.Options{Names: []string{tlstest.OtherName}})
							client.Certificates = []tls.Certificate{clientCert, other}
							server.Certificates = []tls.Certificate{serverCert, other}
						case "callback":
							client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &clientCert, nil }
							server.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serverCert, nil }
						case "GetConfigForClient":
							client.Certificates = []tls.Certificate{clientCert}
							inner := server.Clone()
							inner.Certificates = []tls.Certificate{serverCert}
							server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return inner, nil }
						}
						clientErr, serverErr := ossltest.Exchange(stacks[0], stacks[1], client, server)
						if clientErr != nil || serverErr != nil {
							t.Fatalf("client: %v; server: %v", clientErr, serverErr)
						}
						if clientKey.Signed.Load() != 1 || serverKey.Signed.Load() != 1 {
							t.Errorf("signed %d times as client, %d as server", clientKey.Signed.Load(), serverKey.Signed.Load())
						}
					})
				}
			}
		}
	}
}

func TestSignerEd25519Refused(t *testing.T) {
	old := ossltest.Before3(t)
	cert, _ := tlstest.Opaque(tlstest.Ed25519, tlstest.ServerName)
	config := tlstest.PlainServer(tls.VersionTLS13)
	config.Certificates = []tls.Certificate{cert}
	_, err := ossl.NewContext(config)
	if old == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	var e *ossl.ConfigError
	if !errors.As(err, &e) || e.Field != "Certificates" || !strings.Contains(err.Error(), "Ed25519") {
		t.Errorf("%s: %v", old, err)
	}
}

// If a signer fails, the handshake returns its error, and sends the alert that crypto/tls sends.
func TestSignerError(t *testing.T) {
	ossltest.Before3(t)
	cause := errors.New("the token was pulled out")
	for _, kind := range []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, side := range []string{"client", "server"} {
				t.Run(fmt.Sprintf("%s/%s/%s", kind, tls.VersionName(version), side), func(t *testing.T) {
					run := func(stack string) (err, peerErr error) {
						client, server := tlstest.PlainClient(version), tlstest.PlainServer(version)
						server.ClientAuth = tls.RequireAndVerifyClientCert
						clientCert, clientKey := tlstest.Opaque(kind, tlstest.ClientName)
						serverCert, serverKey := tlstest.Opaque(kind, tlstest.ServerName)
						client.Certificates, server.Certificates = []tls.Certificate{clientCert}, []tls.Certificate{serverCert}
						instead := func([]byte, crypto.SignerOpts) ([]byte, error) { return nil, cause }
						if side == "client" {
							clientKey.Instead = instead
							return ossltest.Exchange(stack, "std", client, server)
						}
						serverKey.Instead = instead
						peerErr, err = ossltest.Exchange("std", stack, client, server)
						return err, peerErr
					}
					err, peerErr := run("ossl")
					if !errors.Is(err, cause) {
						t.Errorf("%v doesn't wrap the signer's error", err)
					}
					if wantErr, wantPeerErr := run("std"); err.Error() != wantErr.Error() || peerErr.Error() != wantPeerErr.Error() {
						t.Errorf("got %v, the peer %v\ncrypto/tls has %v, the peer %v", err, peerErr, wantErr, wantPeerErr)
					}
				})
			}
		}
	}
}

// A signer's panic propagates to the caller past libssl, as it does in crypto/tls, and the
// connection can be closed then.
func TestSignerPanic(t *testing.T) {
	ossltest.Before3(t)
	for _, stack := range []string{"std", "ossl"} {
		t.Run(stack, func(t *testing.T) {
			cert, key := tlstest.Opaque(tlstest.P256, tlstest.ServerName)
			key.Instead = func([]byte, crypto.SignerOpts) ([]byte, error) { panic("no token") }
			a, b := tlstest.Buffered()
			config := tlstest.PlainServer(tls.VersionTLS13)
			config.Certificates = []tls.Certificate{cert}
			server := ossltest.NewTLS(stack, true, b, config)
			done := make(chan error)
			go func() { done <- tls.Client(a, tlstest.PlainClient(tls.VersionTLS13)).Handshake() }()
			func() {
				defer func() {
					if p := recover(); p != "no token" {
						t.Errorf("recovered %v", p)
					}
				}()
				err := server.HandshakeContext(context.Background())
				t.Errorf("no panic: %v", err)
			}()
			_ = server.Close()
			if err := <-done; err == nil {
				t.Error("the client's handshake succeeded")
			}
		})
	}
}

// While one connection's signer waits, other connections continue, with the same context and with
// others; Close and cancellation take effect.
func TestSignerSlow(t *testing.T) {
	ossltest.Before3(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			cert, key := tlstest.Opaque(tlstest.P256, tlstest.ServerName)
			waiting, let := make(chan struct{}, 16), make(chan struct{})
			var slow atomic.Bool
			slow.Store(true)
			key.Instead = func(digest []byte, opts crypto.SignerOpts) ([]byte, error) {
				if slow.Load() {
					waiting <- struct{}{}
					<-let
				}
				return key.Key.Sign(rand.Reader, digest, opts)
			}
			config := tlstest.PlainServer(version)
			config.Certificates = []tls.Certificate{cert}
			var wg sync.WaitGroup
			begin := func() (server *ossl.Conn, errs chan error) {
				a, b := tlstest.Buffered()
				wg.Go(func() { _ = tls.Client(a, tlstest.PlainClient(version)).Handshake() })
				server, errs = ossl.Server(b, config), make(chan error, 1)
				wg.Go(func() { errs <- server.Handshake() })
				<-waiting
				return server, errs
			}

			stays, staysErr := begin()
			closes, closesErr := begin()
			slow.Store(false)
			// Others, on the same configuration.
			if clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(version), config); clientErr != nil ||
				serverErr != nil {
				t.Errorf("beside a waiting signer: client: %v; server: %v", clientErr, serverErr)
			}
			closed := make(chan error, 1)
			go func() { closed <- closes.Close() }()
			select {
			case <-closed:
			case <-time.After(tlstest.Patience):
				t.Error("Close waits for the signer")
			}
			select {
			case err := <-staysErr:
				t.Errorf("the handshake did not wait for its signer: %v", err)
			default:
			}
			close(let)
			if err := <-staysErr; err != nil {
				t.Errorf("after a long wait: %v", err)
			}
			if err := <-closesErr; err == nil {
				t.Error("a handshake succeeded after Close")
			}
			_ = stays.Close()
			wg.Wait()
		})
	}
}

// RSA key exchange needs a key that decrypts: such a handshake only fails.
func TestSignerRSAKeyExchange(t *testing.T) {
	ossltest.Before3(t)
	cert, key := tlstest.Opaque(tlstest.RSA2048, tlstest.ServerName)
	client, server := tlstest.PlainClient(tls.VersionTLS12), tlstest.PlainServer(tls.VersionTLS12)
	client.CipherSuites = []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256}
	server.CipherSuites = []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	server.Certificates = []tls.Certificate{cert}
	clientErr, serverErr := ossltest.Exchange("std", "ossl", client, server)
	if clientErr == nil || serverErr == nil || key.Signed.Load() != 0 {
		t.Errorf("client: %v; server: %v; signed %d times", clientErr, serverErr, key.Signed.Load())
	}
	client.CipherSuites = server.CipherSuites
	if clientErr, serverErr := ossltest.Exchange("std", "ossl", client, server); clientErr != nil || serverErr != nil {
		t.Errorf("with another suite: client: %v; server: %v", clientErr, serverErr)
	}
}
