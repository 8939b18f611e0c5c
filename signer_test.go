//go:build cgo

package ossl_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// opaqueKey is a key of which only crypto.Signer is to be seen, such as one in an HSM. instead, if set, signs in its place.
type opaqueKey struct {
	key     crypto.Signer
	signed  atomic.Int32
	instead func(digest []byte, opts crypto.SignerOpts) ([]byte, error)
}

func (k *opaqueKey) Public() crypto.PublicKey { return k.key.Public() }

func (k *opaqueKey) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	k.signed.Add(1)
	if k.instead != nil {
		return k.instead(digest, opts)
	}
	return k.key.Sign(rand, digest, opts)
}

// opaque returns a certificate for the name whose key is opaque.
func opaque(kind tlstest.KeyKind, name string) (tls.Certificate, *opaqueKey) {
	cert := tlstest.New(tlstest.Options{Kind: kind, Names: []string{name}})
	key := &opaqueKey{key: cert.PrivateKey.(crypto.Signer)}
	cert.PrivateKey = key
	return cert, key
}

// before3 returns the library's version if it is 1.1.1, which has no providers, else "".
func before3(t *testing.T) string {
	t.Helper()
	lib, err := ossl.Library()
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(lib.Version, "1.") {
		return lib.Version
	}
	return ""
}

// tlsConn is what both implementations' connections have in common here.
type tlsConn interface {
	net.Conn
	HandshakeContext(context.Context) error
}

func newTLS(stack string, server bool, conn net.Conn, config *tls.Config) tlsConn {
	switch {
	case stack == "std" && server:
		return tls.Server(conn, config)
	case stack == "std":
		return tls.Client(conn, config)
	case server:
		return ossl.Server(conn, config)
	}
	return ossl.Client(conn, config)
}

// pair runs a handshake over a buffered pipe and a byte each way, and returns both sides' errors.
func pair(clientStack, serverStack string, client, server *tls.Config) (clientErr, serverErr error) {
	a, b := tlstest.Buffered()
	limit := time.Now().Add(tlstest.Patience)
	_ = a.SetDeadline(limit)
	_ = b.SetDeadline(limit)
	use := func(c tlsConn) error {
		defer c.Close()
		if err := c.HandshakeContext(context.Background()); err != nil {
			return err
		}
		if _, err := c.Write([]byte{1}); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 1))
		return err
	}
	done := make(chan error)
	go func() { done <- use(newTLS(serverStack, true, b, server)) }()
	clientErr = use(newTLS(clientStack, false, a, client))
	return clientErr, <-done
}

func clientConfig(version uint16) *tls.Config {
	return &tls.Config{MinVersion: version, MaxVersion: version, RootCAs: tlstest.CA().Pool(), ServerName: tlstest.ServerName,
		SessionTicketsDisabled: true}
}

func serverConfig(version uint16) *tls.Config {
	return &tls.Config{MinVersion: version, MaxVersion: version, ClientCAs: tlstest.CA().Pool(), SessionTicketsDisabled: true}
}

// A crypto.Signer that is no key serves both sides of every pairing, however the certificate is chosen.
func TestSigner(t *testing.T) {
	old := before3(t)
	for _, kind := range []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256, tlstest.P384, tlstest.P521, tlstest.Ed25519} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, stacks := range [][2]string{{"ossl", "std"}, {"std", "ossl"}, {"ossl", "ossl"}} {
				for _, chosen := range []string{"Certificates", "several", "callback", "GetConfigForClient"} {
					name := fmt.Sprintf("%s/%s/%s-%s/%s", kind, tls.VersionName(version), stacks[0], stacks[1], chosen)
					t.Run(name, func(t *testing.T) {
						if kind == tlstest.Ed25519 && old != "" {
							t.Skipf("%s: Ed25519 signers need 3.0: TestSignerEd25519Refused", old)
						}
						client, server := clientConfig(version), serverConfig(version)
						server.ClientAuth = tls.RequireAndVerifyClientCert
						clientCert, clientKey := opaque(kind, tlstest.ClientName)
						serverCert, serverKey := opaque(kind, tlstest.ServerName)
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
						clientErr, serverErr := pair(stacks[0], stacks[1], client, server)
						if clientErr != nil || serverErr != nil {
							t.Fatalf("client: %v; server: %v", clientErr, serverErr)
						}
						if clientKey.signed.Load() != 1 || serverKey.signed.Load() != 1 {
							t.Errorf("signed %d times as client, %d as server", clientKey.signed.Load(), serverKey.signed.Load())
						}
					})
				}
			}
		}
	}
}

func TestSignerEd25519Refused(t *testing.T) {
	old := before3(t)
	cert, _ := opaque(tlstest.Ed25519, tlstest.ServerName)
	config := serverConfig(tls.VersionTLS13)
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

// A signer's error ends the handshake with it, and with the alert that crypto/tls sends.
func TestSignerError(t *testing.T) {
	before3(t)
	cause := errors.New("the token was pulled out")
	for _, kind := range []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, side := range []string{"client", "server"} {
				t.Run(fmt.Sprintf("%s/%s/%s", kind, tls.VersionName(version), side), func(t *testing.T) {
					run := func(stack string) (err, peerErr error) {
						client, server := clientConfig(version), serverConfig(version)
						server.ClientAuth = tls.RequireAndVerifyClientCert
						clientCert, clientKey := opaque(kind, tlstest.ClientName)
						serverCert, serverKey := opaque(kind, tlstest.ServerName)
						client.Certificates, server.Certificates = []tls.Certificate{clientCert}, []tls.Certificate{serverCert}
						instead := func([]byte, crypto.SignerOpts) ([]byte, error) { return nil, cause }
						if side == "client" {
							clientKey.instead = instead
							return pair(stack, "std", client, server)
						}
						serverKey.instead = instead
						peerErr, err = pair("std", stack, client, server)
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

// A signer's panic goes on above libssl, as it does in crypto/tls, and the connection can be closed then.
func TestSignerPanic(t *testing.T) {
	before3(t)
	for _, stack := range []string{"std", "ossl"} {
		t.Run(stack, func(t *testing.T) {
			cert, key := opaque(tlstest.P256, tlstest.ServerName)
			key.instead = func([]byte, crypto.SignerOpts) ([]byte, error) { panic("no token") }
			a, b := tlstest.Buffered()
			config := serverConfig(tls.VersionTLS13)
			config.Certificates = []tls.Certificate{cert}
			server := newTLS(stack, true, b, config)
			done := make(chan error)
			go func() { done <- tls.Client(a, clientConfig(tls.VersionTLS13)).Handshake() }()
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

// While one connection's signer waits, others go on, with the same context and with others; Close and cancellation are heard.
func TestSignerSlow(t *testing.T) {
	before3(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			cert, key := opaque(tlstest.P256, tlstest.ServerName)
			waiting, let := make(chan struct{}, 16), make(chan struct{})
			var slow atomic.Bool
			slow.Store(true)
			key.instead = func(digest []byte, opts crypto.SignerOpts) ([]byte, error) {
				if slow.Load() {
					waiting <- struct{}{}
					<-let
				}
				return key.key.Sign(rand.Reader, digest, opts)
			}
			config := serverConfig(version)
			config.Certificates = []tls.Certificate{cert}
			var wg sync.WaitGroup
			begin := func() (server *ossl.Conn, errs chan error) {
				a, b := tlstest.Buffered()
				wg.Go(func() { _ = tls.Client(a, clientConfig(version)).Handshake() })
				server, errs = ossl.Server(b, config), make(chan error, 1)
				wg.Go(func() { errs <- server.Handshake() })
				<-waiting
				return server, errs
			}

			stays, staysErr := begin()
			closes, closesErr := begin()
			slow.Store(false)
			// Others, on the same configuration.
			if clientErr, serverErr := pair("std", "ossl", clientConfig(version), config); clientErr != nil || serverErr != nil {
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

// Key exchange by RSA needs a key that decrypts: such a handshake fails, and nothing worse.
func TestSignerRSAKeyExchange(t *testing.T) {
	before3(t)
	cert, key := opaque(tlstest.RSA2048, tlstest.ServerName)
	client, server := clientConfig(tls.VersionTLS12), serverConfig(tls.VersionTLS12)
	client.CipherSuites = []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256}
	server.CipherSuites = []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	server.Certificates = []tls.Certificate{cert}
	clientErr, serverErr := pair("std", "ossl", client, server)
	if clientErr == nil || serverErr == nil || key.signed.Load() != 0 {
		t.Errorf("client: %v; server: %v; signed %d times", clientErr, serverErr, key.signed.Load())
	}
	client.CipherSuites = server.CipherSuites
	if clientErr, serverErr := pair("std", "ossl", client, server); clientErr != nil || serverErr != nil {
		t.Errorf("with another suite: client: %v; server: %v", clientErr, serverErr)
	}
}
