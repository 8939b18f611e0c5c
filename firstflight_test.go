//go:build cgo || ossl_nocgo

package ossl_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// begin returns a client over conn, and a channel that gets the result of the handshake that it
// begins on the server. Both are closed at the test's end.
func begin(t *testing.T, clients *ossl.Context, conn net.Conn, server interface {
	Handshake() error
	Close() error
}) (client *ossl.Conn, shaken <-chan error) {
	t.Helper()
	client = clients.Client(conn, "")
	t.Cleanup(func() { client.Close(); server.Close() })
	result := make(chan error, 1)
	go func() { result <- server.Handshake() }()
	return client, result
}

// TestFinishedLeavesWithData checks how many times a client writes to its connection in a handshake
// that a Write begins, and that the server gets the client's last flight whatever the Write does.
func TestFinishedLeavesWithData(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, path := range []ossl.RecordPath{ossl.RecordsAuto, ossl.RecordsLibssl} {
			for _, resumed := range []bool{false, true} {
				for what, trigger := range map[string]struct {
					data   int
					writes int64 // for the client's last flight and the data
					do     func(c *ossl.Conn) error
				}{
					"Write":            {4, 1, func(c *ossl.Conn) error { _, err := c.Write([]byte("data")); return err }},
					"Write of much":    {40_000, 1, func(c *ossl.Conn) error { _, err := c.Write(make([]byte, 40_000)); return err }},
					"Write of nothing": {0, 1, func(c *ossl.Conn) error { _, err := c.Write(nil); return err }},
					"Handshake": {4, 2, func(c *ossl.Conn) error {
						if err := c.Handshake(); err != nil {
							return err
						}
						_, err := c.Write([]byte("data"))
						return err
					}},
				} {
					t.Run(fmt.Sprintf("%s/records=%v/resumed=%t/%s", tlstest.VersionName(version), path, resumed, what), func(t *testing.T) {
						testFinishedLeaves(t, version, path, resumed, trigger.data, trigger.writes, trigger.do)
					})
				}
			}
		}
	}
}

func testFinishedLeaves(t *testing.T, version uint16, path ossl.RecordPath, resumed bool, data int, writes int64,
	do func(*ossl.Conn) error) {
	cc, sc := tlstest.Resuming(version)
	clients, servers := ossltest.NewContext(t, cc, ossl.WithRecordPath(path)), ossltest.NewContext(t, sc)
	for visit := range 2 {
		if visit == 0 && !resumed {
			continue
		}
		a, b := tlstest.Loopback()
		counter := &tlstest.WriteCounter{Conn: a}
		server := servers.Server(b)
		client, shaken := begin(t, clients, counter, server)
		got := make(chan error, 1)
		go func() {
			err := server.Handshake()
			if err == nil {
				_, err = io.ReadFull(server, make([]byte, data))
			}
			if err == nil { // with the TLS 1.3 ticket
				_, err = server.Write([]byte("answer"))
			}
			got <- err
		}()
		if err := do(client); err != nil {
			t.Fatal(err)
		}
		if err := <-shaken; err != nil { // without a Read or a Close of the client
			t.Fatal(err)
		}
		want := 1 + writes // with the ClientHello
		if version == tls.VersionTLS12 && !(resumed && visit == 1) {
			want = 2 + int64(min(data, 1)) // the server's Finished comes behind the client's
		}
		if n := counter.Writes.Load(); n != want {
			t.Errorf("visit %d: %d writes, not %d", visit, n, want)
		}
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(client, make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		if client.ConnectionState().DidResume != (resumed && visit == 1) {
			t.Fatalf("visit %d: resumed: %t", visit, client.ConnectionState().DidResume)
		}
	}
}

// TestHandshakeForWrite checks when a client's last flight leaves after HandshakeForWrite: with the
// first data or with close_notify, else after a while, and not before.
func TestHandshakeForWrite(t *testing.T) {
	for what, do := range map[string]func(c *ossl.Conn) error{
		"Write":      func(c *ossl.Conn) error { _, err := c.Write([]byte("data")); return err },
		"Close":      (*ossl.Conn).Close,
		"CloseWrite": (*ossl.Conn).CloseWrite,
		"KeyUpdate":  func(c *ossl.Conn) error { return c.KeyUpdate(false) },
		"nothing":    func(*ossl.Conn) error { return nil },
		"Read": func(c *ossl.Conn) error {
			go c.Read(make([]byte, 1))
			return nil
		},
	} {
		for _, path := range []ossl.RecordPath{ossl.RecordsAuto, ossl.RecordsLibssl} {
			t.Run(fmt.Sprintf("%s/records=%v", what, path), func(t *testing.T) {
				t.Parallel()
				a, b := tlstest.Loopback()
				cc, sc := tlstest.Resuming(tls.VersionTLS13)
				client, shaken := begin(t, ossltest.NewContext(t, cc, ossl.WithRecordPath(path)), a, ossltest.NewContext(t, sc).Server(b))
				if err := client.HandshakeForWrite(t.Context()); err != nil {
					t.Fatal(err)
				}
				if client.QueueLen() == 0 {
					t.Error("the last flight has left")
				}
				if err := do(client); err != nil {
					t.Fatal(err)
				}
				if n := client.QueueLen(); n > 0 && what != "nothing" && what != "Read" {
					t.Errorf("%d bytes wait", n)
				}
				if err := <-shaken; err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// A blockedCache stores the session of its first Put. Its second Put blocks.
type blockedCache struct {
	tls.ClientSessionCache
	first, rest chan struct{}
}

func (c blockedCache) Put(key string, s *tls.ClientSessionState) {
	select {
	case c.first <- struct{}{}:
		c.ClientSessionCache.Put(key, s)
	default:
		<-c.rest
	}
}

// TestLastFlightPrecedesCache checks that a client's last flight doesn't wait until its cache has
// taken the new ticket of a TLS 1.2 session that was resumed.
func TestLastFlightPrecedesCache(t *testing.T) {
	cc, sc := tlstest.Resuming(tls.VersionTLS12)
	cache := blockedCache{cc.ClientSessionCache, make(chan struct{}, 1), make(chan struct{})}
	cc.ClientSessionCache = cache
	client := ossltest.NewContext(t, cc)
	for _, keys := range [][][32]byte{{{1}}, {{2}, {1}}} { // the second time, the ticket's key is an old one
		sc.SetSessionTicketKeys(keys)
		a, b := tlstest.Loopback()
		server := tls.Server(b, sc)
		conn, shaken := begin(t, client, a, server)
		written := make(chan error, 1)
		go func() { _, err := conn.Write([]byte("data")); written <- err }()
		select {
		case err := <-shaken:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the last flight waits for the cache")
		}
		resumed := len(keys) == 2
		if server.ConnectionState().DidResume != resumed {
			t.Fatalf("resumed: %t", !resumed)
		}
		if resumed {
			close(cache.rest)
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
	}
}

// TestHeldFlightIgnoresDeadlines checks that a deadline that was meant for the handshake doesn't end
// a connection whose last flight leaves after it.
func TestHeldFlightIgnoresDeadlines(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "aix" { // nothing is held, or netio.SendNow sends nothing
		return
	}
	a, b := tlstest.Loopback()
	p := ossltest.NewContexts(t, nil)
	server := p.Server.Server(b)
	client, shaken := begin(t, p.Client, a, server)
	if err := client.HandshakeForWrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	client.SetWriteDeadline(time.Now().Add(-time.Second))
	select {
	case err := <-shaken:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the last flight has not left")
	}
	client.SetWriteDeadline(time.Time{})
	if _, err := client.Write([]byte("data")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(server, make([]byte, 4)); err != nil {
		t.Error(err)
	}
}

// TestHandshakeForWriteHoldsNothing checks the handshakes after which nothing waits: TLS 1.2
// handshakes in which the server sends the last flight, and handshakes over connections that aren't
// sockets.
func TestHandshakeForWriteHoldsNothing(t *testing.T) {
	for name, version := range map[string]uint16{"TLS 1.2": tls.VersionTLS12, "no socket": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			pair := tlstest.Loopback
			if name == "no socket" {
				pair = func() (net.Conn, net.Conn) { a, b := tlstest.NewPipe(); return a, b }
			}
			a, b := pair()
			p := ossltest.NewContexts(t, func(c, _ *tls.Config) { c.MinVersion, c.MaxVersion = version, version })
			client, shaken := begin(t, p.Client, a, p.Server.Server(b))
			if err := client.HandshakeForWrite(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := client.QueueLen(); n > 0 {
				t.Errorf("%d bytes wait", n)
			}
			if err := <-shaken; err != nil {
				t.Fatal(err)
			}
		})
	}
}
