//go:build cgo || ossl_nocgo

package resumption

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// dropIn makes a new server for each connection of a configuration, as crypto/tls does.
func dropIn(config *tls.Config) tlstest.End {
	return func(conn net.Conn) tlstest.Conn { return ossl.Server(conn, config) }
}

// A handedListener accepts the connections that it is handed.
type handedListener chan net.Conn

func (l handedListener) Accept() (net.Conn, error) { return <-l, nil }
func (handedListener) Close() error                { return nil }
func (handedListener) Addr() net.Addr              { return &net.TCPAddr{} }

// listening is a server that accepts its connections from one listener of a configuration.
func listening(config *tls.Config) tlstest.End {
	inner := make(handedListener, 1)
	l := ossl.NewListener(inner, config)
	return func(conn net.Conn) tlstest.Conn {
		inner <- conn
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		return c.(tlstest.Conn)
	}
}

// TestTicketKeys changes the keys of two servers in each way that the API offers.
func TestTicketKeys(t *testing.T) {
	one, two := [32]byte{1}, [32]byte{2}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run("own/"+tls.VersionName(version), func(t *testing.T) {
			cc, sc := tlstest.Resuming(version)
			client := ossltest.Client(t, cc)
			tlstest.WantResumed(t, client, ossltest.Server(t, sc), false)
			tlstest.WantResumed(t, client, ossltest.Server(t, sc), false) // a Context's keys are its own
		})
		for name, server := range map[string]func(*tls.Config) tlstest.End{
			"Server": dropIn, "NewListener": listening, "crypto/tls": tlstest.StdServer,
		} {
			t.Run("SetSessionTicketKeys of "+name+"/"+tls.VersionName(version), func(t *testing.T) {
				cc, sc := tlstest.Resuming(version)
				client := ossltest.Client(t, cc)
				sc.SetSessionTicketKeys([][32]byte{one})
				other := sc.Clone()
				end, otherEnd := server(sc), server(other)
				tlstest.WantResumed(t, client, end, false)
				tlstest.WantResumed(t, client, end, true)
				tlstest.WantResumed(t, client, otherEnd, true)
				sc.SetSessionTicketKeys([][32]byte{two, one}) // while the configuration is in use
				tlstest.WantResumed(t, client, end, true)
				tlstest.WantResumed(t, client, otherEnd, false) // it has a ticket of key two by now
				sc.SetSessionTicketKeys([][32]byte{two})
				tlstest.WantResumed(t, client, end, false) // of key one
				tlstest.WantResumed(t, client, end, true)
				sc.SessionTicketsDisabled = true // and the key is there (CVE-2014-7189)
				tlstest.WantResumed(t, client, end, false)
			})
		}
		t.Run("SetSessionTicketKeys and a ring/"+tls.VersionName(version), func(t *testing.T) {
			cc, sc := tlstest.Resuming(version)
			client := ossltest.Client(t, cc)
			sc.SetSessionTicketKeys([][32]byte{two})
			tlstest.WantResumed(t, client, dropIn(sc), false)
			ring, err := session.NewRing(session.KeyOf(two))
			if err != nil {
				t.Fatal(err)
			}
			_, plain := tlstest.Resuming(version)
			tlstest.WantResumed(t, client, ossltest.Server(t, plain, ossl.WithTicketKeys(ring)), true)
		})
		t.Run("SessionTicketKey/"+tls.VersionName(version), func(t *testing.T) {
			cc, sc := tlstest.Resuming(version)
			client := ossltest.Client(t, cc)
			sc.SessionTicketKey = one //lint:ignore SA1019 deprecated, and still honoured by crypto/tls
			other := sc.Clone()
			tlstest.WantResumed(t, client, dropIn(sc), false)
			tlstest.WantResumed(t, client, dropIn(other), true)
			tlstest.WantResumed(t, client, ossltest.Server(t, sc), true)
		})
		t.Run("ring/"+tls.VersionName(version), func(t *testing.T) {
			cc, sc := tlstest.Resuming(version)
			client := ossltest.Client(t, cc)
			ring, err := session.NewRing(session.KeyOf(one))
			if err != nil {
				t.Fatal(err)
			}
			a, b := ossltest.Server(t, sc, ossl.WithTicketKeys(ring)), ossltest.Server(t, sc, ossl.WithTicketKeys(ring))
			tlstest.WantResumed(t, client, a, false)
			tlstest.WantResumed(t, client, b, true)
			if err := ring.Set(session.KeyOf(two), session.KeyOf(one)); err != nil {
				t.Fatal(err)
			}
			tlstest.WantResumed(t, client, a, true) // and the client has a new ticket
			if err := ring.Set(session.KeyOf(two)); err != nil {
				t.Fatal(err)
			}
			tlstest.WantResumed(t, client, b, true)
			ring.Clear()
			tlstest.WantResumed(t, client, a, false)
			tlstest.WantResumed(t, client, a, false) // no key, no ticket
		})
		t.Run("SetSessionTicketKeys of hundreds/"+tls.VersionName(version), func(t *testing.T) {
			keys := make([][32]byte, 300)
			for i := range keys {
				keys[i] = [32]byte{1, byte(i), byte(i >> 8)}
			}
			cc, old := tlstest.Resuming(version)
			client := ossltest.Client(t, cc)
			_, sc := tlstest.Resuming(version)
			old.SetSessionTicketKeys(keys[len(keys)-1:])
			sc.SetSessionTicketKeys(keys)
			end := ossltest.Server(t, sc)
			tlstest.WantResumed(t, client, ossltest.Server(t, old), false)
			tlstest.WantResumed(t, client, end, true) // with the last key; the ticket that follows is of the first
			old.SetSessionTicketKeys(keys[:1])
			tlstest.WantResumed(t, client, ossltest.Server(t, old), true)
		})
		t.Run("of 16 bytes/"+tls.VersionName(version), func(t *testing.T) {
			cc, sc := tlstest.Resuming(version)
			client := ossltest.Client(t, cc)
			key, err := session.ParseTicketKey([]byte("a name of 16 ... an AES key of 16 ... a MAC key .")[:48])
			if err != nil {
				t.Fatal(err)
			}
			ring, err := session.NewRing(key)
			if err != nil {
				t.Fatal(err)
			}
			tlstest.WantResumed(t, client, ossltest.Server(t, sc, ossl.WithTicketKeys(ring)), false)
			tlstest.WantResumed(t, client, ossltest.Server(t, sc, ossl.WithTicketKeys(ring)), true)
		})
		t.Run("GetConfigForClient/"+tls.VersionName(version), func(t *testing.T) {
			cc, sc := tlstest.Resuming(version)
			outer := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return sc.Clone(), nil }}
			client, server := ossltest.Client(t, cc), ossltest.Server(t, outer)
			tlstest.WantResumed(t, client, server, false)
			tlstest.WantResumed(t, client, server, true) // the keys are the outer configuration's, as in crypto/tls
		})
	}
}

// TestZeroTicketKey: a key that was never set is refused; crypto/tls accepts it.
func TestZeroTicketKey(t *testing.T) {
	config := tlstest.ServerConfig()
	config.SessionTicketsDisabled = false
	config.SetSessionTicketKeys([][32]byte{{1}, {}})
	var refused *ossl.ConfigError
	if _, err := ossl.NewContext(config); !errors.As(err, &refused) || refused.Field != "SetSessionTicketKeys" {
		t.Errorf("error %v", err)
	}
}

// TestTicketsOfVirtualHosts resumes sessions with one server under two names, each of which has
// sessions of its own.
func TestTicketsOfVirtualHosts(t *testing.T) {
	for _, version := range tlstest.Versions {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			cc, sc := tlstest.Resuming(version)
			sc.Certificates = []tls.Certificate{tlstest.New(tlstest.Options{Names: []string{tlstest.ServerName, "other.test"}})}
			server := ossltest.Server(t, sc, ossl.WithSessionCache(session.NewCache(8)))
			mixed := new(tlstest.OneSlot)
			both := cc.Clone()
			both.ClientSessionCache = mixed // which has one slot for both names
			ctx := ossltest.NewContext(t, both)
			named := func(name string) tlstest.End {
				return func(conn net.Conn) tlstest.Conn { return ctx.Client(conn, name) }
			}
			tlstest.WantResumed(t, named(tlstest.ServerName), server, false)
			tlstest.WantResumed(t, named(tlstest.ServerName), server, true)
			tlstest.WantResumed(t, named("other.test"), server, false)
			tlstest.WantResumed(t, named("other.test"), server, true)
		})
	}
}

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

// TestClientSessionCaches shares a cache between an ossl client and a crypto/tls client, each of
// which must use only its own sessions. One kind of cache encodes and decodes the sessions.
func TestClientSessionCaches(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for name, cache := range map[string]tls.ClientSessionCache{"LRU": tls.NewLRUClientSessionCache(0), "bytes": bytesCache{}} {
			t.Run(tls.VersionName(version)+"/"+name, func(t *testing.T) {
				cc, sc := tlstest.Resuming(version)
				cc.ClientSessionCache = cache
				std, own, server := tlstest.StdClient(cc), ossltest.Client(t, cc), ossltest.Server(t, sc)
				tlstest.WantResumed(t, own, server, false)
				tlstest.WantResumed(t, own, server, true)
				tlstest.WantResumed(t, std, server, false)
				tlstest.WantResumed(t, std, server, true)
				tlstest.WantResumed(t, own, server, false)
				tlstest.WantResumed(t, own, server, true)
			})
		}
	}
}

// TestFatalAlertEndsSession makes the peer send a record that is not sealed, on a connection whose
// session is in the cache: alone, and after data that is read with it.
func TestFatalAlertEndsSession(t *testing.T) {
	for _, version := range tlstest.Versions {
		for _, way := range []string{"close_notify", "alert", "alert behind data"} {
			t.Run(tls.VersionName(version)+"/"+way, func(t *testing.T) {
				cc, sc := tlstest.Resuming(version)
				cc.ClientSessionCache = nil
				sc.SessionTicketsDisabled = true
				cache := session.NewCache(8)
				client, server := ossltest.NewContext(t, cc), ossltest.NewContext(t, sc, ossl.WithSessionCache(cache))
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

// heldWrites keeps the data of Writes, from a time on.
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
	cc, sc := tlstest.Resuming(tls.VersionTLS13)
	cache := session.NewCache(8)
	server := ossltest.Server(t, sc, ossl.WithSessionCache(cache))
	slot := new(tlstest.OneSlot)
	cc.ClientSessionCache = slot
	client := ossltest.Client(t, cc)
	tlstest.WantResumed(t, client, server, false)
	kept := slot.State
	tlstest.WantResumed(t, client, server, true)
	slot.State = kept
	tlstest.WantResumed(t, client, server, false)
}

// TestSessionOptionsRefused checks that each option that can't be honoured is refused by its name.
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
		{keyed, ossl.WithTLS13Tickets(), "WithTLS13Tickets"},
		{keyed, ossl.WithSessionLifetime(0), "WithSessionLifetime"},
		{keyed, ossl.WithSessionLifetime(1 << 62), "WithSessionLifetime"},
	} {
		_, err := ossl.NewContext(c.config, c.opt)
		var refused *ossl.ConfigError
		if !errors.As(err, &refused) || refused.Field != c.field {
			t.Errorf("case %d: got %v", i, err)
		}
	}
	_, err := ossl.NewContext(disabled, ossl.WithSessionCache(session.NewCache(1)), ossl.WithTLS13Tickets())
	var refused *ossl.ConfigError
	if !errors.As(err, &refused) || refused.Field != "WithTLS13Tickets" {
		t.Errorf("without tickets: got %v", err)
	}
}

// TestTLS13Tickets checks which sessions of a server with WithTLS13Tickets need its cache.
func TestTLS13Tickets(t *testing.T) {
	server := func(ring *session.Ring, cache session.Cache) tlstest.End {
		_, sc := tlstest.Resuming(tls.VersionTLS13)
		return ossltest.Server(t, sc, ossl.WithTicketKeys(ring), ossl.WithSessionCache(cache), ossl.WithTLS13Tickets())
	}
	resumes := func(t *testing.T, client, server tlstest.End, want bool) {
		t.Helper()
		if c, s := tlstest.Visit(t, client, server); c.DidResume != want || s.DidResume != want {
			t.Errorf("resumed: %v, %v; want %v", c.DidResume, s.DidResume, want)
		}
	}
	t.Run("on another server with the same keys", func(t *testing.T) {
		ring, first, second := session.NewRotatingRing(0, 0), session.NewCache(8), session.NewCache(8)
		cc, _ := tlstest.Resuming(tls.VersionTLS13)
		client := ossltest.Client(t, cc)
		resumes(t, client, server(ring, first), false)
		resumes(t, client, server(ring, second), true)
		if n := first.Stats().Entries + second.Stats().Entries; n != 0 {
			t.Errorf("%d sessions are in the caches", n)
		}
	})
	t.Run("while there are no keys", func(t *testing.T) {
		ring, cache := new(session.Ring), session.NewCache(8)
		cc, _ := tlstest.Resuming(tls.VersionTLS13)
		client, server := ossltest.Client(t, cc), server(ring, cache)
		resumes(t, client, server, false)
		resumes(t, client, server, true)
		if hits := cache.Stats().Hits; hits != 1 {
			t.Errorf("%d sessions were found in the cache", hits)
		}
	})
}
