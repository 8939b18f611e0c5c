//go:build cgo || ossl_nocgo

package psk

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

var (
	key256 = &ossl.PSK{Identity: []byte("meter-17"), Key: bytes.Repeat([]byte("k"), 32)}
	key384 = &ossl.PSK{Identity: []byte("meter-18"), Key: bytes.Repeat([]byte("K"), 48), Hash: crypto.SHA384}
)

// offering makes clients offer a key.
func offering(psk *ossl.PSK) ossl.Option {
	return ossl.WithPSK(func(context.Context, string) (*ossl.PSK, error) { return psk, nil })
}

// knowing makes servers know keys.
func knowing(keys ...*ossl.PSK) ossl.Option {
	return ossl.WithPSKLookup(func(_ context.Context, identity []byte) (*ossl.PSK, error) {
		for _, psk := range keys {
			if bytes.Equal(psk.Identity, identity) {
				return &ossl.PSK{Key: psk.Key, Hash: psk.Hash}, nil
			}
		}
		return nil, nil
	})
}

func only(version uint16) *tls.Config { return &tls.Config{MinVersion: version, MaxVersion: version} }

// shake runs a handshake over a pipe.
func shake(t *testing.T, client, server *ossl.Context) (c, s *ossl.Conn, clientErr, serverErr error) {
	t.Helper()
	a, b := tlstest.Buffered()
	c, s = client.Client(a, ""), server.Server(b)
	t.Cleanup(func() { c.Close(); s.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), tlstest.Patience)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := s.HandshakeContext(ctx)
		if err != nil {
			b.Close()
		}
		done <- err
	}()
	if clientErr = c.HandshakeContext(ctx); clientErr == nil { // in TLS 1.3, a server's refusal comes later
		c.SetReadDeadline(time.Now().Add(tlstest.Patience))
	} else {
		a.Close()
	}
	return c, s, clientErr, <-done
}

// connect runs a handshake that must succeed, and checks both states.
func connect(t *testing.T, client, server *ossl.Context, identity []byte) (c, s *ossl.Conn) {
	t.Helper()
	c, s, clientErr, serverErr := shake(t, client, server)
	if clientErr != nil || serverErr != nil {
		t.Fatalf("client: %v; server: %v", clientErr, serverErr)
	}
	for _, conn := range []*ossl.Conn{c, s} {
		state := conn.ConnectionState()
		if got := conn.PSKIdentity(); !bytes.Equal(got, identity) || (got == nil) != (identity == nil) {
			t.Errorf("identity %q", got)
		}
		if !state.HandshakeComplete || state.DidResume {
			t.Errorf("state %+v", state)
		}
		if identity != nil && (state.PeerCertificates != nil || state.VerifiedChains != nil) {
			t.Error("a certificate with a pre-shared key")
		}
	}
	return c, s
}

// echo sends data in both directions.
func echo(t *testing.T, c, s *ossl.Conn) {
	t.Helper()
	buf := make([]byte, 8)
	for _, pair := range [][2]*ossl.Conn{{c, s}, {s, c}, {c, s}} {
		if _, err := pair[0].Write([]byte("message")); err != nil {
			t.Fatal(err)
		}
		if n, err := pair[1].Read(buf); err != nil || string(buf[:n]) != "message" {
			t.Fatalf("%q, %v", buf[:n], err)
		}
	}
}

func TestPSK(t *testing.T) {
	for _, version := range tlstest.Versions {
		for _, psk := range []*ossl.PSK{key256, key384} {
			for _, path := range []ossl.RecordPath{ossl.RecordsAuto, ossl.RecordsLibssl} {
				t.Run(fmt.Sprintf("%s/%s/path=%d", tls.VersionName(version), psk.Identity, path), func(t *testing.T) {
					config := only(version)
					config.NextProtos = []string{"one", "two"}
					server := ossltest.NewPlainContext(t, config, knowing(key256, key384), ossl.WithRecordPath(path))
					config = config.Clone()
					config.NextProtos = []string{"two"}
					config.ServerName = "name.test"
					client := ossltest.NewPlainContext(t, config, offering(psk), ossl.WithRecordPath(path))
					for range 2 { // the second connection could resume
						c, s := connect(t, client, server, psk.Identity)
						for _, conn := range []*ossl.Conn{c, s} {
							state := conn.ConnectionState()
							if state.Version != version || state.NegotiatedProtocol != "two" || state.CurveID == 0 ||
								state.ServerName != "name.test" {
								t.Errorf("state %+v", state)
							}
							sha384 := state.CipherSuite == tls.TLS_AES_256_GCM_SHA384
							if version == tls.VersionTLS13 && sha384 != (psk == key384) {
								t.Errorf("suite %#x", state.CipherSuite)
							}
						}
						if err := c.VerifyHostname("name.test"); err == nil {
							t.Error("VerifyHostname without a certificate")
						}
						for binding, exists := range map[string]bool{"tls-exporter": true, "tls-unique": version == tls.VersionTLS12,
							"tls-server-end-point": false} {
							a, err := c.ChannelBinding(binding)
							b, err2 := s.ChannelBinding(binding)
							if (err == nil) != exists || (err2 == nil) != exists || !bytes.Equal(a, b) {
								t.Errorf("%s: %x, %v and %x, %v", binding, a, err, b, err2)
							}
						}
						echo(t, c, s)
					}
				})
			}
		}
	}
}

// TestPSKDirect: ossl's own record path has the AEAD suites.
func TestPSKDirect(t *testing.T) {
	if ossltest.RecordsByLibssl() {
		t.Skip("OSSL_RECORDS=libssl: this test is for the direct record path")
	}
	for _, version := range tlstest.Versions {
		direct := ossl.WithRecordPath(ossl.RecordsDirect)
		for _, without := range []bool{false, true} {
			opts := []ossl.Option{direct}
			if without {
				opts = append(opts, ossl.WithInsecurePSKWithoutDHE())
			}
			server := ossltest.NewPlainContext(t, only(version), append(opts, knowing(key256))...)
			client := ossltest.NewPlainContext(t, only(version), append(opts, offering(key256))...)
			c, s := connect(t, client, server, key256.Identity)
			echo(t, c, s)
		}
	}
}

// TestPSKHelloRetry: the second ClientHello has the key too.
func TestPSKHelloRetry(t *testing.T) {
	for _, psk := range []*ossl.PSK{key256, key384} {
		config := only(tls.VersionTLS13)
		config.CurvePreferences = []tls.CurveID{tls.CurveP384}
		server := ossltest.NewPlainContext(t, config, knowing(key256, key384))
		config = config.Clone()
		config.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP384}
		client := ossltest.NewPlainContext(t, config, offering(psk))
		c, s := connect(t, client, server, psk.Identity)
		if state := s.ConnectionState(); state.CurveID != tls.CurveP384 {
			t.Errorf("group %v", state.CurveID)
		}
		echo(t, c, s)
	}
}

// TestPSKUnknownAsWrong: a client can't tell an unknown identity from a wrong key, nor from a known key that
// doesn't fit its suites: the server sends the same records.
func TestPSKUnknownAsWrong(t *testing.T) {
	for _, version := range tlstest.Versions {
		var outcomes []string
		wrong := &ossl.PSK{Identity: key256.Identity, Key: key384.Key}
		unknown := &ossl.PSK{Identity: []byte("meter-99"), Key: key384.Key}
		misfit := &ossl.PSK{Identity: key384.Identity, Key: key384.Key}
		for _, psk := range []*ossl.PSK{wrong, unknown, misfit} {
			server := ossltest.NewPlainContext(t, only(version), knowing(key256, &ossl.PSK{Identity: key384.Identity, Key: key256.Key,
				Hash: crypto.SHA384}))
			client := ossltest.NewPlainContext(t, only(version), offering(psk), ossl.WithTLS13CipherSuites(tls.TLS_AES_128_GCM_SHA256))
			var rec tlstest.Recording
			a, b := tlstest.Buffered()
			c, s := client.Client(a, ""), server.Server(rec.Tap(tlstest.ServerRole, b))
			done := make(chan error, 1)
			go func() {
				err := s.Handshake()
				b.Close()
				done <- err
			}()
			clientErr := c.Handshake()
			if clientErr == nil {
				_, clientErr = c.Read(make([]byte, 1))
			}
			serverErr := <-done
			var alert tls.AlertError
			if !errors.As(serverErr, &alert) {
				t.Fatalf("%s: %v", psk.Identity, serverErr)
			}
			if known := psk == wrong || psk == misfit && version == tls.VersionTLS12; errors.Is(serverErr, ossl.ErrNoPSK) == known {
				t.Errorf("%s: %v", psk.Identity, serverErr)
			}
			records, _ := tlstest.SplitRecords(rec.Bytes(tlstest.ServerRole))
			outcomes = append(outcomes, fmt.Sprintf("%v %v %v", alert, tlstest.Shape(records), errors.As(clientErr, &alert)))
			c.Close()
			s.Close()
			if s.PSKIdentity() != nil || c.PSKIdentity() != nil {
				t.Error("an identity without a handshake")
			}
		}
		if outcomes[0] != outcomes[1] || outcomes[0] != outcomes[2] {
			t.Errorf("%s: the outcomes differ:\n%s\n%s\n%s", tls.VersionName(version), outcomes[0], outcomes[1], outcomes[2])
		}
		t.Log(tls.VersionName(version), outcomes[0])
	}
}

// TestPSKRequired: without a key there is no connection, in either role.
func TestPSKRequired(t *testing.T) {
	for _, version := range tlstest.Versions {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			plain := ossltest.NewPlainContext(t, tlstest.ClientConfig(tlstest.Only(version)))
			needs := ossltest.NewPlainContext(t, only(version), knowing(key256))
			if _, _, clientErr, serverErr := shake(t, plain, needs); !errors.Is(serverErr, ossl.ErrNoPSK) || clientErr == nil {
				t.Errorf("a client without a key: %v, %v", clientErr, serverErr)
			}
			config := only(version)
			config.ServerName = tlstest.ServerName
			offers := ossltest.NewPlainContext(t, config, offering(key256))
			certified := ossltest.NewPlainContext(t, tlstest.ServerConfig(tlstest.Only(version)))
			_, _, clientErr, serverErr := shake(t, offers, certified)
			if clientErr == nil || serverErr == nil {
				t.Errorf("a server with a certificate: %v, %v", clientErr, serverErr)
			}
			if version == tls.VersionTLS13 && !errors.Is(clientErr, ossl.ErrNoPSK) {
				t.Errorf("the client's error: %v", clientErr)
			}
			none := ossltest.NewPlainContext(t, config, offering(nil))
			if _, _, clientErr, _ := shake(t, none, needs); !errors.Is(clientErr, ossl.ErrNoPSK) {
				t.Errorf("a client that has no key for the name: %v", clientErr)
			}
		})
	}
}

// TestPSKOrCertificate connects all kinds of clients to a server that has a certificate as well.
func TestPSKOrCertificate(t *testing.T) {
	for _, version := range tlstest.Versions {
		for _, auth := range []tls.ClientAuthType{tls.NoClientCert, tls.RequireAndVerifyClientCert} {
			t.Run(fmt.Sprintf("%s/%v", tls.VersionName(version), auth), func(t *testing.T) {
				sc := tlstest.ServerConfig(tlstest.Only(version))
				sc.SessionTicketsDisabled = false
				if auth != tls.NoClientCert {
					tlstest.AskClient(auth)(sc)
				}
				both := ossl.WithPSKOrCertificate()
				server := ossltest.NewPlainContext(t, sc, knowing(key256, key384), both)
				cc := tlstest.ClientConfig(tlstest.Only(version))
				cc.ClientSessionCache = tls.NewLRUClientSessionCache(8)
				if auth != tls.NoClientCert {
					tlstest.Certificates(tlstest.ClientCert(tlstest.P256))(cc)
				}
				visit := func(identity []byte, opts ...ossl.Option) tls.ConnectionState {
					t.Helper()
					client := ossltest.NewPlainContext(t, cc, opts...)
					c, s, clientErr, serverErr := shake(t, client, server)
					if clientErr != nil || serverErr != nil {
						t.Fatal(clientErr, serverErr)
					}
					echo(t, c, s)
					if !bytes.Equal(c.PSKIdentity(), identity) || !bytes.Equal(s.PSKIdentity(), identity) {
						t.Errorf("identities %q, %q, not %q", c.PSKIdentity(), s.PSKIdentity(), identity)
					}
					state := s.ConnectionState()
					if got := len(c.ConnectionState().VerifiedChains) > 0; got == (identity != nil) {
						t.Errorf("the server's certificate was verified: %v", got)
					}
					if auth != tls.NoClientCert && (len(state.VerifiedChains) > 0) == (identity != nil) {
						t.Error("the client's certificate and its key")
					}
					return state
				}
				visit(nil)
				if !visit(nil).DidResume {
					t.Error("a client with a certificate doesn't resume")
				}
				// Its sessions are in the cache, and must not be used in place of the key, nor after it.
				for _, psk := range []*ossl.PSK{key256, key384} {
					if visit(psk.Identity, offering(psk), both).DidResume {
						t.Error("resumed")
					}
				}
				visit(nil, offering(nil), both)

				// A wrong key, and in TLS 1.3 a key without a suite, never becomes a certificate.
				bad := &ossl.PSK{Identity: key256.Identity, Key: key384.Key}
				if _, _, clientErr, serverErr := shake(t, ossltest.NewPlainContext(t, cc, offering(bad), both), server); serverErr == nil {
					t.Errorf("a wrong key: %v, %v", clientErr, serverErr)
				}
				if version == tls.VersionTLS13 {
					as256 := &ossl.PSK{Identity: key384.Identity, Key: key384.Key}
					client := ossltest.NewPlainContext(t, cc, offering(as256), both)
					if _, _, _, serverErr := shake(t, client, server); !errors.Is(serverErr, ossl.ErrNoPSK) {
						t.Errorf("another hash: %v", serverErr)
					}
					unknown := &ossl.PSK{Identity: []byte("unknown"), Key: key384.Key}
					visit(nil, offering(unknown), both)
				}
			})
		}
	}
}

// TestPSKWithoutCertificate: a client with a key needs no certificate of a server that chooses these by name.
func TestPSKWithoutCertificate(t *testing.T) {
	failed := errors.New("no certificate for this name")
	for _, version := range tlstest.Versions {
		for _, chosen := range []bool{false, true} {
			sc := only(version)
			sc.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, failed }
			if chosen {
				other := sc.Clone()
				sc.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return other, nil }
			}
			server := ossltest.NewPlainContext(t, sc, knowing(key256), ossl.WithPSKOrCertificate())
			connect(t, ossltest.NewPlainContext(t, only(version), offering(key256)), server, key256.Identity)
			plain := ossltest.NewPlainContext(t, tlstest.ClientConfig(tlstest.Only(version)))
			_, _, clientErr, serverErr := shake(t, plain, server)
			var alert tls.AlertError
			if !errors.Is(serverErr, failed) || !errors.As(clientErr, &alert) || alert != 80 {
				t.Errorf("without a key: %v, %v", clientErr, serverErr)
			}
		}
	}
}

// TestPSKNoSessions: a server with a cache and tickets makes no session of a connection with a key.
func TestPSKNoSessions(t *testing.T) {
	for _, version := range tlstest.Versions {
		cache := &countingCache{Cache: session.NewCache(16)}
		sc := tlstest.ServerConfig(tlstest.Only(version))
		sc.SessionTicketsDisabled = false
		server := ossltest.NewPlainContext(t, sc, knowing(key256), ossl.WithPSKOrCertificate(), ossl.WithSessionCache(cache))
		cc := tlstest.ClientConfig(tlstest.Only(version))
		sessions := &countingSessions{}
		cc.ClientSessionCache = sessions
		client := ossltest.NewPlainContext(t, cc, offering(key256), ossl.WithPSKOrCertificate())
		for range 2 {
			c, s := connect(t, client, server, key256.Identity)
			echo(t, c, s)
		}
		if n := cache.calls.Load(); n > 0 {
			t.Errorf("%s: %d calls of the server's cache", tls.VersionName(version), n)
		}
		if n := sessions.calls.Load(); n > 0 {
			t.Errorf("%s: %d calls of the client's cache", tls.VersionName(version), n)
		}
	}
}

type countingCache struct {
	session.Cache
	calls atomic.Int32
}

func (c *countingCache) Get(ctx context.Context, id []byte, take bool) ([]byte, error) {
	c.calls.Add(1)
	return c.Cache.Get(ctx, id, take)
}

func (c *countingCache) Put(ctx context.Context, id, session []byte, expires time.Time) error {
	c.calls.Add(1)
	return c.Cache.Put(ctx, id, session, expires)
}

type countingSessions struct{ calls atomic.Int32 }

func (c *countingSessions) Get(string) (*tls.ClientSessionState, bool) {
	c.calls.Add(1)
	return nil, false
}
func (c *countingSessions) Put(string, *tls.ClientSessionState) { c.calls.Add(1) }

// TestPSKVerifyConnection: VerifyConnection and WithVerification are asked once on each side, know the identity,
// and can refuse.
func TestPSKVerifyConnection(t *testing.T) {
	refusal := errors.New("refused")
	for _, version := range tlstest.Versions {
		for refuses := range 3 { // nobody, the client, the server
			for _, path := range []ossl.RecordPath{ossl.RecordsAuto, ossl.RecordsLibssl} {
				t.Run(fmt.Sprintf("%s/%d/path=%d", tls.VersionName(version), refuses, path), func(t *testing.T) {
					var calls [2]atomic.Int32
					verify := func(side int) func(tls.ConnectionState) error {
						return func(state tls.ConnectionState) error {
							calls[side].Add(1)
							if state.DidResume || state.Version != version || state.PeerCertificates != nil || state.CipherSuite == 0 {
								t.Errorf("state %+v", state)
							}
							if refuses == side+1 {
								return refusal
							}
							return nil
						}
					}
					cc, sc := only(version), only(version)
					cc.VerifyConnection, sc.VerifyConnection = verify(0), verify(1)
					client := ossltest.NewPlainContext(t, cc, offering(key256), ossl.WithRecordPath(path))
					server := ossltest.NewPlainContext(t, sc, knowing(key256), ossl.WithRecordPath(path))
					a, b := tlstest.Buffered()
					var s, c *ossl.Conn
					c = client.Client(a, "", ossl.WithVerification(func(tls.ConnectionState) error {
						if !bytes.Equal(c.PSKIdentity(), key256.Identity) {
							t.Errorf("the client's identity is %q", c.PSKIdentity())
						}
						return nil
					}))
					s = server.Server(b, ossl.WithVerification(func(tls.ConnectionState) error {
						if !bytes.Equal(s.PSKIdentity(), key256.Identity) {
							t.Errorf("the server's identity is %q", s.PSKIdentity())
						}
						return nil
					}))
					defer c.Close()
					defer s.Close()
					done := make(chan error, 1)
					go func() {
						err := s.Handshake()
						if err == nil {
							_, err = s.Read(make([]byte, 8))
						}
						b.Close()
						done <- err
					}()
					clientErr := c.Handshake()
					if clientErr == nil {
						c.Write([]byte("message"))
					} else {
						a.Close()
					}
					serverErr := <-done
					if got := errors.Is(clientErr, refusal); got != (refuses == 1) {
						t.Errorf("client: %v", clientErr)
					}
					if got := errors.Is(serverErr, refusal); got != (refuses == 2) {
						t.Errorf("server: %v", serverErr)
					}
					var alert tls.AlertError
					if refuses == 1 && (!errors.As(serverErr, &alert) || alert != 42) {
						t.Errorf("the server got %v", serverErr)
					}
					if n := calls[0].Load(); n != 1 && refuses != 2 {
						t.Errorf("the client's VerifyConnection was called %d times", n)
					}
					if n := calls[1].Load(); n != 1 && refuses != 1 {
						t.Errorf("the server's VerifyConnection was called %d times", n)
					}
				})
			}
		}
	}
}

// TestPSKWithoutDHE: a key exchange without (EC)DHE needs the option on both sides, and is not preferred.
func TestPSKWithoutDHE(t *testing.T) {
	without := ossl.WithInsecurePSKWithoutDHE()
	for _, version := range tlstest.Versions {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			cc, sc := only(version), only(version)
			if version == tls.VersionTLS12 { // libssl doesn't look at the groups before it chooses ECDHE_PSK
				connect(t, ossltest.NewPlainContext(t, cc, offering(key256), without), ossltest.NewPlainContext(t, sc, knowing(key256)),
					key256.Identity)
				return
			}
			// They share no group, so only the key is left.
			cc.CurvePreferences, sc.CurvePreferences = []tls.CurveID{tls.X25519}, []tls.CurveID{tls.CurveP256}
			client := ossltest.NewPlainContext(t, cc, offering(key256), without)
			server := ossltest.NewPlainContext(t, sc, knowing(key256), without)
			c, s := connect(t, client, server, key256.Identity)
			if a, b := c.ConnectionState(), s.ConnectionState(); a.CurveID != 0 || b.CurveID != 0 {
				t.Errorf("groups %v and %v without a key exchange", a.CurveID, b.CurveID)
			}
			echo(t, c, s)
			strict := ossltest.NewPlainContext(t, sc, knowing(key256))
			if _, _, clientErr, serverErr := shake(t, client, strict); clientErr == nil || serverErr == nil {
				t.Errorf("a server without the option: %v, %v", clientErr, serverErr)
			}
			strict = ossltest.NewPlainContext(t, cc, offering(key256))
			if _, _, clientErr, serverErr := shake(t, strict, server); clientErr == nil || serverErr == nil {
				t.Errorf("a client without the option: %v, %v", clientErr, serverErr)
			}
			sc = sc.Clone()
			sc.CurvePreferences = []tls.CurveID{tls.X25519}
			c, _ = connect(t, client, ossltest.NewPlainContext(t, sc, knowing(key256), without), key256.Identity)
			if group := c.ConnectionState().CurveID; group != tls.X25519 {
				t.Errorf("group %v", group)
			}
		})
	}
}

// TestPSKShardsAndConfigurations: keys work in every shard, and with configurations that GetConfigForClient
// returns.
func TestPSKShardsAndConfigurations(t *testing.T) {
	for _, version := range tlstest.Versions {
		sc := only(version)
		chosen := only(version)
		chosen.NextProtos = []string{"chosen"}
		sc.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
		server := ossltest.NewPlainContext(t, sc, knowing(key256), ossl.WithShards(4))
		cc := only(version)
		cc.NextProtos = []string{"chosen"}
		client := ossltest.NewPlainContext(t, cc, offering(key256), ossl.WithShards(4))
		for range 8 {
			c, s := connect(t, client, server, key256.Identity)
			if p := c.ConnectionState().NegotiatedProtocol; p != "chosen" {
				t.Errorf("protocol %q", p)
			}
			echo(t, c, s)
		}
		chosen = tlstest.ServerConfig(tlstest.Only(version))
		_, _, _, err := shake(t, client, server)
		var e *ossl.ConfigError
		if !errors.As(err, &e) || e.Field != "Certificates" {
			t.Errorf("a configuration with a certificate: %v", err)
		}
	}
}

// TestPSKCallbackErrors: errors of the callbacks, and keys that can't be used, end the handshake.
func TestPSKCallbackErrors(t *testing.T) {
	failed := errors.New("failed")
	for _, version := range tlstest.Versions {
		good := ossltest.NewPlainContext(t, only(version), knowing(key256))
		goodClient := ossltest.NewPlainContext(t, only(version), offering(key256))
		client := ossltest.NewPlainContext(t, only(version),
			ossl.WithPSK(func(context.Context, string) (*ossl.PSK, error) { return key256, failed }))
		if _, _, err, _ := shake(t, client, good); !errors.Is(err, failed) {
			t.Errorf("client: %v", err)
		}
		server := ossltest.NewPlainContext(t, only(version),
			ossl.WithPSKLookup(func(context.Context, []byte) (*ossl.PSK, error) { return key256, failed }))
		_, _, clientErr, err := shake(t, goodClient, server)
		if !errors.Is(err, failed) {
			t.Errorf("server: %v", err)
		}
		var alert tls.AlertError
		if !errors.As(clientErr, &alert) || alert != 80 {
			t.Errorf("the client got %v", clientErr)
		}
		for name, psk := range map[string]*ossl.PSK{
			"no key":   {Identity: key256.Identity},
			"short":    {Identity: key256.Identity, Key: key256.Key[:15]},
			"long":     {Identity: key256.Identity, Key: bytes.Repeat([]byte("k"), 257)},
			"zeros":    {Identity: key256.Identity, Key: make([]byte, 32)},
			"hash":     {Identity: key256.Identity, Key: key256.Key, Hash: crypto.SHA512},
			"identity": {Key: key256.Key},
		} {
			var e *ossl.ConfigError
			client := ossltest.NewPlainContext(t, only(version), offering(psk))
			if _, _, err, _ := shake(t, client, good); !errors.As(err, &e) || e.Field != "WithPSK" {
				t.Errorf("client, %s: %v", name, err)
			}
			if name == "identity" {
				continue
			}
			server := ossltest.NewPlainContext(t, only(version), knowing(psk))
			if _, _, _, err := shake(t, goodClient, server); !errors.As(err, &e) || e.Field != "WithPSKLookup" {
				t.Errorf("server, %s: %v", name, err)
			}
		}
		odd := &ossl.PSK{Identity: []byte("zero\x00byte"), Key: key256.Key}
		client = ossltest.NewPlainContext(t, only(version), offering(odd))
		server = ossltest.NewPlainContext(t, only(version), knowing(odd))
		if _, _, err, _ := shake(t, client, server); (err == nil) != (version == tls.VersionTLS13) {
			t.Errorf("an identity with a zero byte in %s: %v", tls.VersionName(version), err)
		}
	}
}

// TestPSKPanic: a panic in a callback goes through, and the connection is unusable.
func TestPSKPanic(t *testing.T) {
	for _, version := range tlstest.Versions {
		server := ossltest.NewPlainContext(t, only(version),
			ossl.WithPSKLookup(func(context.Context, []byte) (*ossl.PSK, error) { panic("mine") }))
		client := ossltest.NewPlainContext(t, only(version), offering(key256))
		a, b := tlstest.Buffered()
		c, s := client.Client(a, ""), server.Server(b)
		go func() {
			c.Handshake()
			c.Close()
		}()
		func() {
			defer func() {
				if recover() != "mine" {
					t.Error("no panic")
				}
			}()
			s.Handshake()
		}()
		if err := s.Handshake(); err == nil {
			t.Error("a handshake after a panic")
		}
		s.Close()
	}
}

// TestPSKLookupWaits: a lookup may take its time, and is over when the handshake's context is.
func TestPSKLookupWaits(t *testing.T) {
	for _, version := range tlstest.Versions {
		asked := make(chan struct{}, 1)
		server := ossltest.NewPlainContext(t, only(version), ossl.WithPSKLookup(func(ctx context.Context, _ []byte) (*ossl.PSK, error) {
			asked <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err() // with a key, the handshake could be done before it notices the end of its context
		}))
		client := ossltest.NewPlainContext(t, only(version), offering(key256))
		a, b := tlstest.Buffered()
		c, s := client.Client(a, ""), server.Server(b)
		clientDone := make(chan error, 1)
		go func() {
			err := c.Handshake()
			if err == nil {
				_, err = c.Read(make([]byte, 1))
			}
			clientDone <- err
		}()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.HandshakeContext(ctx) }()
		<-asked
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: %v", tls.VersionName(version), err)
		}
		if err := <-clientDone; err == nil {
			t.Error("the client succeeded")
		}
		c.Close()
		s.Close()
	}
}

// TestPSKOptions: contradictions are refused by name.
func TestPSKOptions(t *testing.T) {
	cert := tlstest.ServerCert(tlstest.P256)
	find, get := knowing(key256), offering(key256)
	lists, err := ossl.LoadCRLs(func() (map[string][]byte, error) { return map[string][]byte{"a": tlstest.CA().List(1, nil)}, nil })
	if err != nil {
		t.Fatal(err)
	}
	for field, c := range map[string]struct {
		config *tls.Config
		opts   []ossl.Option
	}{
		"WithPSK":                   {opts: []ossl.Option{ossl.WithPSK(nil)}},
		"WithPSKLookup":             {opts: []ossl.Option{ossl.WithPSKLookup(nil)}},
		"WithPSKOrCertificate":      {opts: []ossl.Option{ossl.WithPSKOrCertificate()}},
		"WithInsecurePSKWithoutDHE": {opts: []ossl.Option{ossl.WithInsecurePSKWithoutDHE()}},
		"Certificates":              {&tls.Config{Certificates: []tls.Certificate{cert}}, []ossl.Option{find}},
		"GetCertificate":            {&tls.Config{GetCertificate: noCertificate}, []ossl.Option{find}},
		"ClientAuth":                {&tls.Config{ClientAuth: tls.RequestClientCert}, []ossl.Option{find}},
		"ClientCAs":                 {&tls.Config{ClientCAs: tlstest.CA().Pool()}, []ossl.Option{find}},
		"CipherSuites":              {&tls.Config{CipherSuites: []uint16{0xc02f}}, []ossl.Option{get}},
		"RootCAs":                   {&tls.Config{RootCAs: tlstest.CA().Pool()}, []ossl.Option{get}},
		"InsecureSkipVerify":        {&tls.Config{InsecureSkipVerify: true}, []ossl.Option{get}},
		"ClientSessionCache":        {&tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(1)}, []ossl.Option{get}},
		"WithSessionCache":          {opts: []ossl.Option{find, ossl.WithSessionCache(session.NewCache(1))}},
		"WithCRLs":                  {opts: []ossl.Option{get, ossl.WithCRLs(lists), ossl.WithCRLHardFail()}},
	} {
		_, err := ossl.NewContext(c.config, c.opts...)
		var e *ossl.ConfigError
		if !errors.As(err, &e) || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func noCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }

// TestPSKLookups: a client's identities are looked up in its order, each once, and no more than the first five, even
// if the first one is known.
func TestPSKLookups(t *testing.T) {
	for _, known := range []string{"", "a", "c"} {
		var asked []string
		server := ossltest.NewPlainContext(t, only(tls.VersionTLS13), ossl.WithPSKLookup(
			func(_ context.Context, identity []byte) (*ossl.PSK, error) {
				asked = append(asked, string(identity))
				if string(identity) == known {
					return &ossl.PSK{Key: key256.Key}, nil
				}
				clear(identity) // it is the callback's own
				return nil, nil
			}))
		var all []offered
		for _, identity := range []string{"a", "b", "c", "b", "d", "e", "f"} {
			all = append(all, offered{identity, 32})
		}
		a, b := tlstest.Buffered()
		if _, err := a.Write(helloWithKeys(t, all)); err != nil {
			t.Fatal(err)
		}
		s := server.Server(b)
		var alert tls.AlertError
		if err := s.Handshake(); errors.Is(err, ossl.ErrNoPSK) != (known == "") || !errors.As(err, &alert) ||
			alert != 47 && alert != 51 { // libssl's for a wrong binder: newer ones send decrypt_error
			t.Errorf("the handshake: %v", err)
		}
		s.Close()
		a.Close()
		if !slices.Equal(asked, []string{"a", "b", "c", "d"}) {
			t.Errorf("asked for %q", asked)
		}
	}
}

// TestPSKBinders: a server that demands a key answers a known identity, whose binder is wrong, as an unknown one,
// however long the binders are and wherever the identity stands.
func TestPSKBinders(t *testing.T) {
	const x, y = "meter-17", "other"
	for name, offer := range map[string][]offered{
		"SHA-256":                 {{x, 32}},
		"SHA-384":                 {{x, 48}},
		"no hash":                 {{x, 40}},
		"second":                  {{y, 32}, {x, 48}},
		"second, the first odd":   {{y, 40}, {x, 32}},
		"second, the first empty": {{"", 32}, {x, 32}},
		"twice":                   {{x, 48}, {x, 32}},
		"twice, the other way":    {{x, 32}, {x, 48}},
		"twice, the first odd":    {{x, 40}, {x, 32}},
		"second, no binder":       {{y, 32}, {x, -1}},
		"sixth":                   {{y, 32}, {y, 32}, {y, 32}, {y, 32}, {y, 32}, {x, 32}},
	} {
		for _, group := range []tls.CurveID{tls.X25519, tls.CurveP384} { // with the other one, there would be a HelloRetryRequest
			answers := map[string]string{}
			for who, key := range map[string]*ossl.PSK{
				"unknown": {Identity: []byte("nobody"), Key: key256.Key},
				"SHA-256": {Identity: []byte(x), Key: key256.Key},
				"SHA-384": {Identity: []byte(x), Key: key256.Key, Hash: crypto.SHA384},
			} {
				config := only(tls.VersionTLS13)
				config.CurvePreferences = []tls.CurveID{group}
				var rec tlstest.Recording
				a, b := tlstest.Buffered()
				s := ossltest.NewPlainContext(t, config, knowing(key)).Server(rec.Tap(tlstest.ServerRole, b))
				if _, err := a.Write(helloWithKeys(t, offer)); err != nil {
					t.Fatal(err)
				}
				if err := s.Handshake(); err == nil {
					t.Errorf("%s: a wrong binder is accepted", name)
				}
				s.Close()
				a.Close()
				answers[who] = fmt.Sprintf("%x", rec.Bytes(tlstest.ServerRole))
			}
			if answers["unknown"] == "" || answers["SHA-256"] != answers["unknown"] || answers["SHA-384"] != answers["unknown"] {
				t.Errorf("%s, %v: the answers differ: %v", name, group, answers)
			}
		}
	}
}

// An offered identity has a binder of that length, whose bytes are zeros, or none if the length is below 0.
type offered struct {
	identity string
	binder   int
}

// helloWithKeys returns the record of crypto/tls's ClientHello, with these keys.
func helloWithKeys(t *testing.T, keys []offered) []byte {
	a, b := net.Pipe()
	client := tls.Client(a, &tls.Config{ServerName: "name.test", MinVersion: tls.VersionTLS13,
		CurvePreferences:   []tls.CurveID{tls.X25519, tls.CurveP384},
		ClientSessionCache: tls.NewLRUClientSessionCache(1)}) // for psk_key_exchange_modes
	go client.Handshake()
	hello := make([]byte, 4096)
	n, err := b.Read(hello)
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	hello = hello[:n:n]
	var list, binders []byte
	for _, key := range keys {
		list = append(binary.BigEndian.AppendUint16(list, uint16(len(key.identity))), key.identity...)
		list = append(list, 0, 0, 0, 0)
		if key.binder >= 0 {
			binders = append(append(binders, byte(key.binder)), make([]byte, key.binder)...)
		}
	}
	body := append(binary.BigEndian.AppendUint16(nil, uint16(len(list))), list...)
	body = append(binary.BigEndian.AppendUint16(body, uint16(len(binders))), binders...)
	hello = append(binary.BigEndian.AppendUint16(append(hello, 0, 41), uint16(len(body))), body...)
	const record, message = 3, 5 + 2 // the lengths' places
	for _, place := range []int{record, message, extensionsAt(hello)} {
		binary.BigEndian.PutUint16(hello[place:], uint16(int(binary.BigEndian.Uint16(hello[place:]))+len(hello)-n))
	}
	return hello
}

// extensionsAt returns the place of the extensions' length in the record of a ClientHello.
func extensionsAt(hello []byte) int {
	at := 5 + 4 + 2 + 32
	at += 1 + int(hello[at])
	at += 2 + int(binary.BigEndian.Uint16(hello[at:]))
	return at + 1 + int(hello[at])
}
