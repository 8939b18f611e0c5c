package tlstest

import (
	"crypto/tls"
	"net"
	"testing"
	"time"
)

// A Hijacked connection had crypto/tls on one side in its handshake. The test now has that side's
// transport, and the keys to seal any record as if the side had written it. The other side is the
// victim.
type Hijacked struct {
	Victim Conn
	// Raw is the transport of the side that was hijacked.
	Raw net.Conn

	end   *PipeConn // the victim's
	from  Role
	keys  *Keys
	rec   *Recording
	log   *KeyLog
	t     testing.TB
	peer  Conn
	ended bool
	start int // records that the victim had sent when the handshake was over
}

// Hijack runs a handshake between crypto/tls on side from and impl on the other side, and takes
// over side from.
func Hijack(t testing.TB, impl Impl, from Role, client, server *tls.Config) *Hijacked {
	t.Helper()
	rawClient, rawServer := NewPipe()
	t.Cleanup(func() { rawClient.Close(); rawServer.Close() })
	h := &Hijacked{from: from, rec: new(Recording), log: new(KeyLog), t: t}
	c, s := h.rec.Tap(ClientRole, rawClient), h.rec.Tap(ServerRole, rawServer)
	h.end = rawClient
	if from == ClientRole {
		h.end = rawServer
		h.peer, h.Victim, h.Raw = Std.Client(c, WithKeyLog(client, h.log)), impl.Server(s, server), c
	} else {
		h.peer, h.Victim, h.Raw = Std.Server(s, WithKeyLog(server, h.log)), impl.Client(c, client), s
	}
	deadline := time.AfterFunc(Patience, func() { rawClient.Close(); rawServer.Close() })
	defer deadline.Stop()
	done := make(chan error, 1)
	go func() { done <- h.Victim.Handshake() }()
	if err := h.peer.Handshake(); err != nil {
		t.Fatalf("handshake of the side to hijack: %v", err)
	}
	if err := <-done; err != nil {
		t.Fatalf("handshake of %s: %v", impl.Name(), err)
	}
	// The side that finishes first has read nothing that the other sends after its handshake, and
	// the server sends no tickets: the recordings hold the handshake and nothing else.
	var err error
	if h.keys, err = h.rec.SendKeys(from, h.log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Victim.Close() })
	h.start = len(h.rec.Decipher(other(from), h.log))
	return h
}

func other(r Role) Role {
	if r == ClientRole {
		return ServerRole
	}
	return ClientRole
}

// Send seals a payload as the next record and sends it.
func (h *Hijacked) Send(typ byte, payload []byte) {
	h.t.Helper()
	h.SendRaw(h.keys.Seal(typ, payload))
}

// Seal returns the bytes that Send would send.
func (h *Hijacked) Seal(typ byte, payload []byte) []byte { return h.keys.Seal(typ, payload) }

// SealPadded is Seal with padding (TLS 1.3 only).
func (h *Hijacked) SealPadded(typ byte, payload []byte, padding int) []byte {
	return h.keys.SealPadded(typ, payload, padding)
}

// SealInner returns a record of any TLSInnerPlaintext, well-formed or not (TLS 1.3 only).
func (h *Hijacked) SealInner(inner []byte) []byte { return h.keys.SealInner(inner) }

// SealOuter is SealInner with any type in the record's header (TLS 1.3 only).
func (h *Hijacked) SealOuter(typ byte, inner []byte) []byte { return h.keys.SealOuter(typ, inner) }

// SendRaw sends bytes as they are. After End it does nothing.
func (h *Hijacked) SendRaw(b []byte) {
	h.t.Helper()
	if h.ended {
		return
	}
	if _, err := h.Raw.Write(b); err != nil {
		h.t.Fatal(err)
	}
}

// Rekey changes to the next sending keys, as after a KeyUpdate (TLS 1.3 only).
func (h *Hijacked) Rekey() { h.keys = h.keys.Next() }

// WaitStarved waits until a Read of the victim has taken all that was sent, and waits for more.
func (h *Hijacked) WaitStarved() { h.end.WaitStarved() }

// End closes the direction to the victim without an alert.
func (h *Hijacked) End() {
	h.ended = true
	h.Raw.(interface{ CloseWrite() error }).CloseWrite()
}

// Received returns the records that the victim has sent since its handshake, deciphered.
func (h *Hijacked) Received() []Record {
	return h.rec.Decipher(other(h.from), h.log)[h.start:]
}
