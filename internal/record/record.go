// Package record parses the headers of TLS records, and judges the records of an established
// connection that hold no application data: their meaning, and the alerts for errors. It does no
// cryptography, no input and no output.
//
// It refuses the same records as crypto/tls, with the same alerts and error texts, unless RFC 8446
// requires another alert.
package record

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/ossl-go/ossl/internal/wire"
)

// Content types, RFC 8446, section 5.1.
const (
	ChangeCipherSpec = 20
	Alert            = 21
	Handshake        = 22
	ApplicationData  = 23
)

// Alerts, RFC 8446, section 6.
const (
	AlertCloseNotify            = 0
	AlertUnexpectedMessage      = 10
	AlertBadRecordMAC           = 20
	AlertRecordOverflow         = 22
	AlertHandshakeFailure       = 40
	AlertBadCertificate         = 42
	AlertUnsupportedCertificate = 43
	AlertCertificateRevoked     = 44
	AlertCertificateExpired     = 45
	AlertCertificateUnknown     = 46
	AlertIllegalParameter       = 47
	AlertUnknownCA              = 48
	AlertDecodeError            = 50
	AlertProtocolVersion        = 70
	AlertInternalError          = 80
	AlertUserCanceled           = 90
	AlertNoRenegotiation        = 100
	AlertUnsupportedExtension   = 110
	AlertUnrecognizedName       = 112
	AlertCertificateRequired    = 116
)

// Levels of alerts, which TLS 1.3 ignores.
const (
	LevelWarning = 1
	LevelFatal   = 2
)

// Handshake messages, RFC 8446, section 4, and RFC 5246, section 7.4.
const (
	helloRequest     = 0
	newSessionTicket = 4
	keyUpdate        = 24
)

const (
	// maxIgnored is the number of successive records and messages without application data that are
	// accepted: crypto/tls's maxUselessRecords.
	maxIgnored = 16
	// maxMessage is crypto/tls's limit on a handshake message.
	maxMessage = 65536

	messageHeader = 4
)

// NoAlert is the Alert of an Outcome without an alert.
const NoAlert = -1

// An Outcome is a record's effect on the connection.
type Outcome struct {
	// Err, if not nil, is the error of all later reads. It is io.EOF after close_notify.
	Err error
	// Alert must be sent before reading ends; NoAlert means none.
	Alert int
	// UpdateRead reports whether the peer has updated its sending key: the next key opens the
	// following records.
	UpdateRead bool
	// UpdateWrite reports whether the peer requests the same: a KeyUpdate message must be sent, and
	// then the sending key updated.
	UpdateWrite bool
}

// A Reader checks the records of one direction.
type Reader struct {
	Version  uint16 // tls.VersionTLS12 or tls.VersionTLS13
	IsClient bool

	message []byte // a handshake message that is not complete yet
	ignored int
}

// State returns a handshake message as far as it was received, and the number of records since the last data
// that advanced nothing. It shares memory with the Reader.
func (r *Reader) State() (message []byte, ignored uint8) { return r.message, uint8(r.ignored) }

// Restore sets what State has returned.
func (r *Reader) Restore(message []byte, ignored uint8) { r.message, r.ignored = message, int(ignored) }

// Forget drops the message, and wipes it.
func (r *Reader) Forget() {
	clear(r.message)
	r.message = nil
}

// Data records that application data was received.
func (r *Reader) Data() { r.ignored = 0 }

// Partial reports whether a handshake message is incomplete. Then only a record with its rest is
// allowed.
func (r *Reader) Partial() bool { return len(r.message) > 0 }

func refuse(alert uint8) Outcome {
	return Outcome{Alert: int(alert), Err: &net.OpError{Op: "local error", Err: tls.AlertError(alert)}}
}

func (r *Reader) ignore(what string) Outcome {
	r.ignored++
	if r.ignored > maxIgnored {
		return Outcome{Alert: AlertUnexpectedMessage, Err: errors.New("tls: too many " + what + " records")}
	}
	return Outcome{Alert: NoAlert}
}

// Record handles a record of another type than application data, or an empty record. It doesn't
// keep text.
func (r *Reader) Record(contentType uint8, text []byte) Outcome {
	// RFC 8446, section 5.1: handshake messages are not interleaved with other records.
	if contentType != Handshake && len(r.message) > 0 {
		return refuse(AlertUnexpectedMessage)
	}
	switch contentType {
	case Alert:
		return r.alert(text)
	case ChangeCipherSpec:
		if r.Version != tls.VersionTLS13 && (len(text) != 1 || text[0] != 1) {
			return refuse(AlertDecodeError)
		}
		// RFC 8446, section 5: after the peer's Finished it is an unexpected record. crypto/tls
		// ignores it.
	case ApplicationData:
		if len(text) == 0 {
			return r.ignore("ignored")
		}
	case Handshake:
		if len(text) > 0 {
			return r.handshake(text)
		}
	}
	return refuse(AlertUnexpectedMessage)
}

func (r *Reader) alert(text []byte) Outcome {
	if len(text) != 2 {
		return refuse(AlertUnexpectedMessage)
	}
	level, description := text[0], text[1]
	remote := Outcome{Alert: NoAlert, Err: &net.OpError{Op: "remote error", Err: tls.AlertError(description)}}
	switch {
	case description == AlertCloseNotify:
		return Outcome{Alert: NoAlert, Err: io.EOF}
	case r.Version == tls.VersionTLS13 && description == AlertUserCanceled:
		return r.ignore("ignored")
	case r.Version == tls.VersionTLS13: // RFC 8446, section 6: the level is ignored
		return remote
	case level == 1:
		return r.ignore("ignored")
	case level == 2:
		return remote
	}
	return refuse(AlertUnexpectedMessage)
}

// handshake handles the handshake messages in a record, complete or in part.
func (r *Reader) handshake(text []byte) Outcome {
	result := Outcome{Alert: NoAlert}
	if len(r.message) > 0 {
		r.message = append(r.message, text...)
		text = r.message
	}
	for len(text) >= messageHeader {
		n := int(text[1])<<16 | int(text[2])<<8 | int(text[3])
		if n > maxMessage {
			o := refuse(AlertInternalError)
			o.Err = fmt.Errorf("tls: handshake message of length %d bytes exceeds maximum of %d bytes", n, maxMessage)
			return o
		}
		if len(text) < messageHeader+n {
			break
		}
		o := r.whole(text[0], text[messageHeader:messageHeader+n])
		text = text[messageHeader+n:]
		if o.Err == nil && o.UpdateRead && len(text) > 0 { // RFC 8446, section 5.1: the key changes between two records
			o = Outcome{Alert: AlertUnexpectedMessage,
				Err: errors.New("tls: handshake buffer not empty before setting read traffic secret")}
		}
		if o.Err != nil {
			return o
		}
		result.UpdateRead = result.UpdateRead || o.UpdateRead
		result.UpdateWrite = result.UpdateWrite || o.UpdateWrite
	}
	switch {
	case len(text) == 0:
		r.message = nil
	case len(text) != len(r.message): // a part of the record; otherwise it was already appended
		r.message = append([]byte(nil), text...)
	}
	return result
}

// whole handles one complete handshake message.
func (r *Reader) whole(messageType uint8, body []byte) Outcome {
	if r.Version != tls.VersionTLS13 {
		if messageType == helloRequest && len(body) == 0 {
			return refuse(AlertNoRenegotiation)
		}
		return refuse(AlertUnexpectedMessage)
	}
	switch messageType {
	case newSessionTicket:
		if alert := checkTicket(body); alert != NoAlert {
			return refuse(uint8(alert))
		}
	case keyUpdate:
		if len(body) != 1 {
			return refuse(AlertDecodeError)
		}
		if body[0] > 1 { // RFC 8446, section 4.6.3; crypto/tls sends decode_error
			return refuse(AlertIllegalParameter)
		}
	default:
		return refuse(AlertUnexpectedMessage)
	}
	if r.ignored++; r.ignored > maxIgnored { // a well-formed message counts, as in crypto/tls
		return Outcome{Alert: AlertUnexpectedMessage, Err: errors.New("tls: too many non-advancing records")}
	}
	switch {
	case messageType == keyUpdate:
		return Outcome{Alert: NoAlert, UpdateRead: true, UpdateWrite: body[0] == 1}
	case !r.IsClient:
		return Outcome{Alert: AlertUnexpectedMessage, Err: errors.New("tls: received new session ticket from a client")}
	}
	return Outcome{Alert: NoAlert}
}

// checkTicket checks a NewSessionTicket, RFC 8446, section 4.6.1. It returns the alert for a
// malformed one, or NoAlert.
func checkTicket(b []byte) (alert int) {
	r := wire.Reader{Rest: b}
	r.Number(4) // lifetime
	r.Number(4) // age_add
	r.Vector(1) // nonce
	ticket, extensions := r.Vector(2), r.List(2)
	if !r.Done() || len(ticket) == 0 {
		return AlertDecodeError
	}
	var seen []int
	for len(extensions.Rest) > 0 {
		kind, data := extensions.Number(2), extensions.Vector(2)
		if extensions.Failed || kind == earlyData && len(data) != 4 {
			return AlertDecodeError
		}
		if slices.Contains(seen, kind) || len(seen) == maxExtensions { // RFC 8446, section 4.2: each once
			return AlertIllegalParameter
		}
		seen = append(seen, kind)
	}
	return NoAlert
}

// maxExtensions bounds the work of comparing a ticket's extensions with each other. Only two types
// of them exist.
const maxExtensions = 64

const earlyData = 42
