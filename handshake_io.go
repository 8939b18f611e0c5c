package ossl

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
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

// consume follows what libssl took of the input.
func (h *handshake) consume(n int) {
	data := h.c.in.data[:n]
	h.scan.scan(data)
	copy(h.tail[:], data[max(0, n-len(h.tail)):])
	h.tailLen = min(n, len(h.tail))
	h.c.in.consume(n)
}

// hold queues the output of a TLS 1.3 server's last step, its tickets, so that they leave with the server's next record. It
// reports whether it did. A client that only writes would leave the tickets unread. If a socket with unread data is closed, the
// kernel sends a reset, which destroys data that was not delivered yet.
func (h *handshake) hold(step libssl.Step, out []byte) bool {
	c := h.c
	if step.Status != libssl.Done || c.isClient {
		return false
	}
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if _, err := c.engine.lock(); err != nil {
		return false
	}
	defer c.engine.unlock()
	if h.version < tls.VersionTLS13 || !c.engine.queue.hold(out) {
		return false
	}
	c.out.sizes.bytes += int64(len(out)) // counted as sent, so that later records have the sizes that crypto/tls gives them
	if len(c.in.data) == 0 {
		c.watchSilence()
	}
	return true
}

func (h *handshake) send(out []byte) error {
	c := h.c
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.out.err != nil {
		return c.out.err
	}
	n, err := c.conn.Write(out)
	c.out.sizes.bytes += int64(n)
	if err != nil {
		c.out.err = permanent(err)
		return err
	}
	return nil
}

// fill reads from the peer. The first record's header is looked at here, before libssl sees it.
func (h *handshake) fill() error {
	c := h.c
	for {
		err := c.in.fill(c.conn)
		switch {
		case err == io.EOF && (len(c.in.data) > 0 || !h.scan.atBoundary()):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case h.started:
			return nil
		case len(c.in.data) >= recordHeaderLen:
			header := c.in.data[:recordHeaderLen]
			alert, err := checkFirstRecord(header, c.conn)
			if err != nil && alert >= 0 {
				_ = h.send(plaintextAlert(uint8(alert)))
			}
			if err != nil {
				return err
			}
			// A server makes nothing of libssl's before a first record is whole; one that is too long is libssl's to refuse.
			if n := int(header[3])<<8 | int(header[4]); c.isClient || n > maxPlaintext || len(c.in.data) >= recordHeaderLen+n {
				h.started = true
				if n := longHello(c.in.data); n > 0 && !c.isClient {
					_ = h.send(plaintextAlert(alertInternalError))
					return errLongMessage(n)
				}
				return nil
			}
		}
	}
}

// question returns a copy of the message that libssl asks about, since Close may free the connection while Go decides. put frees
// the copy.
func (h *handshake) question() (message []byte, put func(), err error) {
	c := h.c
	ssl, err := c.engine.lock()
	if err != nil {
		return nil, nil, err
	}
	defer c.engine.unlock()
	asked := ssl.Message()
	buf := getBuffer(smallBuffers)
	return append(buf.mem[:0:len(buf.mem)], asked...), buf.put, nil
}
