package libp2ptls

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"testing"

	ci "github.com/libp2p/go-libp2p/core/crypto"
)

// The three benchmarks of go-libp2p-tls's pull request 72, with the same four pairings. Both sides
// of a pairing have their keys, certificates and configurations made outside of the timer, unless
// the benchmark's name states otherwise, and agree on the same group and suite.
//
//	go test -run '^$' -bench . -cpu 1,2

// sameTerms makes both flavours agree on parameters that every OpenSSL has. TLS_AES_128_GCM_SHA256
// is the first choice of both.
func sameTerms(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.X25519} }

func benchPairings(b *testing.B, run func(b *testing.B, p pairing)) {
	for _, p := range pairings {
		b.Run(fmt.Sprintf("server=%s/client=%s", p.server.name, p.client.name), func(b *testing.B) { run(b, p) })
	}
}

// ends are a listening server and its clients.
type ends struct {
	meeting
	listener net.Listener
	served   chan result
}

// listen makes the server secure every incoming connection.
func listen(b *testing.B, m meeting) *ends {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	e := &ends{m, listener, make(chan result)}
	go func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			conn, err := m.server.SecureInbound(context.Background(), raw, "")
			e.served <- result{conn, err}
		}
	}()
	return e
}

func (e *ends) dialRaw(b *testing.B) net.Conn {
	raw, err := net.Dial("tcp", e.listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	return raw
}

// wait returns the server's end.
func (e *ends) wait(b *testing.B, client result) result {
	s := <-e.served
	if client.err != nil || s.err != nil {
		b.Fatalf("client: %v; server: %v", client.err, s.err)
	}
	return s
}

func freshPeer() identity { return identityOf(newKey(ci.ECDSA)) }

func benchMeeting(b *testing.B, p pairing) meeting {
	b.Helper()
	server, client := freshPeer(), freshPeer()
	m := meeting{
		server:      p.server.transport(b, server, nil, sameTerms),
		client:      p.client.transport(b, client, nil, sameTerms),
		clientWants: server.id,
	}
	c, s := m.both(b) // each now remembers the other
	for _, conn := range []net.Conn{c, s} {
		state := conn.(interface{ ConnectionState() tls.ConnectionState }).ConnectionState()
		if state.CipherSuite != tls.TLS_AES_128_GCM_SHA256 || state.CurveID != tls.X25519 {
			b.Fatalf("%s with %v", tls.CipherSuiteName(state.CipherSuite), state.CurveID)
		}
	}
	c.Close()
	s.Close()
	return m
}

// BenchmarkHandshake measures the client's SecureOutbound. The peers are
//   - known: both have met before, as when a peer connects again;
//   - new: neither remembers the other;
//   - fresh: the client is another peer each time, with a transport whose first connection it is,
//     made outside of the timer. This is the pull request's measurement.
//
// go-libp2p's transport remembers no peers: it treats the three alike.
func BenchmarkHandshake(b *testing.B) {
	for _, peers := range []string{"known", "new", "fresh"} {
		b.Run("peers="+peers, func(b *testing.B) {
			benchPairings(b, func(b *testing.B, p pairing) {
				e := listen(b, benchMeeting(b, p))
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					b.StopTimer()
					switch peers {
					case "new":
						forget(e.server)
						forget(e.client)
					case "fresh":
						e.client = p.client.transport(b, freshPeer(), nil, sameTerms)
					}
					raw := e.dialRaw(b)
					b.StartTimer()
					c := e.dial(raw)
					b.StopTimer()
					s := e.wait(b, c)
					c.conn.Close()
					s.conn.Close()
					b.StartTimer()
				}
			})
		})
	}
}

// forget removes all peers from a transport's cache.
func forget(tr IDTransport) {
	if t, ok := tr.(*Transport); ok {
		t.peers.mu.Lock()
		defer t.peers.mu.Unlock()
		clear(t.peers.entries)
	}
}

// BenchmarkLatency measures a round trip on one connection: the client sends PING, the server
// answers PONG.
func BenchmarkLatency(b *testing.B) {
	benchPairings(b, func(b *testing.B, p pairing) {
		e := listen(b, benchMeeting(b, p))
		c := e.dial(e.dialRaw(b))
		s := e.wait(b, c)
		done := make(chan error, 1)
		go func() {
			buf := make([]byte, len("PING\n"))
			for {
				if _, err := io.ReadFull(s.conn, buf); err != nil {
					done <- err
					return
				}
				if _, err := s.conn.Write([]byte("PONG\n")); err != nil {
					done <- err
					return
				}
			}
		}()
		ping, pong := []byte("PING\n"), make([]byte, len("PONG\n"))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.conn.Write(ping); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(c.conn, pong); err != nil {
				b.Fatal(err)
			}
		}
		c.conn.Close()
		if err := <-done; err != io.EOF {
			b.Fatal(err)
		}
		s.conn.Close()
	})
}

// BenchmarkConnections measures dialling, the handshake and closing, on both sides. With keys=made
// each connection's two peers make their keys and their transports for it, as in the pull request;
// with keys=given they are made once.
func BenchmarkConnections(b *testing.B) {
	for _, keys := range []string{"given", "made"} {
		b.Run("keys="+keys, func(b *testing.B) {
			benchPairings(b, func(b *testing.B, p pairing) {
				e := listen(b, benchMeeting(b, p))
				b.ReportAllocs()
				for b.Loop() {
					if keys == "made" {
						b.StopTimer()
						e.listener.Close()
						b.StartTimer()
						server, client := freshPeer(), freshPeer()
						m := meeting{
							server:      p.server.transport(b, server, nil, sameTerms),
							client:      p.client.transport(b, client, nil, sameTerms),
							clientWants: server.id,
						}
						e = listen(b, m)
					}
					c := e.dial(e.dialRaw(b))
					s := e.wait(b, c)
					c.conn.Close()
					s.conn.Close()
				}
			})
		})
	}
}
