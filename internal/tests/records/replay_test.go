//go:build cgo || ossl_nocgo

package records

import (
	"crypto/tls"
	"fmt"
	"slices"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestNoReplayByChangeCipherSpec puts a ChangeCipherSpec, which uses no key, after a client's first
// records, and sends those records again. OpenSSL 3.2 and later ignore the ChangeCipherSpec; the
// counts for the takeover must ignore it, too.
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
