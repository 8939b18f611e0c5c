//go:build cgo

package ossl_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestNoReplayByChangeCipherSpec puts a ChangeCipherSpec, which takes no key, behind a client's first records, and sends those
// records again. OpenSSL 3.2 and later pass over the ChangeCipherSpec; what is counted for the takeover must, too.
func TestNoReplayByChangeCipherSpec(t *testing.T) {
	for _, withTicket := range []bool{true, false} {
		t.Run(fmt.Sprintf("ticket %v", withTicket), func(t *testing.T) {
			cc, _ := tlstest.Resuming(tls.VersionTLS13)
			h := tlstest.Hijack(t, ossltest.UnderTest, tlstest.ServerRole, cc, tlstest.ServerConfig())
			var genuine []byte
			if withTicket {
				genuine = h.Seal(tlstest.TypeHandshake, tlstest.OneTicket)
			}
			genuine = slices.Concat(genuine, h.Seal(tlstest.TypeApplicationData, []byte("pay 100;")))
			var all string
			buf := make([]byte, 1000)
			read := func() error {
				n, err := h.Victim.Read(buf)
				all += string(buf[:n])
				return err
			}
			h.SendRaw(slices.Concat(genuine, []byte{20, 3, 3, 0, 1, 1}))
			err := read()
			h.SendRaw(genuine)
			h.End()
			for err == nil {
				err = read()
			}
			if len(all) > len("pay 100;") {
				t.Errorf("a record was accepted twice: %q, %v", all, err)
			}
		})
	}
}

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
