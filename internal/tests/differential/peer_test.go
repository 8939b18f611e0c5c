//go:build cgo || ossl_nocgo

package differential

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// withFault puts a fault on the Writes of a victim's peer.
func withFault(c tlstest.Case, victim tlstest.Role, fault func() tlstest.Fault) tlstest.Case {
	if victim == tlstest.ClientRole {
		c.ServerFault = fault
	} else {
		c.ClientFault = fault
	}
	return c
}

// mutualCase has certificates on both sides, with keys whose signatures are always of one length,
// and compiles its configurations once: it is for tests that run thousands of handshakes. No data
// is sent afterwards.
func mutualCase(version uint16) tlstest.Case {
	return tlstest.Case{
		Client: once(tlstest.ClientWith(tlstest.Only(version), tlstest.Certificates(tlstest.ClientCert(tlstest.Ed25519)))),
		Server: once(tlstest.ServerWith(tlstest.Only(version), tlstest.AskClient(tls.RequireAndVerifyClientCert),
			tlstest.Certificates(tlstest.ServerCert(tlstest.Ed25519)))),
		Talk: func(tlstest.Role, tlstest.Conn) (string, error) { return "", nil },
	}
}

// once makes a configuration once and returns the same each time.
func once(make func() *tls.Config) func() *tls.Config { return sync.OnceValue(make) }

// A stallContext is one whose deadline passes when done is closed: by the clock it could pass
// before the peer hangs.
type stallContext struct {
	context.Context
	done chan struct{}
}

func (c *stallContext) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }
func (c *stallContext) Done() <-chan struct{}       { return c.done }
func (c *stallContext) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestDifferentialHang makes a peer stop at each record of its handshake. A deadline and a context
// stop every wait of the victim, with the same errors as crypto/tls's.
func TestDifferentialHang(t *testing.T) {
	defer checkStale(t)
	type stop struct {
		name string
		edit func(*tlstest.Case, tlstest.Role)
	}
	past := time.Unix(1, 0)
	stops := []stop{
		{"deadline", func(c *tlstest.Case, victim tlstest.Role) {
			c.OnStall = func(client, server tlstest.Conn) {
				map[tlstest.Role]tlstest.Conn{tlstest.ClientRole: client, tlstest.ServerRole: server}[victim].SetDeadline(past)
			}
		}},
		{"read deadline", func(c *tlstest.Case, victim tlstest.Role) {
			c.OnStall = func(client, server tlstest.Conn) {
				map[tlstest.Role]tlstest.Conn{tlstest.ClientRole: client, tlstest.ServerRole: server}[victim].SetReadDeadline(past)
			}
		}},
		{"cancelled context", func(c *tlstest.Case, victim tlstest.Role) {
			var cancel context.CancelFunc
			c.Context = func(role tlstest.Role) context.Context {
				if role != victim {
					return context.Background()
				}
				ctx, stop := context.WithCancel(context.Background())
				cancel = stop
				return ctx
			}
			c.OnStall = func(client, server tlstest.Conn) { cancel() }
		}},
		{"context's deadline", func(c *tlstest.Case, victim tlstest.Role) {
			var ctx *stallContext
			c.Context = func(role tlstest.Role) context.Context {
				if role != victim {
					return context.Background()
				}
				ctx = &stallContext{Context: context.Background(), done: make(chan struct{})}
				return ctx
			}
			c.OnStall = func(client, server tlstest.Conn) { close(ctx.done) }
		}},
	}
	for _, version := range tlstest.Versions {
		for _, victim := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
			for n := range 8 {
				for _, stop := range stops {
					t.Run(fmt.Sprintf("%s/%s/%s/after %d", tlstest.VersionName(version), victim, stop.name, n), func(t *testing.T) {
						c := withFault(mutualCase(version), victim, func() tlstest.Fault { return tlstest.HangAfterRecords(n) })
						stop.edit(&c, victim)
						differIn(t, c, against(victim)...)
					})
				}
			}
		}
	}
}

// TestDifferentialClose closes a peer's connection at every byte of its handshake. Within a record
// the error is io.ErrUnexpectedEOF, between two records io.EOF, as in crypto/tls, and neither side
// sends an alert for it.
func TestDifferentialClose(t *testing.T) {
	for _, version := range tlstest.Versions {
		for _, p := range pairings() {
			for _, victim := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
				t.Run(fmt.Sprintf("%s/%s/%s", tlstest.VersionName(version), p.Name(), victim), func(t *testing.T) {
					t.Parallel()
					closeEverywhere(t, p, version, victim)
				})
			}
		}
	}
}

func closeEverywhere(t *testing.T, p tlstest.Pairing, version uint16, victim tlstest.Role) {
	peer := tlstest.ServerRole
	if victim == tlstest.ServerRole {
		peer = tlstest.ClientRole
	}
	c := mutualCase(version)
	c.Shared = true
	clean := tlstest.Run(p, c)
	mustPass(t, clean)
	length := len(clean.Recording.Bytes(peer))
	cut, step := 0, 1
	if testing.Short() || p.Impl(victim) == tlstest.Std {
		step = 17 // some bytes show crypto/tls's behaviour as well as all of them
	}
	for at := 0; at < length; at += step {
		o := tlstest.Run(p, withFault(c, victim, func() tlstest.Fault { return tlstest.CutAfter(at) }))
		s := o.Of(victim)
		if s.Handshake == "ok" {
			break // the rest of the peer's bytes come after its handshake
		}
		cut++
		_, rest := tlstest.SplitRecords(o.Recording.Bytes(peer))
		want := "io.ErrUnexpectedEOF"
		if len(rest) == 0 {
			want = "io.EOF"
		}
		if s.Handshake != want || s.Alerts != "" || o.Hung {
			t.Errorf("after %d bytes, %d of them of an incomplete record: %s (%v), alerts %q, hung: %v; want %s", at, len(rest),
				s.Handshake, s.HandshakeErr, s.Alerts, o.Hung, want)
		}
	}
	if cut < 10 {
		t.Errorf("only %d cuts came during the handshake", cut)
	}
}

// TestDifferentialHalfClose compares connections of which one side has closed its direction.
func TestDifferentialHalfClose(t *testing.T) {
	defer checkStale(t)
	for _, version := range tlstest.Versions {
		for _, first := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
			t.Run(tlstest.VersionName(version)+"/"+string(first), func(t *testing.T) {
				talk := func(role tlstest.Role, c tlstest.Conn) (string, error) {
					var said []string
					say := func(what string, err error) { said = append(said, what+" "+tlstest.Class(err)) }
					buf := make([]byte, 100)
					if role == first {
						_, err := c.Write([]byte("question"))
						say("write", err)
						say("end", c.CloseWrite())
						say("end again", c.CloseWrite())
						_, err = c.Write([]byte("more"))
						say("write after the end", err)
						all, err := io.ReadAll(c)
						say("read "+string(all), err)
					} else {
						all, err := io.ReadAll(c)
						say("read "+string(all), err)
						_, err = c.Write([]byte("answer"))
						say("write", err)
						say("end", c.CloseWrite())
					}
					for range 2 {
						n, err := c.Read(buf)
						say(fmt.Sprintf("read %d", n), err)
					}
					say("close", c.Close())
					say("close again", c.Close())
					_, err := c.Read(buf)
					say("read after close", err)
					_, err = c.Write(buf)
					say("write after close", err)
					say("end after close", c.CloseWrite())
					return strings.Join(said, "; "), nil
				}
				o := differ(t, tlstest.Case{Client: tlstest.ClientWith(tlstest.Only(version)),
					Server: tlstest.ServerWith(tlstest.Only(version)), Talk: talk})
				mustPass(t, o)
			})
		}
	}
}

// TestDifferentialBeforeHandshake compares the results of methods before a handshake, and after
// a failed one.
func TestDifferentialBeforeHandshake(t *testing.T) {
	defer checkStale(t)
	for _, role := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
		say := func(impl tlstest.Impl) string {
			raw, peer := tlstest.NewPipe()
			defer peer.Close()
			var c tlstest.Conn
			if role == tlstest.ClientRole {
				c = impl.Client(raw, tlstest.ClientConfig())
			} else {
				c = impl.Server(raw, tlstest.ServerConfig())
			}
			var said []string
			say := func(what string, err error) { said = append(said, what+" "+tlstest.Class(err)) }
			said = append(said, describeNoState(c))
			said = append(said, fmt.Sprint(c.NetConn() == raw, c.LocalAddr(), c.RemoteAddr(), len(c.OCSPResponse())))
			say("end", c.CloseWrite())
			say("verify", c.VerifyHostname(tlstest.ServerName))
			c.SetDeadline(time.Unix(1, 0))
			_, err := c.Read(make([]byte, 1))
			say("read", err)
			_, err = c.Write([]byte("x"))
			say("write", err)
			say("handshake", c.Handshake())
			c.SetDeadline(time.Time{})
			say("handshake", c.Handshake())
			say("close", c.Close())
			say("close again", c.Close())
			say("handshake", c.Handshake())
			said = append(said, describeNoState(c))
			return strings.Join(said, "; ")
		}
		t.Run(string(role), func(t *testing.T) {
			same(t, role, "Said", say(tlstest.Std), say(ossltest.UnderTest), func() string { return "" })
		})
		t.Run(string(role)+"/closed first", func(t *testing.T) {
			say := func(impl tlstest.Impl) string {
				raw, peer := tlstest.NewPipe()
				defer peer.Close()
				c := impl.Client(raw, tlstest.ClientConfig())
				if role == tlstest.ServerRole {
					c = impl.Server(raw, tlstest.ServerConfig())
				}
				first := tlstest.Class(c.Close())
				_, rerr := c.Read(make([]byte, 1))
				_, werr := c.Write([]byte("x"))
				return fmt.Sprint(first, " ", tlstest.Class(c.Handshake()), " ", tlstest.Class(rerr), " ", tlstest.Class(werr))
			}
			same(t, role, "Said", say(tlstest.Std), say(ossltest.UnderTest), func() string { return "" })
		})
	}
}

// describeNoState prints the fields that a ConnectionState without a handshake has set.
func describeNoState(c tlstest.Conn) string {
	s := c.ConnectionState()
	//lint:ignore SA1019 deprecated, and set by crypto/tls
	mutual := s.NegotiatedProtocolIsMutual
	return fmt.Sprintf("complete=%v version=%d mutual=%v certificates=%d", s.HandshakeComplete, s.Version, mutual,
		len(s.PeerCertificates))
}

// TestDifferentialDeadlines compares deadlines after the handshake: a Read that timed out can be
// tried again, a Write can't.
func TestDifferentialDeadlines(t *testing.T) {
	defer checkStale(t)
	for _, version := range tlstest.Versions {
		for _, side := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
			t.Run(tlstest.VersionName(version)+"/"+string(side), func(t *testing.T) {
				past := time.Unix(1, 0)
				talk := func(role tlstest.Role, c tlstest.Conn) (string, error) {
					if role != side {
						_, err := readEOF(c)
						return "", err
					}
					var said []string
					say := func(what string, err error) { said = append(said, what+" "+tlstest.Class(err)) }
					c.SetReadDeadline(past)
					for range 2 {
						_, err := c.Read(make([]byte, 1))
						say("read", err)
					}
					c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
					_, err := c.Read(make([]byte, 1))
					say("read", err)
					c.SetWriteDeadline(past)
					_, err = c.Write([]byte("x"))
					say("write", err)
					c.SetWriteDeadline(time.Time{})
					_, err = c.Write([]byte("x"))
					say("write", err)
					say("end", c.CloseWrite())
					say("close", c.Close())
					return strings.Join(said, "; "), nil
				}
				differ(t, tlstest.Case{Client: tlstest.ClientWith(tlstest.Only(version)), Server: tlstest.ServerWith(tlstest.Only(version)),
					Talk:    talk,
					OnStall: func(client, server tlstest.Conn) {}})
			})
		}
	}
}
