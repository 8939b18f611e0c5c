package record

import (
	"crypto/tls"
	"runtime"
	"testing"
)

// TestFragmentsCost checks that a peer that sends a message in records of one byte each causes work
// in proportion to its bytes, since the kept part is not copied with every record.
func TestFragmentsCost(t *testing.T) {
	text := message(newSessionTicket, make([]byte, maxMessage)...)
	var before, after runtime.MemStats
	r := &Reader{Version: tls.VersionTLS13, IsClient: true}
	runtime.ReadMemStats(&before)
	for i := range len(text) - 1 {
		if o := r.Record(Handshake, text[i:i+1]); o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 16*maxMessage {
		t.Errorf("%d bytes allocated for a message of %d", allocated, len(text))
	}
}
