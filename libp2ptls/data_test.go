package libp2ptls

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
)

// TestData passes data both ways at the same time, in writes of all sizes.
func TestData(t *testing.T) {
	inAllPairings(t, func(t *testing.T, p pairing) {
		const size = 8 << 20
		c, s := p.connect(t)
		done := make(chan error, 4)
		sums := make(chan []byte, 4)
		pass := func(from, to net.Conn, seed byte) {
			go func() {
				random := rand.New(rand.NewChaCha8([32]byte{seed}))
				sum, block := sha256.New(), make([]byte, 100_000)
				for left := size; left > 0; {
					n := min(left, 1+random.IntN(len(block)))
					for i := range n {
						block[i] = byte(i) ^ byte(left)
					}
					sum.Write(block[:n])
					if _, err := from.Write(block[:n]); err != nil {
						done <- err
						return
					}
					left -= n
				}
				sums <- sum.Sum(nil)
				done <- nil
			}()
			go func() {
				sum := sha256.New()
				_, err := io.CopyN(sum, to, size)
				sums <- sum.Sum(nil)
				done <- err
			}()
		}
		pass(c, s, 1)
		pass(s, c, 2)
		for range 4 {
			if err := await(t, done); err != nil {
				t.Fatal(err)
			}
		}
		count := map[string]int{}
		for range 4 {
			count[string(<-sums)]++
		}
		if len(count) != 2 {
			t.Errorf("%d different hashes, want one for each direction", len(count))
		}
	})
}

// TestClose checks the end of a connection: all data arrives, then the end; afterwards reads return
// nothing.
func TestClose(t *testing.T) {
	inAllPairings(t, func(t *testing.T, p pairing) {
		for _, side := range []string{"client", "server"} {
			t.Run(side, func(t *testing.T) {
				closes, hears := p.connect(t)
				if side == "server" {
					closes, hears = hears, closes
				}
				if _, err := io.WriteString(closes, "last words"); err != nil {
					t.Fatal(err)
				}
				if err := closes.Close(); err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(hears); err != nil || string(got) != "last words" {
					t.Errorf("%q, %v", got, err)
				}
				if n, err := closes.Read(make([]byte, 1)); n != 0 || !errors.Is(err, net.ErrClosed) {
					t.Errorf("Read after Close: %d, %v", n, err)
				}
				if n, err := closes.Write([]byte("x")); n != 0 || !errors.Is(err, net.ErrClosed) {
					t.Errorf("Write after Close: %d, %v", n, err)
				}
			})
		}
	})
}

// TestCloseEndsRead checks that Close interrupts a waiting Read on the same side.
func TestCloseEndsRead(t *testing.T) {
	inAllPairings(t, func(t *testing.T, p pairing) {
		c, s := p.connect(t)
		for _, conn := range []net.Conn{c, s} {
			reading := make(chan error, 1)
			go func() {
				_, err := conn.Read(make([]byte, 1))
				reading <- err
			}()
			conn.Close()
			if err := await(t, reading); err == nil {
				t.Error("Read without an error")
			}
		}
	})
}

// TestTruncation checks that OpenSSL's transport returns an error if the underlying connection is
// closed without close_notify. go-libp2p's reports a regular end if it falls between records
// (docs/COMPATIBILITY.md).
func TestTruncation(t *testing.T) {
	inAllPairings(t, func(t *testing.T, p pairing) {
		for _, side := range []string{"client", "server"} {
			t.Run(side, func(t *testing.T) {
				a, b := loopback(t)
				c, s := p.meeting(t).run(t, a, b)
				if c.err != nil || s.err != nil {
					t.Fatal(c.err, s.err)
				}
				cut, hears, flavour := a, s.conn, p.server
				if side == "server" {
					cut, hears, flavour = b, c.conn, p.client
				}
				cut.Close()
				want := io.EOF
				if flavour.name == opensslFlavour.name {
					want = io.ErrUnexpectedEOF
				}
				if n, err := hears.Read(make([]byte, 1)); n != 0 || err != want {
					t.Errorf("%d, %v, want %v", n, err, want)
				}
			})
		}
	})
}

// TestDamage flips a bit of a record: the reader gets an error, and none of the record.
func TestDamage(t *testing.T) {
	inAllPairings(t, func(t *testing.T, p pairing) {
		a, b := loopback(t)
		flip := &flipper{Conn: a}
		c, s := p.meeting(t).run(t, flip, b)
		if c.err != nil || s.err != nil {
			t.Fatal(c.err, s.err)
		}
		exchange(t, c.conn, s.conn)
		flip.on = true
		if _, err := io.WriteString(c.conn, "foobar"); err != nil {
			t.Fatal(err)
		}
		n, err := s.conn.Read(make([]byte, 10))
		if n != 0 || err == nil || err.Error() != "local error: tls: bad record MAC" {
			t.Errorf("%d, %v", n, err)
		}
		if _, err := c.conn.Read(make([]byte, 1)); err == nil || err.Error() != "remote error: tls: bad record MAC" {
			t.Errorf("the sender is told %v", err)
		}
	})
}

type flipper struct {
	net.Conn
	on bool
}

func (c *flipper) Write(b []byte) (int, error) {
	if c.on {
		b = bytes.Clone(b)
		b[len(b)-1] ^= 1
	}
	return c.Conn.Write(b)
}
