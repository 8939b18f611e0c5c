//go:build cgo || ossl_nocgo

package resumption

import (
	"bytes"
	"crypto/tls"
	"io"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// countingSlot keeps the last session, and counts.
type countingSlot struct {
	tlstest.OneSlot
	put int
}

func (s *countingSlot) Put(key string, state *tls.ClientSessionState) {
	s.OneSlot.Put(key, state)
	s.put++
}

// TestTicketFlood sends endless tickets from a server while libssl, which doesn't count them, has
// the records: the connection fails, and each ticket reuses the memory of the one before.
func TestTicketFlood(t *testing.T) {
	const tickets, size, buffer, room = 8000, 1000, 200_000, 1 << 20
	ticket := append([]byte{4, 0, 0, 0, 0, 0, 100, 0, 1, 2, 3, 4, 1, 0, size >> 8, size & 0xff}, make([]byte, size+2)...)
	ticket[2], ticket[3] = byte((len(ticket)-4)>>8), byte(len(ticket)-4)
	flood := bytes.Repeat(ticket, tickets)
	for name, path := range map[string]ossl.RecordPath{"libssl": ossl.RecordsLibssl, "until it is taken over": ossl.RecordsAuto} {
		t.Run(name, func(t *testing.T) {
			cc, _ := tlstest.Resuming(tls.VersionTLS13)
			kept := &countingSlot{}
			cc.ClientSessionCache = kept
			impl := ossltest.Optioned{Options: []ossl.Option{ossl.WithRecordPath(path)}}
			h := tlstest.Hijack(t, impl, tlstest.ServerRole, cc, tlstest.ServerConfig())
			before := libssl.HeapInUse()
			read := make(chan error, 1)
			go func() {
				_, err := io.ReadAll(h.Victim)
				read <- err
			}()
			const record = 16001 // no record ends with a ticket, so that the connection is not taken over in between
			for at := 0; at < len(flood); at += record {
				h.Send(tlstest.TypeHandshake, flood[at:min(at+record, len(flood))])
			}
			if err := <-read; err == nil || !strings.Contains(err.Error(), "too many non-advancing records") {
				t.Fatalf("after the tickets: %v", err)
			}
			grown := int64(libssl.HeapInUse()) - int64(before)
			t.Logf("%d sessions of %d tickets were kept one after the other; C's heap grew by %d", kept.put, tickets, grown)
			if kept.put == 0 || kept.put > 16+buffer/size { // records that were read at once are opened at once
				t.Errorf("%d sessions of %d tickets", kept.put, tickets)
			}
			if grown > room {
				t.Errorf("C's heap grew by %d bytes", grown)
			}
		})
	}
}
