//go:build cgo || ossl_nocgo

package ossl_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

func TestCloseRacesReadWrite(t *testing.T) {
	for name, pair := range map[string]func() (net.Conn, net.Conn){"tcp": tlstest.Loopback, "pipe": tlstest.NetPipe} {
		t.Run(name, func(t *testing.T) {
			for range 30 {
				p := ossltest.NewContexts(t, nil)
				a, b := pair()
				client, server := p.Client.Client(a, ""), p.Server.Server(b)
				var all sync.WaitGroup
				for _, c := range []*ossl.Conn{client, server} {
					all.Go(func() {
						buf := make([]byte, 3000)
						for {
							if _, err := c.Read(buf); err != nil {
								return
							}
						}
					})
					all.Go(func() {
						buf := make([]byte, 20000)
						for {
							if _, err := c.Write(buf); err != nil {
								return
							}
						}
					})
					all.Go(func() {
						time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond)
						c.ConnectionState()
						c.Close()
						c.Close()
					})
				}
				all.Wait()
				if !client.Freed() || !server.Freed() {
					t.Fatal("C memory is kept after Close")
				}
			}
		})
	}
}

// TestBothDirectionsAtOnce moves different data both ways at the same time, with key updates in
// between.
func TestBothDirectionsAtOnce(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			if version == tls.VersionTLS13 && ossltest.RecordsByLibssl() && ossltest.BreaksAtKeyUpdate() {
				t.Skipf("OpenSSL %s breaks where a KeyUpdate is sent between the parts of a record", ossltest.Version())
			}
			client, server := ossltest.Connected(t, tlstest.Loopback, func(c, _ *tls.Config) { c.MaxVersion = version })
			const size = 3 << 20
			var all sync.WaitGroup
			for i, ends := range [][2]*ossl.Conn{{client, server}, {server, client}} {
				data := make([]byte, size)
				chacha := rand.NewChaCha8([32]byte{byte(i)})
				chacha.Read(data)
				all.Go(func() {
					asked := 0 // 16 records without application data in a row, such as answers and KeyUpdates, are too many
					for rest := data; len(rest) > 0; {
						n := min(len(rest), 1+rand.IntN(200000))
						if _, err := ends[0].Write(rest[:n]); err != nil {
							t.Error(err)
							return
						}
						rest = rest[n:]
						if version == tls.VersionTLS13 {
							ask := rand.IntN(2) == 0 && asked < 12
							if ask {
								asked++
							}
							if err := ends[0].KeyUpdate(ask); err != nil {
								t.Error(err)
								return
							}
						}
					}
					if err := ends[0].CloseWrite(); err != nil {
						t.Error(err)
					}
				})
				all.Go(func() {
					got, err := io.ReadAll(ends[1])
					if err != nil || !bytes.Equal(got, data) {
						t.Errorf("got %d bytes, %v", len(got), err)
					}
				})
			}
			all.Wait()
		})
	}
}

// TestUselessMessages checks that 16 messages in a row that bring no data are accepted on each
// record path, and no more.
func TestUselessMessages(t *testing.T) {
	for _, path := range []ossl.RecordPath{ossl.RecordsDirect, ossl.RecordsLibssl} {
		for _, role := range []string{"client", "server"} {
			t.Run(fmt.Sprintf("%v/%s", path, role), func(t *testing.T) {
				a, b := tlstest.Loopback()
				cc, sc := tlstest.ClientConfig(), tlstest.ServerConfig()
				sender, receiver := ossltest.NewContext(t, cc).Client(a, ""), ossltest.NewContext(t, sc, ossl.WithRecordPath(path)).Server(b)
				if role == "client" {
					sender, receiver = ossltest.NewContext(t, sc).Server(a), ossltest.NewContext(t, cc, ossl.WithRecordPath(path)).Client(b, "")
				}
				defer sender.Close()
				defer receiver.Close()
				tlstest.Shake(t, sender, receiver)
				update := func(n int) {
					for range n {
						if err := sender.KeyUpdate(false); err != nil {
							t.Fatal(err)
						}
					}
					if _, err := sender.Write([]byte("x")); err != nil {
						t.Fatal(err)
					}
				}
				buf := make([]byte, 1)
				for range 2 {
					update(16)
					if _, err := io.ReadFull(receiver, buf); err != nil {
						t.Fatalf("after 16 messages: %v", err)
					}
				}
				update(17)
				_, _ = receiver.Read(buf) // libssl may have decrypted what came behind them
				for range 2 {
					n, err := receiver.Read(buf)
					if n > 0 || err == nil || !strings.Contains(err.Error(), "tls: too many non-advancing records") {
						t.Errorf("after 17 messages: %d, %v", n, err)
					}
				}
			})
		}
	}
}

// TestKeyUpdateAnswered asks a peer that only reads for a key update. The answer comes although the
// peer's user calls no Write.
func TestKeyUpdateAnswered(t *testing.T) {
	for _, asker := range []string{"client", "server"} {
		t.Run(asker, func(t *testing.T) {
			recorded := make(chan int, 100)
			a, b := tlstest.Loopback()
			p := ossltest.NewContexts(t, nil)
			client, server := p.Client.Client(countedWrites{a, recorded}, ""), p.Server.Server(countedWrites{b, recorded})
			defer client.Close()
			defer server.Close()
			go server.Handshake()
			if err := client.Handshake(); err != nil {
				t.Fatal(err)
			}
			if err := server.Handshake(); err != nil {
				t.Fatal(err)
			}
			ask, answer := client, server
			if asker == "server" {
				ask, answer = server, client
			}
			for len(recorded) > 0 {
				<-recorded
			}
			read := make(chan error, 2)
			buf := make([]byte, 10)
			go func() { _, err := io.ReadFull(answer, buf[:4]); read <- err }()
			if err := ask.KeyUpdate(true); err != nil {
				t.Fatal(err)
			}
			if _, err := ask.Write([]byte("data")); err != nil {
				t.Fatal(err)
			}
			if err := <-read; err != nil {
				t.Fatal(err)
			}
			go answer.Read(make([]byte, 10)) // goes on reading
			for i := range 3 {               // the request, the data, the answer
				select {
				case <-recorded:
				case <-time.After(tlstest.Patience):
					t.Fatalf("only %d writes: no answer", i)
				}
			}
			// Data sent with the new key is read.
			go func() { _, err := io.ReadFull(ask, buf[4:8]); read <- err }()
			if _, err := answer.Write([]byte("back")); err != nil {
				t.Fatal(err)
			}
			if err := <-read; err != nil || string(buf[:8]) != "databack" {
				t.Fatalf("%q, %v", buf[:8], err)
			}
		})
	}
}

type countedWrites struct {
	net.Conn
	writes chan<- int
}

func (c countedWrites) Write(b []byte) (int, error) {
	c.writes <- len(b)
	return c.Conn.Write(b)
}

// TestReadDoesNotWaitForBlockedWrite makes a Read answer a key update while a Write of the same
// connection is stuck.
func TestReadDoesNotWaitForBlockedWrite(t *testing.T) {
	begun := make(chan int, 1000)
	client, server := ossltest.Connected(t, func() (net.Conn, net.Conn) {
		a, b := tlstest.NetPipe()
		return countedWrites{a, begun}, b
	}, nil)
	for len(begun) > 0 { // the handshake's
		<-begun
	}
	stuck := make(chan error, 1)
	go func() { _, err := client.Write(make([]byte, 1<<20)); stuck <- err }()
	<-begun // the server reads nothing
	go func() {
		server.KeyUpdate(true)
		server.Write([]byte("data"))
	}()
	buf := make([]byte, 4)
	if _, err := io.ReadFull(client, buf); err != nil || string(buf) != "data" {
		t.Fatalf("%q, %v", buf, err)
	}
	// The answer that waited is sent in its place. The server reads all data, under both keys.
	got, want := 0, 1<<20
	for got < want {
		n, err := server.Read(make([]byte, 100000))
		if err != nil {
			t.Fatal(err)
		}
		got += n
	}
	if err := <-stuck; err != nil {
		t.Fatal(err)
	}
	go client.Write([]byte("after"))
	after := make([]byte, 5)
	if _, err := io.ReadFull(server, after); err != nil || string(after) != "after" {
		t.Fatalf("%q, %v", after, err)
	}
}

func TestCancelHandshake(t *testing.T) {
	p := ossltest.NewContexts(t, nil)
	for _, side := range []string{"client", "server"} {
		a, silent := tlstest.Loopback()
		defer silent.Close() // keeps it from being collected, and so closed, too early
		ctx, cancel := context.WithCancel(t.Context())
		c := p.Client.Client(a, "")
		if side == "server" {
			c = p.Server.Server(a)
		}
		time.AfterFunc(10*time.Millisecond, cancel)
		if err := c.HandshakeContext(ctx); err != context.Canceled {
			t.Errorf("%s: got %v", side, err)
		}
		if err := c.Handshake(); err == nil {
			t.Errorf("%s: a later handshake succeeds", side)
		}
		if !c.Freed() {
			t.Errorf("%s: C memory is kept", side)
		}
	}
}

// TestConfigIsCompiledOnce checks that the drop-in functions remember a configuration, and forget
// it with its last use.
func TestConfigIsCompiledOnce(t *testing.T) {
	config := tlstest.ServerConfig()
	key := weak.Make(config)
	for range 10 {
		a, _ := tlstest.Buffered()
		ossl.Server(a, config)
	}
	if n := ossl.CompiledFor(key); n != 1 {
		t.Errorf("%d entries for one configuration", n)
	}
	runtime.KeepAlive(config)
	config = nil
	for limit := time.Now().Add(tlstest.Patience); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		runtime.GC()
		if ossl.CompiledFor(key) == 0 {
			return
		}
	}
	t.Error("a configuration that is gone is remembered")
}

// A hookedConn calls a function before each write.
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

// TestAbruptWrite uses an underlying connection that panics, or ends the goroutine, in each of its
// writes. Afterwards nothing hangs, no Write counts as under way, and nothing more is sent.
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
	for _, path := range []ossl.RecordPath{ossl.RecordsLibssl, ossl.RecordsDirect} {
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

// TestQueueIsBounded checks the bound on the answers to a peer that asks for key updates and
// doesn't read.
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
	<-writes                             // before a Read needs to send something: the Write must be the one that is stuck
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

// TestCloseDoesNotWaitForBlockedAnswer closes a connection while a Read sends an answer that the
// peer doesn't take.
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

// TestAlertOfAReadIsSent checks that the alert of a failed Read is sent by the next call that can
// send it.
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

// TestCompiledConfigsAreBounded remembers configurations that refer to themselves, which are never
// collected.
func TestCompiledConfigsAreBounded(t *testing.T) {
	const most = 256
	defer ossl.BoundCompiled(most, &tls.Config{Certificates: []tls.Certificate{tlstest.ServerCert(tlstest.P256)}})()
	for range most + 50 {
		config := &tls.Config{Certificates: []tls.Certificate{tlstest.ServerCert(tlstest.P256)}}
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return config, nil }
		a, _ := tlstest.Buffered()
		ossl.Server(a, config)
	}
	if n := ossl.CompiledConfigs(); n != most {
		t.Errorf("%d configurations are remembered, want %d", n, most)
	}
}
