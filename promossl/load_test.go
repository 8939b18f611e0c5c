package promossl_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/metrics"
	"github.com/ossl-go/ossl/session"
)

// A reason is a row of a metric of failures.
type reason struct{ metric, role, class, alert string }

const (
	duringHandshake = "ossl_tls_handshake_failures_total"
	afterHandshake  = "ossl_tls_connection_failures_total"
)

// A kind is a kind of client.
type kind struct {
	name  string
	first int // the step of the load with which these clients begin, and
	last  int // with which they end
	every int // in every so many steps
	count int // so many of them

	act     func(l *load, raw *net.TCPConn) // the client's part
	timeout time.Duration                   // of the server's handshake; 0 is long
	want    []reason                        // the failures that it causes
}

const steps = 60

var kinds = []kind{
	{name: "well-behaved clients", last: steps, every: 1, count: 6, act: (*load).echo},
	{name: "clients that trust another authority", first: 8, last: 20, every: 1, count: 1, act: untrusting,
		want: []reason{{duringHandshake, "client", "certificate_untrusted", "bad_certificate"},
			{duringHandshake, "server", "peer_alert", "bad_certificate"}}},
	{name: "plain HTTP on the TLS port", first: 3, last: steps, every: 7, count: 1, act: plainHTTP,
		want: []reason{{duringHandshake, "server", "not_tls", ""}}},
	{name: "expired client certificates", first: 24, last: 36, every: 1, count: 2, act: expired,
		want: []reason{{duringHandshake, "server", "certificate_expired", "certificate_expired"},
			{afterHandshake, "client", "peer_alert", "certificate_expired"}}},
	{name: "old clients without TLS 1.3", first: 44, last: 54, every: 1, count: 3, act: oldVersion,
		want: []reason{{duringHandshake, "server", "refused", "protocol_version"},
			{duringHandshake, "client", "peer_alert", "protocol_version"}}},
	{name: "clients that hang until the deadline", first: 30, last: 48, every: 2, count: 2, act: hang,
		timeout: 10 * time.Millisecond, want: []reason{{duringHandshake, "server", "timeout", ""}}},
	{name: "port scans that close early", first: 12, last: 18, every: 1, count: 2, act: closeEarly,
		want: []reason{{duringHandshake, "server", "peer_closed", ""}}},
	{name: "handshakes cut in a record", first: 5, last: steps, every: 9, count: 1, act: cutRecord,
		want: []reason{{duringHandshake, "server", "truncated", ""}}},
	{name: "connections cut without close_notify", first: 10, last: steps, every: 8, count: 1, act: cutConnection,
		want: []reason{{afterHandshake, "server", "truncated", ""}}},
}

// The session cache is down from the step cacheFails to the step cacheWorks.
const cacheFails, cacheWorks = 36, 46

// A load is a server with clients of each kind.
type load struct {
	t        *testing.T
	contexts metrics.Contexts
	cache    flakyCache

	server, client, resuming           *ossl.Context
	distrustful, outdated, withExpired *ossl.Context

	made    map[string]int // clients, by their kind
	held    []func()       // close the connections that stay open
	serving sync.WaitGroup
}

func newLoad(t *testing.T) *load {
	l := &load{t: t, made: map[string]int{}}
	l.cache.Cache = session.NewCache(1000)
	ca := newAuthority(t)
	sc := ca.server()
	sc.MinVersion, sc.ClientAuth, sc.ClientCAs = tls.VersionTLS13, tls.VerifyClientCertIfGiven, ca.pool
	l.server = newContext(t, &l.contexts, "frontend", sc, ossl.WithSessionCache(&l.cache))

	with := func(edit func(c *tls.Config)) *ossl.Context {
		c := ca.client()
		edit(c)
		return newContext(t, &l.contexts, "clients", c)
	}
	l.client = with(func(*tls.Config) {})
	l.resuming = with(func(c *tls.Config) { c.ClientSessionCache = tls.NewLRUClientSessionCache(0) })
	l.distrustful = with(func(c *tls.Config) { c.RootCAs = x509.NewCertPool() })
	l.outdated = with(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })
	old := ca.certificate(t, time.Now().Add(-time.Hour))
	l.withExpired = with(func(c *tls.Config) {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &old, nil }
	})
	return l
}

// step runs the clients of a step, and returns when all are done, except those that stay open.
func (l *load) step(n int) {
	l.cache.down.Store(n >= cacheFails && n < cacheWorks)
	var clients sync.WaitGroup
	for _, k := range kinds {
		if n < k.first || n >= k.last || (n-k.first)%k.every != 0 {
			continue
		}
		for range k.count {
			l.made[k.name]++
			raw, served := l.connect(k.timeout)
			clients.Go(func() {
				k.act(l, raw)
				_ = raw.Close()
				<-served
			})
		}
	}
	clients.Wait()
	if n < steps/2 {
		l.hold()
	} else {
		l.release(2)
	}
}

// end closes the connections that stay open.
func (l *load) end() {
	l.release(len(l.held))
	l.serving.Wait()
}

// connect makes a connection to the server, which closes served when it has closed its side.
func (l *load) connect(timeout time.Duration) (raw *net.TCPConn, served <-chan struct{}) {
	client, server := sockets(l.t)
	done := make(chan struct{})
	l.serving.Go(func() {
		defer close(done)
		l.serve(server, timeout)
	})
	return client.(*net.TCPConn), done
}

// serve is the server: it echoes. After a failure it waits for the client to close, so that the
// client can read the alert.
func (l *load) serve(raw net.Conn, timeout time.Duration) {
	if timeout == 0 {
		timeout = time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn := l.server.Server(raw)
	defer conn.Close()
	if err := conn.HandshakeContext(ctx); err != nil {
		_, _ = io.Copy(io.Discard, raw)
		return
	}
	_, _ = io.Copy(conn, conn)
}

// echo is a client that does nothing wrong.
func (l *load) echo(raw *net.TCPConn) {
	conn := l.resuming.Client(raw, "")
	defer conn.Close()
	l.talk(conn)
}

// talk sends data, reads it back, and closes the connection properly.
func (l *load) talk(conn *ossl.Conn) {
	data := make([]byte, 10_000)
	if _, err := conn.Write(data); err != nil {
		l.t.Error(err)
	}
	if err := conn.CloseWrite(); err != nil {
		l.t.Error(err)
	}
	if n, err := io.Copy(io.Discard, conn); err != nil || n != int64(len(data)) {
		l.t.Errorf("read %d bytes: %v", n, err)
	}
}

// hold makes a connection that stays open.
func (l *load) hold() {
	raw, served := l.connect(0)
	conn := l.client.Client(raw, "")
	if err := conn.Handshake(); err != nil {
		l.t.Error(err)
	}
	l.made[kinds[0].name]++
	l.held = append(l.held, func() {
		l.talk(conn)
		_ = conn.Close()
		<-served
	})
}

func (l *load) release(n int) {
	for range min(n, len(l.held)) {
		l.held[0]()
		l.held = l.held[1:]
	}
}

// attempt makes a client of ctx connect and read, until the server or the client refuses.
func (l *load) attempt(ctx *ossl.Context, raw net.Conn) {
	conn := ctx.Client(raw, "")
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		l.t.Error("a connection that is to be refused carries data")
	}
}

func untrusting(l *load, raw *net.TCPConn) { l.attempt(l.distrustful, raw) }
func oldVersion(l *load, raw *net.TCPConn) { l.attempt(l.outdated, raw) }
func expired(l *load, raw *net.TCPConn)    { l.attempt(l.withExpired, raw) }

func plainHTTP(_ *load, raw *net.TCPConn) {
	_, _ = io.WriteString(raw, "GET / HTTP/1.1\r\nHost: "+serverName+"\r\n\r\n")
	_ = raw.CloseWrite()
	_, _ = io.Copy(io.Discard, raw)
}

func hang(_ *load, raw *net.TCPConn) { _, _ = io.Copy(io.Discard, raw) }

func closeEarly(*load, *net.TCPConn) {}

func cutRecord(_ *load, raw *net.TCPConn) {
	_, _ = raw.Write([]byte{22, 3, 1, 1, 0, 1}) // the header of a ClientHello of 256 bytes, and its first byte
	_ = raw.CloseWrite()
	_, _ = io.Copy(io.Discard, raw)
}

func cutConnection(l *load, raw *net.TCPConn) {
	conn := l.client.Client(raw, "")
	defer conn.Close()
	data := make([]byte, 1000)
	if _, err := conn.Write(data); err != nil {
		l.t.Error(err)
	}
	if _, err := io.ReadFull(conn, data); err != nil {
		l.t.Error(err)
	}
	_ = raw.CloseWrite()
	_, _ = io.Copy(io.Discard, raw)
}

// A flakyCache is a session cache that fails at times.
type flakyCache struct {
	session.Cache
	down         atomic.Bool
	failedGets   atomic.Uint64
	failedPuts   atomic.Uint64
	answeredGets atomic.Uint64
}

var errDown = errors.New("the cache is down")

func (c *flakyCache) Get(ctx context.Context, id []byte, take bool) ([]byte, error) {
	if c.down.Load() {
		c.failedGets.Add(1)
		return nil, errDown
	}
	c.answeredGets.Add(1)
	return c.Cache.Get(ctx, id, take)
}

func (c *flakyCache) Put(ctx context.Context, id, session []byte, expires time.Time) error {
	if c.down.Load() {
		c.failedPuts.Add(1)
		return errDown
	}
	return c.Cache.Put(ctx, id, session, expires)
}
