//go:build cgo || ossl_nocgo

package ossl_test

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// hooks calls a function from each callback of a connection of either role, and from clocks,
// caches, writers and signers.
type hooks struct {
	mu     sync.Mutex
	call   func(where string) // guarded by mu
	called map[string]int     // guarded by mu
}

func (h *hooks) at(where string) {
	h.mu.Lock()
	call := h.call
	if h.called == nil {
		h.called = make(map[string]int)
	}
	h.called[where]++
	h.mu.Unlock()
	if call != nil {
		call(where)
	}
}

func (h *hooks) Write(b []byte) (int, error) { h.at("KeyLogWriter"); return len(b), nil }

type hookedClientCache struct {
	tls.ClientSessionCache
	h *hooks
}

func (c hookedClientCache) Get(key string) (*tls.ClientSessionState, bool) {
	c.h.at("ClientSessionCache.Get")
	return c.ClientSessionCache.Get(key)
}

func (c hookedClientCache) Put(key string, state *tls.ClientSessionState) {
	c.h.at("ClientSessionCache.Put")
	c.ClientSessionCache.Put(key, state)
}

type hookedCache struct {
	session.Cache
	h *hooks
}

func (c hookedCache) Put(ctx context.Context, id, s []byte, expires time.Time) error {
	c.h.at("session.Cache.Put")
	return c.Cache.Put(ctx, id, s, expires)
}

func (c hookedCache) Get(ctx context.Context, id []byte, take bool) ([]byte, error) {
	c.h.at("session.Cache.Get")
	return c.Cache.Get(ctx, id, take)
}

// config sets the callbacks that both roles have.
func (h *hooks) config(c *tls.Config, cert tls.Certificate) {
	cert.PrivateKey = &tlstest.LookingSigner{Signer: cert.PrivateKey.(crypto.Signer), Before: func() { h.at("Sign") }}
	c.Certificates = []tls.Certificate{cert}
	c.Time = func() time.Time { h.at("Time"); return time.Now() }
	c.KeyLogWriter = h
	c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { h.at("VerifyPeerCertificate"); return nil }
	c.VerifyConnection = func(tls.ConnectionState) error { h.at("VerifyConnection"); return nil }
}

// client sets all callbacks of a client.
func (h *hooks) client(c *tls.Config) {
	h.config(c, tlstest.ClientCert(tlstest.P256))
	c.ClientSessionCache = hookedClientCache{c.ClientSessionCache, h}
	cert := &c.Certificates[0]
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		h.at("GetClientCertificate")
		return cert, nil
	}
}

// server sets all callbacks of a server.
func (h *hooks) server(c *tls.Config) {
	h.config(c, tlstest.ServerCert(tlstest.P256))
	cert := &c.Certificates[0]
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { h.at("GetCertificate"); return cert, nil }
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { h.at("GetConfigForClient"); return nil, nil }
}

// TestMethodsInCallbacks calls the methods of a connection in every callback, except those that
// wait for the callback's own handshake. In crypto/tls too these are ConnectionState, OCSPResponse,
// VerifyHostname, Handshake, Read and Write; ossl adds WaitRead, SendFile and ReadFrom.
func TestMethodsInCallbacks(t *testing.T) {
	if ossltest.InFIPS {
		t.Skipf("OpenSSL %s: FIPS mode refuses keys that are a crypto.Signer", ossltest.Version())
	}
	for _, version := range tlstest.Versions {
		for _, role := range []string{"server", "client"} {
			t.Run(tls.VersionName(version)+"/"+role, func(t *testing.T) {
				cc, sc := tlstest.Resuming(version)
				cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
				sc.ClientAuth, sc.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
				cc.MinVersion, sc.MinVersion = version, version

				h := &hooks{}
				var conn *ossl.Conn
				var opts []ossl.Option
				want := []string{"Sign", "Time", "KeyLogWriter", "VerifyPeerCertificate", "VerifyConnection", "WithVerification"}
				if role == "client" {
					h.client(cc)
					want = append(want, "ClientSessionCache.Get", "ClientSessionCache.Put", "GetClientCertificate")
				} else {
					h.server(sc)
					opts = append(opts, ossl.WithSessionCache(hookedCache{session.NewCache(10), h}))
					if version == tls.VersionTLS12 {
						sc.SessionTicketsDisabled = true // so that the cache is asked
					}
					want = append(want, "GetCertificate", "GetConfigForClient", "session.Cache.Put")
				}
				opts = append(opts, ossl.WithVerifiedChainCache(0))
				client, server := ossltest.NewContext(t, cc), ossltest.NewContext(t, sc)
				hooked := client
				if role == "server" {
					hooked = ossltest.NewContext(t, sc, opts...)
					server = hooked
				} else {
					hooked = ossltest.NewContext(t, cc, opts...)
					client = hooked
				}
				h.call = func(where string) {
					c := conn
					c.LocalAddr()
					c.RemoteAddr()
					c.NetConn()
					c.FIPS()
					c.KernelTLS()
					for name, err := range map[string]error{
						"SetDeadline":      c.SetDeadline(time.Time{}),
						"SetReadDeadline":  c.SetReadDeadline(time.Time{}),
						"SetWriteDeadline": c.SetWriteDeadline(time.Time{}),
					} {
						if err != nil {
							t.Errorf("%s in %s: %v", name, where, err)
						}
					}
					if where == "ClientSessionCache.Put" { // which may come with a Read
						return
					}
					if _, err := c.ExportKeyingMaterial("label", nil, 16); err == nil {
						t.Errorf("ExportKeyingMaterial in %s works", where)
					}
					if err := c.CloseWrite(); err == nil {
						t.Errorf("CloseWrite in %s works", where)
					}
				}
				verification := ossl.WithVerification(func(tls.ConnectionState) error { h.at("WithVerification"); return nil })
				for range 2 { // the second one resumes
					tlstest.Visit(t, func(c net.Conn) tlstest.Conn {
						if role == "client" {
							conn = client.Client(c, "", verification)
							return conn
						}
						return client.Client(c, "")
					}, func(c net.Conn) tlstest.Conn {
						if role == "server" {
							conn = server.Server(c, verification)
							return conn
						}
						return server.Server(c)
					})
				}
				for _, where := range want {
					if h.called[where] == 0 {
						t.Errorf("%s was not called: %v", where, h.called)
					}
				}
			})
		}
	}
}

// TestCloseInCallbacks checks that Close, a panic, or the end of the goroutine in any callback
// stops the handshake and leaks no C memory.
func TestCloseInCallbacks(t *testing.T) {
	if ossltest.InFIPS {
		t.Skipf("OpenSSL %s: FIPS mode refuses keys that are a crypto.Signer", ossltest.Version())
	}
	serverCallbacks := []string{"Sign", "KeyLogWriter", "VerifyPeerCertificate", "VerifyConnection", "GetCertificate",
		"GetConfigForClient"}
	clientCallbacks := []string{"Sign", "KeyLogWriter", "VerifyPeerCertificate", "VerifyConnection", "GetClientCertificate",
		"ClientSessionCache.Get"}
	for _, version := range tlstest.Versions {
		for role, callbacks := range map[string][]string{"server": serverCallbacks, "client": clientCallbacks} {
			for _, callback := range callbacks {
				for _, how := range []string{"Close", "panic", "Goexit"} {
					t.Run(fmt.Sprintf("%s/%s/%s/%s", tls.VersionName(version), role, callback, how), func(t *testing.T) {
						closeIn(t, version, role, callback, how)
					})
				}
			}
		}
	}
}

// errNoReturn stands for a Handshake that did not return.
var errNoReturn = errors.New("the handshake did not return")

func closeIn(t *testing.T, version uint16, role, callback, how string) {
	cc, sc := tlstest.Resuming(version)
	cc.MinVersion, sc.MinVersion = version, version
	cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
	sc.ClientAuth = tls.RequireAnyClientCert
	h := &hooks{}
	if role == "client" {
		h.client(cc)
	} else {
		h.server(sc)
	}
	a, b := tlstest.Buffered()
	conn, peer := ossltest.NewContext(t, cc).Client(a, tlstest.ServerName), ossltest.NewContext(t, sc).Server(b)
	if role == "server" {
		conn, peer = peer, conn
	}
	reached := false
	h.call = func(where string) {
		if where != callback || reached {
			return
		}
		reached = true
		switch how {
		case "Close":
			conn.Close()
		case "panic":
			panic("in a callback")
		case "Goexit":
			runtime.Goexit()
		}
	}
	go func() {
		peer.Handshake()
		peer.Close()
	}()
	done := make(chan error, 1)
	go func() {
		err := errNoReturn
		defer func() {
			_ = recover()
			done <- err
		}()
		err = conn.Handshake()
	}()
	err := <-done
	if !reached {
		t.Fatal("the callback was not called")
	}
	if err == nil || (err == errNoReturn) != (how != "Close") {
		t.Errorf("Handshake: %v", err)
	}
	if err := conn.Handshake(); err == nil {
		t.Error("a second Handshake succeeds")
	}
	conn.Close()
	if !conn.Freed() {
		t.Error("the connection keeps its C memory")
	}
}

// TestCloseInsideClientCertificate checks that Close frees the connection while a callback runs.
func TestCloseInsideClientCertificate(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		var c *ossl.Conn
		denied := errors.New("denied")
		p := ossltest.NewContexts(t, func(client, s *tls.Config) {
			client.MaxVersion = version
			s.ClientAuth = tls.RequireAnyClientCert
			client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				c.Close()
				return nil, denied
			}
		})
		a, b := tlstest.Buffered()
		go p.Server.Server(b).Handshake()
		c = p.Client.Client(a, "")
		if err := c.Handshake(); err != denied {
			t.Errorf("got %v", err)
		}
		if !c.Freed() {
			t.Error("C memory is kept")
		}
	}
}

// TestAfterPanic checks that a callback's panic breaks the connection for good, and that later
// calls return.
func TestAfterPanic(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		p := ossltest.NewContexts(t, func(c, _ *tls.Config) {
			c.MaxVersion = version
			c.VerifyConnection = func(tls.ConnectionState) error { panic("boom") }
		})
		a, b := tlstest.Buffered()
		go p.Server.Server(b).Handshake()
		c := p.Client.Client(a, "")
		func() {
			defer func() { recover() }()
			c.Handshake()
			t.Error("no panic")
		}()
		if err := c.Handshake(); err == nil {
			t.Error("a second handshake succeeds")
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("Read succeeds")
		}
		if !c.Freed() {
			t.Error("C memory is kept")
		}
	}
}
