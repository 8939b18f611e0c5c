//go:build cgo

package ossl_test

import (
	"crypto/tls"
	"errors"
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

// What a review found once, and how it was found.

// TestCloseInsideClientCertificate: Close frees the connection while a callback decides.
func TestCloseInsideClientCertificate(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		var c *ossl.Conn
		denied := errors.New("denied")
		p := ossltest.NewContexts(t, func(client, s *tls.Config) {
			client.MaxVersion = version
			s.ClientAuth = tls.RequireAnyClientCert
			client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				c.Close()
				return nil, denied
			}
		})
		a, b := tlstest.Buffered()
		go p.Server.Server(b).Handshake()
		c = p.Client.Client(a, "")
		if err := c.Handshake(); err != denied {
			t.Errorf("got %v", err)
		}
		if !c.Freed() {
			t.Error("C memory is kept")
		}
	}
}

// TestAfterPanic: a callback's panic ends the connection for good, and nothing hangs afterwards.
func TestAfterPanic(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		p := ossltest.NewContexts(t, func(c, _ *tls.Config) {
			c.MaxVersion = version
			c.VerifyConnection = func(tls.ConnectionState) error { panic("boom") }
		})
		a, b := tlstest.Buffered()
		go p.Server.Server(b).Handshake()
		c := p.Client.Client(a, "")
		func() {
			defer func() { recover() }()
			c.Handshake()
			t.Error("no panic")
		}()
		if err := c.Handshake(); err == nil {
			t.Error("a second handshake succeeds")
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("Read succeeds")
		}
		if !c.Freed() {
			t.Error("C memory is kept")
		}
	}
}

// hookedConn has something done before each write.
type hookedConn struct {
	net.Conn
	before func()
}

func (c *hookedConn) Write(b []byte) (int, error) {
	if c.before != nil {
		c.before()
	}
	return c.Conn.Write(b)
}

// TestAbruptWrite has the connection beneath panic, or end the goroutine, in each write there is. Nothing hangs afterwards, no
// Write passes for one that is under way, and nothing more is sent.
func TestAbruptWrite(t *testing.T) {
	damaged := append([]byte{23, 3, 3, 0, 40}, make([]byte, 40)...)
	x := make([]byte, 1)
	calls := map[string]func(c *ossl.Conn){
		"Write":      func(c *ossl.Conn) { c.Write(x) },
		"Read":       func(c *ossl.Conn) { c.CrossRead(damaged); c.Read(x) },
		"CloseWrite": func(c *ossl.Conn) { c.CloseWrite() },
		"Handshake":  func(c *ossl.Conn) { c.Write(x) },
		"flush":      func(c *ossl.Conn) { c.Write(x) },
	}
	ways := map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit}
	for _, path := range []ossl.RecordPath{ossl.RecordsLibssl, ossl.RecordsOwn} {
		for where, call := range calls {
			for way, end := range ways {
				t.Run(fmt.Sprintf("%d/%s/%s", path, where, way), func(t *testing.T) {
					a, b := tlstest.Buffered()
					defer b.Close()
					conn := &hookedConn{Conn: a}
					c := ossltest.NewContext(t, tlstest.ClientConfig(tlstest.Only(tls.VersionTLS13)), ossl.WithRecordPath(path)).Client(conn, "")
					go tlstest.Std.Server(b, tlstest.ServerConfig()).Handshake()
					if where != "Handshake" {
						if err := c.Handshake(); err != nil {
							t.Fatal(err)
						}
					}
					writes := 0
					conn.before = func() {
						if writes++; where == "flush" && writes == 1 {
							c.CrossRead(damaged) // a Read leaves its alert to the Write under way
							return
						}
						end()
					}
					done := make(chan any)
					go func() {
						defer close(done)
						defer func() {
							if p := recover(); p != nil {
								done <- p
							}
						}()
						call(c)
						t.Error("it returns")
					}()
					if p := <-done; (p == "boom") != (way == "panic") {
						t.Errorf("recovered %v", p)
					}
					sent := writes
					if n := c.Writes(); n != 0 {
						t.Errorf("%d Writes are under way", n)
					}
					if n, err := c.Write(x); n != 0 || err == nil {
						t.Errorf("wrote %d, %v", n, err)
					}
					c.Flush()
					c.Close()
					if writes != sent {
						t.Error("more is sent")
					}
					if !c.Freed() {
						t.Error("C memory is kept")
					}
				})
			}
		}
	}
}

// TestWriteWaitsForTheRestOfAMessage: a peer's KeyUpdate in two records. libssl writes nothing in between; Write waits, without
// burning the processor, for a Read to take the rest, or takes it itself.
func TestWriteWaitsForTheRestOfAMessage(t *testing.T) {
	t.Setenv("OSSL_RECORDS", "libssl")
	only13 := func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }
	for _, victim := range []tlstest.Role{tlstest.ServerRole, tlstest.ClientRole} {
		for _, reading := range []bool{false, true} {
			peer := tlstest.ClientRole
			if victim == tlstest.ClientRole {
				peer = tlstest.ServerRole
			}
			h := tlstest.Hijack(t, ossltest.UnderTest, peer, tlstest.ClientConfig(only13), tlstest.ServerConfig(only13))
			h.Send(tlstest.TypeApplicationData, []byte("hi"))
			h.Send(tlstest.TypeHandshake, []byte{24, 0, 0, 1}) // KeyUpdate without its body
			buf := make([]byte, 2)
			if _, err := io.ReadFull(h.Victim, buf); err != nil {
				t.Fatal(err)
			}
			// A Read takes the first half of the message. It opens what is there before it looks at its deadline.
			if reading {
				go h.Victim.Read(make([]byte, 100))
				h.WaitStarved()
			} else {
				h.Victim.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
				h.Victim.Read(buf)
				h.Victim.SetReadDeadline(time.Time{})
			}
			done := make(chan error, 1)
			own := h.Victim.(*ossl.Conn)
			crossings := own.LibsslCrossings()
			go func() { _, err := h.Victim.Write([]byte("x")); done <- err }()
			select {
			case err := <-done:
				t.Errorf("%v: Write returns %v before the message is whole", victim, err)
			case <-time.After(200 * time.Millisecond):
			}
			h.Send(tlstest.TypeHandshake, []byte{0}) // update_not_requested
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("%v, reading=%v: %v", victim, reading, err)
				}
			case <-time.After(tlstest.Patience):
				t.Errorf("%v, reading=%v: Write hangs", victim, reading)
			}
			if n := own.LibsslCrossings() - crossings; n > 20 {
				t.Errorf("%v, reading=%v: %d crossings", victim, reading, n)
			}
		}
	}
}

// TestQueueIsBounded: a peer that asks for key updates and doesn't read the answers.
func TestQueueIsBounded(t *testing.T) {
	writes := make(chan int, 1000)
	pair := func() (net.Conn, net.Conn) {
		a, b := tlstest.NetPipe()
		return a, countedWrites{b, writes}
	}
	client, server := ossltest.Connected(t, pair, func(c, _ *tls.Config) { c.MinVersion = tls.VersionTLS13 })
	for len(writes) > 0 {
		<-writes
	}
	go server.Write(make([]byte, 1<<20)) // stuck: the client never reads
	<-writes                             // before a Read has something to send, which would be what is stuck
	failed := make(chan error, 1)
	go func() {
		buf := make([]byte, 100)
		for {
			if _, err := server.Read(buf); err != nil {
				failed <- err
				server.Close()
				return
			}
		}
	}()
	for range 20000 {
		if client.KeyUpdate(true) != nil {
			break
		}
	}
	select {
	case <-failed:
		if n := server.QueueLen(); n > 64<<10 {
			t.Errorf("%d bytes queued", n)
		}
	case <-time.After(tlstest.Patience):
		t.Errorf("%d bytes queued, and no end", server.QueueLen())
	}
}

// TestCloseDoesNotWaitForBlockedAnswer: a Read sends an answer that nobody takes.
func TestCloseDoesNotWaitForBlockedAnswer(t *testing.T) {
	t.Parallel() // Close gives its own alert five seconds
	client, server := ossltest.Connected(t, tlstest.NetPipe, func(c, _ *tls.Config) { c.MinVersion = tls.VersionTLS13 })
	go server.Read(make([]byte, 10))
	if err := client.KeyUpdate(true); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	done := make(chan struct{})
	go func() { server.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(tlstest.Patience):
		t.Error("Close hangs")
		client.NetConn().Close()
	}
}

// TestAlertOfAReadIsSent, whoever comes first to send it.
func TestAlertOfAReadIsSent(t *testing.T) {
	only13 := func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }
	for _, how := range []string{"flush", "write", "close"} {
		h := tlstest.Hijack(t, ossltest.UnderTest, tlstest.ClientRole, tlstest.ClientConfig(only13), tlstest.ServerConfig(only13))
		damaged := h.Seal(tlstest.TypeApplicationData, []byte("hello"))
		damaged[len(damaged)-1] ^= 1
		v := h.Victim.(*ossl.Conn)
		v.CrossRead(damaged)
		switch how {
		case "flush":
			v.Flush()
		case "write":
			if _, err := v.Write([]byte("x")); err == nil {
				t.Error("Write succeeds on a failed connection")
			}
		case "close":
			v.Close()
		}
		if n := len(h.Received()); n != 1 {
			t.Errorf("%s: the peer got %d records, want the alert", how, n)
		}
	}
}

// TestCompiledConfigsAreBounded: configurations that refer to themselves are never collected.
func TestCompiledConfigsAreBounded(t *testing.T) {
	for range 400 {
		config := &tls.Config{Certificates: []tls.Certificate{tlstest.ServerCert(tlstest.P256)}}
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return config, nil }
		a, _ := tlstest.Buffered()
		ossl.Server(a, config)
	}
	if n := ossl.CompiledConfigs(); n > 256 {
		t.Errorf("%d configurations remembered", n)
	}
}
