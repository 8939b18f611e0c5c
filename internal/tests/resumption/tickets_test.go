//go:build cgo || ossl_nocgo

package resumption

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestWritesOfAServer: a handshake and a first Write are two Writes to the underlying connection,
// as with crypto/tls.
func TestWritesOfAServer(t *testing.T) {
	count := func(t *testing.T, server func(conn net.Conn, config *tls.Config) tlstest.Conn) int64 {
		cc, sc := tlstest.Resuming(tls.VersionTLS13)
		a, b := tlstest.Loopback()
		a.SetDeadline(time.Now().Add(tlstest.Patience)) // it doesn't hang on a server that fails
		counter := &tlstest.WriteCounter{Conn: b}
		c, s := tls.Client(a, cc), server(counter, sc)
		defer c.Close()
		defer s.Close()
		tlstest.Shake(t, c, s)
		if _, err := s.Write([]byte("data")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		return counter.Writes.Load()
	}
	want := count(t, tlstest.Std.Server)
	got := count(t, ossltest.UnderTest.Server)
	t.Logf("%d Writes, crypto/tls's server %d", got, want)
	if got > want {
		t.Errorf("%d Writes, more than the %d of crypto/tls", got, want)
	}
}

// TestTicketOfASilentServer: a server that never writes gives its client a ticket with its
// close_notify.
func TestTicketOfASilentServer(t *testing.T) {
	for _, client := range []string{"ossl", "crypto/tls"} {
		t.Run(client, func(t *testing.T) {
			cc, sc := tlstest.Resuming(tls.VersionTLS13)
			newClient, newServer := tlstest.StdClient(cc), ossltest.Server(t, sc)
			if client == "ossl" {
				newClient = ossltest.Client(t, cc)
			}
			talk := func(read bool) (resumed bool) {
				a, b := tlstest.Loopback()
				c, s := newClient(a), newServer(b)
				done := make(chan error, 1)
				go func() {
					defer s.Close()
					_, err := io.ReadAll(s)
					done <- err
				}()
				if _, err := c.Write([]byte("data")); err != nil {
					t.Fatal(err)
				}
				resumed = c.ConnectionState().DidResume
				if read {
					if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
						t.Fatal(err)
					}
					if _, err := io.ReadAll(c); err != nil {
						t.Fatal(err)
					}
				}
				c.Close()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				return resumed
			}
			talk(false)
			if talk(true) {
				t.Error("a client that never read resumed")
			}
			if !talk(true) {
				t.Error("a client that read to the end got no ticket")
			}
		})
	}
}

// TestHandshakeOnNetPipe: a server's handshake doesn't wait until its client reads tickets.
func TestHandshakeOnNetPipe(t *testing.T) {
	for _, path := range []string{"auto", "libssl"} {
		t.Run(path, func(t *testing.T) {
			records := map[string]ossl.RecordPath{"auto": ossl.RecordsAuto, "libssl": ossl.RecordsLibssl}[path]
			cc, sc := tlstest.Resuming(tls.VersionTLS13)
			a, b := tlstest.NetPipe()
			c, s := tls.Client(a, cc), ossltest.NewContext(t, sc, ossl.WithRecordPath(records)).Server(b)
			defer a.Close()
			defer b.Close()
			b.SetDeadline(time.Now().Add(tlstest.Patience)) // a server that waits fails, rather than hangs
			tlstest.Shake(t, c, s)
		})
	}
}
