//go:build cgo || ossl_nocgo

package ossl_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

var errNoRoom = errors.New("no room")

// A narrowConn fails each Write after the given number of Writes.
type narrowConn struct {
	net.Conn
	writes int // negative for no limit
}

func (c *narrowConn) Write(b []byte) (int, error) {
	if c.writes == 0 {
		return 0, errNoRoom
	}
	c.writes--
	return c.Conn.Write(b)
}

// TestSendFileFails checks that when SendFile fails, the file's offset has moved by the number that
// it returns, so that the rest can be sent.
func TestSendFileFails(t *testing.T) {
	const size, from = 1_000_000, 1000
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(tlstest.Pattern(size)); err != nil {
		t.Fatal(err)
	}
	fails := func(t *testing.T, c *ossl.Conn, n int64, want error) {
		t.Helper()
		if _, err := f.Seek(from, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		sent, err := c.SendFile(f, n)
		if !errors.Is(err, want) || sent >= size-from {
			t.Errorf("SendFile returned %d, %v; want %v", sent, err, want)
		}
		if at, err := f.Seek(0, io.SeekCurrent); at != from+sent || err != nil {
			t.Errorf("SendFile returned %d, and the file is at %d, %v", sent, at, err)
		}
	}
	for _, writes := range []int{0, 1, 2, 5} {
		for _, n := range []int64{-1, 500_000} {
			t.Run(fmt.Sprint(writes, " writes of ", n), func(t *testing.T) {
				a, b := tlstest.Buffered()
				narrow := &narrowConn{a, -1}
				p := ossltest.NewContexts(t, nil)
				c := p.Client.Client(narrow, "")
				tlstest.Shake(t, c, p.Server.Server(b))
				defer c.Close()
				narrow.writes = writes
				fails(t, c, n, errNoRoom)
			})
		}
	}
	options := map[string][]ossl.Option{"": nil, ", kernel TLS": {ossl.WithKernelTLS()}}
	if ossltest.InFIPS {
		delete(options, ", kernel TLS")
	}
	for name, opts := range options {
		for _, begun := range []bool{false, true} {
			t.Run(fmt.Sprint("deadline", name, ", begun: ", begun), func(t *testing.T) {
				a, b := tlstest.Loopback()
				defer b.Close()
				c := ossltest.NewContext(t, tlstest.ClientConfig(), opts...).Client(a, "")
				tlstest.Shake(t, c, tlstest.Std.Server(b, tlstest.ServerConfig()))
				defer c.Close()
				if begun { // the kernel has the key, if it takes it
					if _, err := c.Write([]byte("x")); err != nil {
						t.Fatal(err)
					}
				}
				c.SetWriteDeadline(time.Now().Add(-time.Second))
				fails(t, c, -1, os.ErrDeadlineExceeded)
			})
		}
		t.Run("closed"+name, func(t *testing.T) {
			a, b := tlstest.Loopback()
			defer b.Close()
			c := ossltest.NewContext(t, tlstest.ClientConfig(), opts...).Client(a, "")
			tlstest.Shake(t, c, tlstest.Std.Server(b, tlstest.ServerConfig()))
			c.Close()
			fails(t, c, -1, net.ErrClosed)
		})
	}
}
