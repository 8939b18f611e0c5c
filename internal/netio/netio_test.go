//go:build unix

package netio_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/netio"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// kinds are the two ways in which an Input reads: from a socket itself, and from another
// connection.
var kinds = map[string]func(net.Conn) net.Conn{
	"socket": func(c net.Conn) net.Conn { return c },
	"other":  func(c net.Conn) net.Conn { return struct{ net.Conn }{c} },
}

func TestFill(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			a, b := tlstest.Loopback()
			defer a.Close()
			defer b.Close()
			conn := kind(b)
			var in netio.Input
			write := func(s string) {
				t.Helper()
				if _, err := a.Write([]byte(s)); err != nil {
					t.Fatal(err)
				}
				if err := in.Fill(conn); err != nil {
					t.Fatal(err)
				}
			}
			write("first")
			in.Consume(2)
			write(" second") // behind the rest of the first
			if got := string(in.Data); got != "rst second" {
				t.Fatalf("the input is %q", got)
			}
			in.Consume(len(in.Data))
			if in.Data != nil {
				t.Error("an empty input has memory")
			}
			write("third")
			if got := string(in.Data); got != "third" {
				t.Fatalf("the input is %q", got)
			}
			a.Close()
			if err := in.Fill(conn); err != io.EOF {
				t.Errorf("at the end: %v, want EOF", err)
			}
			if got := string(in.Data); got != "third" {
				t.Errorf("after the end the input is %q", got)
			}
		})
	}
}

// TestFillLarge reads more than any buffer holds, and consumes it in pieces that leave rests.
func TestFillLarge(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			a, b := tlstest.Loopback()
			defer a.Close()
			defer b.Close()
			text := make([]byte, 1<<20)
			for i := range text {
				text[i] = byte(i * i >> 8)
			}
			go func() {
				_, _ = a.Write(text)
				_ = a.Close()
			}()
			conn := kind(b)
			var in netio.Input
			var got []byte
			for {
				err := in.Fill(conn)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				n := max(1, len(in.Data)-100)
				got = append(got, in.Data[:n]...)
				in.Consume(n)
			}
			if got = append(got, in.Data...); !bytes.Equal(got, text) {
				t.Errorf("%d bytes arrived, or others than were sent", len(got))
			}
		})
	}
}

func TestFillDeadline(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			a, b := tlstest.Loopback()
			defer a.Close()
			defer b.Close()
			_ = b.SetReadDeadline(time.Unix(1, 0))
			err := new(netio.Input).Fill(kind(b))
			var op *net.OpError
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &op) || op.Op != "read" {
				t.Errorf("%v, want package net's error of a read", err)
			}
		})
	}
}

func TestQuietAndDrain(t *testing.T) {
	a, b := tlstest.Loopback()
	defer a.Close()
	defer b.Close()
	var in netio.Input
	if in.HasSocket() || in.Quiet() {
		t.Error("before the first Fill there is a socket")
	}
	in.Drain(100) // nothing to drain from
	send := func(n int) {
		t.Helper()
		if _, err := a.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	send(1)
	if err := in.Fill(b); err != nil {
		t.Fatal(err)
	}
	if !in.HasSocket() || !in.Quiet() {
		t.Error("a socket without input isn't quiet")
	}
	send(100)
	for deadline := time.Now().Add(tlstest.Patience); in.Quiet(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the input doesn't arrive")
		}
	}
	in.Drain(60)
	if in.Quiet() {
		t.Error("more was drained than allowed")
	}
	_ = b.SetReadDeadline(time.Unix(1, 0)) // which doesn't stop Drain
	in.Drain(60)
	if !in.Quiet() {
		t.Error("input was left")
	}
}

func TestEnded(t *testing.T) {
	never := func(uintptr) bool { return false }
	for name, test := range map[string]struct {
		do   func(a, b net.Conn)
		want error
	}{
		"open":           {func(net.Conn, net.Conn) {}, nil},
		"closed":         {func(_, b net.Conn) { b.Close() }, net.ErrClosed},
		"read deadline":  {func(_, b net.Conn) { _ = b.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		"write deadline": {func(_, b net.Conn) { _ = b.SetWriteDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := tlstest.Loopback()
			defer a.Close()
			defer b.Close()
			test.do(a, b)
			if err := new(netio.Input).Ended(b, never); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if err := new(netio.Input).Ended(struct{ net.Conn }{b}, never); err != nil {
				t.Errorf("without a socket: %v", err)
			}
		})
	}
	t.Run("peer", func(t *testing.T) {
		a, b := tlstest.Loopback()
		defer b.Close()
		a.Close()
		var in netio.Input
		for deadline := time.Now().Add(tlstest.Patience); in.Ended(b, netio.AtEnd) != io.EOF; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the peer's end isn't seen")
			}
		}
		if err := in.Ended(b, netio.PeerGone); err != io.EOF {
			t.Errorf("PeerGone: %v", err)
		}
	})
}
