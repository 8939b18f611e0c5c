package ossl

import (
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// What a handshake waits for outside of the network, its turn at a gate, ends as what it waits for in the network does: by the
// handshake's context, by Close, by a deadline, and by the end of the peer or of the connection beneath. Nobody tells of the last
// three, so the wait looks at them from time to time.
const lookAtPeer = 50 * time.Millisecond

// wait waits until ready is closed, or returns why it waits no longer.
func (h *handshake) wait(ready <-chan struct{}) error {
	look := time.NewTicker(lookAtPeer)
	defer look.Stop()
	for {
		select {
		case <-ready:
			return h.ended() // it may have taken long
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

// ended returns why nothing more is to be done for a handshake that the network has not been asked about for a while, or nil.
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

// ended returns why nothing more can come of a handshake over conn: its deadline is over, which may have been set on conn itself, it
// was closed, or the peer will send nothing beyond what has arrived, which is io.EOF: in a handshake, neither side's flight is the last
// one. Otherwise, or where conn is no socket, it returns nil.
func (in *input) ended(conn net.Conn) error {
	if !in.opened {
		in.open(conn)
	}
	if in.raw == nil {
		return nil
	}
	gone := false
	// These don't wait, and look at the deadlines first.
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
