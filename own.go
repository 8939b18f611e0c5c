package ossl

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/record"
)

// After the handshake a connection is taken over from libssl where that is possible: the SSL is freed, and records are sealed and
// opened with the traffic keys alone. docs/ARCHITECTURE.md has the states. The two directions share nothing:
//
//   - what opens belongs to the holder of readMu, across crossings and network reads alike;
//   - what seals belongs to the holder of mu, which is never held across network I/O. So a Read that has something to send, an
//     alert or the answer to a KeyUpdate, seals it at once and queues it, however long a Write has been blocked in the network.

// own is the reading side of a connection that was taken over. Conn.readMu guards it.
type own struct {
	tls     *libssl.Conn // nil after release
	records record.Reader
	rest    int // bytes at the beginning of the input that are application data already, in the clear
	tail    int // bytes after those that belong to the same record
}

func (o *own) begin(t *libssl.Conn, version uint16, isClient bool) {
	o.tls, o.records.Version, o.records.IsClient = t, version, isClient
}

// free frees the side.
func (o *own) free() {
	if o.tls != nil {
		o.tls.FreeSide(libssl.ReadSide, false, nil)
		o.tls = nil
	}
}

// openOwn opens what is there of the input into b. It returns neither data nor error if a record is incomplete. readMu is held.
func (c *Conn) openOwn(b []byte) (int, error) {
	if c.opened.rest > 0 {
		return c.takeRest(b), nil
	}
	for {
		if c.engine.released.Load() || c.opened.tls == nil {
			c.readErr = net.ErrClosed
			return 0, c.readErr
		}
		partial := c.opened.records.Partial()
		var o libssl.Opened
		c.opened.tls.OpenTo(&o, c.in.data, b)
		if o.N > 0 {
			c.opened.records.Data()
		}
		switch {
		case partial && (o.N > 0 || o.Status == libssl.Record && o.Type == record.ApplicationData):
			// RFC 8446, section 5.1: no data inside of a handshake message.
			clear(b[:o.N])
			o.N = 0
			c.follow(c.opened.records.Record(record.ApplicationData, nil))
			clear(c.in.data)
			c.in.consume(len(c.in.data))
		case o.Status == libssl.Fatal:
			c.readErr = recordError(o.Alert, c.in.data[o.Consumed:], c.state.Version)
			c.queueAlert(o.Alert)
			c.in.consume(len(c.in.data))
		case o.Status == libssl.Record && o.Type == record.ApplicationData && o.Len > 0:
			c.opened.records.Data()
			c.opened.rest, c.opened.tail = o.Len, o.Consumed-o.At-o.Len
			c.in.consume(o.At)
		case o.Status == libssl.Record:
			text := c.in.data[o.At : o.At+o.Len]
			c.follow(c.opened.records.Record(o.Type, text))
			clear(text)
			c.in.consume(o.Consumed)
		default:
			c.in.consume(o.Consumed)
		}
		if o.N > 0 && c.readErr == io.EOF && c.opened.rest == 0 {
			return o.N, io.EOF // so that a reader learns of it before it uses the connection again: golang.org/issue/3514
		}
		if o.N > 0 || c.opened.rest > 0 {
			return o.N, nil // what comes after it, and what is to be sent for that, waits for the next call
		}
		if c.readErr != nil {
			return 0, c.readErr
		}
		if o.Status != libssl.Record || len(c.in.data) == 0 {
			return 0, nil
		}
	}
}

// takeRest takes application data that did not fit into an earlier Read's slice. readMu is held.
func (c *Conn) takeRest(b []byte) int {
	text := c.in.data[:c.opened.rest]
	n := copy(b, text)
	clear(text[:n]) // the buffer goes to others
	if c.opened.rest -= n; c.opened.rest == 0 {
		n += c.opened.tail
		c.opened.tail = 0
	}
	c.in.consume(n)
	return min(n, len(b), len(text))
}

// recordError is the error of a record that can't be opened, as crypto/tls gives it. at begins with the record.
func recordError(alert uint8, at []byte, version uint16) error {
	if len(at) >= recordHeaderLen {
		header := at[:recordHeaderLen]
		switch length := int(header[3])<<8 | int(header[4]); {
		case alert == alertProtocolVersion:
			return recordHeaderError(header, nil, fmt.Sprintf("received record with version %x when expecting version %x",
				int(header[1])<<8|int(header[2]), tls.VersionTLS12))
		case alert == alertRecordOverflow && length > maxRecord(version):
			return recordHeaderError(header, nil, fmt.Sprintf("oversized record received with length %d", length))
		}
	}
	return localError(alert, nil)
}

// maxRecord is the largest length of a record: RFC 8446, section 5.2, and RFC 5246, section 6.2.3.
func maxRecord(version uint16) int {
	if version == tls.VersionTLS13 {
		return maxCiphertext
	}
	return maxPlaintext + 2048
}

// follow does what a record asks for. What has to be sent is queued. readMu is held.
func (c *Conn) follow(o record.Outcome) {
	if o.UpdateWrite && !c.answerKeyUpdate() {
		o.Err = errQueueFull
	}
	if o.UpdateRead && !c.opened.tls.UpdateRead() {
		o.Alert, o.Err = alertInternalError, localError(alertInternalError, nil)
	}
	if o.Alert >= 0 {
		c.queueAlert(uint8(o.Alert))
	}
	c.readErr = o.Err
}

// keyUpdateMessage is a KeyUpdate that asks for none in return: RFC 8446, section 4.6.3.
var keyUpdateMessage = []byte{24, 0, 0, 1, 0}

// answerKeyUpdate queues a KeyUpdate and updates the sending key. It reports whether there was room in the queue. One answer that
// waits there is for all that were asked for meanwhile: RFC 8446, section 4.6.3.
func (c *Conn) answerKeyUpdate() bool {
	c.engine.mu.Lock()
	ok := true
	if c.engine.ssl != nil && c.sealErr == nil && !c.queue.answered {
		ok = c.updateWriteLocked(keyUpdateMessage)
		c.queue.answered = true
	}
	c.engine.unlock()
	return ok
}

// updateWriteLocked queues a KeyUpdate message and updates the sending key. mu is held.
func (c *Conn) updateWriteLocked(message []byte) bool {
	if c.kernel != nil {
		c.kernel.push(&c.queue, kernelMessage{record.Handshake, message, true})
		return true
	}
	var out [64]byte
	n, ok := c.sealKeyUpdate(message, out[:])
	if !ok {
		c.sealErr = localError(alertInternalError, nil)
		return true
	}
	if !c.queue.push(out[:n]) {
		c.sealErr = errQueueFull
		return false
	}
	return true
}

// sealKeyUpdate seals a KeyUpdate message into out and updates the sending key. mu is held.
func (c *Conn) sealKeyUpdate(message, out []byte) (n int, ok bool) {
	step := c.engine.ssl.Seal(record.Handshake, message, out, 0, 0, 0)
	return step.Produced, step.Status == libssl.Done && c.engine.ssl.UpdateWrite()
}

// queueAlert queues an alert that ends the connection, and lets nothing follow it.
func (c *Conn) queueAlert(alert uint8) {
	level := byte(alertLevelFatal)
	if alert == alertNoRenegotiation { // as crypto/tls sends it; it ends the connection all the same
		level = alertLevelWarning
	}
	c.engine.mu.Lock()
	if c.engine.ssl != nil && c.sealErr == nil {
		if c.kernel != nil {
			c.kernel.push(&c.queue, kernelMessage{record.Alert, []byte{level, alert}, false})
		} else {
			var out [64]byte
			step := c.engine.ssl.Seal(record.Alert, []byte{level, alert}, out[:], 0, 0, 0)
			c.queue.push(out[:step.Produced])
		}
		c.sealErr = localError(alert, nil)
	}
	c.engine.unlock()
}

// sealOwn seals b into out. mu is held.
func (c *Conn) sealOwn(step *libssl.Step, b, out []byte, payload int) error {
	if c.sealErr != nil {
		return c.sealErr
	}
	grown := int(recordSizeBoostThreshold - c.bytesSent)
	c.engine.ssl.SealTo(step, record.ApplicationData, b, out, payload, c.packetsSent, grown)
	if step.Status == libssl.NeedUpdate && step.N == 0 {
		// The key has sealed as much as it may: a KeyUpdate first.
		if n, ok := c.sealKeyUpdate(keyUpdateMessage, out); ok {
			c.engine.ssl.SealTo(step, record.ApplicationData, b, out[n:], payload, c.packetsSent, grown)
			step.Produced += n
		} else {
			step.Status = libssl.Fatal
		}
	}
	if step.Status == libssl.Fatal {
		c.sealErr = localError(alertInternalError, nil)
		return c.sealErr
	}
	return nil
}
