//go:build cgo || ossl_nocgo

package chain_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/chain"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// shakeContexts runs a handshake of two Contexts, and returns the error of each side.
func shakeContexts(client, server *ossl.Context) (clientErr, serverErr error) {
	type end = interface{ Handshake() error }
	return tlstest.TryShake(
		func(conn net.Conn) end { return client.Client(conn, tlstest.ServerName) },
		func(conn net.Conn) end { return server.Server(conn) })
}

// TestChainCacheInHandshakes: a hit gives the same state as a verification, and another name or
// time is verified.
func TestChainCacheInHandshakes(t *testing.T) {
	now := time.Now()
	clock := now
	config := tlstest.ClientConfig(func(c *tls.Config) { c.Time = func() time.Time { return clock } })
	client, server := ossltest.NewPlainContext(t, config), ossltest.NewPlainContext(t, tlstest.ServerConfig())
	shake := func(name string) (tls.ConnectionState, error) {
		a, b := tlstest.Buffered()
		defer a.Close()
		defer b.Close()
		go server.Server(b).Handshake()
		c := client.Client(a, name)
		err := c.Handshake()
		return c.ConnectionState(), err
	}
	first, err := shake(tlstest.ServerName)
	if err != nil {
		t.Fatal(err)
	}
	second, err := shake(tlstest.ServerName)
	if err != nil {
		t.Fatal(err)
	}
	if first.PeerCertificates[0] != second.PeerCertificates[0] {
		t.Error("the second handshake did not hit")
	}
	if a, b := tlstest.DescribeState(first), tlstest.DescribeState(second); a != b {
		t.Errorf("states differ:\n%s\n%s", a, b)
	}
	if _, err := shake(tlstest.OtherName); err == nil {
		t.Error("accepted for another name")
	}
	clock = now.Add(200 * 365 * 24 * time.Hour)
	if _, err := shake(tlstest.ServerName); err == nil {
		t.Error("accepted after the certificate's end")
	}
}

// TestChainCacheClockInHandshakes moves the clock between the handshakes of a Context, with a cache
// and without.
func TestChainCacheClockInHandshakes(t *testing.T) {
	for _, role := range []string{"client", "server"} {
		for _, moved := range []time.Duration{100 * time.Hour, -100 * time.Hour} {
			for _, entries := range []int{0, 100} {
				var by atomic.Int64
				setClock := func(c *tls.Config) {
					c.Time = func() time.Time { return tlstest.MoveClocks(time.Now(), time.Duration(by.Load()), 0) }
				}
				clientConfig := tlstest.ClientConfig(func(c *tls.Config) {
					c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
				})
				serverConfig := tlstest.ServerConfig(func(c *tls.Config) {
					c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
				})
				if role == "client" {
					setClock(clientConfig)
				} else {
					setClock(serverConfig)
				}
				client := ossltest.NewPlainContext(t, clientConfig, ossl.WithVerifiedChainCache(entries))
				server := ossltest.NewPlainContext(t, serverConfig, ossl.WithVerifiedChainCache(entries))
				try := func() error {
					clientErr, serverErr := shakeContexts(client, server)
					if role == "client" {
						return clientErr
					}
					return serverErr
				}
				if err := try(); err != nil {
					t.Fatal(err)
				}
				by.Store(int64(moved))
				if err := try(); err == nil {
					t.Errorf("%s with a cache of %d: accepted when the wall clock alone has moved by %v", role, entries, moved)
				}
			}
		}
	}
}

// TestChainCacheZeroTime: the zero time of a configuration means now, with a cache too.
func TestChainCacheZeroTime(t *testing.T) {
	config := tlstest.ClientConfig(func(c *tls.Config) { c.Time = func() time.Time { return time.Time{} } })
	client := ossltest.NewPlainContext(t, config)
	server := ossltest.NewPlainContext(t, tlstest.ServerConfig())
	for range 2 {
		if err, _ := shakeContexts(client, server); err != nil {
			t.Fatal(err)
		}
	}
}

// oneHandshake runs a handshake and returns the client's copy of the server's certificate.
func oneHandshake(t *testing.T, client, server *ossl.Context) *x509.Certificate {
	t.Helper()
	a, b := tlstest.Buffered()
	c, s := client.Client(a, ""), server.Server(b)
	defer c.Close()
	defer s.Close()
	done := make(chan error, 1)
	go func() { done <- s.Handshake() }()
	if err := errors.Join(c.Handshake(), <-done); err != nil {
		t.Fatal(err)
	}
	return c.ConnectionState().PeerCertificates[0]
}

// TestCertCacheIsTheContexts connects to a peer again, with a callback that clears the raw
// certificate.
func TestCertCacheIsTheContexts(t *testing.T) {
	config := tlstest.ClientConfig()
	config.VerifyPeerCertificate = func(raw [][]byte, _ [][]*x509.Certificate) error {
		clear(raw[0])
		return nil
	}
	server := ossltest.NewPlainContext(t, tlstest.ServerConfig())
	one := ossltest.NewPlainContext(t, config, ossl.WithVerifiedChainCache(0))
	other := ossltest.NewPlainContext(t, config, ossl.WithVerifiedChainCache(0))
	first, again, others := oneHandshake(t, one, server), oneHandshake(t, one, server), oneHandshake(t, other, server)
	if first != again {
		t.Error("parsed twice")
	}
	if first == others {
		t.Error("another Context has the same certificate")
	}
	if der := tlstest.ServerCert(tlstest.P256).Certificate[0]; !bytes.Equal(first.Raw, der) {
		t.Error("a callback changed the certificate by its raw bytes")
	}
}

// TestCertificateKeepsNoContext: a certificate of a peer, which a user keeps, does not keep the
// Context alive.
func TestCertificateKeepsNoContext(t *testing.T) {
	server := ossltest.NewPlainContext(t, tlstest.ServerConfig())
	for _, test := range []struct {
		name string
		keep bool
		opts []ossl.Option
	}{
		{"without", false, nil},
		{"with its certificate", true, nil},
		{"without chain cache", true, []ossl.Option{ossl.WithVerifiedChainCache(0)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := ossltest.NewPlainContext(t, tlstest.ClientConfig(), test.opts...)
			cert := oneHandshake(t, client, server)
			if !test.keep {
				cert = nil
			}
			dropped := weak.Make(client)
			client = nil
			for deadline := time.Now().Add(10 * time.Second); dropped.Value() != nil; time.Sleep(time.Millisecond) {
				runtime.GC()
				if time.Now().After(deadline) {
					t.Fatal("the Context lives")
				}
			}
			runtime.KeepAlive(cert)
		})
	}
}

// roles runs a test for the chains that clients verify and for those that servers verify. std and
// own return the verifying side's error.
func roles(t *testing.T, test func(t *testing.T, pool *x509.CertPool, std, own func() error)) {
	for _, role := range []string{"client", "server"} {
		t.Run(role, func(t *testing.T) {
			pool := x509.NewCertPool()
			clientConfig := tlstest.ClientConfig(func(c *tls.Config) {
				c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
				c.ServerName = tlstest.ServerName
			})
			serverConfig := tlstest.ServerConfig()
			if role == "client" {
				clientConfig.RootCAs = pool
			} else {
				serverConfig.ClientAuth, serverConfig.ClientCAs = tls.RequireAndVerifyClientCert, pool
			}
			client, server := ossltest.NewPlainContext(t, clientConfig), ossltest.NewPlainContext(t, serverConfig)
			shake := func(own bool) error {
				a, b := tlstest.Buffered()
				defer a.Close()
				defer b.Close()
				done := make(chan error, 1)
				if own && role == "server" {
					go func() { done <- server.Server(b).Handshake() }()
				} else {
					go func() { done <- tls.Server(b, serverConfig).Handshake() }()
				}
				var err error
				if own && role == "client" {
					err = client.Client(a, "").Handshake()
				} else {
					err = tls.Client(a, clientConfig).Handshake()
				}
				if role == "client" {
					return err
				}
				if err != nil {
					a.Close()
				}
				return <-done
			}
			test(t, pool, func() error { return shake(false) }, func() error { return shake(true) })
		})
	}
}

// TestChainCacheConstraint: a root's constraint is called as often as by crypto/tls, and its answer
// may change.
func TestChainCacheConstraint(t *testing.T) {
	roles(t, func(t *testing.T, pool *x509.CertPool, std, own func() error) {
		var deny atomic.Bool
		var asked atomic.Int32
		pool.AddCertWithConstraint(tlstest.CA().Cert, func([]*x509.Certificate) error {
			asked.Add(1)
			if deny.Load() {
				return errors.New("denied")
			}
			return nil
		})
		for name, try := range map[string]func() error{"crypto/tls": std, "ossl": own} {
			deny.Store(false)
			asked.Store(0)
			for range 3 {
				if err := try(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			deny.Store(true)
			err := try()
			if !errors.As(err, new(*tls.CertificateVerificationError)) {
				t.Errorf("%s: %v after the constraint has changed its mind", name, err)
			}
			if n := asked.Load(); n != 4 {
				t.Errorf("%s: the constraint was asked %d times in 4 handshakes", name, n)
			}
		}
	})
}

// TestChainCachePoolGrows: after a certificate was added to a pool, chains are verified again; they
// are not remembered if that certificate has a constraint.
func TestChainCachePoolGrows(t *testing.T) {
	roles(t, func(t *testing.T, pool *x509.CertPool, std, own func() error) {
		pool.AddCert(tlstest.CA().Cert)
		for range 2 {
			if err := own(); err != nil {
				t.Fatal(err)
			}
		}
		// Another certificate of the CA's key and name, so that there are two chains.
		asked := 0
		pool.AddCertWithConstraint(tlstest.NewAuthority("tlstest root", nil, nil).Cert, func([]*x509.Certificate) error {
			asked++
			return nil
		})
		for name, try := range map[string]func() error{"crypto/tls": std, "ossl": own} {
			asked = 0
			for range 3 {
				if err := try(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if asked != 3 {
				t.Errorf("%s: the constraint that was added was asked %d times in 3 handshakes", name, asked)
			}
		}
	})
}

// TestChainCachePoolReplaced: some programs reload roots by *pool = *another, though they
// shouldn't.
func TestChainCachePoolReplaced(t *testing.T) {
	roles(t, func(t *testing.T, pool *x509.CertPool, std, own func() error) {
		pool.AddCert(tlstest.CA().Cert)
		if err := own(); err != nil {
			t.Fatal(err)
		}
		other := x509.NewCertPool()
		other.AddCert(tlstest.OtherCA().Cert)
		*pool = *other
		for name, try := range map[string]func() error{"crypto/tls": std, "ossl": own} {
			if err := try(); err == nil {
				t.Errorf("%s: accepted after the roots were replaced", name)
			}
		}
	})
}

// TestUnverifiedNeedsNoRoots: if chains are not verified, the system's roots aren't loaded.
func TestUnverifiedNeedsNoRoots(t *testing.T) {
	chain.ForgetSystemRoots()
	client := ossltest.NewPlainContext(t, tlstest.ClientConfig(func(c *tls.Config) {
		c.RootCAs, c.InsecureSkipVerify = nil, true
		c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
	}))
	server := ossltest.NewPlainContext(t, tlstest.ServerConfig(func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert }))
	if clientErr, serverErr := shakeContexts(client, server); clientErr != nil || serverErr != nil {
		t.Fatal(clientErr, serverErr)
	}
	if chain.SystemRootsLoaded() {
		t.Error("they were looked at")
	}
}
