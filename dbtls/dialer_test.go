package dbtls_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/dbtls"
)

// Each protocol changes to TLS, and the client then reads the bytes that it expects of a server.
func TestDial(t *testing.T) {
	for _, protocol := range protocols {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(protocol.name+" "+tls.VersionName(version), func(t *testing.T) {
				addr := serve(t, func(p *peer) {
					p.converse(protocol.dialogue)
					p.secure(version)
					p.expect("ping")
					p.send("pong")
					p.wait()
				})
				conn, err := protocol.dial(newDialer(t, nil), t.Context(), "tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if c, ok := dbtls.TLSConn(conn); !ok || c.ConnectionState().Version != version {
					t.Errorf("TLSConn: %v, %v", c, ok)
				}
				if _, err := conn.Write([]byte("ping")); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, len(protocol.replayed+"pong"))
				if _, err := io.ReadFull(conn, got); err != nil || string(got) != protocol.replayed+"pong" {
					t.Errorf("read %q, %v", got, err)
				}
			})
		}
	}
}

// The server's name is the Dialer's, or the configuration's, or the address's.
func TestServerName(t *testing.T) {
	for _, test := range []struct {
		name, dialer, config string
		fails                bool
	}{
		{"address", "", "", false},
		{"configuration", "", "db.test", false},
		{"Dialer", "db.test", "", false},
		{"Dialer before the configuration", "db.test", "other.test", false},
		{"another in the configuration", "", "other.test", true},
		{"another in the Dialer", "other.test", "db.test", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			addr := serve(t, func(p *peer) {
				p.expect("\x00\x00\x00\x08\x04\xd2\x16\x2f")
				p.send("S")
				_ = tls.Server(p.conn, &tls.Config{Certificates: []tls.Certificate{identity()}}).Handshake()
				p.wait()
			})
			dialer := newDialer(t, func(c *tls.Config) { c.ServerName = test.config })
			dialer.ServerName = test.dialer
			conn, err := dialer.DialPostgres(t.Context(), "tcp", addr)
			if err == nil {
				conn.Close()
			}
			if failed := errors.As(err, new(x509.HostnameError)); failed != test.fails || err != nil && !failed {
				t.Error(err)
			}
		})
	}
}

// A server that nobody trusts doesn't get the client's bytes, in any protocol.
func TestUntrusted(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol.name, func(t *testing.T) {
			addr := serve(t, func(p *peer) {
				p.converse(protocol.dialogue)
				conn := tls.Server(p.conn, &tls.Config{Certificates: []tls.Certificate{identity()}})
				if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
					t.Error("the client sent data")
				}
			})
			conn, err := protocol.dial(newDialer(t, func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }), t.Context(), "tcp", addr)
			var wrapped *dbtls.Error
			if conn != nil || !errors.As(err, new(x509.UnknownAuthorityError)) || !errors.As(err, &wrapped) ||
				wrapped.Step != "TLS handshake" || wrapped.Protocol != protocol.name {
				t.Errorf("%v, %v", conn, err)
			}
		})
	}
}

// TestContextEnds checks that every wait stops when the context is done: in the dialogue, after
// each of the server's turns but the last, and in the handshake.
func TestContextEnds(t *testing.T) {
	for _, protocol := range protocols {
		for turns := 0; turns <= len(protocol.dialogue); turns += 2 {
			t.Run(protocol.name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				addr := serve(t, func(p *peer) {
					p.converse(protocol.dialogue[:turns])
					if turns < len(protocol.dialogue) || turns == 0 {
						cancel()
					}
					p.wait()
				})
				if turns > 0 && turns == len(protocol.dialogue) {
					cancel()
				}
				if conn, err := protocol.dial(newDialer(t, nil), ctx, "tcp", addr); conn != nil || !errors.Is(err, context.Canceled) {
					t.Errorf("%v, %v", conn, err)
				}
			})
		}
	}
}

// The NetDialer's limits apply to a server that never answers, and so does DialTimeout's.
func TestTimeouts(t *testing.T) {
	for name, dial := range map[string]func(*dbtls.Dialer, string) (net.Conn, error){
		"Timeout": func(d *dbtls.Dialer, addr string) (net.Conn, error) {
			d.NetDialer = &net.Dialer{Timeout: time.Millisecond * 50}
			return d.DialPostgres(context.Background(), "tcp", addr)
		},
		"Deadline": func(d *dbtls.Dialer, addr string) (net.Conn, error) {
			d.NetDialer = &net.Dialer{Timeout: time.Hour, Deadline: time.Now().Add(50 * time.Millisecond)}
			return dbtls.DialFunc(d.DialPostgres).Dial("tcp", addr)
		},
		"DialTimeout": func(d *dbtls.Dialer, addr string) (net.Conn, error) {
			return dbtls.DialFunc(d.DialPostgres).DialTimeout("tcp", addr, 50*time.Millisecond)
		},
		"DialContext": func(d *dbtls.Dialer, addr string) (net.Conn, error) {
			d.NetDialer = &net.Dialer{Timeout: time.Hour}
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			return dbtls.DialFunc(d.DialPostgres).DialContext(ctx, "tcp", addr)
		},
	} {
		t.Run(name, func(t *testing.T) {
			addr := serve(t, (*peer).wait)
			_, err := dial(newDialer(t, nil), addr)
			if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("not a timeout: %v", err)
			}
		})
	}
}

// As with net.DialTimeout, a timeout of 0 is none.
func TestNoTimeout(t *testing.T) {
	protocol := protocols[0]
	addr := serve(t, func(p *peer) {
		p.converse(protocol.dialogue)
		p.secure(tls.VersionTLS13)
		p.wait()
	})
	dialer := newDialer(t, nil)
	dial := dbtls.DialFunc(func(ctx context.Context, network, addr string) (net.Conn, error) {
		return protocol.dial(dialer, ctx, network, addr)
	})
	conn, err := dial.DialTimeout("tcp", addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestNoContext(t *testing.T) {
	if _, err := new(dbtls.Dialer).DialMySQL(t.Context(), "tcp", "127.0.0.1:1"); !errors.As(err, new(*dbtls.Error)) {
		t.Error(err)
	}
}

// Errors of the network are found in a Dialer's.
func TestNobodyListens(t *testing.T) {
	const nobody = "127.0.0.1:1" // tcpmux; a port that was free a moment ago may be another process's now
	if _, err := newDialer(t, nil).DialTLS(t.Context(), "tcp", nobody); !errors.As(err, new(*net.OpError)) {
		t.Error(err)
	}
}

// Direct connections to PostgreSQL need ALPN.
func TestPostgresDirect(t *testing.T) {
	for _, test := range []struct {
		name   string
		client []string
		server []string
		fails  bool
	}{
		{"agreed", []string{"postgresql"}, []string{"postgresql"}, false},
		{"not offered", nil, []string{"postgresql"}, true},
		{"not known", []string{"postgresql"}, nil, true},
		{"another", []string{"postgresql", "http/1.1"}, []string{"http/1.1"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			addr := serve(t, func(p *peer) {
				p.secure(tls.VersionTLS13, test.server...)
				p.wait()
			})
			conn, err := newDialer(t, func(c *tls.Config) { c.NextProtos = test.client }).DialPostgresDirect(t.Context(), "tcp", addr)
			if err == nil {
				conn.Close()
			}
			if failure := new(dbtls.Error); (err != nil) != test.fails ||
				err != nil && (!errors.As(err, &failure) || failure.Step != "ALPN") {
				t.Error(err)
			}
		})
	}
}

// A reader with a small buffer gets the replayed bytes in parts.
func TestReplayInParts(t *testing.T) {
	addr := serve(t, func(p *peer) {
		p.send(natsInfo)
		p.secure(tls.VersionTLS13)
		p.wait()
	})
	conn, err := newDialer(t, nil).DialNATS(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if n, err := conn.Read(nil); n != 0 || err != nil {
		t.Errorf("an empty Read returned %d, %v", n, err)
	}
	var got bytes.Buffer
	for b := make([]byte, 7); got.Len() < len(natsReplayed); {
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(b[:n])
	}
	if got.String() != natsReplayed {
		t.Errorf("read %q", got.String())
	}
}

// With a DialFunc that makes connections without TLS, nats.go would go on without it.
func TestDialFuncWithoutTLS(t *testing.T) {
	addr := serve(t, (*peer).wait)
	plain := dbtls.DialFunc(new(net.Dialer).DialContext)
	if conn, err := plain.Dial("tcp", addr); conn != nil || !errors.As(err, new(*dbtls.Error)) {
		t.Errorf("%v, %v", conn, err)
	}
}

// Over a Unix socket the name is the configuration's or the Dialer's, not the socket's.
func TestUnixSocket(t *testing.T) {
	for _, name := range []string{"db.test", ""} {
		path := serveOn(t, "unix", filepath.Join(t.TempDir(), "s"), func(p *peer) {
			p.expect("\x00\x00\x00\x08\x04\xd2\x16\x2f")
			p.send("S")
			_ = tls.Server(p.conn, &tls.Config{Certificates: []tls.Certificate{identity()}}).Handshake()
			p.wait()
		})
		conn, err := newDialer(t, func(c *tls.Config) { c.ServerName = name }).DialPostgres(t.Context(), "unix", path)
		if (err == nil) != (name != "") {
			t.Errorf("name %q: %v", name, err)
		}
		if err == nil {
			conn.Close()
		}
	}
}

func TestTLSConnOfOthers(t *testing.T) {
	if c, ok := dbtls.TLSConn(new(net.TCPConn)); c != nil || ok {
		t.Errorf("%v, %v", c, ok)
	}
}

// Errors name the protocol and the step.
func TestErrorText(t *testing.T) {
	addr := serve(t, func(p *peer) {
		p.expect("\x00\x00\x00\x08\x04\xd2\x16\x2f")
		p.send("N")
		p.wait()
	})
	_, err := newDialer(t, nil).DialPostgres(t.Context(), "tcp", addr)
	if failure := new(dbtls.Error); !errors.As(err, &failure) || failure.Protocol != "PostgreSQL" || failure.Step != "SSLRequest" ||
		!strings.Contains(err.Error(), "PostgreSQL") {
		t.Error(err)
	}
}
