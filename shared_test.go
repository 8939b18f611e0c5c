//go:build cgo || ossl_nocgo

package ossl

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// choosing returns a Context for a server that calls choose for each connection. shake makes a
// connection, which must succeed, and returns its Context.
func choosing(t *testing.T, choose func() *tls.Config) (server *Context, shake func() *Context) {
	t.Helper()
	server = contextOf(t, tlstest.ServerConfig(func(c *tls.Config) {
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return choose(), nil }
	}))
	client := contextOf(t, tlstest.ClientConfig())
	return server, func() *Context {
		t.Helper()
		c, s := pair(t, client, server)
		defer c.Close()
		defer s.Close()
		return s.context()
	}
}

// pair returns both sides of a connection whose handshake is done.
func pair(t *testing.T, client, server *Context) (c, s *Conn) {
	t.Helper()
	a, b := tlstest.Buffered()
	c, s = client.Client(a, tlstest.ServerName), server.Server(b)
	done := make(chan error, 1)
	go func() { done <- s.Handshake() }()
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return c, s
}

// TestChosenCopiesAreCompiledOnce checks that copies of a configuration, made in several ways, are
// not compiled again.
func TestChosenCopiesAreCompiledOnce(t *testing.T) {
	base := tlstest.ServerConfig(func(c *tls.Config) {
		c.NextProtos = []string{"h2", "http/1.1"}
		c.CurvePreferences = []tls.CurveID{tls.CurveP256}
		c.Time, c.VerifyConnection = time.Now, func(tls.ConnectionState) error { return nil }
	})
	cert := base.Certificates[0]
	pool := tlstest.CA().Pool()
	protocol := []byte("http/1.1")
	for name, choose := range map[string]func() *tls.Config{
		"the same": func() *tls.Config { return base },
		"Clone":    func() *tls.Config { return base.Clone() },
		"Clone and edit": func() *tls.Config {
			c := base.Clone()
			c.NextProtos = []string{string(protocol)}
			c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, pool
			return c
		},
		"literal": func() *tls.Config {
			return &tls.Config{
				Certificates:     []tls.Certificate{cert},
				CurvePreferences: []tls.CurveID{tls.CurveP256, tls.CurveP384},
				NextProtos:       []string{string(protocol)},
				MinVersion:       tls.VersionTLS12,
			}
		},
	} {
		server, shake := choosing(t, choose)
		first := shake()
		for range 20 {
			if shake() != first {
				t.Fatalf("%s: compiled again", name)
			}
		}
		if n := len(server.chosen.recent.entries); n != 1 {
			t.Errorf("%s: %d configurations are remembered", name, n)
		}
	}
}

// TestChosenChangesAreSeen checks that if the configuration differs from one connection to the
// next, the new one is used, as in crypto/tls.
func TestChosenChangesAreSeen(t *testing.T) {
	certs := []tls.Certificate{tlstest.ServerCert(tlstest.P256), tlstest.ServerCert(tlstest.RSA2048)}
	base := tlstest.ServerConfig()
	var n int
	outer := tlstest.ServerConfig(func(c *tls.Config) {
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			base.Certificates[0] = certs[n/2%2] // in place, between connections
			chosen := base.Clone()
			chosen.NextProtos = []string{fmt.Sprint("p", n%3)}
			n++
			return chosen, nil
		}
	})
	server := contextOf(t, outer)
	clientConfig := tlstest.ClientConfig(func(c *tls.Config) {
		c.ServerName, c.NextProtos = tlstest.ServerName, []string{"p0", "p1", "p2"}
	})
	run := func(serve func(net.Conn) interface{ Handshake() error }) (seen []string) {
		n = 0
		for range 24 {
			a, b := tlstest.Buffered()
			done := make(chan error, 1)
			go func() { done <- serve(b).Handshake() }()
			c := tls.Client(a, clientConfig)
			if err := c.Handshake(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			s := c.ConnectionState()
			seen = append(seen, fmt.Sprint(s.NegotiatedProtocol, " ", s.PeerCertificates[0].PublicKeyAlgorithm))
			a.Close()
			b.Close()
		}
		return seen
	}
	own := run(func(b net.Conn) interface{ Handshake() error } { return server.Server(b) })
	std := run(func(b net.Conn) interface{ Handshake() error } { return tls.Server(b, outer) })
	if !slices.Equal(own, std) {
		t.Errorf("ossl %q\nwant %q", own, std)
	}
	if n := len(server.chosen.recent.entries); n != 6 {
		t.Errorf("%d configurations are remembered, of 6", n)
	}
}

// TestChosenIsFreed uses a GetConfigForClient that returns another configuration each time, with
// the garbage collector off: libssl's memory for configurations that left the list is freed.
func TestChosenIsFreed(t *testing.T) {
	base := tlstest.ServerConfig()
	server, shake := choosing(t, func() *tls.Config {
		c := base.Clone()
		random := new(int)
		c.VerifyConnection = func(tls.ConnectionState) error { *random++; return nil }
		return c
	})
	const most = 8
	server.boundChosen(most, base)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var seen []*Context
	for range 3 * most {
		seen = append(seen, shake())
	}
	const times = 100
	grown := int64(1 << 40)
	for try := 0; try < 5 && grown > times*2048; try++ { // again if a busy machine has freed connections late
		before := libssl.HeapInUse()
		for range times {
			seen = append(seen, shake())
		}
		grown = int64(libssl.HeapInUse() - before)
	}
	// A Context takes at least 13 KB. The heap grows by the rest even if nothing is compiled.
	if grown > times*2048 {
		t.Errorf("C's heap has grown by %d bytes in %d handshakes", grown, times)
	}
	if n := len(server.creds.recent.entries); n != 1 {
		t.Errorf("there are %d credentials for one certificate", n)
	}
	for i, ctx := range seen {
		if i > 0 && ctx == seen[i-1] {
			t.Fatal("two configurations have one Context")
		}
		conn, _, err := ctx.ssl.Start(true, false, "", nil, nil, make([]byte, 100))
		if closed := i < len(seen)-most; (err != nil) != closed {
			t.Fatalf("Context %d of %d: %v", i, len(seen), err)
		}
		if err == nil {
			conn.Free(false, nil)
		}
	}
}

// TestClonesAreCompiledOnce: copies of a configuration that differ in their ServerName, as net/http
// and others make them for each connection, have one Context.
func TestClonesAreCompiledOnce(t *testing.T) {
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("host%d.example", i)
	}
	base := tlstest.ClientConfig()
	server := contextOf(t, tlstest.ServerConfig(tlstest.Certificates(tlstest.New(tlstest.Options{Names: names[1:]}))))
	contexts := map[*Context]int{}
	for i, name := range names {
		clone := base.Clone()
		clone.ServerName = name
		a, b := tlstest.Buffered()
		c, s := Client(a, clone), server.Server(b)
		contexts[c.context()]++
		done := make(chan error, 1)
		go func() { done <- s.Handshake() }()
		if err := c.Handshake(); (err == nil) != (i > 0) {
			t.Errorf("%s: %v", name, err)
		}
		a.Close()
		if err := <-done; i > 0 && (err != nil || s.ConnectionState().ServerName != name) {
			t.Errorf("%s: %v, to %q", name, err, s.ConnectionState().ServerName)
		}
		b.Close()
	}
	if len(contexts) != 1 {
		t.Errorf("%d were compiled for %d copies", len(contexts), len(names))
	}
}

// TestClonesAreFreed gives the drop-in functions another configuration each time, with the garbage
// collector off: libssl's memory for those that left the cache is freed, except for connections whose
// handshake is still to come.
func TestClonesAreFreed(t *testing.T) {
	const most = 8
	defer BoundCompiled(most, tlstest.ClientConfig())()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	server := contextOf(t, tlstest.ServerConfig())
	var waiting, seen []*Conn
	var servers []*Conn
	for i := range 5 * most {
		clone := tlstest.ClientConfig(func(c *tls.Config) {
			c.VerifyConnection = func(tls.ConnectionState) error { _ = i; return nil }
		})
		a, b := tlstest.Buffered()
		c, s := Client(a, clone), server.Server(b)
		if i < most {
			waiting, servers = append(waiting, c), append(servers, s)
			continue
		}
		tlstest.Shake(t, c, s)
		seen = append(seen, c)
	}
	for i, c := range waiting {
		tlstest.Shake(t, c, servers[i])
	}
	for i, c := range append(waiting, seen...) {
		conn, _, err := c.context().ssl.Start(false, false, "", nil, nil, make([]byte, 1000))
		if closed := i < len(waiting)+len(seen)-most; (err != nil) != closed {
			t.Errorf("Context %d: %v", i, err)
		}
		if err == nil {
			conn.Free(false, nil)
		}
	}
}

// TestChosenOutlivesItsPlace checks that a connection goes on after its configuration has left the
// list, on either record path.
func TestChosenOutlivesItsPlace(t *testing.T) {
	for _, path := range []RecordPath{RecordsAuto, RecordsLibssl} {
		base := tlstest.ServerConfig()
		server := contextOf(t, tlstest.ServerConfig(func(c *tls.Config) {
			c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
				chosen := base.Clone()
				chosen.Time = func() time.Time { _ = chosen; return time.Now() }
				return chosen, nil
			}
		}), WithRecordPath(path))
		server.boundChosen(1, base)
		client := contextOf(t, tlstest.ClientConfig())
		c, s := pair(t, client, server)
		for range 5 {
			c, s := pair(t, client, server)
			c.Close()
			s.Close()
		}
		if _, _, err := s.context().ssl.Start(true, true, "", nil, nil, make([]byte, 100)); err == nil {
			t.Fatal("the Context isn't closed")
		}
		for range 3 {
			if err := s.KeyUpdate(true); err != nil {
				t.Fatal(err)
			}
			echo(t, c, s)
			echo(t, s, c)
		}
		if s.FIPS() != nil {
			t.Error("in FIPS mode")
		}
		if _, err := s.ExportKeyingMaterial("label", nil, 32); err != nil {
			t.Error(err)
		}
		c.Close()
		if _, err := s.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
		s.Close()
	}
}

func echo(t *testing.T, from, to *Conn) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := from.Write([]byte("hello"))
		done <- err
	}()
	got := make([]byte, 5)
	if _, err := io.ReadFull(to, got); err != nil || string(got) != "hello" {
		t.Fatalf("%q, %v", got, err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestChosenStress runs many handshakes at once, which choose among more configurations than the
// list has room for. Some are new, and some fail.
func TestChosenStress(t *testing.T) {
	bases := make([]*tls.Config, 6)
	for i := range bases {
		bases[i] = tlstest.ServerConfig(func(c *tls.Config) { c.NextProtos = []string{fmt.Sprint("p", i)} })
	}
	bases[5].Renegotiation = tls.RenegotiateFreelyAsClient // refused
	var n atomic.Int64
	server, client := contextOf(t, tlstest.ServerConfig(func(c *tls.Config) {
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			i := n.Add(1)
			c := bases[i%6].Clone()
			if i%4 == 0 {
				c.Time = func() time.Time { _ = i; return time.Now() }
			}
			return c, nil
		}
	})), contextOf(t, tlstest.ClientConfig())
	server.boundChosen(3, bases[0])
	var ok, failed atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 30 {
				if clientErr, serverErr := shakeContexts(client, server); clientErr == nil && serverErr == nil {
					ok.Add(1)
				} else {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if ok.Load() != 200 || failed.Load() != 40 {
		t.Errorf("%d handshakes have succeeded, want 200; %d have failed", ok.Load(), failed.Load())
	}
	server.chosen.mu.Lock()
	defer server.chosen.mu.Unlock()
	for e := range server.chosen.recent.entries {
		entry := server.chosen.recent.entries[e].Value.(*recentEntry[sharedKey, *sharedContext]).value
		if users := entry.users.Load(); users != 1 {
			t.Errorf("%d users when there are no handshakes", users)
		}
	}
	if n := len(server.chosen.recent.entries); n > 3 {
		t.Errorf("%d are remembered", n)
	}
}

// TestChosenIsForgotten checks that a configuration that is no longer chosen leaves the list after
// a while.
func TestChosenIsForgotten(t *testing.T) {
	configs := []*tls.Config{tlstest.ServerConfig(), tlstest.ServerConfig(func(c *tls.Config) { c.NextProtos = []string{"x"} })}
	i := 0
	server, shake := choosing(t, func() *tls.Config { return configs[i] })
	now := time.Now()
	server.chosen.now = func() time.Time { return now }
	old := shake()
	i = 1
	shake()
	now = now.Add(contextIdle)
	if shake(); len(server.chosen.recent.entries) != 2 {
		t.Fatalf("%d configurations, want 2", len(server.chosen.recent.entries))
	}
	now = now.Add(time.Second)
	if shake(); len(server.chosen.recent.entries) != 1 {
		t.Fatalf("%d configurations, want 1", len(server.chosen.recent.entries))
	}
	if _, _, err := old.ssl.Start(true, true, "", nil, nil, make([]byte, 100)); err == nil {
		t.Error("the Context that left the list isn't closed")
	}
	i = 0
	if shake() == old {
		t.Error("it is used again")
	}
}

// TestChosenIsUnpinned checks that a handshake that fails after the choice, before there is an SSL
// of the chosen Context, stops using the Context.
func TestChosenIsUnpinned(t *testing.T) {
	var get func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	config := tlstest.ServerConfig(func(c *tls.Config) {
		c.Certificates = nil
		c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return get(hello) }
	})
	server, client := contextOf(t, tlstest.ServerConfig(func(c *tls.Config) {
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return config, nil }
	})), contextOf(t, tlstest.ClientConfig())
	for name, f := range map[string]func(*tls.ClientHelloInfo) (*tls.Certificate, error){
		"an error":       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, io.ErrNoProgress },
		"no certificate": func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil },
		"a panic":        func(*tls.ClientHelloInfo) (*tls.Certificate, error) { panic("by the test") },
	} {
		get = f
		a, b := tlstest.Buffered()
		c, s := client.Client(a, tlstest.ServerName), server.Server(b)
		done := make(chan error, 1)
		go func() {
			defer func() {
				if r := recover(); r != nil {
					done <- fmt.Errorf("panic: %v", r)
				}
				s.Close()
			}()
			done <- s.Handshake()
		}()
		if err := c.Handshake(); err == nil {
			t.Errorf("%s: the handshake succeeded", name)
		}
		if err := <-done; err == nil {
			t.Errorf("%s: the handshake succeeded on the server", name)
		}
		c.Close()
	}
	server.chosen.mu.Lock()
	defer server.chosen.mu.Unlock()
	if len(server.chosen.recent.entries) != 1 {
		t.Errorf("%d configurations are remembered, want 1", len(server.chosen.recent.entries))
	}
	for _, e := range server.chosen.recent.entries {
		if users := e.Value.(*recentEntry[sharedKey, *sharedContext]).value.users.Load(); users != 1 {
			t.Errorf("%d users when there are no handshakes", users)
		}
	}
}
