//go:build cgo

package ossl_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
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

// TestBothDirectionsAtOnce moves different data both ways at the same time, with key updates in between.
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
					asked := 0 // answers are no application data; 16 in a row, updates of one's own included, are too many
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

// TestKeyUpdateAnswered asks a peer that only reads for a key update: its answer comes without a Write of its user's.
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
			// What is sent under the new key is read.
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

// TestReadDoesNotWaitForBlockedWrite makes a Read answer a key update while a Write of the same connection is stuck.
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
	// The answer that waited goes out in its place: the server reads all, under both keys.
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
		defer silent.Close() // and so not collected, which would close it before its time
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

// TestConfigIsCompiledOnce: the drop-in functions remember a configuration, and forget it with its last use.
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
