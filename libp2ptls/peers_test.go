package libp2ptls

import (
	"bytes"
	"crypto/tls"
	"os"
	"slices"
	"strings"
	"testing"

	stdtls "github.com/libp2p/go-libp2p/p2p/security/tls"
)

// The peers here use crypto/tls directly, for handshakes that no transport makes.

// stranger returns a configuration like a libp2p peer's, except for the edits.
func stranger(t *testing.T, who identity, edits ...func(*tls.Config)) *tls.Config {
	t.Helper()
	config, _ := must(stdtls.NewIdentity(who.key)).ConfigForPeer("")
	for _, edit := range edits {
		edit(config)
	}
	return config
}

func upToTLS12(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 }

func protocols(names ...string) func(*tls.Config) {
	return func(c *tls.Config) { c.NextProtos = names }
}

// An encounter is the results of a transport and a stranger.
type encounter struct {
	transport result
	state     tls.ConnectionState // of the stranger
	err       error               // the stranger's, from its handshake or, if that succeeds, from the first Read
}

// meet runs a transport's handshake with a stranger in the other role, and then makes the transport
// send a byte.
func meet(t *testing.T, f flavour, transportIsClient bool, config *tls.Config, edits ...func(*tls.Config)) (e encounter) {
	t.Helper()
	a, b := loopback(t)
	muxers := muxersOf("muxer1", "muxer2")
	m := meeting{server: f.transport(t, serverPeer(), muxers, edits...), client: f.transport(t, clientPeer(), muxers, edits...)}
	var conn *tls.Conn
	if transportIsClient {
		conn = tls.Server(b, config)
	} else {
		conn = tls.Client(a, config)
	}
	done := make(chan error, 1)
	go func() {
		err := conn.Handshake()
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		done <- err
	}()
	if transportIsClient {
		e.transport = m.dial(a)
	} else {
		e.transport = await(t, m.accept(b))
	}
	if e.transport.err == nil {
		if _, err := e.transport.conn.Write([]byte("x")); err != nil {
			t.Errorf("Write: %v", err)
		}
	}
	e.err = await(t, done)
	e.state = conn.ConnectionState()
	return e
}

var flavours = []flavour{stdFlavour, opensslFlavour}

// wantAlert requires that the transport fails, and that the stranger gets the alert.
func (e encounter) wantAlert(t *testing.T, alert tls.AlertError) {
	t.Helper()
	if e.transport.err == nil {
		t.Error("the transport accepts")
	}
	if want := "remote error: " + alert.Error(); e.err == nil || e.err.Error() != want {
		t.Errorf("the peer is told %v, not %s", e.err, want)
	}
}

func (e encounter) wantNone(t *testing.T) {
	t.Helper()
	if e.transport.err != nil || e.err != nil {
		t.Errorf("transport: %v; peer: %v", e.transport.err, e.err)
	}
}

// TestTLS12: peers without TLS 1.3 are refused.
func TestTLS12(t *testing.T) {
	const protocolVersion = 70
	for _, f := range flavours {
		t.Run(f.name+"/server", func(t *testing.T) {
			e := meet(t, f, false, stranger(t, clientPeer(), upToTLS12))
			e.wantAlert(t, protocolVersion)
		})
		t.Run(f.name+"/client", func(t *testing.T) {
			e := meet(t, f, true, stranger(t, serverPeer(), upToTLS12))
			// The hello offers TLS 1.3 only, so that the server refuses.
			if want := "remote error: tls: protocol version not supported"; e.transport.err == nil || e.transport.err.Error() != want {
				t.Errorf("the transport is told %v", e.transport.err)
			}
			if e.err == nil {
				t.Error("the server accepts")
			}
		})
	}
}

// TestNoCertificate: a client without a certificate is refused.
func TestNoCertificate(t *testing.T) {
	const certificateRequired = 116
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			e := meet(t, f, false, stranger(t, clientPeer(), func(c *tls.Config) { c.Certificates = nil }))
			e.wantAlert(t, certificateRequired)
		})
	}
}

// TestAnonymousClient: a server that requests no certificate is accepted, since its own identity is
// still certain.
func TestAnonymousClient(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			e := meet(t, f, true, stranger(t, serverPeer(), func(c *tls.Config) { c.ClientAuth = tls.NoClientCert }))
			e.wantNone(t)
			checkPeers(t, "client", e.transport.conn, clientPeer(), serverPeer())
		})
	}
}

// TestClientHello checks the contents of a ClientHello: only TLS 1.3, no name, the muxers and then
// libp2p.
func TestClientHello(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			var got *tls.ClientHelloInfo
			e := meet(t, f, true, stranger(t, serverPeer(), func(c *tls.Config) {
				c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
					got = hello
					return nil, nil
				}
			}))
			e.wantNone(t)
			if got.ServerName != "" {
				t.Errorf("SNI %q", got.ServerName)
			}
			if !slices.Equal(got.SupportedVersions, []uint16{tls.VersionTLS13}) {
				t.Errorf("versions %x", got.SupportedVersions)
			}
			if !slices.Equal(got.SupportedProtos, []string{"muxer1", "muxer2", "libp2p"}) {
				t.Errorf("protocols %q", got.SupportedProtos)
			}
		})
	}
}

// TestALPN makes a server choose among protocols that no transport offers in this form.
func TestALPN(t *testing.T) {
	const noApplicationProtocol = 120
	for _, f := range flavours {
		for _, test := range []struct {
			name   string
			offers []string
			want   string
			alert  tls.AlertError
		}{
			{"none offered", nil, "", 0},
			{"libp2p alone", []string{"libp2p"}, "libp2p", 0},
			{"the second of the server's first", []string{"muxer2", "muxer1", "libp2p"}, "muxer2", 0},
			{"a muxer without libp2p", []string{"muxer1"}, "muxer1", 0},
			{"nothing in common", []string{"muxer3"}, "", noApplicationProtocol},
			{"HTTP", []string{"h2", "http/1.1"}, "", noApplicationProtocol},
		} {
			t.Run(f.name+"/"+test.name, func(t *testing.T) {
				e := meet(t, f, false, stranger(t, clientPeer(), protocols(test.offers...)))
				if test.alert != 0 {
					e.wantAlert(t, test.alert)
					return
				}
				e.wantNone(t)
				if e.state.NegotiatedProtocol != test.want {
					t.Errorf("%q, want %q", e.state.NegotiatedProtocol, test.want)
				}
			})
		}
		// The one order on which the implementations differ: go-libp2p first looks for a muxer, at
		// any position relative to libp2p.
		t.Run(f.name+"/libp2p preferred to muxers", func(t *testing.T) {
			want := "muxer1"
			if f.name == opensslFlavour.name {
				want = "libp2p"
			}
			e := meet(t, f, false, stranger(t, clientPeer(), protocols("libp2p", "muxer1")))
			e.wantNone(t)
			if e.state.NegotiatedProtocol != want {
				t.Errorf("%q, want %q", e.state.NegotiatedProtocol, want)
			}
		})
		t.Run(f.name+"/client, nothing in common", func(t *testing.T) {
			e := meet(t, f, true, stranger(t, serverPeer(), protocols("muxer3")))
			if want := "remote error: tls: no application protocol"; e.transport.err == nil || e.transport.err.Error() != want {
				t.Errorf("%v", e.transport.err)
			}
		})
		t.Run(f.name+"/client, none chosen", func(t *testing.T) {
			e := meet(t, f, true, stranger(t, serverPeer(), protocols()))
			e.wantNone(t)
			if state := e.transport.conn.ConnState(); state.UsedEarlyMuxerNegotiation || state.StreamMultiplexer != "" {
				t.Errorf("%+v", state)
			}
		})
	}
}

// countingCache counts the tickets that a server sends.
type countingCache struct{ put int }

func (*countingCache) Get(string) (*tls.ClientSessionState, bool) { return nil, false }
func (c *countingCache) Put(string, *tls.ClientSessionState)      { c.put++ }

// TestNoTickets: in a resumed session the peer would not be verified.
func TestNoTickets(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			cache := &countingCache{}
			e := meet(t, f, false, stranger(t, clientPeer(), func(c *tls.Config) {
				c.ClientSessionCache, c.ServerName, c.SessionTicketsDisabled = cache, "a key for the cache", false
			}))
			e.wantNone(t)
			if cache.put != 0 {
				t.Errorf("%d tickets", cache.put)
			}
		})
	}
	// A ticket would have been counted.
	a, b := loopback(t)
	cache := &countingCache{}
	server := tls.Server(b, stranger(t, serverPeer(), func(c *tls.Config) { c.SessionTicketsDisabled = false }))
	client := tls.Client(a, stranger(t, clientPeer(), func(c *tls.Config) {
		c.ClientSessionCache, c.ServerName, c.SessionTicketsDisabled = cache, "a key for the cache", false
	}))
	go server.Write([]byte("x"))
	if _, err := client.Read(make([]byte, 1)); err != nil || cache.put == 0 {
		t.Errorf("%v, %d tickets", err, cache.put)
	}
}

// TestPanic: if verification panics, the handshake fails, and the process continues.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	panicLog = &log
	defer func() { panicLog = os.Stderr }()
	for _, isClient := range []bool{false, true} {
		log.Reset()
		tr := opensslFlavour.transport(t, serverPeer(), nil).(*Transport)
		tr.peers = nil // makes verification panic
		a, b := loopback(t)
		conn := tls.Client(a, stranger(t, clientPeer()))
		if isClient {
			conn = tls.Server(a, stranger(t, clientPeer()))
		}
		go func() {
			if conn.Handshake() == nil {
				conn.Read(make([]byte, 1))
			}
		}()
		secure := tr.SecureInbound
		if isClient {
			secure = tr.SecureOutbound
		}
		c, err := secure(t.Context(), b, "")
		if c != nil || err == nil {
			t.Fatal("accepted")
		}
		if !strings.HasPrefix(err.Error(), "panic ") || !strings.Contains(log.String(), "(*verification).verify") {
			t.Errorf("%v; logged: %s", err, log.String())
		}
	}
}
