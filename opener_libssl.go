package ossl

import (
	"errors"
	"io"
	"net"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/record"
)

// newLibssl returns the two sides of a connection whose records libssl has.
func newLibssl(c *Conn, ssl *libssl.Conn) (*libsslOpener, *libsslSealer) {
	var sides struct { // one allocation
		opener libsslOpener
		sealer libsslSealer
	}
	sides.opener.c, sides.opener.sealer, sides.opener.deferred, sides.sealer.ssl = c, &sides.sealer, ssl.Deferred(), ssl
	return &sides.opener, &sides.sealer
}

// A libsslOpener opens records with libssl.
type libsslOpener struct {
	c        *Conn
	sealer   *libsslSealer // of the same SSL
	deferred bool          // a later read may take the connection over
	leftover bool          // libssl holds data that it has decrypted
	edge     edge          // the end of the input that libssl has taken
}

// An edge follows records, to find where one ends.
type edge struct {
	header [record.HeaderLen]byte
	n      int // bytes of the header of a record whose body has not begun
	body   int // bytes that are missing of the body
}

// pass takes the next bytes.
func (e *edge) pass(b []byte) {
	for len(b) > 0 {
		if e.body > 0 {
			n := min(e.body, len(b))
			e.body -= n
			b = b[n:]
			continue
		}
		n := copy(e.header[e.n:], b)
		b = b[n:]
		if e.n += n; e.n == len(e.header) {
			e.n, e.body = 0, record.ParseHeader(e.header[:]).Len
		}
	}
}

func (o *libsslOpener) whole(input []byte) bool {
	return len(input) == 0 && o.edge.n == 0 && o.edge.body == 0
}

func (o *libsslOpener) pending() bool { return o.leftover }

// readable is true even for a part of a record, since libssl takes it.
func (o *libsslOpener) readable(input []byte) bool { return o.leftover || len(input) > 0 }

// free frees nothing: the SSL is the sealer's.
func (o *libsslOpener) free() {}

func (o *libsslOpener) open(_ *reader, _ *engine, b []byte) (int, error) {
	c := o.c
	step, sessions, messages, renegotiation, err := o.read(b)
	if err != nil {
		return 0, err
	}
	o.edge.pass(c.in.Data[:step.Consumed])
	c.in.Consume(step.Consumed)
	o.leftover = step.Pending
	if len(messages) > 0 { // w of WithTrace may panic
		c.watch.tracer.messages(messages, false)
	}
	c.keepSessions(sessions)
	c.flushQueue(byCall)
	if c.in.err != nil {
		if renegotiation {
			c.failWrites(c.in.err)
		}
		if step.N > 0 {
			return step.N, nil // the data before the error is good; the error comes with the next call
		}
		return 0, c.in.err
	}
	if step.Status == libssl.Closed {
		c.in.err = io.EOF
		return step.N, io.EOF
	}
	return step.N, nil
}

// read is open's crossing. It takes the connection over if C did so at the end of the crossing.
func (o *libsslOpener) read(b []byte) (
	step libssl.Step, sessions []libssl.Session, messages []libssl.Message, renegotiation bool, err error) {
	c := o.c
	ssl, err := c.engine.lock()
	if err != nil {
		c.in.err = net.ErrClosed
		return step, nil, nil, false, c.in.err
	}
	defer c.engine.unlock()
	step = ssl.Read(c.in.Data, b)
	o.sealer.wake()
	switch {
	case step.TakenOver:
		c.takeOver(ssl)
		c.watch.countRecords(RecordStats{Direct: 1})
	case o.deferred && !ssl.Deferred():
		o.deferred = false
		c.watch.countRecords(RecordStats{Libssl: 1})
	}
	sessions = ssl.Sessions()
	if c.watch.tracer != nil {
		messages = ssl.Trace()
	}
	spill := ssl.Spill()
	if step.Status == libssl.Fatal {
		alert, err := fatalError("read", ssl, c.in.Data[:step.Consumed], nil)
		spill, _ = blameless(spill, alert, err)
		c.in.err = err
	}
	if len(spill) > 0 && !c.engine.queue.push(spill) {
		c.in.err = errQueueFull
	} else if c.in.err == nil && ssl.Useless() && step.Status != libssl.Closed {
		c.in.err = errUseless
	} else if _, description, ok := ssl.AlertOut(); c.in.err == nil && ok && description == alertNoRenegotiation {
		// libssl refuses renegotiation with a warning and goes on; in crypto/tls, the connection
		// fails.
		c.in.err = localError(alertNoRenegotiation, nil)
		renegotiation = true
	}
	return step, sessions, messages, renegotiation, nil
}

// errUseless is crypto/tls's error, without its alert: libssl sends none on demand.
var errUseless = errors.New("tls: too many non-advancing records")

var errQueueFull = errors.New("ossl: the peer asks for key updates and does not read the answers")

// failWrites makes Writes fail, without waiting for one that is under way.
func (c *Conn) failWrites(err error) {
	if c.out.mu.TryLock() {
		if c.out.err == nil {
			c.out.err = err
		}
		c.out.mu.Unlock()
	}
}
