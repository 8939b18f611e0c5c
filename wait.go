package ossl

import (
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// A handshake may have to wait for its turn at a gate. That wait ends by the same causes as a wait for the network: the
// handshake's context, Close, a deadline, and the end of the peer or of the connection beneath. Nothing signals the last three,
// so lookAtPeer is how often the wait checks them.
const lookAtPeer = 50 * time.Millisecond

// wait waits until ready is closed. It returns an error if the handshake ends before.
func (h *handshake) wait(ready <-chan struct{}) error {
	look := time.NewTicker(lookAtPeer)
	defer look.Stop()
	for {
		select {
		case <-ready:
			return h.ended() // the wait may have been long
		case <-h.ctx.Done():
			return h.ctx.Err()
		case <-h.c.closed():
			return net.ErrClosed
		case <-look.C:
			if err := h.ended(); err != nil {
				return err
			}
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
	return c.in.ended(c.conn)
}

// ended returns an error if a handshake over conn has no future: conn was closed, its deadline, which may have been set on conn
// itself, has passed, or the peer has ended its side, which is io.EOF, since in a handshake neither side's flight is the last
// one. Otherwise, and if conn is not a socket, it returns nil.
func (in *input) ended(conn net.Conn) error {
	if !in.opened {
		in.open(conn)
	}
	if in.raw == nil {
		return nil
	}
	gone := false
	// These calls don't wait, and check the deadlines first.
	err := in.raw.Read(func(fd uintptr) bool {
		gone = peerGone(fd)
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
