package dbtls_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl/dbtls"
)

// The packets of a driver and a server, as each sends and receives them. The driver's capabilities
// are 0x000fa205, and the server receives 0x000faa05, with TLS.
const (
	mysqlFields   = "\x00\x00\x00\x40\x2d" + "abcdefghijklmnopqrstuvw" // largest packet, character set, filler
	mysqlUser     = "root\x00\x14passwordpasswordpass"
	mysqlResponse = "\x05\xa2\x0f\x00" + mysqlFields + mysqlUser
	mysqlExpected = "\x05\xaa\x0f\x00" + mysqlFields + mysqlUser
	mysqlSwitch   = "\xfecaching_sha2_password\x00nonce"
	mysqlPassed   = "\x00\x00\x00\x02\x00\x00\x00"
)

// dialMySQL returns a connection whose greeting the client has read.
func dialMySQL(t *testing.T, dialer *dbtls.Dialer, addr string) net.Conn {
	t.Helper()
	conn, err := dialer.DialMySQL(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	// The greeting doesn't offer TLS.
	expectFrom(t, conn, mysqlGreeting(0xf7ff))
	return conn
}

func expectFrom(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("client: received %q, %v; want %q", got[:n], err, want)
	}
}

// A driver sees a connection phase without TLS, whatever the pieces that it writes, and then every
// byte as it is sent.
func TestMySQL(t *testing.T) {
	for name, piece := range map[string]int{"at once": 1000, "in two pieces": 40, "in small pieces": 7, "header first": 4} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(name+" "+tls.VersionName(version), func(t *testing.T) {
				addr := serve(t, func(p *peer) {
					p.send(mysqlGreeting(0xffff))
					p.expect("\x20\x00\x00\x01" + mysqlExpected[:32])
					p.secure(version)
					p.expect(mysqlPacket(2, mysqlExpected))
					p.send(mysqlPacket(3, mysqlSwitch))
					p.expect(mysqlPacket(4, "scrambled"))
					p.send(mysqlPacket(5, "\x01\x04") + mysqlPacket(6, mysqlPassed))
					p.expect(mysqlPacket(0, "\x03SELECT 1"))
					p.send(mysqlPacket(1, "\x01") + mysqlPacket(2, "\x00row"))
					p.wait()
				})
				conn := dialMySQL(t, newDialer(t, nil), addr)
				write := func(s string) {
					for len(s) > 0 {
						n, err := io.WriteString(conn, s[:min(len(s), piece)])
						if err != nil {
							t.Fatal(err)
						}
						s = s[n:]
					}
				}
				write(mysqlPacket(1, mysqlResponse))
				expectFrom(t, conn, mysqlPacket(2, mysqlSwitch))
				write(mysqlPacket(3, "scrambled"))
				expectFrom(t, conn, mysqlPacket(4, "\x01\x04")+mysqlPacket(5, mysqlPassed))
				write(mysqlPacket(0, "\x03SELECT 1"))
				expectFrom(t, conn, mysqlPacket(1, "\x01")+mysqlPacket(2, "\x00row"))
				if c, ok := dbtls.TLSConn(conn); !ok || c.ConnectionState().Version != version {
					t.Errorf("TLSConn: %v, %v", c, ok)
				}
			})
		}
	}
}

// Write must not change the caller's bytes.
func TestMySQLWriteKeepsBytes(t *testing.T) {
	addr := serve(t, func(p *peer) {
		p.send(mysqlGreeting(0xffff))
		p.expect("\x20\x00\x00\x01" + mysqlExpected[:32])
		p.secure(tls.VersionTLS13)
		p.expect(mysqlPacket(2, mysqlExpected) + mysqlPacket(4, "x"))
		p.wait()
	})
	conn := dialMySQL(t, newDialer(t, nil), addr)
	for _, packet := range []string{mysqlPacket(1, mysqlResponse), mysqlPacket(3, "x")} {
		b := []byte(packet)
		if n, err := conn.Write(b); n != len(b) || err != nil || string(b) != packet {
			t.Errorf("Write returned %d, %v, and left %q", n, err, b)
		}
	}
}

// An error of the handshake is the Write's, which has sent the bytes of the request. Later ones fail
// with the same error.
func TestMySQLUntrusted(t *testing.T) {
	addr := serve(t, func(p *peer) {
		p.send(mysqlGreeting(0xffff))
		p.expect("\x20\x00\x00\x01" + mysqlExpected[:32])
		conn := tls.Server(p.conn, &tls.Config{Certificates: []tls.Certificate{identity()}})
		if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Error("the client sent data")
		}
	})
	conn := dialMySQL(t, newDialer(t, func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }), addr)
	for _, want := range []int{36, 0} {
		n, err := io.WriteString(conn, mysqlPacket(1, mysqlResponse))
		if n != want || !errors.As(err, new(x509.UnknownAuthorityError)) || !errors.As(err, new(*dbtls.Error)) {
			t.Errorf("Write returned %d, %v", n, err)
		}
	}
}

// A driver that does something else than answering the greeting is refused, and sends nothing.
func TestMySQLDrivers(t *testing.T) {
	withTLS := strings.Replace(mysqlResponse, "\x05\xa2", "\x05\xaa", 1)
	for _, test := range []struct{ name, packet string }{
		{"asks for TLS", mysqlPacket(1, withTLS)},
		{"is older than MySQL 4.1", mysqlPacket(1, "\x05\xa0"+mysqlResponse[2:])},
		{"has another number", mysqlPacket(0, mysqlResponse)},
		{"sends a short packet", mysqlPacket(1, "\x01") + mysqlPacket(2, mysqlResponse)},
	} {
		t.Run(test.name, func(t *testing.T) {
			addr := serve(t, func(p *peer) {
				p.send(mysqlGreeting(0xffff))
				if n, _ := p.conn.Read(make([]byte, 1)); n > 0 {
					t.Error("the client sent data")
				}
			})
			conn := dialMySQL(t, newDialer(t, nil), addr)
			var failure *dbtls.Error
			if _, err := io.WriteString(conn, test.packet); !errors.As(err, &failure) || failure.Step != "SSLRequest" {
				t.Error(err)
			}
		})
	}
	t.Run("reads on", func(t *testing.T) {
		addr := serve(t, func(p *peer) {
			p.send(mysqlGreeting(0xffff))
			p.wait()
		})
		conn := dialMySQL(t, newDialer(t, nil), addr)
		if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.As(err, new(*dbtls.Error)) {
			t.Errorf("Read returned %d, %v", n, err)
		}
	})
}

// TestMySQLHandshakeEnds checks that the deadline of dialing, the write deadline and Close stop the
// handshake in a Write, if the server doesn't answer.
func TestMySQLHandshakeEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		// prepare sets a deadline, or returns a function that stops the handshake when it waits for
		// the server.
		prepare func(d *dbtls.Dialer, limit time.Duration) (afterwards func(net.Conn, <-chan struct{}))
		want    error
	}{
		{"dialing's deadline", func(d *dbtls.Dialer, limit time.Duration) func(net.Conn, <-chan struct{}) {
			d.NetDialer = &net.Dialer{Timeout: limit}
			return nil
		}, context.DeadlineExceeded},
		{"write deadline", func(_ *dbtls.Dialer, limit time.Duration) func(net.Conn, <-chan struct{}) {
			return func(conn net.Conn, _ <-chan struct{}) { _ = conn.SetWriteDeadline(time.Now().Add(limit)) }
		}, os.ErrDeadlineExceeded},
		{"both deadlines", func(_ *dbtls.Dialer, limit time.Duration) func(net.Conn, <-chan struct{}) {
			return func(conn net.Conn, _ <-chan struct{}) { _ = conn.SetDeadline(time.Now().Add(limit)) }
		}, os.ErrDeadlineExceeded},
		{"Close", func(*dbtls.Dialer, time.Duration) func(net.Conn, <-chan struct{}) {
			return func(conn net.Conn, asked <-chan struct{}) {
				go func() {
					<-asked
					conn.Close()
				}()
			}
		}, net.ErrClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			// A deadline that passes before the server is asked for TLS, on a busy machine, is tried again.
			var err error
			for limit := 50 * time.Millisecond; limit < time.Minute; limit *= 2 {
				asked := make(chan struct{})
				addr, dialer := serve(t, func(p *peer) {
					_, _ = io.WriteString(p.conn, mysqlGreeting(0xffff))
					request := make([]byte, 36)
					n, err := io.ReadFull(p.conn, request)
					if err == nil && string(request) == "\x20\x00\x00\x01"+mysqlExpected[:32] {
						close(asked)
					} else if n > 0 {
						t.Errorf("server: received %q, %v", request[:n], err)
					}
					p.wait()
				}), newDialer(t, nil)
				afterwards := test.prepare(dialer, limit)
				var conn net.Conn
				if conn, err = dialer.DialMySQL(t.Context(), "tcp", addr); err != nil {
					continue
				}
				t.Cleanup(func() { conn.Close() })
				expectFrom(t, conn, mysqlGreeting(0xf7ff))
				if afterwards != nil {
					afterwards(conn, asked)
				}
				_, err = io.WriteString(conn, mysqlPacket(1, mysqlResponse))
				if !errors.Is(err, test.want) {
					t.Fatal(err)
				}
				if failure := new(dbtls.Error); errors.As(err, &failure) && failure.Step == "TLS handshake" {
					<-asked
					return
				}
			}
			t.Errorf("the server is never asked for TLS: %v", err)
		})
	}
}

// TestMySQLContextEnds checks that dialing waits for the greeting until the context is done.
func TestMySQLContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	addr := serve(t, func(p *peer) {
		p.send(mysqlGreeting(0xffff)[:30])
		cancel()
		p.wait()
	})
	if conn, err := newDialer(t, nil).DialMySQL(ctx, "tcp", addr); conn != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", conn, err)
	}
}

// Drivers can ask the socket whether the server has closed the connection.
func TestMySQLSocket(t *testing.T) {
	addr := serve(t, func(p *peer) {
		p.send(mysqlGreeting(0xffff))
		p.wait()
	})
	conn := dialMySQL(t, newDialer(t, nil), addr)
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {}); err != nil {
		t.Error(err)
	}
}
