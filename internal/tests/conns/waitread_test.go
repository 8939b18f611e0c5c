//go:build cgo || ossl_nocgo

package conns

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// trickle is a connection whose reads bring one byte at a time, and are counted.
type trickle struct {
	net.Conn
	reads int
}

func (c *trickle) Read(b []byte) (int, error) {
	c.reads++
	return c.Conn.Read(b[:min(1, len(b))])
}

// waitReadPair returns a client over a trickle, and its server, after their handshakes.
func waitReadPair(t *testing.T, records ossl.RecordPath) (client, server *ossl.Conn, way *trickle) {
	t.Helper()
	a, b := tlstest.Buffered()
	way = &trickle{Conn: a}
	client = ossltest.NewContext(t, tlstest.ClientConfig(), ossl.WithRecordPath(records)).Client(way, "")
	server = ossltest.NewContext(t, tlstest.ServerConfig(), ossl.WithRecordPath(records)).Server(b)
	if clientErr, serverErr := handshakes(client, server); clientErr != nil || serverErr != nil {
		t.Fatal(clientErr, serverErr)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server, way
}

func TestWaitRead(t *testing.T) {
	for name, records := range map[string]ossl.RecordPath{"direct": ossl.RecordsDirect, "libssl": ossl.RecordsLibssl} {
		t.Run(name, func(t *testing.T) {
			client, server, way := waitReadPair(t, records)
			message := bytes.Repeat([]byte("0123456789"), 50)
			if _, err := server.Write(message); err != nil {
				t.Fatal(err)
			}
			var got []byte
			for len(got) < len(message) { // a part at a time: the rest is there at once
				if err := client.WaitRead(); err != nil {
					t.Fatal(err)
				}
				reads := way.reads
				buf := make([]byte, 200)
				n, err := client.Read(buf)
				if err != nil {
					t.Fatal(err)
				}
				if records == ossl.RecordsDirect && way.reads != reads {
					t.Errorf("Read waited for the network after WaitRead, after %d bytes", len(got))
				}
				got = append(got, buf[:n]...)
			}
			if !bytes.Equal(got, message) {
				t.Errorf("read %q", got)
			}

			// A deadline can be moved.
			if err := client.SetReadDeadline(time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			if err := client.WaitRead(); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("past the deadline: %v", err)
			}
			if err := client.SetReadDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			if err := server.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if err := client.WaitRead(); err != nil {
				t.Errorf("at the end: %v", err)
			}
			if n, err := client.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("at the end: %d, %v", n, err)
			}
			if err := client.WaitRead(); err != io.EOF {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// TestWaitReadFails checks that WaitRead fails as Read does.
func TestWaitReadFails(t *testing.T) {
	for name, records := range map[string]ossl.RecordPath{"direct": ossl.RecordsDirect, "libssl": ossl.RecordsLibssl} {
		for _, test := range []struct {
			name string
			end  func(client, server *ossl.Conn)
			want error
		}{
			{"truncated", func(_, server *ossl.Conn) { server.NetConn().Close() }, io.ErrUnexpectedEOF},
			{"closed", func(client, _ *ossl.Conn) { client.Close() }, net.ErrClosed},
		} {
			t.Run(name+"/"+test.name, func(t *testing.T) {
				client, server, _ := waitReadPair(t, records)
				test.end(client, server)
				for range 2 {
					if err := client.WaitRead(); !errors.Is(err, test.want) {
						t.Errorf("%v, want %v", err, test.want)
					}
				}
				if _, err := client.Read(make([]byte, 1)); !errors.Is(err, test.want) {
					t.Errorf("Read: %v, want %v", err, test.want)
				}
			})
		}
		t.Run(name+"/too long a record", func(t *testing.T) {
			client, server, _ := waitReadPair(t, records)
			if _, err := server.NetConn().Write([]byte{23, 3, 3, 0xff, 0xff}); err != nil {
				t.Fatal(err)
			}
			if err := client.WaitRead(); err != nil {
				t.Errorf("WaitRead: %v", err)
			}
			if _, err := client.Read(make([]byte, 1)); err == nil {
				t.Error("Read: no error")
			}
		})
	}
	t.Run("no handshake", func(t *testing.T) {
		a, b := tlstest.Buffered()
		b.Close()
		if err := ossltest.NewContext(t, tlstest.ClientConfig()).Client(a, "").WaitRead(); err != io.EOF {
			t.Errorf("%v, want io.EOF", err)
		}
	})
}
