//go:build cgo || ossl_nocgo

package resumption

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// TestManyIdentities offers one ticket many times in a ClientHello, to a server that can't resume
// it and must verify the client's chain to know whether it may. The server must verify for only a
// few of them, and continue the handshake without a session.
func TestManyIdentities(t *testing.T) {
	for _, store := range []string{"tickets", "cache"} {
		t.Run(store, func(t *testing.T) { testManyIdentities(t, store) })
	}
}

func testManyIdentities(t *testing.T, store string) {
	cc, sc := tlstest.Resuming(tls.VersionTLS13)
	cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
	sc.ClientAuth, sc.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
	var verified atomic.Int32
	sc.Time = func() time.Time { verified.Add(1); return time.Now() }
	shared := ossl.WithTicketKeys(session.NewRotatingRing(0, 0))
	if store == "cache" {
		shared = ossl.WithSessionCache(session.NewCache(8))
	}
	one := ossltest.Server(t, sc, shared, ossl.WithTLS13CipherSuites(tls.TLS_AES_256_GCM_SHA384))
	other := ossltest.Server(t, sc, shared, ossl.WithTLS13CipherSuites(tls.TLS_AES_128_GCM_SHA256))
	tlstest.Visit(t, tlstest.StdClient(cc), one)
	tlstest.WantResumed(t, tlstest.StdClient(cc), one, true)

	a, b := tlstest.Buffered()
	c, s := tls.Client(&repeater{Conn: a, times: 40}, cc), other(b)
	done := make(chan error, 1)
	go func() {
		done <- c.Handshake()
		c.Close()
	}()
	verified.Store(0)
	_ = s.Handshake() // fails in the end: the client has hashed other bytes than were sent
	s.Close()
	<-done
	if n := verified.Load(); n == 0 || n > 20 {
		t.Errorf("the clock was looked at %d times", n)
	}
}

// TestSessionIDIsNoTicket offers the ID of a TLS 1.2 session, which was sent in the clear, as a TLS
// 1.3 ticket. Tickets are removed from the cache when they are offered, but the session must be
// there afterwards.
func TestSessionIDIsNoTicket(t *testing.T) {
	cc, sc := tlstest.Resuming(tls.VersionTLS12)
	sc.SessionTicketsDisabled = true
	cache := &idCache{Cache: session.NewCache(8)}
	server := ossltest.Server(t, sc, ossl.WithSessionCache(cache))
	client := ossltest.Client(t, cc)
	tlstest.WantResumed(t, client, server, false)
	tlstest.WantResumed(t, client, server, true)
	id := cache.first
	if len(id) != 32 {
		t.Fatalf("an ID of %d bytes", len(id))
	}

	cc, _ = tlstest.Resuming(tls.VersionTLS13)
	tlstest.WantResumed(t, tlstest.StdClient(cc), server, false)
	a, b := tlstest.Buffered()
	c, s := tls.Client(&repeater{Conn: a, times: 1, id: id}, cc), server(b)
	done := make(chan error, 1)
	go func() {
		done <- c.Handshake()
		c.Close()
	}()
	_ = s.Handshake()
	s.Close()
	<-done

	tlstest.WantResumed(t, client, server, true)
}

// idCache remembers the ID of its first session.
type idCache struct {
	session.Cache
	first []byte
}

func (c *idCache) Put(ctx context.Context, id, session []byte, expires time.Time) error {
	if c.first == nil {
		c.first = bytes.Clone(id)
	}
	return c.Cache.Put(ctx, id, session, expires)
}

// repeater repeats the one identity of a ClientHello, or puts id into its place.
type repeater struct {
	net.Conn
	times int
	id    []byte
}

func (c *repeater) Write(b []byte) (int, error) {
	if len(b) < 6 || b[0] != 22 || b[5] != 1 {
		return c.Conn.Write(b)
	}
	hello := b[9 : 5+int(binary.BigEndian.Uint16(b[3:]))]
	at := 2 + 32
	at += 1 + int(hello[at])
	at += 2 + int(binary.BigEndian.Uint16(hello[at:]))
	at += 1 + int(hello[at])
	head, extensions := hello[:at], hello[at+2:]
	var kept []byte
	for len(extensions) > 0 {
		n := 4 + int(binary.BigEndian.Uint16(extensions[2:]))
		extension := extensions[:n]
		extensions = extensions[n:]
		if binary.BigEndian.Uint16(extension) == 41 {
			n := int(binary.BigEndian.Uint16(extension[4:]))
			copy(extension[8:], c.id)
			identities := bytes.Repeat(extension[6:6+n], c.times)
			binders := bytes.Repeat(extension[6+n+2:], c.times)
			body := append(tlstest.Sized16(identities), tlstest.Sized16(binders)...)
			extension = append([]byte{0, 41}, tlstest.Sized16(body)...)
		}
		kept = append(kept, extension...)
	}
	body := append(bytes.Clone(head), tlstest.Sized16(kept)...)
	message := append([]byte{1, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
	for len(message) > 0 {
		n := min(len(message), 16000)
		if _, err := c.Conn.Write(append([]byte{22, 3, 1, byte(n >> 8), byte(n)}, message[:n]...)); err != nil {
			return 0, err
		}
		message = message[n:]
	}
	return len(b), nil
}
