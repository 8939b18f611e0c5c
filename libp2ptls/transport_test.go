package libp2ptls

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	ci "github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"

	"github.com/ossl-go/ossl"
)

// TestHandshake: peers with keys of every kind meet; it checks each side's view of the other.
func TestHandshake(t *testing.T) {
	kinds := []struct {
		name string
		key  ci.PrivKey
	}{
		{"RSA", newKey(ci.RSA)}, {"Ed25519", newKey(ci.Ed25519)}, {"Secp256k1", newKey(ci.Secp256k1)}, {"ECDSA", newKey(ci.ECDSA)},
	}
	inAllPairings(t, func(t *testing.T, p pairing) {
		for i, kind := range kinds {
			server, client := identityOf(kind.key), identityOf(kinds[(i+1)%len(kinds)].key)
			for _, wants := range []string{"", "known to the server"} {
				t.Run(strings.TrimSpace(kind.name+" "+wants), func(t *testing.T) {
					m := meeting{
						server:      p.server.transport(t, server, nil),
						client:      p.client.transport(t, client, nil),
						clientWants: server.id,
					}
					if wants != "" {
						m.serverWants = client.id
					}
					c, s := m.both(t)
					checkPeers(t, "client", c, client, server)
					checkPeers(t, "server", s, server, client)
					for _, conn := range []sec.SecureConn{c, s} {
						if state := conn.ConnState(); state.StreamMultiplexer != "" || state.UsedEarlyMuxerNegotiation {
							t.Errorf("%+v without a muxer to agree on", state)
						}
					}
					exchange(t, c, s)
					exchange(t, s, c)
				})
			}
		}
	})
}

func checkPeers(t *testing.T, side string, conn sec.SecureConn, local, remote identity) {
	t.Helper()
	if got := conn.LocalPeer(); got != local.id {
		t.Errorf("%s: local peer %s, want %s", side, got, local.id)
	}
	if got := conn.RemotePeer(); got != remote.id {
		t.Errorf("%s: remote peer %s, want %s", side, got, remote.id)
	}
	if !conn.RemotePublicKey().Equals(remote.key.GetPublic()) {
		t.Errorf("%s: another public key", side)
	}
}

// exchange sends a message from one end to the other.
func exchange(t *testing.T, from, to net.Conn) {
	t.Helper()
	const message = "foobar"
	if _, err := io.WriteString(from, message); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(message))
	if _, err := io.ReadFull(to, got); err != nil || string(got) != message {
		t.Fatalf("read %q, %v", got, err)
	}
}

// TestAnyPeer: the client doesn't expect a particular peer.
func TestAnyPeer(t *testing.T) {
	inAllPairings(t, func(t *testing.T, p pairing) {
		m := p.meeting(t)
		m.clientWants = ""
		c, s := m.both(t)
		checkPeers(t, "client", c, clientPeer(), serverPeer())
		checkPeers(t, "server", s, serverPeer(), clientPeer())
	})
}

func TestID(t *testing.T) {
	for _, p := range []flavour{stdFlavour, opensslFlavour} {
		if got := p.transport(t, serverPeer(), nil).ID(); got != "/tls/1.0.0" {
			t.Errorf("%s: %s", p.name, got)
		}
	}
	own, err := New("/tls/of/its/own", serverPeer().key, nil)
	if err != nil || own.ID() != "/tls/of/its/own" {
		t.Errorf("%v, %v", own, err)
	}
}

// TestMuxers negotiates stream multiplexers; the client's preference decides.
func TestMuxers(t *testing.T) {
	type list []protocol.ID
	inAllPairings(t, func(t *testing.T, p pairing) {
		for _, test := range []struct {
			name           string
			client, server list
			want           protocol.ID
		}{
			{"the client's preference", list{"muxer1", "muxer2"}, list{"muxer2", "muxer1"}, "muxer1"},
			{"libp2p listed too", list{"muxer1", "muxer2", "libp2p"}, list{"muxer2", "muxer1", "libp2p"}, "muxer1"},
			{"the server has libp2p only", list{"muxer1", "libp2p"}, list{"libp2p"}, ""},
			{"both have libp2p only", list{"libp2p"}, list{"libp2p"}, ""},
			{"the server has none", list{"muxer1"}, nil, ""},
			{"the client has none", nil, list{"muxer1"}, ""},
			{"neither has any", nil, nil, ""},
			{"none in common", list{"muxer2"}, list{"muxer1"}, ""},
			{"the client's second", list{"muxer3", "muxer2"}, list{"muxer1", "muxer2"}, "muxer2"},
			{"libp2p's own", list{"/yamux/1.0.0"}, list{"/yamux/1.0.0", "/mplex/6.7.0"}, "/yamux/1.0.0"},
			{"a long list", list{"a", "b", "c", "d", "e", "f", "g"}, list{"g", "f"}, "f"},
		} {
			t.Run(test.name, func(t *testing.T) {
				m := meeting{
					server:      p.server.transport(t, serverPeer(), muxersOf(test.server...)),
					client:      p.client.transport(t, clientPeer(), muxersOf(test.client...)),
					clientWants: serverPeer().id,
				}
				c, s := m.both(t)
				for _, conn := range []sec.SecureConn{c, s} {
					state := conn.ConnState()
					if state.StreamMultiplexer != test.want || state.UsedEarlyMuxerNegotiation != (test.want != "") {
						t.Errorf("%+v, want %q", state, test.want)
					}
					if state.Transport != "" || state.Security != "" {
						t.Errorf("%+v says more than a security transport knows", state)
					}
				}
				exchange(t, c, s)
			})
		}
	})
}

// TestPeerIDMismatch: each side in turn expects another peer.
func TestPeerIDMismatch(t *testing.T) {
	inAllPairings(t, func(t *testing.T, p pairing) {
		t.Run("outbound", func(t *testing.T) {
			m := p.meeting(t)
			m.clientWants = thirdPeer().id
			a, b := loopback(t)
			log := record(t, a, b)
			c, s := m.run(t, log.client, log.server)
			wantMismatch(t, c.err, thirdPeer(), serverPeer())
			wantRefusal(t, p, s.err, alertBadCertificate, log, true)
			if log.certificateSent() {
				t.Error("the client has told the wrong server who it is")
			}
			wantClosed(t, a)
		})
		t.Run("inbound", func(t *testing.T) {
			m := p.meeting(t)
			m.serverWants = thirdPeer().id
			a, b := loopback(t)
			log := record(t, a, b)
			c, s := m.run(t, log.client, log.server)
			wantMismatch(t, s.err, thirdPeer(), clientPeer())
			if c.err != nil {
				t.Fatalf("client: %v", c.err)
			}
			_, err := c.conn.Read(make([]byte, 1))
			wantRefusal(t, p, err, alertBadCertificate, log, false)
			wantClosed(t, b)
		})
	})
}

func wantMismatch(t *testing.T, err error, expected, actual identity) {
	t.Helper()
	var mismatch sec.ErrPeerIDMismatch
	if !errors.As(err, &mismatch) {
		t.Fatalf("%v is no ErrPeerIDMismatch", err)
	}
	if mismatch.Expected != expected.id || mismatch.Actual != actual.id {
		t.Errorf("%v", mismatch)
	}
}

// Alerts: RFC 8446, section 6.
const (
	alertBadCertificate = 42
	alertDecryptError   = 51
)

// wantRefusal checks the error of the refused side: exactly the alert.
//
// A libssl client that refuses the server's flight sends its own alert before it has its keys, so
// in the clear; crypto/tls servers report a damaged record then (docs/COMPATIBILITY.md). In this
// case the alert is checked on the wire.
func wantRefusal(t *testing.T, p pairing, err error, alert tls.AlertError, log *recording, clientRefused bool) {
	t.Helper()
	want := "remote error: " + alert.Error()
	if clientRefused && p.String() == "StdTLSServer_OpenSSLClient" && (alert == alertDecryptError || !sealsRefusals(t)) {
		want = "local error: tls: bad record MAC"
		records := log.records(true)
		if last := records[len(records)-1]; !bytes.Equal(last, []byte{21, 3, 3, 0, 2, 2, byte(alert)}) {
			t.Errorf("the client's last record is %x", last)
		}
	}
	if err == nil || err.Error() != want {
		t.Errorf("the refused side got %v, want %s", err, want)
	}
}

// sealsRefusals reports whether a client protects the alert if Go refuses the server.
func sealsRefusals(t *testing.T) bool {
	t.Helper()
	library, err := ossl.Library()
	if err != nil {
		t.Fatal(err)
	}
	return !strings.HasPrefix(library.Version, "1.") && os.Getenv("OSSL_RECORDS") != "libssl"
}

func wantClosed(t *testing.T, raw net.Conn) {
	t.Helper()
	if _, err := raw.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after a failed handshake the connection beneath is open: %v", err)
	}
}

// TestCancel cancels each side's context before and during the handshake.
func TestCancel(t *testing.T) {
	contexts := []struct {
		name  string
		want  error
		start func() (context.Context, context.CancelFunc)
	}{
		{"cancelled before", context.Canceled, func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return ctx, cancel
		}},
		{"deadline before", context.DeadlineExceeded, func() (context.Context, context.CancelFunc) {
			return context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
		}},
		{"cancelled during", context.Canceled, func() (context.Context, context.CancelFunc) {
			return context.WithCancel(context.Background())
		}},
		{"deadline during", context.DeadlineExceeded, func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 20*time.Millisecond)
		}},
	}
	inAllPairings(t, func(t *testing.T, p pairing) {
		for _, test := range contexts {
			during := strings.HasSuffix(test.name, "during")
			for _, side := range []string{"outbound", "inbound"} {
				t.Run(side+"/"+test.name, func(t *testing.T) {
					ctx, cancel := test.start()
					defer cancel()
					a, b := loopback(t)
					m := p.meeting(t)
					cancelled := m
					cancelled.clientCtx, cancelled.serverCtx = ctx, ctx
					done := make(chan error, 1)
					go func() {
						if side == "outbound" {
							done <- cancelled.dial(newGate(a)).err
						} else {
							done <- (<-cancelled.accept(newGate(b))).err
						}
					}()
					peer := make(chan error, 1)
					go func() {
						var r result
						if side == "outbound" {
							r = <-m.accept(b)
						} else {
							r = m.dial(a)
						}
						if r.err == nil { // a client is done before its server
							_, r.err = r.conn.Read(make([]byte, 1))
						}
						peer <- r.err
					}()
					if during && test.want == context.Canceled {
						cancel()
					}
					if err := await(t, done); !errors.Is(err, test.want) {
						t.Errorf("%v, want %v", err, test.want)
					}
					if err := await(t, peer); err == nil {
						t.Error("the other side noticed nothing")
					}
					raw := a
					if side == "inbound" {
						raw = b
					}
					wantClosed(t, raw)
				})
			}
		}
	})
}

// A gate delays reads until it is closed, so that the handshake can't finish before the test's next
// step.
type gate struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func newGate(conn net.Conn) *gate { return &gate{Conn: conn, closed: make(chan struct{})} }

func (g *gate) Read(b []byte) (int, error) {
	<-g.closed
	return g.Conn.Read(b)
}

func (g *gate) Close() error {
	err := g.Conn.Close()
	g.once.Do(func() { close(g.closed) })
	return err
}

// TestContextEndsWithHandshake checks that a context that is cancelled after the handshake has no
// effect on the connection.
func TestContextEndsWithHandshake(t *testing.T) {
	inAllPairings(t, func(t *testing.T, p pairing) {
		ctx, cancel := context.WithCancel(context.Background())
		m := p.meeting(t)
		m.clientCtx, m.serverCtx = ctx, ctx
		c, s := m.both(t)
		cancel()
		exchange(t, c, s)
		exchange(t, s, c)
	})
}

// TestState checks the negotiated TLS parameters.
func TestState(t *testing.T) {
	inAllPairings(t, func(t *testing.T, p pairing) {
		c, s := p.connect(t)
		for side, conn := range map[string]net.Conn{"client": c, "server": s} {
			state := conn.(interface{ ConnectionState() tls.ConnectionState }).ConnectionState()
			if state.Version != tls.VersionTLS13 || !state.HandshakeComplete || state.DidResume || state.ServerName != "" ||
				state.NegotiatedProtocol != "libp2p" || len(state.PeerCertificates) != 1 || len(state.VerifiedChains) != 0 {
				t.Errorf("%s: %+v", side, state)
			}
		}
	})
}

// TestConcurrent: one pair of transports, each with one Context, serves connections that expect
// different peers.
func TestConcurrent(t *testing.T) {
	inAllPairings(t, func(t *testing.T, p pairing) {
		m := p.meeting(t)
		const connections = 32
		done := make(chan bool, connections)
		for i := range connections {
			wrong := i%2 == 1
			go func() {
				defer func() { done <- true }()
				m := m
				if wrong {
					m.clientWants = thirdPeer().id
				}
				a, b := loopback(t)
				c, s := m.run(t, a, b)
				if wrong != (c.err != nil) || wrong != (s.err != nil) {
					t.Errorf("expected the wrong peer: %t; client: %v; server: %v", wrong, c.err, s.err)
				}
				var mismatch sec.ErrPeerIDMismatch
				if wrong && !errors.As(c.err, &mismatch) {
					t.Errorf("%v", c.err)
				}
			}()
		}
		for range connections {
			await(t, done)
		}
	})
}

// TestPeerCertificateUnchanged: the transport handles libp2p's critical extension without changing
// the list in the certificate.
func TestPeerCertificateUnchanged(t *testing.T) {
	server := opensslFlavour.transport(t, serverPeer(), nil)
	client := opensslFlavour.transport(t, clientPeer(), nil, showing(criticalExtension, clientPeer()))
	for range 2 { // verified first, then known
		_, s := meeting{server: server, client: client}.both(t)
		cert := s.(*conn).ConnectionState().PeerCertificates[0]
		if len(cert.UnhandledCriticalExtensions) != 1 {
			t.Errorf("%d unhandled critical extensions", len(cert.UnhandledCriticalExtensions))
		}
		if _, err := cert.Verify(x509.VerifyOptions{}); err == nil {
			t.Error("a certificate with an unknown critical extension is verified")
		}
	}
}

// TestDeadlines checks net.Conn's deadlines.
func TestDeadlines(t *testing.T) {
	inAllPairings(t, func(t *testing.T, p pairing) {
		c, s := p.connect(t)
		for _, conn := range []net.Conn{c, s} {
			if err := conn.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%v", err)
			}
			if err := conn.SetReadDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		exchange(t, c, s)
		exchange(t, s, c)
	})
}
