package ossl

import (
	"io"
	"net"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/record"
)

// After the handshake a connection is taken over from libssl if that is possible: the SSL is freed,
// and ossl seals and opens records with the traffic keys alone. docs/ARCHITECTURE.md has the
// states. The two directions share nothing:
//
//   - directOpener belongs to the reader's lock, across crossings and network reads alike;
//   - directSealer belongs to the engine's lock, which is never held across network I/O. So a Read
//     that must send something, an alert or the answer to a KeyUpdate, seals it at once and queues
//     it, however long a Write has been blocked in the network.

// A directOpener opens records with the traffic keys.
type directOpener struct {
	side    *libssl.ReadSide // nil once it was freed
	sealer  *directSealer    // for answers and alerts
	records record.Reader
	rest    int // number of bytes at the start of the input that are decrypted application data
	tail    int // number of bytes after those that belong to the same record
}

func (o *directOpener) pending() bool { return o.rest > 0 }

func (o *directOpener) readable(input []byte) bool {
	if o.rest > 0 {
		return true
	}
	if len(input) < record.HeaderLen {
		return false
	}
	n := record.ParseHeader(input).Len
	return n > record.MaxCiphertext(o.records.Version) || len(input) >= record.HeaderLen+n
}

func (o *directOpener) whole(input []byte) bool { return len(input) == 0 }

func (o *directOpener) free() {
	if o.side != nil {
		o.side.Free()
		o.side = nil
	}
}

func (o *directOpener) open(in *reader, e *engine, b []byte) (int, error) {
	if o.rest > 0 {
		return o.takeRest(in, b), nil
	}
	for {
		if in.released.Load() || o.side == nil {
			in.err = net.ErrClosed
			return 0, in.err
		}
		partial := o.records.Partial()
		var opened libssl.Opened
		o.side.Open(&opened, in.Data, b)
		if opened.N > 0 {
			o.records.Data()
		}
		switch {
		case partial && (opened.N > 0 || opened.Status == libssl.Record && opened.Type == record.ApplicationData):
			// RFC 8446, section 5.1: no data may come within a handshake message.
			clear(b[:opened.N])
			opened.N = 0
			o.follow(in, e, o.records.Record(record.ApplicationData, nil))
			clear(in.Data)
			in.Consume(len(in.Data))
		case opened.Status == libssl.Fatal:
			in.err = recordError(opened.Alert, in.Data[opened.Consumed:], o.records.Version)
			o.sealer.alert(e, opened.Alert)
			in.Consume(len(in.Data))
		case opened.Status == libssl.Record && opened.Type == record.ApplicationData && opened.Len > 0:
			o.records.Data()
			o.rest, o.tail = opened.Len, opened.Consumed-opened.At-opened.Len
			in.Consume(opened.At)
		case opened.Status == libssl.Record:
			text := in.Data[opened.At : opened.At+opened.Len]
			o.follow(in, e, o.records.Record(opened.Type, text))
			clear(text)
			in.Consume(opened.Consumed)
		default:
			in.Consume(opened.Consumed)
		}
		if opened.N > 0 && in.err == io.EOF && o.rest == 0 {
			return opened.N, io.EOF // so that the caller sees it before it uses the connection again: golang.org/issue/3514
		}
		if opened.N > 0 || o.rest > 0 {
			return opened.N, nil // records after it, and answers to those, wait for the next call
		}
		if in.err != nil {
			return 0, in.err
		}
		if opened.Status != libssl.Record || len(in.Data) == 0 {
			return 0, nil
		}
	}
}

// takeRest takes application data that did not fit into an earlier Read's slice.
func (o *directOpener) takeRest(in *reader, b []byte) int {
	text := in.Data[:o.rest]
	n := copy(b, text)
	clear(text[:n]) // the buffer goes to other connections
	if o.rest -= n; o.rest == 0 {
		n += o.tail
		o.tail = 0
	}
	in.Consume(n)
	return min(n, len(b), len(text))
}

// recordError returns crypto/tls's error for the record at the start of data, which can't be
// opened.
func recordError(alert uint8, data []byte, version uint16) error {
	if len(data) >= record.HeaderLen {
		switch {
		case alert == alertProtocolVersion:
			return record.VersionError(data)
		case alert == alertRecordOverflow && record.ParseHeader(data).Len > record.MaxCiphertext(version):
			return record.LengthError(data)
		}
	}
	return localError(alert, nil)
}

// follow handles a record other than application data: it updates keys, and queues the records to
// send.
func (o *directOpener) follow(in *reader, e *engine, outcome record.Outcome) {
	if outcome.UpdateWrite && !o.sealer.answerKeyUpdate(e) {
		outcome.Err = errQueueFull
	}
	if outcome.UpdateRead && !o.side.Update() {
		outcome.Alert, outcome.Err = alertInternalError, localError(alertInternalError, nil)
	}
	if outcome.Alert >= 0 {
		o.sealer.alert(e, uint8(outcome.Alert))
	}
	in.err = outcome.Err
}
