package client

import (
	"errors"
	"net"
	"slices"
	"time"
)

// keepReplay keeps a copy of the handshake's state after its first flight.
func (h *handshake13) keepReplay(message []byte) {
	kept := *h
	if h.early != nil {
		early := *h.early
		kept.early = &early
	}
	flight := &h.State.FirstFlight
	h.Conn.replay = func(conn net.Conn) *handshake13 {
		again := kept
		again.Conn = newConn(conn)
		again.transcript = slices.Clone(message)
		again.State.FirstFlight = *flight
		if kept.early != nil {
			early := *kept.early
			again.early = &early
		}
		return &again
	}
}

// errRetried is a replay's error if the client would have to answer a HelloRetryRequest with a new
// ClientHello.
var errRetried = errors.New("client: the server answered a replay by a HelloRetryRequest")

// Replay sends the bytes of c's first flight, a TLS 1.3 ClientHello and early data, on another
// connection, as an attacker can who recorded them. As an attacker, it can't finish the handshake.
// But it knows the keys, so that it can read the server's answer: State.EarlyAccepted reports
// whether the server accepted the early data, and Read returns the data that it sends before the
// handshake is complete.
func (c *Conn) Replay(conn net.Conn) (*Conn, error) {
	if c.replay == nil {
		return nil, errors.New("client: no first flight of TLS 1.3")
	}
	h := c.replay(conn)
	h.replayed = true
	h.State.Times.Sent = time.Now()
	if _, err := conn.Write(h.State.FirstFlight); err != nil {
		return h.Conn, err
	}
	err := h.readServerHello()
	if errors.Is(err, errRetried) {
		return h.Conn, nil
	}
	for _, step := range []func() error{h.readEncrypted, h.readCertificates, h.readFinished, h.finish} {
		if err != nil {
			return h.Conn, err
		}
		if err = step(); err == nil && !h.State.EarlyAccepted {
			return h.Conn, nil
		}
	}
	return h.Conn, err
}
