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

// fill reads from the peer.
func (h *handshake) fill() error {
	for {
		err := h.in.fill(h.c.conn)
		switch {
		case err == io.EOF && (len(h.in.data) > 0 || !h.scan.atBoundary()):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		if !h.firstChecked {
			h.firstChecked, err = h.checkFirst()
		}
		if h.firstChecked || err != nil {
			return err
		}
	}
}

// checkFirst checks the first record before libssl sees it. It returns false if more input is
// needed.
func (h *handshake) checkFirst() (checked bool, err error) {
	c, data := h.c, h.in.data
	if len(data) < recordHeaderLen {
		return false, nil
	}
	if alert, err := checkFirstRecord(data[:recordHeaderLen], c.conn); err != nil {
		if alert >= 0 {
			h.sendAlert(uint8(alert))
		}
		return false, err
	}
	if c.isClient {
		return true, nil
	}
	// A server makes no SSL before the record is complete. libssl refuses a record that is too
	// long.
	if n := int(data[3])<<8 | int(data[4]); n <= maxPlaintext && len(data) < recordHeaderLen+n {
		return false, nil
	}
	if n := longHello(data); n > 0 {
		h.sendAlert(alertInternalError)
		return false, errLongMessage(n)
	}
	return true, nil
}

// consume drops the first n bytes of the input, which libssl has taken.
func (h *handshake) consume(n int) {
	taken := h.in.data[:n]
	h.scan.scan(taken)
	copy(h.tail[:], taken[max(0, n-len(h.tail)):])
	h.tailLen = min(n, len(h.tail))
	h.in.consume(n)
}

// send writes out to the connection beneath.
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

// sendAlert sends a fatal alert that no key protects. The handshake fails for another reason than
// an error here.
func (h *handshake) sendAlert(description uint8) {
	_ = h.send(plaintextAlert(description))
}

// hold queues the tickets that the last step of a TLS 1.3 server has made, so that they leave with
// the server's next record. It reports whether it has. A client that only writes would leave the
// tickets unread, and if a socket with unread data is closed, the kernel sends a reset, which
// destroys data that was not delivered yet.
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
	c.out.sizes.bytes += int64(len(out)) // so that later records have the sizes that crypto/tls gives them
	if len(h.in.data) == 0 {
		c.watchSilence()
	}
	return true
}

// A handshake may have to wait for its turn at a gate. The wait ends for the same reasons as a wait
// for the network: the handshake's context, Close, a deadline, or the end of the peer or of the
// connection beneath. Nothing signals the last two, nor a deadline that is moved. The wait checks
// them every lookAtPeer.
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
	if err := h.ctx.Err(); err != nil {
		return err
	}
	if h.c.deadlinePassed() {
		return os.ErrDeadlineExceeded
	}
	return h.in.ended(h.c.conn, h.peerEnded)
}

// peerEnded reports whether the peer of a socket has ended its side, and the handshake can't
// succeed without more from it.
func (h *handshake) peerEnded(fd uintptr) bool {
	switch {
	case !h.c.isClient && !h.answered:
		return peerGone(fd) // a client that hasn't seen the server's flight can't have sent its own
	case h.c.isClient:
		return atEnd(fd) && !endsWithAlert(h.in.data) // the server waits for the client's flight; an alert says more
	}
	return atEnd(fd) && len(h.in.data) == 0 // the input may be the client's flight, and data behind it
}

// endsWithAlert reports whether the last record of input is an alert, by its header. In TLS 1.3,
// where all types look alike, it is one that has the length of an alert.
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

// ended returns an error if nothing more can be done over conn: conn was closed, its deadline,
// which may have been set on conn itself, has passed, or peerEnded reports the end of the peer,
// which is io.EOF. Otherwise, and if conn is not a socket, it returns nil.
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
