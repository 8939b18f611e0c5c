//go:build cgo || ossl_nocgo

package ossl_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/connstate"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// needDetach skips the test where connections can't be detached.
func needDetach(t testing.TB) {
	t.Helper()
	switch {
	case ossltest.InFIPS:
		t.Skipf("OpenSSL %s: FIPS mode refuses to let keys leave the module", ossltest.Version())
	case ossltest.RecordsByLibssl():
		t.Skip("OSSL_RECORDS=libssl: libssl has the records")
	}
}

// move detaches c and attaches its state to ctx.
func move(t testing.TB, ctx *ossl.Context, c *ossl.Conn) *ossl.Conn {
	t.Helper()
	next, err := moved(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func moved(ctx *ossl.Context, c *ossl.Conn) (*ossl.Conn, error) {
	limit, cancel := context.WithTimeout(context.Background(), tlstest.Patience)
	defer cancel()
	state, err := c.Detach(limit)
	if err != nil {
		return nil, err
	}
	defer clear(state)
	return ctx.Attach(c.NetConn(), state)
}

// A detachCase is a connection between ours, of a role, and crypto/tls.
type detachCase struct {
	server bool
	edit   func(*tls.Config)
}

func (d detachCase) connect(t *testing.T, opts ...ossl.Option) (ctx *ossl.Context, ours *ossl.Conn, peer *tls.Conn) {
	t.Helper()
	a, b := tlstest.Loopback()
	cc, sc := tlstest.ClientConfig(d.edit), tlstest.ServerConfig(d.edit)
	if d.server {
		ctx = ossltest.NewContext(t, sc, opts...)
		ours, peer = ctx.Server(b), tls.Client(a, cc)
	} else {
		ctx = ossltest.NewContext(t, cc, opts...)
		ours, peer = ctx.Client(a, ""), tls.Server(b, sc)
	}
	deadline := time.Now().Add(tlstest.Patience)
	_, _ = a.SetDeadline(deadline), b.SetDeadline(deadline)
	t.Cleanup(func() { a.Close(); b.Close() })
	done := make(chan error, 1)
	go func() { done <- peer.Handshake() }()
	if err := ours.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return ctx, ours, peer
}

// say writes text at one end and reads it at the other.
func say(t *testing.T, from, to net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(from, text); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(to, got); err != nil || string(got) != text {
		t.Fatalf("%q, %v", got, err)
	}
}

// TestDetach moves connections several times, and compares all that they tell of themselves.
func TestDetach(t *testing.T) {
	needDetach(t)
	for _, suite := range []struct {
		version, id uint16
		key         tlstest.KeyKind
	}{
		{tls.VersionTLS13, 0, tlstest.P256},
		{tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tlstest.P256},
		{tls.VersionTLS12, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tlstest.RSA2048},
		{tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tlstest.P256},
	} {
		for _, server := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %#x server %v", tls.VersionName(suite.version), suite.id, server), func(t *testing.T) {
				edit := func(c *tls.Config) {
					tlstest.Only(suite.version)(c)
					tlstest.Protocols("proto")(c)
					if len(c.Certificates) > 0 { // the server's
						c.Certificates = []tls.Certificate{tlstest.ServerCert(suite.key)}
						tlstest.AskClient(tls.RequireAndVerifyClientCert)(c)
						c.ClientCAs = tlstest.CA().Pool()
					} else {
						tlstest.SendCertificate(tlstest.ClientCert(tlstest.P256))(c)
					}
					if suite.id != 0 {
						tlstest.Suites(suite.id)(c)
					}
				}
				ctx, c, peer := detachCase{server, edit}.connect(t)
				state := c.ConnectionState()
				exported := export(t, c)
				say(t, peer, c, "before")
				for range 3 {
					say(t, c, peer, "to the peer")
					c = move(t, ctx, c)
					say(t, peer, c, "to us")
					sameState(t, c.ConnectionState(), state)
					if got := export(t, c); !bytes.Equal(got, exported) {
						t.Errorf("exported %x, want %x", got, exported)
					}
				}
				if suite.version == tls.VersionTLS13 {
					if err := c.KeyUpdate(true); err != nil {
						t.Fatal(err)
					}
					c = move(t, ctx, c)
					say(t, c, peer, "with the next key")
					say(t, peer, c, "with the peer's next key")
					c = move(t, ctx, c)
					say(t, peer, c, "after it")
					say(t, c, peer, "likewise")
				}
				peer.CloseWrite()
				if _, err := c.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("at the end: %v", err)
				}
				c = move(t, ctx, c)
				if _, err := c.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("at the end, moved: %v", err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if _, err := peer.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("the peer's end: %v", err)
				}
				if !c.Freed() {
					t.Error("not freed")
				}
			})
		}
	}
}

func export(t *testing.T, c *ossl.Conn) []byte {
	t.Helper()
	b, err := c.ExportKeyingMaterial("EXPORTER-test", []byte("context"), 42)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sameState compares all exported fields, and the certificates by their encodings.
func sameState(t *testing.T, got, want tls.ConnectionState) {
	t.Helper()
	for i := range reflect.TypeFor[tls.ConnectionState]().NumField() {
		f := reflect.TypeFor[tls.ConnectionState]().Field(i)
		if !f.IsExported() {
			continue
		}
		a, b := reflect.ValueOf(got).Field(i).Interface(), reflect.ValueOf(want).Field(i).Interface()
		if va := reflect.ValueOf(a); va.Kind() == reflect.Slice && va.Len() == 0 && reflect.ValueOf(b).Len() == 0 {
			continue // nil or empty
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %v, want %v", f.Name, a, b)
		}
	}
}

// TestDetachOfOurs moves both ends of a connection in turn, with resumption and without a peer's
// certificate.
func TestDetachOfOurs(t *testing.T) {
	needDetach(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		p := ossltest.NewContexts(t, func(c, s *tls.Config) { c.MaxVersion = version })
		a, b := tlstest.Loopback()
		client, server := p.Client.Client(a, ""), p.Server.Server(b)
		go client.Handshake()
		say(t, server, client, "from the server")
		for range 5 {
			client = move(t, p.Client, client)
			say(t, client, server, "one")
			server = move(t, p.Server, server)
			say(t, server, client, "two")
		}
		go client.Close()
		if _, err := server.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
		server.Close()
	}
}

// TestDetachMidway moves a connection after each byte that it receives, of records and of handshake messages in
// parts.
func TestDetachMidway(t *testing.T) {
	needDetach(t)
	only13 := tlstest.Only(tls.VersionTLS13)
	cc, sc := tlstest.ClientConfig(only13), tlstest.ServerConfig(only13)
	ctx := ossltest.NewContext(t, sc)
	h := tlstest.Hijack(t, serverOf{ctx}, tlstest.ClientRole, cc, sc)
	m := newMover(h.Victim.(*ossl.Conn))
	update := []byte{24, 0, 0, 1, 1}
	stream := append(h.Seal(tlstest.TypeApplicationData, []byte("some data")), h.Seal(tlstest.TypeHandshake, update[:2])...)
	stream = append(stream, h.Seal(tlstest.TypeHandshake, update[2:])...)
	h.Rekey()
	stream = append(stream, h.Seal(tlstest.TypeApplicationData, []byte(", and more"))...)
	stream = append(stream, h.Seal(tlstest.TypeAlert, []byte{1, 0})...)
	read := make(chan string)
	go func() {
		got, err := io.ReadAll(iotest.OneByteReader(m))
		if err != nil {
			t.Error(err)
		}
		read <- string(got)
	}()
	for _, b := range stream {
		h.WaitStarved()
		m.move(t, ctx)
		h.SendRaw([]byte{b})
	}
	if got := <-read; got != "some data, and more" {
		t.Errorf("%q", got)
	}
	received := h.Received()
	if len(received) != 1 || received[0].Type != tlstest.TypeHandshake || !bytes.Equal(received[0].Payload, []byte{24, 0, 0, 1, 0}) {
		t.Errorf("the peer has received %+v, not one KeyUpdate", received)
	}
}

// TestDetachUnread: data that was decrypted and not read moves, in a record of its own and in front of others.
func TestDetachUnread(t *testing.T) {
	needDetach(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		ctx, c, peer := detachCase{server: true, edit: tlstest.Only(version)}.connect(t)
		for range 3 {
			if _, err := io.WriteString(peer, "0123456789"); err != nil {
				t.Fatal(err)
			}
		}
		var got []byte
		for len(got) < 30 {
			buf := make([]byte, 3)
			n, err := c.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, buf[:n]...)
			c = move(t, ctx, c)
		}
		if string(got) != "012345678901234567890123456789" {
			t.Errorf("%q", got)
		}
		say(t, c, peer, "likewise")
		c.Close()
	}
}

// serverOf is a tlstest.Impl of one Context.
type serverOf struct{ ctx *ossl.Context }

func (s serverOf) Name() string                                     { return "ossl" }
func (s serverOf) Client(conn net.Conn, _ *tls.Config) tlstest.Conn { return s.ctx.Client(conn, "") }
func (s serverOf) Server(conn net.Conn, _ *tls.Config) tlstest.Conn { return s.ctx.Server(conn) }

// movedWithTickets returns a server's connection that was moved before its tickets left. puts counts those that
// the client gets.
func movedWithTickets(t *testing.T) (c *ossl.Conn, peer *tls.Conn, puts *counted) {
	t.Helper()
	needDetach(t)
	cc, sc := tlstest.Resuming(tls.VersionTLS13)
	puts = new(counted)
	cc.ClientSessionCache = puts
	ctx := ossltest.NewContext(t, sc)
	a, b := tlstest.Loopback()
	c, peer = ctx.Server(b), tls.Client(a, cc)
	tlstest.Shake(t, peer, c)
	if c.QueueLen() == 0 {
		t.Fatal("no tickets wait")
	}
	c = move(t, ctx, c)
	t.Cleanup(func() { c.Close(); peer.Close() })
	if c.QueueLen() == 0 || puts.Load() != 0 {
		t.Error("the tickets have not moved")
	}
	return c, peer, puts
}

// TestDetachUnsent: sealed records that were not sent, a server's tickets, leave with the first data after the move.
func TestDetachUnsent(t *testing.T) {
	c, peer, puts := movedWithTickets(t)
	say(t, c, peer, "text")
	if puts.Load() == 0 {
		t.Error("the client got no ticket")
	}
}

// TestDetachSilent: the tickets of a server that was moved leave alone if the client sends nothing for a while.
func TestDetachSilent(t *testing.T) {
	c, peer, puts := movedWithTickets(t)
	ended := make(chan struct{}, 2)
	for _, conn := range []net.Conn{c, peer} {
		go func() { _, _ = conn.Read(make([]byte, 1)); ended <- struct{}{} }()
	}
	tlstest.WaitUntil(t, func() bool { return puts.Load() > 0 })
	c.Close()
	peer.Close()
	<-ended
	<-ended
}

// TestDetachAbandoned: if the context is done while a Read that was interrupted doesn't return, since it waits in the
// session cache, Detach closes the connection, which is no longer counted as open.
func TestDetachAbandoned(t *testing.T) {
	needDetach(t)
	defer ossl.SetReadGrace(time.Millisecond)()
	ctx, c, stuck, read := stuckRead(t)
	limit, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if state, err := c.Detach(limit); state != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d bytes, %v", len(state), err)
	}
	if _, err := c.Write([]byte("x")); err != net.ErrClosed {
		t.Errorf("Write: %v", err)
	}
	if n := ctx.Stats().OpenConns; n != 0 {
		t.Errorf("%d connections are open", n)
	}
	close(stuck.answer)
	if err := <-read; err == nil {
		t.Error("the Read has no error")
	}
	tlstest.WaitUntil(t, c.Freed)
}

// TestDetachSlowRead: if the context is done while a Read that was interrupted is slow to return, as on a busy machine,
// Detach waits for it, and the connection isn't lost.
func TestDetachSlowRead(t *testing.T) {
	needDetach(t)
	a, b := tlstest.Loopback()
	cc, sc := tlstest.ClientConfig(), tlstest.ServerConfig()
	ctx := ossltest.NewContext(t, sc)
	limit, cancel := context.WithCancel(t.Context())
	slow := &slowConn{Conn: b, interrupted: cancel}
	c, peer := ctx.Server(slow), tls.Client(a, cc)
	defer peer.Close()
	tlstest.Shake(t, peer, c)
	slow.armed.Store(true)
	read := make(chan error, 1)
	go func() { _, err := c.Read(make([]byte, 1)); read <- err }()
	tlstest.WaitUntil(t, slow.waits.Load)
	state, err := c.Detach(limit)
	if err != nil || limit.Err() == nil {
		t.Fatal(err, limit.Err())
	}
	if err := <-read; err != ossl.ErrDetached {
		t.Errorf("Read: %v", err)
	}
	next, err := ctx.Attach(b, state)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	say(t, next, peer, "text")
}

// TestDetachClosed: Close ends a Detach that waits for a Read.
func TestDetachClosed(t *testing.T) {
	needDetach(t)
	_, c, stuck, read := stuckRead(t)
	detached := make(chan error, 1)
	go func() { _, err := c.Detach(t.Context()); detached <- err }()
	tlstest.WaitUntil(t, c.Detaching)
	c.Close()
	if err := <-detached; err != net.ErrClosed {
		t.Errorf("Detach: %v", err)
	}
	close(stuck.answer)
	<-read
}

// A slowConn is a net.Conn whose Read, when it is interrupted, calls a function and returns a while later.
type slowConn struct {
	net.Conn
	armed, waits atomic.Bool
	interrupted  func()
}

func (c *slowConn) Read(b []byte) (int, error) {
	if c.armed.Load() {
		c.waits.Store(true)
	}
	n, err := c.Conn.Read(b)
	if err != nil && c.armed.Load() {
		c.interrupted()
		time.Sleep(50 * time.Millisecond)
	}
	return n, err
}

// stuckRead returns a server's connection whose Read, which Detach can't interrupt, waits in the session cache for
// stuck.answer. The Read's error goes to read.
func stuckRead(t *testing.T) (ctx *ossl.Context, c *ossl.Conn, stuck stuckCache, read chan error) {
	t.Helper()
	cc, sc := tlstest.Resuming(tls.VersionTLS12)
	cc.SessionTicketsDisabled = true // so that the session is in the cache
	stuck = stuckCache{session.NewCache(4), make(chan struct{}), make(chan struct{})}
	ctx = ossltest.NewContext(t, sc, ossl.WithSessionCache(stuck))
	h := tlstest.Hijack(t, serverOf{ctx}, tlstest.ClientRole, cc, sc)
	c = h.Victim.(*ossl.Conn)
	h.Send(tlstest.TypeAlert, []byte{2, 80})
	read = make(chan error, 1)
	go func() { _, err := c.Read(make([]byte, 1)); read <- err }()
	<-stuck.asked
	return ctx, c, stuck, read
}

// A stuckCache waits with Remove for its answer, whatever the context.
type stuckCache struct {
	session.Cache
	asked, answer chan struct{}
}

func (c stuckCache) Remove(ctx context.Context, id []byte) error {
	close(c.asked)
	<-c.answer
	return c.Cache.Remove(ctx, id)
}

// A counted is an empty ClientSessionCache that counts the sessions it gets.
type counted struct {
	mu sync.Mutex
	n  int
}

func (c *counted) Get(string) (*tls.ClientSessionState, bool) { return nil, false }
func (c *counted) Put(_ string, s *tls.ClientSessionState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s != nil {
		c.n++
	}
}

func (c *counted) Load() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// TestDetachWaits: a Read that waits returns ErrDetached, and so do all later calls; the connection goes on.
func TestDetachWaits(t *testing.T) {
	needDetach(t)
	for name, wait := range map[string]func(*ossl.Conn) error{
		"Read":     func(c *ossl.Conn) error { _, err := c.Read(make([]byte, 1)); return err },
		"WaitRead": (*ossl.Conn).WaitRead,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, c, peer := detachCase{server: true, edit: func(*tls.Config) {}}.connect(t)
			_ = c.SetReadDeadline(time.Now().Add(time.Hour))
			waited := make(chan error)
			go func() { waited <- wait(c) }()
			tlstest.WaitUntil(t, c.Reading)
			next := move(t, ctx, c)
			if err := <-waited; err != ossl.ErrDetached {
				t.Errorf("%v", err)
			}
			for name, call := range map[string]func() error{
				"Read":        func() error { _, err := c.Read(make([]byte, 1)); return err },
				"WaitRead":    c.WaitRead,
				"Write":       func() error { _, err := c.Write([]byte("x")); return err },
				"CloseWrite":  c.CloseWrite,
				"SetDeadline": func() error { return c.SetDeadline(time.Now()) },
				"Detach":      func() error { _, err := c.Detach(context.Background()); return err },
			} {
				if err := call(); err != ossl.ErrDetached || !errors.Is(err, net.ErrClosed) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := c.Close(); err != nil || !c.Freed() {
				t.Errorf("Close: %v", err)
			}
			say(t, peer, next, "to us")
			say(t, next, peer, "to the peer")
			next.Close()
		})
	}
}

// TestDetachBehindWrite: Detach waits for a Write that the peer blocks. It gives up with its context, and the
// connection goes on; or the Write is finished, and all of it arrives.
func TestDetachBehindWrite(t *testing.T) {
	needDetach(t)
	ctx, c, peer := detachCase{server: true, edit: func(*tls.Config) {}}.connect(t)
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	written := make(chan error, 1)
	go func() { _, err := c.Write(text); written <- err }()
	for c.Writes() == 0 {
		runtime.Gosched()
	}
	limit, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := c.Detach(limit); err != context.Canceled {
		t.Fatalf("behind a Write that waits: %v", err)
	}
	next := make(chan *ossl.Conn, 1)
	go func() {
		n, err := moved(ctx, c)
		if err != nil {
			t.Error(err)
		}
		next <- n
	}()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, text) {
		t.Errorf("not all has arrived: %v", err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	if n := <-next; n != nil {
		say(t, n, peer, "and more")
		n.Close()
	}
}

// TestDetachRefused: a connection that can't move is refused by name, and goes on.
func TestDetachRefused(t *testing.T) {
	needDetach(t)
	background := context.Background()
	refused := func(t *testing.T, c *ossl.Conn, peer net.Conn, reason string) {
		t.Helper()
		var e *ossl.DetachError
		if state, err := c.Detach(background); !errors.As(err, &e) || !strings.Contains(e.Reason, reason) || state != nil {
			t.Errorf("%v, want %q", err, reason)
		}
		if peer != nil {
			say(t, c, peer, "it goes on")
			say(t, peer, c, "likewise")
		}
	}
	t.Run("handshake", func(t *testing.T) {
		a, _ := tlstest.Loopback()
		c := ossltest.NewContext(t, tlstest.ClientConfig()).Client(a, "")
		refused(t, c, nil, "handshake")
		c.Close()
		if _, err := c.Detach(background); err != net.ErrClosed {
			t.Errorf("closed: %v", err)
		}
	})
	t.Run("libssl", func(t *testing.T) {
		_, c, peer := detachCase{edit: func(*tls.Config) {}}.connect(t, ossl.WithRecordPath(ossl.RecordsLibssl))
		refused(t, c, peer, "libssl has the records")
	})
	t.Run("tickets", func(t *testing.T) {
		_, c, peer := detachCase{edit: func(c *tls.Config) {
			tlstest.Only(tls.VersionTLS13)(c)
			c.SessionTicketsDisabled, c.ClientSessionCache = false, tls.NewLRUClientSessionCache(1)
		}}.connect(t)
		refused(t, c, nil, "libssl has the records")
		say(t, peer, c, "the first data")
		if _, err := c.Detach(background); err != nil {
			t.Error(err)
		}
	})
	t.Run("context", func(t *testing.T) {
		_, c, peer := detachCase{edit: func(*tls.Config) {}}.connect(t)
		done, cancel := context.WithCancel(background)
		cancel()
		if _, err := c.Detach(done); err != context.Canceled {
			t.Error(err)
		}
		say(t, c, peer, "it goes on")
	})
	t.Run("failed", func(t *testing.T) {
		_, c, peer := detachCase{edit: func(*tls.Config) {}}.connect(t)
		peer.NetConn().Close()
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("read")
		}
		refused(t, c, nil, "a Read has failed")
	})
}

// TestAttachRefused: a state is used once, and only as it was made.
func TestAttachRefused(t *testing.T) {
	needDetach(t)
	ctx, c, peer := detachCase{server: true, edit: tlstest.Only(tls.VersionTLS13)}.connect(t)
	state, err := c.Detach(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	conn := c.NetConn()
	core, _, err := connstate.Split(state)
	if err != nil || len(core) > 500 {
		t.Errorf("%d bytes without the certificates, %v", len(core), err)
	}
	for i := range state {
		changed := bytes.Clone(state)
		changed[i] ^= 1
		if _, err := ctx.Attach(conn, changed); !errors.Is(err, ossl.ErrBadState) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	var config *ossl.ConfigError
	libssls := ossltest.NewContext(t, tlstest.ServerConfig(), ossl.WithRecordPath(ossl.RecordsLibssl))
	if _, err := libssls.Attach(conn, state); !errors.As(err, &config) {
		t.Errorf("libssl's records: %v", err)
	}
	next, err := ctx.Attach(conn, state)
	if err != nil {
		t.Fatal(err)
	}
	for _, ctx := range []*ossl.Context{ctx, ossltest.NewContext(t, tlstest.ServerConfig())} {
		if _, err := ctx.Attach(conn, state); !errors.Is(err, ossl.ErrBadState) {
			t.Errorf("a second time: %v", err)
		}
	}
	say(t, next, peer, "it goes on")
	next.Close()
}

// TestFIPSDetach: keys neither leave the module nor come from outside of it.
func TestFIPSDetach(t *testing.T) {
	ossltest.NeedFIPS(t)
	ctx := ossltest.FIPSServer(t)
	a, b := tlstest.Loopback()
	c, peer := ctx.Server(b), tls.Client(a, tlstest.ClientConfig())
	defer c.Close()
	defer peer.Close()
	tlstest.Shake(t, peer, c)
	var refused *ossl.DetachError
	if _, err := c.Detach(context.Background()); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "FIPS") {
		t.Errorf("Detach: %v", err)
	}
	say(t, c, peer, "it goes on")
	state, err := new(connstate.State).Encode()
	if err != nil {
		t.Fatal(err)
	}
	var config *ossl.ConfigError
	if _, err := ctx.Attach(b, state); !errors.As(err, &config) || !strings.Contains(config.Reason, "FIPS") {
		t.Errorf("Attach: %v", err)
	}
}

// TestUsedStates: each number is used once, in any order, and numbers in a row take one span.
func TestUsedStates(t *testing.T) {
	numbers := []uint64{0, 1<<64 - 1, 1<<64 - 2}
	for n := range uint64(100) {
		numbers = append(numbers, n+1, n/2)
	}
	for range 20 {
		rand.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
		before, spans := ossl.UseStates(numbers)
		used := map[uint64]bool{}
		for i, n := range numbers {
			if before[i] != used[n] {
				t.Errorf("%d: used before: %v", n, before[i])
			}
			used[n] = true
		}
		if spans != 2 {
			t.Errorf("%d spans", spans)
		}
	}
}

// TestDetachSession: a fatal alert removes the session of a connection that was moved.
func TestDetachSession(t *testing.T) {
	needDetach(t)
	removed := 0
	cc, sc := tlstest.Resuming(tls.VersionTLS12)
	cc.SessionTicketsDisabled = true // so that the session is in the cache
	ctx := ossltest.NewContext(t, sc, ossl.WithSessionCache(session.NewCache(4)), ossl.WithEvents(func(e ossl.Event) {
		if e, ok := e.(*ossl.SessionEvent); ok && e.Op == "remove" {
			removed++
		}
	}))
	h := tlstest.Hijack(t, serverOf{ctx}, tlstest.ClientRole, cc, sc)
	c := move(t, ctx, h.Victim.(*ossl.Conn))
	h.Send(tlstest.TypeAlert, []byte{2, 80})
	if _, err := c.Read(make([]byte, 1)); err == nil || removed != 1 {
		t.Errorf("%v, %d sessions are removed", err, removed)
	}
	c.Close()
}

// TestDetachStats: a connection counts as open in one place.
func TestDetachStats(t *testing.T) {
	needDetach(t)
	ctx, c, _ := detachCase{server: true, edit: func(*tls.Config) {}}.connect(t)
	var closes []*ossl.CloseEvent
	next := ossltest.NewContext(t, tlstest.ServerConfig(), ossl.WithEvents(func(e ossl.Event) {
		if e, ok := e.(*ossl.CloseEvent); ok {
			closes = append(closes, e)
		}
	}))
	open := func() [2]uint64 { return [2]uint64{ctx.Stats().OpenConns, next.Stats().OpenConns} }
	if open() != [2]uint64{1, 0} {
		t.Errorf("before: %v", open())
	}
	c = move(t, next, c)
	if open() != [2]uint64{0, 1} || next.Stats().Records.Direct != 1 {
		t.Errorf("moved: %v", open())
	}
	c.Close()
	if open() != [2]uint64{0, 0} || len(closes) != 1 || closes[0].Conn != c || closes[0].Err != nil {
		t.Errorf("closed: %v, %v", open(), closes)
	}
}

// TestDetachUnderLoad moves connections at random moments, while both directions carry data and keys change.
// Each stream arrives as it was sent.
func TestDetachUnderLoad(t *testing.T) {
	needDetach(t)
	moves := 150
	if testing.Short() {
		moves = 30
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, server := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s server %v", tls.VersionName(version), server), func(t *testing.T) {
				t.Parallel()
				ctx, c, peer := detachCase{server, tlstest.Only(version)}.connect(t)
				_ = peer.SetDeadline(time.Time{})
				runLoad(t, ctx, c, peer, moves, version == tls.VersionTLS13)
			})
		}
	}
}

// A mover is a net.Conn over connections that replace one another.
type mover struct{ current atomic.Pointer[ossl.Conn] }

func newMover(c *ossl.Conn) *mover {
	m := new(mover)
	m.current.Store(c)
	return m
}

// do calls f with the current connection, again if it was detached in the meantime.
func (m *mover) do(f func(*ossl.Conn) (int, error)) (int, error) {
	for {
		c := m.current.Load()
		if n, err := f(c); n > 0 || err != ossl.ErrDetached {
			return n, err
		}
		for m.current.Load() == c {
			time.Sleep(10 * time.Microsecond)
		}
	}
}

// move replaces the connection. Reads go on until they are interrupted: a peer that waits for its own Write, in
// a Read that answers a KeyUpdate, takes no data.
func (m *mover) move(t testing.TB, ctx *ossl.Context) {
	next, err := moved(ctx, m.current.Load())
	if err != nil {
		t.Error(err)
		return
	}
	m.current.Store(next)
}

func (m *mover) Read(b []byte) (int, error) {
	return m.do(func(c *ossl.Conn) (int, error) { return c.Read(b) })
}

func (m *mover) Write(b []byte) (int, error) {
	return m.do(func(c *ossl.Conn) (int, error) { return c.Write(b) })
}

func runLoad(t *testing.T, ctx *ossl.Context, c *ossl.Conn, peer *tls.Conn, moves int, updates bool) {
	m := newMover(c)
	stop := make(chan struct{})
	var sums [4]hash.Hash
	for i := range sums {
		sums[i] = sha256.New()
	}
	var group sync.WaitGroup
	send := func(w io.Writer, sum hash.Hash, end func()) {
		r := rand.New(rand.NewPCG(1, 2))
		buf := make([]byte, 40000)
		for {
			select {
			case <-stop:
				end()
				return
			default:
			}
			b := buf[:r.IntN(len(buf))]
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			sum.Write(b)
			if _, err := w.Write(b); err != nil {
				t.Error(err)
				return
			}
		}
	}
	receive := func(from io.Reader, sum hash.Hash) {
		if _, err := io.Copy(sum, from); err != nil {
			t.Error(err)
		}
	}
	group.Go(func() { send(m, sums[0], func() { m.current.Load().CloseWrite() }) })
	received := make(chan struct{})
	group.Go(func() { receive(peer, sums[1]); close(received) })
	// crypto/tls keeps its reading key if it can't send the answer to a KeyUpdate, as after CloseWrite.
	group.Go(func() { send(peer, sums[2], func() { <-received; peer.CloseWrite() }) })
	group.Go(func() { receive(m, sums[3]) })
	for i := range moves {
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
		if updates && i%3 == 0 {
			if err := m.current.Load().KeyUpdate(i%2 == 0); err != nil {
				t.Error(err)
			}
		}
		m.move(t, ctx)
	}
	close(stop)
	group.Wait()
	for i := 0; i < 4; i += 2 {
		if !bytes.Equal(sums[i].Sum(nil), sums[i+1].Sum(nil)) {
			t.Errorf("stream %d has arrived changed", i/2)
		}
	}
	m.current.Load().Close()
	peer.Close()
}
