package ossl

import (
	"io"
	"net"
	"os"
	"time"
)

// What a handshake waits for outside of the network, its turn at a gate, ends as what it waits for in the network does: by the
// handshake's context, by Close, by a deadline, and by the end of the peer or of the connection beneath. Nobody tells of the last
// three, so they are looked at from time to time.
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
	now := time.Now().UnixNano()
	if past(c.readDeadline.Load(), now) || past(c.writeDeadline.Load(), now) {
		return os.ErrDeadlineExceeded
	}
	return c.in.ended(c.conn)
}

func past(deadline, now int64) bool { return deadline != 0 && deadline <= now }

// ended returns io.EOF if the peer will send nothing beyond what has arrived, net.ErrClosed if conn was closed, and nil otherwise,
// or where conn is no socket. In a handshake that is the peer's end: neither side's flight is the last one.
func (in *input) ended(conn net.Conn) error {
	if !in.opened {
		in.open(conn)
	}
	if in.raw == nil {
		return nil
	}
	gone := false
	if err := in.raw.Control(func(fd uintptr) { gone = peerGone(fd) }); err != nil {
		return net.ErrClosed
	}
	if gone {
		return io.EOF
	}
	return nil
}
