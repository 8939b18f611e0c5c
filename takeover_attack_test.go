//go:build cgo

package ossl_test

import (
	"crypto/tls"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestMessageFinishedByWrite has a Write find half a ticket, which it reads the rest of: the takeover is still to come.
func TestMessageFinishedByWrite(t *testing.T) {
	if os.Getenv("OSSL_RECORDS") == "libssl" {
		t.Skip("OSSL_RECORDS=libssl: nothing is taken over")
	}
	cc, _ := tlstest.Resuming(tls.VersionTLS13)
	h := tlstest.Hijack(t, ossltest.UnderTest, tlstest.ServerRole, cc, tlstest.ServerConfig())
	c := h.Victim.(*ossl.Conn)
	h.Send(tlstest.TypeHandshake, tlstest.OneTicket[:10])
	c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // to have it read; if it has not, the test is one of less
	if n, err := c.Read(make([]byte, 100)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(n, err)
	}
	c.SetReadDeadline(time.Time{})
	h.Send(tlstest.TypeHandshake, tlstest.OneTicket[10:])
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	h.Send(tlstest.TypeApplicationData, []byte("data"))
	buf := make([]byte, 100)
	if n, err := c.Read(buf); err != nil || string(buf[:n]) != "data" {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	if !c.TakenOver() {
		t.Error("libssl still has the connection")
	}
}
