package ossl

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/ossl-go/ossl/internal/record"
)

// A handshake may have to wait for its turn at a gate. That wait ends by the same causes as a wait for the network: the
// handshake's context, Close, a deadline, and the end of the peer or of the connection beneath. Nothing signals the last two, nor
// a deadline that is moved, so lookAtPeer is how often the wait checks them.
const lookAtPeer = 250 * time.Millisecond

// wait waits until ready is closed. It returns an error if the handshake ends before.
func (h *handshake) wait(ready <-chan struct{}) error {
	look := time.NewTimer(h.c.untilDeadline(lookAtPeer))
	defer look.Stop()
	for {
		select {
		case <-ready:
			return nil
		case <-h.ctx.Done():
			return h.ctx.Err()
		case <-h.c.calls.closed():
			return net.ErrClosed
		case <-look.C:
			if err := h.ended(); err != nil {
				return err
			}
			look.Reset(h.c.untilDeadline(lookAtPeer))
		}
	}
}

// ended returns an error if the handshake has ended while it was not reading or writing.
func (h *handshake) ended() error {
	c := h.c
	if err := h.ctx.Err(); err != nil {
		return err
	}
	if c.deadlinePassed() {
		return os.ErrDeadlineExceeded
	}
	return c.in.ended(c.conn, h.peerEnded)
}

// peerEnded reports whether the peer of a socket has ended its side, and the handshake can't succeed without more from it.
func (h *handshake) peerEnded(fd uintptr) bool {
	switch {
	case !h.c.isClient && !h.answered:
		return peerGone(fd) // a client that hasn't seen the server's flight can't have sent its own
	case h.c.isClient:
		return atEnd(fd) && !endsWithAlert(h.c.in.data) // the server waits for the client's flight; an alert says more
	}
	return atEnd(fd) && len(h.c.in.data) == 0 // what has arrived may be the client's flight, and data behind it
}

// endsWithAlert reports whether the last record of input is an alert, as far as its header tells: in TLS 1.3, where all types
// look alike, one that has the length of an alert.
func endsWithAlert(input []byte) bool {
	const sealedAlert = 2 + 1 + 16
	alert := false
	for len(input) >= recordHeaderLen {
		n := int(input[3])<<8 | int(input[4])
		alert = input[0] == record.Alert || input[0] == record.ApplicationData && n == sealedAlert
		input = input[min(recordHeaderLen+n, len(input)):]
	}
	return alert
}

// ended returns an error if nothing more can be done over conn: conn was closed, its deadline, which may have been set on conn
// itself, has passed, or peerEnded reports the end of the peer, which is io.EOF. Otherwise, and if conn is not a socket, it
// returns nil.
func (in *input) ended(conn net.Conn, peerEnded func(fd uintptr) bool) error {
	if !in.opened {
		in.open(conn)
	}
	if in.raw == nil {
		return nil
	}
	gone := false
	// These calls don't wait, and check the deadlines first.
	err := in.raw.Read(func(fd uintptr) bool {
		gone = peerEnded(fd)
		return true
	})
	if err == nil {
		err = in.raw.Write(func(uintptr) bool { return true })
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return os.ErrDeadlineExceeded
	case err != nil:
		return net.ErrClosed
	case gone:
		return io.EOF
	}
	return nil
}
