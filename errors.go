package ossl

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/negotiate"
	"github.com/ossl-go/ossl/internal/record"
)

// ErrUnavailable is wrapped by the errors that are returned if no usable OpenSSL was found. Their
// text lists every library that was tried, and names the package to install.
var ErrUnavailable = libssl.ErrUnavailable

// A ConfigError means that a field of a [tls.Config], or an option, can't be honoured.
type ConfigError struct {
	Field  string // such as "CipherSuites" or "WithSecurityLevel"; "HostPolicy" for the host's policy itself
	Reason string
	Err    error // the cause, or nil
}

func (e *ConfigError) Error() string {
	s := "ossl: " + e.Field + ": " + e.Reason
	if e.Err != nil {
		s += ": " + strings.TrimPrefix(e.Err.Error(), "ossl: ")
	}
	return s
}

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// A LibraryError is a failure that libssl reported and for which crypto/tls has no exported error
// type. If an alert was sent for it, errors.As finds the alert as a [tls.AlertError]. If the cause is
// an error of the operating system, such as a file that can't be opened, errors.Is finds it;
// [syscall.ENOMEM] means that memory was short.
//
// If a handshake fails for a reason for which crypto/tls has a text, Error returns that text. It
// includes the client's offer or the server's choice.
type LibraryError struct {
	Op     string   // "handshake", "read", "write", ...
	Codes  []uint64 // OpenSSL's packed error codes, from the oldest to the newest
	Reason string   // "out of memory", or the text of the system or OpenSSL for the first code that has one

	cause error
	text  string // crypto/tls's, or ""
}

func (e *LibraryError) Error() string {
	if e.text != "" {
		return e.text
	}
	s := "ossl: " + e.Op
	switch {
	case e.Reason != "":
		s += ": " + e.Reason
	case len(e.Codes) > 0:
		s += fmt.Sprintf(": OpenSSL error %#x", e.Codes[0])
	}
	if e.cause != nil {
		s += " (" + e.cause.Error() + ")"
	}
	return s
}

// Unwrap returns the alert that was sent, if any, or another cause.
func (e *LibraryError) Unwrap() error { return e.cause }

// Is reports whether target is the system's error among the codes, or is like it.
func (e *LibraryError) Is(target error) bool {
	errno := (&libssl.Error{Codes: e.Codes}).Errno()
	return errno != 0 && errors.Is(errno, target)
}

// noMemory reports whether err, of internal/libssl, means that memory was short.
func noMemory(err error) bool {
	var e *libssl.Error
	return errors.As(err, &e) && e.NoMemory()
}

// libraryError turns an error of internal/libssl into the public error.
func libraryError(err error) error {
	var e *libssl.Error
	if errors.As(err, &e) {
		return &LibraryError{Op: e.Op, Codes: e.Codes, Reason: e.Reason()}
	}
	return fmt.Errorf("ossl: %w", err)
}

// configError turns a refusal of internal/negotiate into the public error.
func configError(err error) error {
	r, ok := err.(*negotiate.Refusal)
	if !ok {
		return err
	}
	e := &ConfigError{Field: r.Field, Reason: r.Reason, Err: r.Err}
	if cause, ok := r.Err.(*libssl.Error); ok {
		e.Err = libraryError(cause)
	}
	return e
}

// These errors have crypto/tls's texts, because they are the same failures.
var (
	errShutdown        = errors.New("tls: protocol is shutdown")
	errEarlyCloseWrite = errors.New("tls: CloseWrite called before handshake complete")
	errNoServerName    = errors.New("tls: either ServerName or InsecureSkipVerify must be specified in the tls.Config")
	errNoSignature     = errors.New("tls: peer doesn't support any of the certificate's signature algorithms")
	errNoCertificates  = errors.New("tls: no certificates configured")
)

// The numbers of alerts, by the names that this package uses.
const (
	alertCloseNotify            = record.AlertCloseNotify
	alertUnexpectedMessage      = record.AlertUnexpectedMessage
	alertBadRecordMAC           = record.AlertBadRecordMAC
	alertRecordOverflow         = record.AlertRecordOverflow
	alertHandshakeFailure       = record.AlertHandshakeFailure
	alertBadCertificate         = record.AlertBadCertificate
	alertUnsupportedCertificate = record.AlertUnsupportedCertificate
	alertCertificateRevoked     = record.AlertCertificateRevoked
	alertCertificateExpired     = record.AlertCertificateExpired
	alertCertificateUnknown     = record.AlertCertificateUnknown
	alertUnknownCA              = record.AlertUnknownCA
	alertDecodeError            = record.AlertDecodeError
	alertProtocolVersion        = record.AlertProtocolVersion
	alertInternalError          = record.AlertInternalError
	alertUserCanceled           = record.AlertUserCanceled
	alertNoRenegotiation        = record.AlertNoRenegotiation
	alertUnsupportedExtension   = record.AlertUnsupportedExtension
	alertUnrecognizedName       = record.AlertUnrecognizedName
	alertCertificateRequired    = record.AlertCertificateRequired
	alertLevelWarning           = record.LevelWarning
	alertLevelFatal             = record.LevelFatal
)

// remoteError is a peer's fatal alert, as crypto/tls returns it.
func remoteError(alert uint8) error {
	return &net.OpError{Op: "remote error", Err: tls.AlertError(alert)}
}

// localError is a failure for which an alert was sent, as crypto/tls returns it.
func localError(alert uint8, cause *LibraryError) error {
	return &net.OpError{Op: "local error", Err: &sentAlert{tls.AlertError(alert), cause}}
}

// A sentAlert has the text of an alert, as crypto/tls's errors of this kind do. With errors.As it
// also gives OpenSSL's description of the failure.
type sentAlert struct {
	alert tls.AlertError
	cause *LibraryError // may be nil
}

func (e *sentAlert) Error() string { return e.alert.Error() }

func (e *sentAlert) Unwrap() []error {
	if e.cause == nil {
		return []error{e.alert}
	}
	return []error{e.alert, e.cause}
}

// isRecordAlert reports whether a failure with this alert is a local error in crypto/tls even
// during a handshake. These are failures of the record layer, and messages that can't be parsed.
func isRecordAlert(alert int) bool {
	switch alert {
	case alertUnexpectedMessage, alertBadRecordMAC, alertRecordOverflow, alertDecodeError:
		return true
	}
	return false
}

// A permanentError is a network error that is kept: it has the same kind but is never temporary, as
// in crypto/tls.
type permanentError struct{ err net.Error }

func (e *permanentError) Error() string   { return e.err.Error() }
func (e *permanentError) Unwrap() error   { return e.err }
func (e *permanentError) Timeout() bool   { return e.err.Timeout() }
func (e *permanentError) Temporary() bool { return false }

func permanent(err error) error {
	if e, ok := err.(net.Error); ok {
		return &permanentError{err: e}
	}
	return err
}

// blameless keeps an alert from the output of a fatal step that accuses the peer although this side had
// no memory. It returns the output, and the alert in it or -1. libssl's alert is the last record: it is
// replaced, or, if it is protected, nothing is sent.
func blameless(output []byte, alert int, err error) ([]byte, int) {
	e, ok := err.(*LibraryError)
	if !ok || !errors.Is(e, syscall.ENOMEM) || alert < 0 || alert == alertInternalError {
		return output, alert
	}
	if record.ReplaceAlert(output, alertInternalError) {
		e.cause = tls.AlertError(alertInternalError)
		return output, alertInternalError
	}
	e.cause = nil
	return nil, -1
}

// fatalError turns a fatal step into the error that crypto/tls returns for the same failure, and
// returns the alert that crypto/tls sends, or -1. It goes by the alerts if there are any, since
// OpenSSL's error codes differ between versions. consumed is the input that the step took.
//
// h is the handshake, or nil after it.
func fatalError(op string, t *libssl.Conn, consumed []byte, h *handshake) (alert int, err error) {
	// In TLS 1.3 all alerts except two are fatal, and their level is ignored (RFC 8446, section 6).
	// In TLS 1.2 a warning is not the cause of the failure.
	if level, description, ok := t.AlertIn(); ok {
		always := t.Negotiated() && t.Version() >= tls.VersionTLS13 && description != alertUserCanceled
		switch {
		case level != alertLevelFatal && !always:
		case description == alertCloseNotify:
			return -1, io.EOF
		default:
			return -1, remoteError(description)
		}
	}
	queue := &libssl.Error{Codes: t.Errors()}
	e := &LibraryError{Op: op, Codes: queue.Codes, Reason: queue.Reason()}
	alert = -1
	if _, description, ok := t.AlertOut(); ok && description != alertCloseNotify {
		alert = int(description)
		e.cause = tls.AlertError(description)
	}
	if queue.NoMemory() { // other codes are consequences
		return alert, e
	}
	if err := headerError(queue, consumed); err != nil {
		return alert, err
	}
	if h != nil {
		h.describe(t, e, queue, alert)
	}
	if alert >= 0 && e.text == "" && (h == nil || isRecordAlert(alert)) {
		return alert, localError(uint8(alert), e)
	}
	return alert, e
}

// headerError returns crypto/tls's error for a record whose header libssl refused, or nil if it
// refused something else. libssl stops right after such a header.
func headerError(queue *libssl.Error, consumed []byte) error {
	if len(consumed) < record.HeaderLen {
		return nil
	}
	header := consumed[len(consumed)-record.HeaderLen:]
	h := record.ParseHeader(header)
	switch {
	case h.Version != tls.VersionTLS12 && queue.VersionRefused():
		return record.VersionError(header)
	case h.Len > record.MaxCiphertext13 && queue.LengthRefused():
		return record.LengthError(header)
	}
	return nil
}
