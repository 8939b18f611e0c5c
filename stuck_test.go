//go:build cgo || ossl_nocgo

package ossl_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestWriteWaitsForTheRestOfAMessage sends a KeyUpdate from the peer in two records. In between,
// libssl writes nothing. Write waits, without using the processor, for a Read to take the rest, or
// takes it itself.
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
			// A Read takes the first half of the message. It opens the input that is there before
			// it looks at its deadline.
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

// These tests call Write while libssl has read the first part of a peer's handshake message, and
// sends nothing before it has read the rest.

// bySocket makes connections over a socket, whose input ossl reads in a special way, and relays the
// bytes.
type bySocket struct{ tlstest.Impl }

func (b bySocket) Client(conn net.Conn, config *tls.Config) tlstest.Conn {
	near, far := tlstest.Loopback()
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.(interface{ CloseWrite() error }).CloseWrite()
	}
	go pass(far, conn)
	go pass(conn, far)
	return b.Impl.Client(near, config)
}

var longAgo = time.Unix(1, 0)

// half returns a client that has read the first half of a ticket, and a function that sends the
// rest.
func half(t *testing.T, impl tlstest.Impl) (h *tlstest.Hijacked, c *ossl.Conn, rest func()) {
	t.Helper()
	cc, _ := tlstest.Resuming(tls.VersionTLS13)
	h = tlstest.Hijack(t, impl, tlstest.ServerRole, cc, tlstest.ServerConfig())
	c = h.Victim.(*ossl.Conn)
	crossings := c.Crossings()
	h.Send(tlstest.TypeHandshake, tlstest.OneTicket[:10])
	for c.Crossings() == crossings {
		c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if n, err := c.Read(make([]byte, 100)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(n, err)
		}
	}
	c.SetReadDeadline(time.Time{})
	return h, c, func() { h.Send(tlstest.TypeHandshake, tlstest.OneTicket[10:]) }
}

// transports runs a test with a client that has read half a ticket over a pipe, and over a socket.
func transports(t *testing.T, run func(t *testing.T, h *tlstest.Hijacked, c *ossl.Conn, rest func())) {
	for name, impl := range map[string]tlstest.Impl{"pipe": ossltest.UnderTest, "socket": bySocket{ossltest.UnderTest}} {
		t.Run(name, func(t *testing.T) {
			h, c, rest := half(t, impl)
			run(t, h, c, rest)
		})
	}
}

// running is a call that is under way. It receives the call's error.
type running chan error

func start(call func() error) running {
	r := make(running, 1)
	go func() { r <- call() }()
	return r
}

func startWrite(c *ossl.Conn) running {
	return start(func() error {
		_, err := c.Write([]byte("written"))
		return err
	})
}

// ends waits for the call, and checks its error.
func (r running) ends(t *testing.T, what string, want error) {
	t.Helper()
	select {
	case err := <-r:
		var timeout net.Error
		if !errors.Is(err, want) || want == os.ErrDeadlineExceeded && (!errors.As(err, &timeout) || !timeout.Timeout()) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	case <-time.After(tlstest.Patience):
		t.Fatalf("%s doesn't end", what)
	}
}

func (r running) isUnderWay(t *testing.T, what string) {
	t.Helper()
	select {
	case err := <-r:
		t.Fatalf("%s has ended: %v", what, err)
	default:
	}
}

// starves waits until the client has taken all input and waits for more.
func starves(t *testing.T, h *tlstest.Hijacked) {
	t.Helper()
	start(func() error { h.WaitStarved(); return nil }).ends(t, "waiting for the client to read", nil)
}

// waitAwaited waits until a Write waits for a Read.
func waitAwaited(t *testing.T, c *ossl.Conn) {
	t.Helper()
	for end := time.Now().Add(tlstest.Patience); !ossl.WriteAwaitsRead(c); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the Write doesn't wait for the Read")
		}
	}
}

// readsData checks that c reads data that the peer sends.
func readsData(t *testing.T, h *tlstest.Hijacked, c *ossl.Conn) {
	t.Helper()
	h.Send(tlstest.TypeApplicationData, []byte("data"))
	buf := make([]byte, 100)
	read := start(func() error {
		n, err := io.ReadFull(c, buf[:4])
		buf = buf[:n]
		return err
	})
	read.ends(t, "the Read of data", nil)
	if string(buf) != "data" {
		t.Errorf("%q was read", buf)
	}
}

// wrote checks the data that the client has sent.
func wrote(t *testing.T, h *tlstest.Hijacked, want int) {
	t.Helper()
	var got []byte
	for end := time.Now().Add(tlstest.Patience); ; time.Sleep(time.Millisecond) {
		got = nil
		for _, r := range h.Received() {
			if r.Type == tlstest.TypeApplicationData {
				got = append(got, r.Payload...)
			}
		}
		if len(got) >= want*len("written") || time.Now().After(end) {
			break
		}
	}
	if !bytes.Equal(got, bytes.Repeat([]byte("written"), want)) {
		t.Errorf("%q came, want %d times what was written", got, want)
	}
}

func TestStuckWriteDeadline(t *testing.T) {
	transports(t, func(t *testing.T, h *tlstest.Hijacked, c *ossl.Conn, rest func()) {
		c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		startWrite(c).ends(t, "the Write", os.ErrDeadlineExceeded)
		c.SetWriteDeadline(time.Time{})
		startWrite(c).ends(t, "another Write", os.ErrDeadlineExceeded) // as after any timeout
		rest()
		readsData(t, h, c)
	})
}

// TestStuckWriteDeadlineLater checks that a deadline that is set while the Write waits applies to
// it, whether it reads or waits for a Read.
func TestStuckWriteDeadlineLater(t *testing.T) {
	for name, set := range map[string]func(*ossl.Conn){
		"SetDeadline":      func(c *ossl.Conn) { c.SetDeadline(longAgo) },
		"SetWriteDeadline": func(c *ossl.Conn) { c.SetWriteDeadline(longAgo) },
	} {
		t.Run(name, func(t *testing.T) {
			h, c, rest := half(t, ossltest.UnderTest)
			write := startWrite(c)
			starves(t, h)
			set(c)
			write.ends(t, "the Write that reads", os.ErrDeadlineExceeded)
			c.SetDeadline(time.Time{})
			rest()
			readsData(t, h, c)
		})
		t.Run(name+" beside a Read", func(t *testing.T) {
			h, c, _ := half(t, ossltest.UnderTest)
			read := start(func() error { _, err := c.Read(make([]byte, 1)); return err })
			starves(t, h)
			write := startWrite(c)
			waitAwaited(t, c)
			set(c)
			write.ends(t, "the Write that waits", os.ErrDeadlineExceeded)
			c.SetReadDeadline(longAgo)
			read.ends(t, "the Read", os.ErrDeadlineExceeded)
		})
	}
}

// TestStuckWriteReadDeadline checks that a read deadline that has passed doesn't affect the Write,
// which goes on when the rest has arrived.
func TestStuckWriteReadDeadline(t *testing.T) {
	for name, setting := range map[string]struct {
		set func(*ossl.Conn)
		now bool // before the Write
	}{
		"before":               {func(c *ossl.Conn) { c.SetReadDeadline(longAgo) }, true},
		"meanwhile":            {func(c *ossl.Conn) { c.SetReadDeadline(longAgo) }, false},
		"meanwhile, and again": {func(c *ossl.Conn) { c.SetReadDeadline(time.Time{}); c.SetReadDeadline(longAgo) }, false},
		"before, both": {func(c *ossl.Conn) {
			c.SetDeadline(longAgo)
			c.SetWriteDeadline(time.Now().Add(time.Hour))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			transports(t, func(t *testing.T, h *tlstest.Hijacked, c *ossl.Conn, rest func()) {
				if setting.now {
					setting.set(c)
				}
				write := startWrite(c)
				starves(t, h)
				if !setting.now {
					setting.set(c)
				}
				starves(t, h)
				write.isUnderWay(t, "the Write")
				rest()
				write.ends(t, "the Write", nil)
				start(func() error { _, err := c.Read(make([]byte, 1)); return err }).ends(t, "the Read", os.ErrDeadlineExceeded)
				c.SetDeadline(time.Time{})
				readsData(t, h, c)
				startWrite(c).ends(t, "another Write", nil)
				wrote(t, h, 2)
			})
		})
	}
}

func TestStuckWriteClose(t *testing.T) {
	for _, reading := range []bool{false, true} {
		transports(t, func(t *testing.T, h *tlstest.Hijacked, c *ossl.Conn, rest func()) {
			var read running
			if reading {
				read = start(func() error { _, err := c.Read(make([]byte, 1)); return err })
				starves(t, h)
			}
			write := startWrite(c)
			if reading {
				waitAwaited(t, c)
			} else {
				starves(t, h)
			}
			start(c.Close).ends(t, "Close", nil)
			write.ends(t, "the Write", net.ErrClosed)
			if reading {
				read.ends(t, "the Read", net.ErrClosed)
			}
			if !c.Freed() {
				t.Error("C's memory is kept")
			}
		})
	}
}

func TestStuckWritePeerEnds(t *testing.T) {
	for _, deadline := range []time.Time{{}, longAgo} { // of reading, which doesn't matter
		for _, reading := range []bool{false, true} {
			transports(t, func(t *testing.T, h *tlstest.Hijacked, c *ossl.Conn, rest func()) {
				var read running
				if reading {
					read = start(func() error { _, err := c.Read(make([]byte, 1)); return err })
					starves(t, h)
				}
				write := startWrite(c)
				if reading {
					waitAwaited(t, c)
				} else {
					starves(t, h)
				}
				c.SetReadDeadline(deadline)
				h.End()
				write.ends(t, "the Write", io.ErrUnexpectedEOF)
				if reading && deadline.IsZero() {
					read.ends(t, "the Read", io.ErrUnexpectedEOF)
				}
			})
		}
	}
}

// TestStuckWriteTruncated: with WithInsecureTruncation, an end within a record that a Write was reading
// is no clean end for Read either. To the Write, no end is.
func TestStuckWriteTruncated(t *testing.T) {
	for _, cut := range []int{0, 3, 5, 8} {
		h, c, _ := half(t, ossltest.Optioned{Options: []ossl.Option{ossl.WithInsecureTruncation()}})
		record := h.Seal(tlstest.TypeHandshake, tlstest.OneTicket[10:])
		write := startWrite(c)
		starves(t, h)
		if cut > 0 {
			h.SendRaw(record[:cut])
			starves(t, h)
		}
		h.End()
		write.ends(t, "the Write", io.ErrUnexpectedEOF)
		want := io.ErrUnexpectedEOF
		if cut == 0 {
			want = io.EOF
		}
		if _, err := c.Read(make([]byte, 1)); err != want {
			t.Errorf("after %d bytes of a record, Read: %v", cut, err)
		}
	}
}

// TestStuckWriteRead checks that a concurrent Read gets its turn, its deadline and the data. The
// Write returns when the message is complete, even if the Read has read it.
func TestStuckWriteRead(t *testing.T) {
	transports(t, func(t *testing.T, h *tlstest.Hijacked, c *ossl.Conn, rest func()) {
		write := startWrite(c)
		starves(t, h)
		for range 3 {
			c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			start(func() error { _, err := c.Read(make([]byte, 1)); return err }).ends(t, "the Read", os.ErrDeadlineExceeded)
			write.isUnderWay(t, "the Write")
		}
		c.SetReadDeadline(time.Time{})
		wait := start(c.WaitRead)
		waitAwaited(t, c)
		c.SetReadDeadline(longAgo)
		wait.ends(t, "WaitRead", os.ErrDeadlineExceeded)
		c.SetReadDeadline(time.Time{})

		buf := make([]byte, 4)
		read := start(func() error { _, err := io.ReadFull(c, buf); return err })
		starves(t, h)
		write.isUnderWay(t, "the Write")
		rest()
		write.ends(t, "the Write", nil)
		read.isUnderWay(t, "the Read")
		h.Send(tlstest.TypeApplicationData, []byte("data"))
		read.ends(t, "the Read", nil)
		if string(buf) != "data" {
			t.Errorf("%q was read", buf)
		}
		wrote(t, h, 1)
	})
}

// TestStuckWrites calls several Writes, and CloseWrite behind them. All go on, or all end, as if
// the network took nothing.
func TestStuckWrites(t *testing.T) {
	const writes = 8
	for _, timeout := range []bool{false, true} {
		transports(t, func(t *testing.T, h *tlstest.Hijacked, c *ossl.Conn, rest func()) {
			var all []running
			for range writes {
				all = append(all, startWrite(c))
			}
			starves(t, h)
			var want error
			if timeout {
				want = os.ErrDeadlineExceeded
				c.SetWriteDeadline(longAgo)
			} else {
				rest()
			}
			for _, write := range all {
				write.ends(t, "a Write", want)
			}
			if !timeout {
				wrote(t, h, writes)
			}
			start(c.CloseWrite).ends(t, "CloseWrite", nil)
		})
	}
	h, c, _ := half(t, ossltest.UnderTest)
	write := startWrite(c)
	starves(t, h)
	end := start(c.CloseWrite)
	c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	write.ends(t, "the Write", os.ErrDeadlineExceeded)
	end.ends(t, "CloseWrite", nil)
}

// TestStuckCloseWrite checks that CloseWrite waits as a Write does, since close_notify can't leave
// before.
func TestStuckCloseWrite(t *testing.T) {
	transports(t, func(t *testing.T, h *tlstest.Hijacked, c *ossl.Conn, rest func()) {
		c.SetReadDeadline(longAgo) // doesn't matter
		end := start(c.CloseWrite)
		starves(t, h)
		end.isUnderWay(t, "CloseWrite")
		rest()
		end.ends(t, "CloseWrite", nil)
		c.SetReadDeadline(time.Time{})
		readsData(t, h, c)
		var last tlstest.Record
		for until := time.Now().Add(tlstest.Patience); last.Type != tlstest.TypeAlert; time.Sleep(time.Millisecond) {
			if sent := h.Received(); len(sent) > 0 {
				last = sent[len(sent)-1]
			}
			if time.Now().After(until) {
				t.Fatal("no close_notify came")
			}
		}
		if !bytes.Equal(last.Payload, []byte{1, 0}) {
			t.Errorf("%x came", last.Payload)
		}
	})
	transports(t, func(t *testing.T, h *tlstest.Hijacked, c *ossl.Conn, rest func()) {
		end := start(c.CloseWrite)
		starves(t, h)
		h.End()
		end.ends(t, "CloseWrite", io.ErrUnexpectedEOF)
	})
	h, c, _ := half(t, ossltest.UnderTest)
	read := start(func() error { _, err := c.Read(make([]byte, 1)); return err })
	starves(t, h)
	end := start(c.CloseWrite)
	waitAwaited(t, c)
	c.NetConn().Close()
	read.ends(t, "the Read", net.ErrClosed)
	end.ends(t, "CloseWrite", net.ErrClosed)
}

// TestStuckWriteStress does all of this at once, with tickets in small pieces.
func TestStuckWriteStress(t *testing.T) {
	for name, impl := range map[string]tlstest.Impl{"pipe": ossltest.UnderTest, "socket": bySocket{ossltest.UnderTest}} {
		t.Run(name, func(t *testing.T) {
			cc, _ := tlstest.Resuming(tls.VersionTLS13)
			h := tlstest.Hijack(t, impl, tlstest.ServerRole, cc, tlstest.ServerConfig())
			c := h.Victim.(*ossl.Conn)
			const writers, each, tickets = 3, 30, 10
			var all sync.WaitGroup
			for range writers {
				all.Go(func() {
					for range each {
						if _, err := c.Write([]byte("written")); err != nil {
							t.Error("Write:", err)
							return
						}
					}
				})
			}
			written, dataRead := make(chan struct{}), make(chan struct{})
			go func() {
				all.Wait()
				close(written)
			}()
			go func() { // with deadlines that pass
				defer close(dataRead)
				buf := make([]byte, 100)
				for {
					c.SetReadDeadline(time.Now().Add(time.Duration(rand.IntN(300)) * time.Microsecond))
					n, err := c.Read(buf)
					if n > 0 {
						return
					}
					if !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Error("Read:", err)
						return
					}
				}
			}()
			for range tickets {
				for i := range tlstest.OneTicket {
					h.Send(tlstest.TypeHandshake, tlstest.OneTicket[i:i+1])
					if i%5 == 0 {
						time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
					}
				}
			}
			h.Send(tlstest.TypeApplicationData, []byte("data"))
			for what, ended := range map[string]chan struct{}{"the Writes": written, "the Reads": dataRead} {
				select {
				case <-ended:
				case <-time.After(tlstest.Patience):
					t.Fatalf("%s don't end", what)
				}
			}
			wrote(t, h, writers*each)
		})
	}
}
