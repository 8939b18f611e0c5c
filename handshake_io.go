package ossl

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/netio"
	"github.com/ossl-go/ossl/internal/record"
)

// fill reads from the peer.
func (h *handshake) fill() error {
	for {
		err := h.in.Fill(h.c.conn)
		switch {
		case err == io.EOF && (len(h.in.Data) > 0 || !h.scan.AtBoundary()):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		if !h.heard {
			h.heard = true
			if !h.c.isClient {
				h.c.watch.began = time.Now()
			}
		}
		if !h.firstChecked {
			h.firstChecked, err = h.checkFirst()
		}
		if h.firstChecked || err != nil {
			return err
		}
	}
}

// checkFirst checks the first record before libssl gets it. It returns false if more input is
// needed.
func (h *handshake) checkFirst() (checked bool, err error) {
	c, data := h.c, h.in.Data
	if len(data) < record.HeaderLen {
		return false, nil
	}
	if alert, err := record.CheckFirst(data[:record.HeaderLen], c.conn); err != nil {
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
	if n := int(data[3])<<8 | int(data[4]); n <= record.MaxPlaintext && len(data) < record.HeaderLen+n {
		return false, nil
	}
	if n := record.LongHello(data); n > 0 {
		h.sendAlert(alertInternalError)
		return false, record.LongMessageError(n)
	}
	return true, nil
}

// consume drops the first n bytes of the input, which libssl has taken.
func (h *handshake) consume(n int) {
	taken := h.in.Data[:n]
	h.scan.Scan(taken)
	copy(h.tail[:], taken[max(0, n-len(h.tail)):])
	h.tailLen = min(n, len(h.tail))
	h.in.Consume(n)
}

// send writes out to the underlying connection.
func (h *handshake) send(out []byte) error {
	c := h.c
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.out.err != nil {
		return c.out.err
	}
	n, err := netio.WriteAll(c.conn, out)
	c.out.sizes.bytes += int64(n)
	if err != nil {
		c.out.err = permanent(err)
		return err
	}
	return nil
}

// sendAlert sends a fatal alert that no key protects. An error is ignored, because the handshake
// fails anyway.
func (h *handshake) sendAlert(description uint8) {
	if h.send(record.PlaintextAlert(description)) == nil {
		h.alert = description
	}
}

// hold queues the output of the last step if it is to leave with the next record, and reports
// whether it has. There are two cases:
//
//   - the tickets of a TLS 1.3 server. A client that only writes would leave them unread, and if a
//     socket with unread data is closed, the kernel sends a reset, which destroys data that was not
//     delivered yet.
//   - the last flight of a client that is about to write. It leaves in the same segment, and the
//     server wakes up once. It doesn't wait for the ClientSessionCache, which gets a new TLS 1.2
//     ticket first.
func (h *handshake) hold(step libssl.Step, out []byte) bool {
	c := h.c
	var hold bool
	switch {
	case step.Status != libssl.Done:
	case !c.isClient:
		hold = h.version >= tls.VersionTLS13
	case len(h.sessions) > 0:
	case h.next == writeExpected:
		hold = c.in.HasSocket() // for sendHeld
	default:
		hold = h.next == writeFollows
	}
	if !hold {
		return false
	}
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if _, err := c.engine.lock(); err != nil {
		return false
	}
	defer c.engine.unlock()
	if h.next == writeFollows && c.isClient {
		if !c.engine.queue.push(out) { // the Write sends it even if it comes to nothing
			return false
		}
	} else {
		if !c.engine.queue.hold(out) {
			return false
		}
		if c.isClient || len(h.in.Data) == 0 {
			c.watchSilence()
		}
	}
	c.out.sizes.bytes += int64(len(out)) // so that later records have the sizes that crypto/tls gives them
	return true
}

// A handshake may wait for its turn at a gate. The wait stops for the same reasons as a wait for
// the network: the handshake's context, Close, a deadline, or the end of the peer or of the
// underlying connection. Nothing signals the last two, or a deadline that is moved, so the wait
// checks for them every lookAtPeer.
const lookAtPeer = 250 * time.Millisecond

// wait waits until ready is closed. It returns an error if the handshake is over before.
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

// ended returns an error if the handshake has failed while it was not reading or writing.
func (h *handshake) ended() error {
	if err := h.ctx.Err(); err != nil {
		return err
	}
	if h.c.deadlinePassed() {
		return os.ErrDeadlineExceeded
	}
	return h.in.Ended(h.c.conn, h.peerEnded)
}

// peerEnded reports whether the peer of a socket has closed its side, and the handshake can't
// succeed without more from it.
func (h *handshake) peerEnded(fd uintptr) bool {
	switch {
	case !h.c.isClient && !h.answered:
		return netio.PeerGone(fd) // a client that hasn't seen the server's flight can't have sent its own
	case h.c.isClient:
		return netio.AtEnd(fd) && !record.EndsWithAlert(h.in.Data) // the server waits for the client's flight; an alert has the reason
	}
	return netio.AtEnd(fd) && len(h.in.Data) == 0 // the input may be the client's flight, and data behind it
}
