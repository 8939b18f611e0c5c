//go:build (cgo || ossl_nocgo) && unix

package conns

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestCloseDrains: a client that writes and closes first reads the data that a server has sent
// after the handshake, so that its kernel doesn't send a reset. crypto/tls's servers that ask for
// certificates send such data.
func TestCloseDrains(t *testing.T) {
	for _, way := range []struct {
		name  string
		close func(c *ossl.Conn) error
	}{
		{"Close", (*ossl.Conn).Close},
		{"CloseWrite, Close", func(c *ossl.Conn) error {
			if err := c.CloseWrite(); err != nil {
				return err
			}
			return c.Close()
		}},
		{"after the read deadline", func(c *ossl.Conn) error {
			c.SetReadDeadline(time.Now().Add(-time.Second))
			return c.Close()
		}},
		{"after a Read that timed out", func(c *ossl.Conn) error {
			c.SetReadDeadline(time.Now().Add(-time.Second))
			if _, err := c.Read(make([]byte, 1)); err == nil {
				return fmt.Errorf("Read succeeded")
			}
			return c.Close()
		}},
	} {
		for _, path := range []string{"auto", "libssl"} {
			for _, cached := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/cache=%v", way.name, path, cached), func(t *testing.T) {
					records := map[string]ossl.RecordPath{"auto": ossl.RecordsAuto, "libssl": ossl.RecordsLibssl}[path]
					cc, sc := tlstest.Resuming(tls.VersionTLS13)
					if !cached {
						cc.ClientSessionCache = nil
					}
					cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
					sc.ClientAuth, sc.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
					a, b := tlstest.Loopback()
					tlstest.MakeRoom(t, a)
					b.(*net.TCPConn).SetReadBuffer(16 << 10)
					c, s := ossltest.NewContext(t, cc, ossl.WithRecordPath(records)).Client(a, ""), tls.Server(b, sc)
					defer c.Close()
					defer s.Close()
					tlstest.Shake(t, c, s)
					tlstest.AwaitArrival(t, a) // the ticket
					data := tlstest.Pattern(tlstest.Unhurried)
					if _, err := c.Write(data); err != nil {
						t.Fatal(err)
					}
					if err := way.close(c); err != nil {
						t.Fatal(err)
					}
					got, err := io.ReadAll(s)
					if err != nil || !bytes.Equal(got, data) {
						t.Errorf("%d of %d bytes, %v", len(got), len(data), err)
					}
				})
			}
		}
	}
}
