//go:build cgo || ossl_nocgo

package ossl_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// heldPair is a TLS 1.3 connection whose handshake is done and whose server has sent nothing since.
type heldPair struct {
	client, server *ossl.Conn
	wire           *tlstest.PipeConn     // the client's
	counter        *tlstest.WriteCounter // the server's
	rec            tlstest.Recording
	log            tlstest.KeyLog
}

func newHeldPair(t *testing.T, records ossl.RecordPath, mutual, fullRecords bool) *heldPair {
	t.Helper()
	p := new(heldPair)
	cc, sc := tlstest.Resuming(tls.VersionTLS13)
	cc.KeyLogWriter, sc.DynamicRecordSizingDisabled = &p.log, fullRecords
	if mutual {
		cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
		sc.ClientAuth, sc.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
	}
	var b *tlstest.PipeConn
	p.wire, b = tlstest.NewPipe()
	p.counter = &tlstest.WriteCounter{Conn: p.rec.Tap(tlstest.ServerRole, b)}
	p.client = ossltest.NewContext(t, cc).Client(p.rec.Tap(tlstest.ClientRole, p.wire), "")
	p.server = ossltest.NewContext(t, sc, ossl.WithRecordPath(records)).Server(p.counter)
	t.Cleanup(func() { p.client.Close(); p.server.Close() })
	tlstest.Shake(t, p.client, p.server)
	return p
}

// sent describes the records that the server sent after its Finished. They must come in the order
// of their sequence numbers to be deciphered.
func (p *heldPair) sent() string {
	records := p.rec.Decipher(tlstest.ServerRole, &p.log)
	finished := slices.IndexFunc(records, func(r tlstest.Record) bool {
		// It's the last message of the record.
		messages := tlstest.Messages([]tlstest.Record{r})
		return r.Sealed && r.Type == tlstest.TypeHandshake && len(messages) > 0 &&
			messages[len(messages)-1][0] == tlstest.MsgFinished
	})
	var kinds []string
	for _, r := range records[finished+1:] {
		kind := ""
		switch {
		case r.Opaque:
			kind = "opaque"
		case r.Type == tlstest.TypeApplicationData:
			kind = "data"
		case r.Type == tlstest.TypeAlert:
			kind = fmt.Sprintf("alert %d", r.Payload[1])
		case r.Type == tlstest.TypeHandshake && r.Payload[0] == tlstest.MsgNewSessionTicket:
			kind = "ticket"
		case r.Type == tlstest.TypeHandshake && r.Payload[0] == tlstest.MsgKeyUpdate:
			kind = "KeyUpdate"
		default:
			kind = fmt.Sprintf("type %d", r.Type)
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != kind {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, ", ")
}

// TestTicketsGoFirst checks that a server sends its tickets in front of the first record after the
// handshake, and not before. If they fit, it sends both with the same Write.
func TestTicketsGoFirst(t *testing.T) {
	read := func(t *testing.T, p *heldPair) error {
		_, err := p.server.Read(make([]byte, 100))
		return err
	}
	answer := func(t *testing.T, p *heldPair) error {
		if err := p.client.KeyUpdate(true); err != nil {
			return err
		}
		p.client.Write([]byte("data"))
		defer p.server.Flush() // the next Read would do it, but the test has none
		return read(t, p)
	}
	for _, trigger := range []struct {
		name        string
		fullRecords bool
		do          func(t *testing.T, p *heldPair) error
		sent        string
		writes      int64 // of the server, after the handshake
	}{
		{"nothing", false, func(*testing.T, *heldPair) error { return nil }, "", 0},
		{"Read", false, func(t *testing.T, p *heldPair) error {
			p.client.Write([]byte("data"))
			return read(t, p)
		}, "", 0},
		{"Read of close_notify", false, func(t *testing.T, p *heldPair) error {
			p.client.Close()
			if err := read(t, p); err != io.EOF {
				return fmt.Errorf("Read: %v", err)
			}
			return nil
		}, "", 0},
		{"Write", false, func(_ *testing.T, p *heldPair) error {
			_, err := p.server.Write([]byte("data"))
			return err
		}, "ticket, data", 1},
		{"Write of nothing", false, func(_ *testing.T, p *heldPair) error {
			_, err := p.server.Write(nil)
			return err
		}, "", 0},
		{"Write of much", false, func(_ *testing.T, p *heldPair) error {
			_, err := p.server.Write(make([]byte, 40_000))
			return err
		}, "ticket, data", 1},
		{"Write of a full record", true, func(_ *testing.T, p *heldPair) error { // which doesn't fit behind the tickets
			_, err := p.server.Write(make([]byte, 16384))
			return err
		}, "ticket, data", 2},
		{"answer to a KeyUpdate", false, func(t *testing.T, p *heldPair) error {
			return answer(t, p)
		}, "ticket, KeyUpdate", 1},
		{"KeyUpdate", false, func(_ *testing.T, p *heldPair) error { return p.server.KeyUpdate(false) }, "ticket, KeyUpdate", 1},
		{"Write behind an answer", false, func(t *testing.T, p *heldPair) error {
			if err := answer(t, p); err != nil {
				return err
			}
			_, err := p.server.Write([]byte("data"))
			return err
		}, "ticket, KeyUpdate, data", 2},
		{"alert", false, func(t *testing.T, p *heldPair) error {
			p.wire.Write(append([]byte{23, 3, 3, 0, 40}, make([]byte, 40)...))
			if err := read(t, p); err == nil {
				return fmt.Errorf("a damaged record was read")
			}
			return nil
		}, "ticket, alert 20", 1},
		{"CloseWrite", false, func(_ *testing.T, p *heldPair) error { return p.server.CloseWrite() }, "ticket, alert 0", 1},
		{"Close", false, func(_ *testing.T, p *heldPair) error { return p.server.Close() }, "ticket, alert 0", 1},
	} {
		for _, path := range []string{"auto", "libssl"} {
			for _, mutual := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/mutual=%v", trigger.name, path, mutual), func(t *testing.T) {
					records := map[string]ossl.RecordPath{"auto": ossl.RecordsAuto, "libssl": ossl.RecordsLibssl}[path]
					p := newHeldPair(t, records, mutual, trigger.fullRecords)
					if got, n := p.sent(), p.server.QueueLen(); got != "" || n == 0 {
						t.Fatalf("after the handshake %d bytes wait, and %q was sent", n, got)
					}
					before := p.counter.Writes.Load()
					if err := trigger.do(t, p); err != nil {
						t.Fatal(err)
					}
					if got := p.sent(); got != trigger.sent {
						t.Errorf("the server sent %q, not %q", got, trigger.sent)
					}
					if n := p.counter.Writes.Load() - before; n != trigger.writes {
						t.Errorf("%d Writes of the underlying connection, not %d", n, trigger.writes)
					}
				})
			}
		}
	}
}
