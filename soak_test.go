//go:build cgo || ossl_nocgo

package ossl_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// TestSoak makes many connections, with failures of every kind among them, in rounds, until the C
// heap stops growing. Pools and per-thread state fill up at first, so rounds that add nothing show
// that nothing leaks. OSSL_SOAK is the number of handshakes in all.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("long: only without -short")
	}
	total := 2000
	if s := os.Getenv("OSSL_SOAK"); s != "" {
		var err error
		if total, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	if libssl.HeapInUse() == 0 {
		t.Skip("the C library has no mallinfo2, as musl, or the sanitizer's allocator stands before it: heap growth can't be read")
	}
	kinds := soakKinds(t)
	const (
		slack     = 64 << 10 // bytes a round; a leak of one object for each handshake is larger
		wanted    = 3        // rounds that add less
		maxRounds = 40
	)
	perRound := max(total/10, 200)
	flat := 0
	last := heapNow()
	var growths []int64
	for flat < wanted && len(growths) < maxRounds || len(growths)*perRound < total {
		for i := range perRound {
			kinds[i%len(kinds)](t)
		}
		now := heapNow()
		growths = append(growths, int64(now)-int64(last))
		if int64(now)-int64(last) < slack {
			flat++
		}
		last = now
	}
	t.Logf("%d handshakes; C heap growth by round: %v", perRound*len(growths), growths)
	if flat < wanted {
		t.Errorf("the C heap grows: %v", growths)
	}
}

func heapNow() uint64 {
	runtime.GC()
	runtime.GC()
	return libssl.HeapInUse()
}

// soakKinds are connections that succeed and that fail at different points.
func soakKinds(t *testing.T) []func(*testing.T) {
	mutual := func(c, s *tls.Config) {
		c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
		s.ClientAuth, s.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
		s.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }
	}
	run := func(p ossltest.Contexts, client, server tlstest.Fault) func(*testing.T) {
		return func(t *testing.T) {
			a, b := tlstest.Buffered()
			c, s := p.Client.Client(tlstest.WithFault(a, client), ""), p.Server.Server(tlstest.WithFault(b, server))
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.Read(make([]byte, 10))
				s.Close()
			}()
			c.Write([]byte("hello"))
			c.Close()
			<-done
		}
	}
	var kinds []func(*testing.T)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		at := func(edit func(c, s *tls.Config)) ossltest.Contexts {
			return ossltest.NewContexts(t, func(c, s *tls.Config) {
				c.MaxVersion = version
				if edit != nil {
					edit(c, s)
				}
			})
		}
		kinds = append(kinds,
			run(at(nil), nil, nil),
			run(at(mutual), nil, nil),
			run(at(func(c, _ *tls.Config) { c.ServerName = tlstest.OtherName }), nil, nil),
			run(at(func(c, s *tls.Config) { mutual(c, s); c.Certificates = nil }), nil, nil),
			run(at(func(c, s *tls.Config) { c.NextProtos, s.NextProtos = []string{"a"}, []string{"b"} }), nil, nil),
		)
		p := at(mutual)
		kinds = append(kinds, func(t *testing.T) { run(p, tlstest.CutAfter(300), nil)(t) })
		kinds = append(kinds, func(t *testing.T) { run(p, nil, tlstest.FlipAt(200, 1))(t) })
		kinds = append(kinds, func(t *testing.T) { // data, key updates, a damaged record, and an end without close_notify
			a, b := tlstest.Buffered()
			c, s := p.Client.Client(a, ""), p.Server.Server(b)
			done := make(chan struct{})
			go func() {
				defer close(done)
				buf := make([]byte, 1000)
				for {
					if _, err := s.Read(buf); err != nil {
						break
					}
				}
				s.Close()
			}()
			c.Write(make([]byte, 3000))
			if version == tls.VersionTLS13 {
				c.KeyUpdate(true)
			}
			c.Write([]byte("more"))
			a.Write(append([]byte{23, 3, 3, 0, 40}, make([]byte, 40)...))
			c.Read(make([]byte, 1))
			c.Close()
			<-done
		})
		kinds = append(kinds, func(t *testing.T) { // cancelled while it waits
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			a, _ := net.Pipe()
			p.Client.Client(a, "").HandshakeContext(ctx)
		})
	}
	return append(kinds, soakResumed(t)...)
}

// soakResumed are connections that resume sessions, and some that are cut while they do.
func soakResumed(t *testing.T) []func(*testing.T) {
	var kinds []func(*testing.T)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, cached := range []bool{false, true} {
			cc, sc := tlstest.Resuming(version)
			cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
			sc.ClientAuth, sc.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
			var opts []ossl.Option
			if cached {
				sc.SessionTicketsDisabled = true
				opts = append(opts, ossl.WithSessionCache(&forgetful{Cache: session.NewCache(16)}))
			}
			client, server := ossltest.Client(t, cc), ossltest.Server(t, sc, opts...)
			at := 0
			kinds = append(kinds, func(t *testing.T) { tlstest.Visit(t, client, server) }, func(t *testing.T) {
				at = (at + 37) % 3000
				cut := func(e tlstest.End) tlstest.End {
					return func(conn net.Conn) tlstest.Conn { return e(tlstest.WithFault(conn, tlstest.CutAfter(at))) }
				}
				if at%2 == 0 {
					_, _, _ = tlstest.TryVisit(cut(client), server)
				} else {
					_, _, _ = tlstest.TryVisit(client, cut(server))
				}
			})
		}
	}
	return kinds
}

// A forgetful cache drops sessions at random.
type forgetful struct {
	session.Cache
	mu  sync.Mutex
	ids [][]byte // guarded by mu; of the last sessions
}

func (f *forgetful) Put(ctx context.Context, id, der []byte, expires time.Time) error {
	if err := f.Cache.Put(ctx, id, der, expires); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids = append(f.ids, bytes.Clone(id))
	f.ids = f.ids[max(0, len(f.ids)-4):]
	if rand.IntN(4) == 0 {
		return f.Cache.Remove(ctx, f.ids[rand.IntN(len(f.ids))])
	}
	return nil
}
