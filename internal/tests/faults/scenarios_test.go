//go:build cgo && ossl_faults

package faults_test

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// hello returns the offer in a ClientHello. A client whose Context lacks an algorithm offers less
// than before.
func hello(info *tls.ClientHelloInfo) string {
	return fmt.Sprintf(" %x %x %x %x %q", info.SupportedVersions, info.CipherSuites, info.SupportedCurves, info.SignatureSchemes,
		info.SupportedProtos)
}

// client returns the scenario of connections from our client to a crypto/tls server.
func client(name string, refused bool, config, peer *tls.Config, opts ...ossl.Option) scenario {
	var offered string
	peer.GetConfigForClient = func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		offered = hello(info)
		return nil, nil
	}
	return scenario{name, refused, func(t *testing.T) (func() attempt, func(attempt) attempt) {
		ctx, err := ossl.NewContext(config, opts...)
		if err != nil {
			t.Fatal(err)
		}
		try := func() attempt {
			a := dial(ctx, peer)
			a.state += offered
			return a
		}
		return try, func(attempt) attempt { return try() }
	}}
}

// server is client for the other roles.
func server(name string, refused bool, config, peer *tls.Config, opts ...ossl.Option) scenario {
	return scenario{name, refused, func(t *testing.T) (func() attempt, func(attempt) attempt) {
		ctx, err := ossl.NewContext(config, opts...)
		if err != nil {
			t.Fatal(err)
		}
		try := func() attempt { return serve(ctx, peer) }
		return try, func(attempt) attempt { return try() }
	}}
}

func dial(ctx *ossl.Context, peer *tls.Config) attempt {
	server := func(c net.Conn) conn { return tls.Server(c, peer) }
	return connect(func(c net.Conn) conn { return ctx.Client(c, "") }, server, "client")
}

func serve(ctx *ossl.Context, peer *tls.Config) attempt {
	return connect(func(c net.Conn) conn { return tls.Client(c, peer) }, func(c net.Conn) conn { return ctx.Server(c) }, "server")
}

// A movingConn is the connection of a goroutine that goes on on a new thread after each Read and Write.
type movingConn struct{ net.Conn }

func (c movingConn) Read(p []byte) (int, error) {
	defer libssl.ForgetThread()
	return c.Conn.Read(p)
}

func (c movingConn) Write(p []byte) (int, error) {
	defer libssl.ForgetThread()
	return c.Conn.Write(p)
}

// moving returns the scenario of a client or a server whose goroutine changes its thread.
func moving(name string, config, peer *tls.Config, opts ...ossl.Option) scenario {
	ours, _, _ := strings.Cut(name, ",")
	return scenario{name, false, func(t *testing.T) (func() attempt, func(attempt) attempt) {
		ctx, err := ossl.NewContext(config, opts...)
		if err != nil {
			t.Fatal(err)
		}
		client := func(c net.Conn) conn { return ctx.Client(movingConn{c}, "") }
		server := func(c net.Conn) conn { return tls.Server(c, peer) }
		if ours == "server" {
			client = func(c net.Conn) conn { return tls.Client(c, peer) }
			server = func(c net.Conn) conn {
				runtime.LockOSThread() // until its goroutine ends
				return ctx.Server(movingConn{c})
			}
		}
		try := func() attempt {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			return connect(client, server, ours)
		}
		return try, func(attempt) attempt { return try() }
	}}
}

// attach returns the scenario of a connection that is moved. A state whose Attach has failed may be used again.
func attach(name string, config, peer *tls.Config) scenario {
	return scenario{name, false, func(t *testing.T) (func() attempt, func(attempt) attempt) {
		ctx, err := ossl.NewContext(config)
		if err != nil {
			t.Fatal(err)
		}
		try := func() attempt {
			return connect(func(c net.Conn) conn { return tls.Client(c, peer) },
				func(c net.Conn) conn { return &attached{ctx: ctx, Conn: ctx.Server(c)} }, "server")
		}
		return try, func(attempt) attempt { return try() }
	}}
}

// An attached is a connection that is moved after its handshake.
type attached struct {
	ctx *ossl.Context
	*ossl.Conn
}

func (a *attached) Handshake() error {
	if err := a.Conn.Handshake(); err != nil {
		return err
	}
	state, err := a.Conn.Detach(context.Background())
	if err != nil {
		return err
	}
	next, err := a.ctx.Attach(a.Conn.NetConn(), state)
	if errors.Is(err, syscall.ENOMEM) {
		next, err = a.ctx.Attach(a.Conn.NetConn(), state)
	}
	if err != nil {
		_ = a.Conn.NetConn().Close()
		return err
	}
	a.Conn = next
	return nil
}

// psk returns the scenario of connections with a pre-shared key, both ends of which are ours. Either may use a
// certificate too, and must not.
func psk(name string, version uint16) scenario {
	return scenario{name, false, func(t *testing.T) (func() attempt, func(attempt) attempt) {
		key := ossl.PSK{Identity: []byte("identity"), Key: []byte("0123456789abcdef0123456789abcdef")}
		both := ossl.WithPSKOrCertificate()
		client, err := ossl.NewContext(tlstest.ClientConfig(tlstest.Only(version)), both,
			ossl.WithPSK(func(context.Context, string) (*ossl.PSK, error) { return &key, nil }))
		if err != nil {
			t.Fatal(err)
		}
		server, err := ossl.NewContext(tlstest.ServerConfig(tlstest.Only(version)), both,
			ossl.WithPSKLookup(func(context.Context, []byte) (*ossl.PSK, error) { return &key, nil }))
		if err != nil {
			t.Fatal(err)
		}
		try := func() attempt {
			a := connect(func(c net.Conn) conn { return client.Client(c, "") },
				func(c net.Conn) conn { return server.Server(c) }, "client")
			ended := func(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
			var op *net.OpError
			if a.peer != nil && !ended(a.peer) && (ended(a.err) || errors.As(a.err, &op)) { // the fault was the server's
				a.err, a.peer = a.peer, a.err
			}
			return a
		}
		return try, func(attempt) attempt { return try() }
	}}
}

// newContext returns the scenario of making a Context: if it succeeds, the Context must be as good as
// any, for clients and, with each of the certificates, for servers.
func newContext(certs ...tls.Certificate) scenario {
	config := func() *tls.Config {
		c := tlstest.ServerConfig(tlstest.Certificates(certs...))
		c.RootCAs, c.ServerName = tlstest.CA().Pool(), tlstest.ServerName
		return c
	}
	use := func(ctx *ossl.Context) attempt {
		var offered string
		peer := tlstest.ServerConfig()
		peer.GetConfigForClient = func(info *tls.ClientHelloInfo) (*tls.Config, error) {
			offered = hello(info)
			return nil, nil
		}
		a := dial(ctx, peer)
		a.state += offered
		for _, suite := range []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384} {
			if a.err != nil {
				break
			}
			b := serve(ctx, tlstest.ClientConfig(tlstest.Only(tls.VersionTLS12), tlstest.Suites(suite)))
			a.state, a.err, a.peer = a.state+" "+b.state, b.err, b.peer
		}
		a.state += fmt.Sprintf(" %+v", ctx.Stats().Records)
		return a
	}
	return scenario{"NewContext", false, func(t *testing.T) (func() attempt, func(attempt) attempt) {
		var ctx *ossl.Context
		try := func() (a attempt) {
			ctx, a.err = ossl.NewContext(config())
			return a
		}
		next := func(attempt) attempt {
			if ctx == nil { // with the same things that are kept
				var err error
				if ctx, err = ossl.NewContext(config()); err != nil {
					return attempt{err: err}
				}
			}
			return use(ctx)
		}
		return try, next
	}}
}

// renewed returns the scenario of a certificate that the first connection converts.
func renewed() scenario {
	return scenario{"server, GetCertificate, renewed", false, func(t *testing.T) (func() attempt, func(attempt) attempt) {
		var current tls.Certificate
		ctx, err := ossl.NewContext(&tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &current, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		key := tlstest.Key(tlstest.RSA2048, "renewed")
		try := func() attempt {
			current = tlstest.New(tlstest.Options{Key: key})
			return serve(ctx, tlstest.ClientConfig())
		}
		return try, func(attempt) attempt { return serve(ctx, tlstest.ClientConfig()) }
	}}
}

// inShard returns a function that makes a Context of two shards that has had a connection in the first one, and
// the operation that is a connection in a given shard.
func inShard(t *testing.T) (fresh func(), serveIn func(shard int) attempt) {
	var ctx *ossl.Context
	t.Cleanup(func() { libssl.PinShard(-1) })
	serveIn = func(shard int) attempt {
		libssl.PinShard(shard)
		return serve(ctx, tlstest.ClientConfig())
	}
	fresh = func() {
		var err error
		libssl.PinShard(0)
		if ctx, err = ossl.NewContext(tlstest.ServerConfig(), ossl.WithShards(libssl.MaxShards)); err != nil {
			t.Fatal(err)
		}
		if a := serveIn(0); a.err != nil {
			t.Fatal(a.err)
		}
	}
	return fresh, serveIn
}

// part returns the scenario of a connection that needs a part of the Context for another shard.
func part() scenario {
	return scenario{"server, another shard", false, func(t *testing.T) (func() attempt, func(attempt) attempt) {
		fresh, serveIn := inShard(t)
		fresh()
		try := func() attempt { return serveIn(1) }
		return try, func(attempt) attempt {
			defer fresh()
			return try()
		}
	}}
}

// TestAllocationsOfShards makes allocations fail in a connection that makes a shard. Each shard can be made once.
func TestAllocationsOfShards(t *testing.T) {
	if !libssl.UseSlim() {
		t.Skip("OpenSSL 1.1.1 has no library contexts")
	}
	fresh, serveIn := inShard(t)
	fresh()
	fresh() // the first may have been in the default library context
	const first = 2
	libssl.FailAllocations(1<<40, 1<<40+1)
	whole := serveIn(first)
	total := libssl.CountAllocations()
	libssl.FailAllocations(1<<40, 1<<40+1)
	serveIn(first)
	total -= libssl.CountAllocations() // of the shard and the part
	j := &judge{t: t, whole: whole, accusing: map[string]int{}}
	for shard := first + 1; shard < libssl.MaxShards; shard++ {
		j.n = 1 + (shard-first-1)*total/(libssl.MaxShards-first-1)
		libssl.FailAllocations(j.n, j.n+*span)
		hit := serveIn(shard)
		if libssl.CountAllocations() >= j.n {
			j.hit(hit)
		}
		j.next(serveIn(shard))
	}
	t.Logf("%d allocations: %d unharmed, %d errors, of which %d don't name the memory, and %d accuse the peer", total, j.unharmed,
		j.errors, j.others, j.blames)
}

// A signer hides a key's type, so that libssl has to ask Go.
type signer struct{ crypto.Signer }

func scenarios() []scenario {
	tickets := func(c *tls.Config) {
		c.SessionTicketsDisabled = false
		c.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	}
	mutual := func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool() }
	with := tlstest.SendCertificate(tlstest.ClientCert(tlstest.P256))
	asks := func(c *tls.Config) {
		cert := tlstest.ServerCert(tlstest.P256)
		cert.PrivateKey = signer{cert.PrivateKey.(crypto.Signer)}
		c.Certificates = []tls.Certificate{cert}
	}
	alpn := func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} }
	old, byLibssl := tlstest.Only(tls.VersionTLS12), ossl.WithRecordPath(ossl.RecordsLibssl)
	stranger := func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }
	misnamed := func(c *tls.Config) { c.ServerName = "other.example" }
	cc, sc := tlstest.ClientConfig, tlstest.ServerConfig
	return []scenario{
		client("client", false, cc(alpn), sc(alpn)),
		moving("client, other threads", cc(with), sc(mutual)),
		client("client, TLS 1.2", false, cc(old), sc()),
		moving("client, other threads, TLS 1.2", cc(with, old), sc(mutual)),
		moving("client, other threads, libssl's records", cc(), sc(), byLibssl),
		client("client, libssl's records", false, cc(), sc(), byLibssl),
		client("client, mutual", false, cc(with), sc(mutual)),
		client("client, resumed", false, cc(tickets), sc(tickets)),
		client("client, resumed, TLS 1.2", false, cc(tickets, old), sc(tickets)),
		client("client refuses the authority", true, cc(stranger), sc()),
		client("client refuses the name", true, cc(misnamed), sc()),
		client("client refuses the name, TLS 1.2", true, cc(misnamed, old), sc()),
		psk("pre-shared key", tls.VersionTLS13),
		psk("pre-shared key, TLS 1.2", tls.VersionTLS12),
		server("server", false, sc(alpn), cc(alpn)),
		moving("server, other threads", sc(mutual), cc(with)),
		server("server, TLS 1.2", false, sc(), cc(old)),
		attach("server, attached", sc(), cc()),
		attach("server, attached, TLS 1.2", sc(old), cc()),
		server("server, libssl's records", false, sc(), cc(), byLibssl),
		server("server, mutual", false, sc(mutual), cc(with)),
		server("server, crypto.Signer", false, sc(asks), cc()),
		server("server, resumed", false, sc(tickets), cc(tickets)),
		server("server, resumed, TLS 1.2", false, sc(tickets), cc(tickets, old)),
		server("server, resumed by the cache", false, sc(tickets), cc(tickets), ossl.WithSessionCache(session.NewCache(16))),
		server("server refuses no certificate", true, sc(mutual), cc()),
		newContext(tlstest.ServerCert(tlstest.RSA2048), tlstest.ServerCert(tlstest.P256)),
		renewed(),
		part(),
	}
}
