//go:build cgo

package ossl_test

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

func resuming(version uint16) (client, server *tls.Config) {
	client, server = tlstest.ClientConfig(), tlstest.ServerConfig()
	client.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	server.SessionTicketsDisabled = false
	client.MaxVersion = version
	return client, server
}

// dropIn is a server made anew for each connection of a configuration, as crypto/tls's is.
func dropIn(config *tls.Config) end {
	return func(conn net.Conn) tlstest.Conn { return ossl.Server(conn, config) }
}

func wantResumed(t *testing.T, client, server end, want bool) {
	t.Helper()
	if c, _ := visit(t, client, server); c.DidResume != want {
		t.Errorf("DidResume is %v", c.DidResume)
	}
}

// TestTicketKeys changes keys under two servers, in each of the ways there are.
func TestTicketKeys(t *testing.T) {
	one, two := [32]byte{1}, [32]byte{2}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run("own/"+tls.VersionName(version), func(t *testing.T) {
			cc, sc := resuming(version)
			client := osslClient(t, cc)
			wantResumed(t, client, osslServer(t, sc), false)
			wantResumed(t, client, osslServer(t, sc), false) // a Context's keys are its own
		})
		t.Run("SetSessionTicketKeys/"+tls.VersionName(version), func(t *testing.T) {
			cc, sc := resuming(version)
			client := osslClient(t, cc)
			sc.SetSessionTicketKeys([][32]byte{one})
			other := sc.Clone()
			wantResumed(t, client, dropIn(sc), false)
			wantResumed(t, client, dropIn(sc), true)
			wantResumed(t, client, dropIn(other), true)
			sc.SetSessionTicketKeys([][32]byte{two, one}) // after the configuration was compiled
			wantResumed(t, client, dropIn(sc), true)
			wantResumed(t, client, dropIn(other), false) // it has a ticket of key two by now
			sc.SetSessionTicketKeys([][32]byte{two})
			wantResumed(t, client, dropIn(sc), false) // of key one
			wantResumed(t, client, dropIn(sc), true)

			ring, err := session.NewRing(session.KeyOf(two))
			if err != nil {
				t.Fatal(err)
			}
			_, plain := resuming(version)
			wantResumed(t, client, osslServer(t, plain, ossl.WithTicketKeys(ring)), true)
		})
		t.Run("SessionTicketKey/"+tls.VersionName(version), func(t *testing.T) {
			cc, sc := resuming(version)
			client := osslClient(t, cc)
			sc.SessionTicketKey = one //lint:ignore SA1019 deprecated, and still honoured by crypto/tls
			other := sc.Clone()
			wantResumed(t, client, dropIn(sc), false)
			wantResumed(t, client, dropIn(other), true)
			wantResumed(t, client, osslServer(t, sc), true)
		})
		t.Run("ring/"+tls.VersionName(version), func(t *testing.T) {
			cc, sc := resuming(version)
			client := osslClient(t, cc)
			ring, err := session.NewRing(session.KeyOf(one))
			if err != nil {
				t.Fatal(err)
			}
			a, b := osslServer(t, sc, ossl.WithTicketKeys(ring)), osslServer(t, sc, ossl.WithTicketKeys(ring))
			wantResumed(t, client, a, false)
			wantResumed(t, client, b, true)
			if err := ring.Set(session.KeyOf(two), session.KeyOf(one)); err != nil {
				t.Fatal(err)
			}
			wantResumed(t, client, a, true) // and the client has a new ticket
			if err := ring.Set(session.KeyOf(two)); err != nil {
				t.Fatal(err)
			}
			wantResumed(t, client, b, true)
			ring.Clear()
			wantResumed(t, client, a, false)
			wantResumed(t, client, a, false) // no key, no ticket
		})
		t.Run("of 16 bytes/"+tls.VersionName(version), func(t *testing.T) {
			cc, sc := resuming(version)
			client := osslClient(t, cc)
			key, err := session.ParseTicketKey([]byte("a name of 16 ... an AES key of 16 ... a MAC key .")[:48])
			if err != nil {
				t.Fatal(err)
			}
			ring, err := session.NewRing(key)
			if err != nil {
				t.Fatal(err)
			}
			wantResumed(t, client, osslServer(t, sc, ossl.WithTicketKeys(ring)), false)
			wantResumed(t, client, osslServer(t, sc, ossl.WithTicketKeys(ring)), true)
		})
		t.Run("GetConfigForClient/"+tls.VersionName(version), func(t *testing.T) {
			cc, sc := resuming(version)
			outer := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return sc.Clone(), nil }}
			client, server := osslClient(t, cc), osslServer(t, outer)
			wantResumed(t, client, server, false)
			wantResumed(t, client, server, true) // the keys are the outer configuration's, as in crypto/tls
		})
		t.Run("virtual hosts/"+tls.VersionName(version), func(t *testing.T) {
			cc, sc := resuming(version)
			sc.Certificates = []tls.Certificate{tlstest.New(tlstest.Options{Names: []string{tlstest.ServerName, "other.test"}})}
			server := osslServer(t, sc, ossl.WithSessionCache(session.NewCache(8)))
			mixed := new(oneSlot)
			both := cc.Clone()
			both.ClientSessionCache = mixed // whatever the name
			ctx := newContext(t, both)
			named := func(name string) end {
				return func(conn net.Conn) tlstest.Conn { return ctx.Client(conn, name) }
			}
			wantResumed(t, named(tlstest.ServerName), server, false)
			wantResumed(t, named(tlstest.ServerName), server, true)
			wantResumed(t, named("other.test"), server, false)
			wantResumed(t, named("other.test"), server, true)
		})
	}
}

// oneSlot is a faulty ClientSessionCache: it answers with the last session, whoever asks.
type oneSlot struct{ state *tls.ClientSessionState }

func (s *oneSlot) Get(string) (*tls.ClientSessionState, bool)  { return s.state, s.state != nil }
func (s *oneSlot) Put(_ string, state *tls.ClientSessionState) { s.state = state }

// bytesCache keeps sessions as bytes, as a cache on disk would.
type bytesCache map[string][2][]byte

func (c bytesCache) Get(key string) (*tls.ClientSessionState, bool) {
	kept, ok := c[key]
	if !ok {
		return nil, false
	}
	state, err := tls.ParseSessionState(kept[1])
	if err != nil {
		return nil, false
	}
	cs, err := tls.NewResumptionState(kept[0], state)
	return cs, err == nil
}

func (c bytesCache) Put(key string, cs *tls.ClientSessionState) {
	if cs == nil {
		delete(c, key)
		return
	}
	ticket, state, err := cs.ResumptionState()
	if err != nil {
		return
	}
	if b, err := state.Bytes(); err == nil {
		c[key] = [2][]byte{ticket, b}
	}
}

// TestClientSessionCaches shares a cache between clients of ossl and of crypto/tls, each of which uses its own sessions only, and
// takes sessions through their encoding.
func TestClientSessionCaches(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for name, cache := range map[string]tls.ClientSessionCache{"LRU": tls.NewLRUClientSessionCache(0), "bytes": bytesCache{}} {
			t.Run(tls.VersionName(version)+"/"+name, func(t *testing.T) {
				cc, sc := resuming(version)
				cc.ClientSessionCache = cache
				std, own, server := stdClient(cc), osslClient(t, cc), osslServer(t, sc)
				wantResumed(t, own, server, false)
				wantResumed(t, own, server, true)
				wantResumed(t, std, server, false)
				wantResumed(t, std, server, true)
				wantResumed(t, own, server, false)
				wantResumed(t, own, server, true)
			})
		}
	}
}

// TestFatalAlertEndsSession has the peer send a record that nobody sealed on a connection whose session is in the cache: by
// itself, and behind data that is read with it.
func TestFatalAlertEndsSession(t *testing.T) {
	for _, version := range versions {
		for _, way := range []string{"close_notify", "alert", "alert behind data"} {
			t.Run(tls.VersionName(version)+"/"+way, func(t *testing.T) {
				cc, sc := resuming(version)
				cc.ClientSessionCache = nil
				sc.SessionTicketsDisabled = true
				cache := session.NewCache(8)
				client, server := newContext(t, cc), newContext(t, sc, ossl.WithSessionCache(cache))
				a, b := tlstest.Buffered()
				held := &heldWrites{Conn: a}
				c, s := client.Client(held, ""), server.Server(b)
				defer c.Close()
				defer s.Close()
				done := make(chan error, 1)
				go func() { done <- s.Handshake() }()
				if err := c.Handshake(); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if entries := cache.Stats().Entries; entries != 1 {
					t.Fatalf("%d entries", entries)
				}
				unsealed := append([]byte{23, 3, 3, 0, 32}, make([]byte, 32)...)
				switch way {
				case "close_notify":
					c.Close()
				case "alert":
					a.Write(unsealed)
				case "alert behind data":
					held.hold = true
					c.Write([]byte("data"))
					a.Write(append(held.held, unsealed...)) // one read of the transport brings both
				}
				var err error
				for buf := make([]byte, 100); err == nil; {
					_, err = s.Read(buf)
				}
				var alert tls.AlertError
				fatal := way != "close_notify"
				if errors.As(err, &alert) != fatal {
					t.Errorf("got %v", err)
				}
				if entries := cache.Stats().Entries; entries == 0 != fatal {
					t.Errorf("%d entries are left", entries)
				}
			})
		}
	}
}

// heldWrites keeps what is written, from a time on.
type heldWrites struct {
	net.Conn
	hold bool
	held []byte
}

func (c *heldWrites) Write(b []byte) (int, error) {
	if !c.hold {
		return c.Conn.Write(b)
	}
	c.held = append(c.held, b...)
	return len(b), nil
}

// TestTicketsOnceInTLS13 gives a server the same ID twice.
func TestTicketsOnceInTLS13(t *testing.T) {
	cc, sc := resuming(tls.VersionTLS13)
	cache := session.NewCache(8)
	server := osslServer(t, sc, ossl.WithSessionCache(cache))
	slot := new(oneSlot)
	cc.ClientSessionCache = slot
	client := osslClient(t, cc)
	wantResumed(t, client, server, false)
	kept := slot.state
	wantResumed(t, client, server, true)
	slot.state = kept
	wantResumed(t, client, server, false)
}

// TestSessionOptionsRefused has each option that can't be honoured refused by its name.
func TestSessionOptionsRefused(t *testing.T) {
	ring := session.NewRotatingRing(0, 0)
	keyed, disabled := tlstest.ServerConfig(), tlstest.ServerConfig()
	keyed.SessionTicketsDisabled = false
	keyed.SetSessionTicketKeys([][32]byte{{1}})
	for i, c := range []struct {
		config *tls.Config
		opt    ossl.Option
		field  string
	}{
		{keyed, ossl.WithTicketKeys(ring), "WithTicketKeys"},
		{disabled, ossl.WithTicketKeys(ring), "WithTicketKeys"},
		{keyed, ossl.WithTicketKeys(nil), "WithTicketKeys"},
		{keyed, ossl.WithSessionCache(nil), "WithSessionCache"},
		{keyed, ossl.WithSessionCache((*session.Memory)(nil)), "WithSessionCache"},
		{tlstest.ClientConfig(), ossl.WithTicketKeys(ring), "WithTicketKeys"},
		{tlstest.ClientConfig(), ossl.WithSessionCache(session.NewCache(1)), "WithSessionCache"},
		{keyed, ossl.WithSessionLifetime(0), "WithSessionLifetime"},
		{keyed, ossl.WithSessionLifetime(1 << 62), "WithSessionLifetime"},
	} {
		_, err := ossl.NewContext(c.config, c.opt)
		var refused *ossl.ConfigError
		if !errors.As(err, &refused) || refused.Field != c.field {
			t.Errorf("case %d: got %v", i, err)
		}
	}
}
