package ossl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"syscall"

	"github.com/ossl-go/ossl/internal/stdtls"
)

// A Resumption is the way in which a connection has resumed a session.
type Resumption string

const (
	NotResumed Resumption = "" // a full handshake
	// ResumedTicket means that the client had a ticket: RFC 5077, or RFC 8446, section 4.6.1. All
	// TLS 1.3 clients do.
	ResumedTicket Resumption = "ticket"
	// ResumedID means that the session was in the server's cache, [WithSessionCache]. TLS 1.2 clients
	// know it by its ID: RFC 5246, section 7.4.1.2.
	ResumedID Resumption = "id"
)

// A FailureClass is a kind of failure, as a short name that is good for a label of a metric.
type FailureClass string

const (
	FailureTimeout    FailureClass = "timeout"     // a deadline has passed, or the kernel got no answer from the peer
	FailureCanceled   FailureClass = "canceled"    // the caller's context was canceled
	FailureClosed     FailureClass = "closed"      // this side has closed the connection
	FailurePeerClosed FailureClass = "peer_closed" // the peer has closed or reset the connection
	// FailureTruncated means that the peer has closed the connection within a record, or after the
	// handshake without close_notify.
	FailureTruncated FailureClass = "truncated"
	FailureNetwork   FailureClass = "network" // another error of the underlying connection

	FailureNotTLS    FailureClass = "not_tls"    // the peer has sent something other than TLS
	FailurePeerAlert FailureClass = "peer_alert" // the peer has aborted the connection with an alert
	FailureRefused   FailureClass = "refused"    // this side has aborted the connection with an alert

	// The peer's certificate was refused.
	FailureCertificateExpired   FailureClass = "certificate_expired"   // or is not valid yet
	FailureCertificateRevoked   FailureClass = "certificate_revoked"   // or there is no list in force: RevocationError
	FailureCertificateUntrusted FailureClass = "certificate_untrusted" // it comes from an unknown authority
	FailureCertificateName      FailureClass = "certificate_name"      // it is for another name
	FailureCertificate          FailureClass = "certificate"           // for another reason

	FailureConfig  FailureClass = "config"  // the configuration can't be honoured, or there is no OpenSSL
	FailureLibrary FailureClass = "library" // libssl has failed, and no alert was sent, or memory was short
	FailureOther   FailureClass = "other"   // an error of a callback, for example
)

// A Failure is a short reason why a handshake, a Read or a Write has failed. It holds nothing that
// the peer chooses freely, so the number of Failures is bounded.
type Failure struct {
	Class FailureClass
	// Alert is the alert that was received or sent, or 0 if there is none or it isn't known.
	Alert tls.AlertError
}

// FailureOf returns the Failure for an error that this package or crypto/tls has returned, and the
// zero Failure for nil. The events and statistics know more: the alert for a certificate that was
// refused, and that an error is a callback's. FailureOf takes a timeout in a callback for a timeout
// of the connection.
func FailureOf(err error) Failure {
	if err == nil {
		return Failure{}
	}
	if class := waitEnded(err); class != "" {
		return Failure{Class: class}
	}
	if class := certificateRefused(err); class != "" {
		return Failure{Class: class}
	}
	var config *ConfigError
	var header tls.RecordHeaderError
	var library *LibraryError
	alert, remote, alerted := alertOf(err)
	switch {
	case errors.As(err, &config), errors.Is(err, ErrUnavailable), errors.Is(err, errNoServerName):
		return Failure{Class: FailureConfig}
	case errors.As(err, &library) && errors.Is(library, syscall.ENOMEM): // an alert, if any, is not about the peer
		return Failure{FailureLibrary, alert}
	case errors.As(err, &header):
		return Failure{Class: FailureNotTLS}
	case alerted && remote:
		return Failure{FailurePeerAlert, alert}
	case alerted:
		return Failure{FailureRefused, alert}
	case errors.As(err, &library):
		return Failure{Class: FailureLibrary}
	}
	return Failure{Class: connectionEnded(err)}
}

// alertOf returns the alert in an error, and whether it is the peer's.
func alertOf(err error) (alert tls.AlertError, remote, ok bool) {
	var op *net.OpError
	if errors.As(err, &op) {
		remote = op.Op == "remote error"
		if n, ok := stdtls.Alert(op.Err); ok {
			return tls.AlertError(n), remote, true
		}
	}
	ok = errors.As(err, &alert)
	return alert, remote, ok
}

// waitEnded returns the class of an error for which this side has stopped waiting, or "".
func waitEnded(err error) FailureClass {
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return FailureCanceled
	case errors.As(err, &network) && network.Timeout(): // context.DeadlineExceeded among them
		return FailureTimeout
	case errors.Is(err, net.ErrClosed):
		return FailureClosed
	}
	return ""
}

// certificateRefused returns the class of an error about a certificate, or "".
func certificateRefused(err error) FailureClass {
	var invalid x509.CertificateInvalidError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var verification *tls.CertificateVerificationError
	var revocation *RevocationError
	switch {
	case errors.As(err, &revocation):
		return FailureCertificateRevoked
	case errors.As(err, &name):
		return FailureCertificateName
	case errors.As(err, &authority):
		return FailureCertificateUntrusted
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return FailureCertificateExpired
	case errors.As(err, &invalid), errors.As(err, &verification):
		return FailureCertificate
	}
	return ""
}

// connectionEnded returns the class of an error of the underlying connection, or FailureOther.
func connectionEnded(err error) FailureClass {
	var op *net.OpError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return FailureTruncated
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return FailurePeerClosed
	case errors.As(err, &op):
		return FailureNetwork
	}
	return FailureOther
}

// withAlert returns the Failure of a handshake that this side has aborted with an alert. f is the
// Failure of the handshake's error. The error may be a callback's own, such as the timeout of
// another connection that the callback uses: then f.Class is not about this connection.
func (f Failure) withAlert(sent uint8) Failure {
	switch f.Class {
	case FailureConfig, FailureNotTLS:
		return f
	case FailureLibrary, FailureCertificate, FailureCertificateExpired, FailureCertificateRevoked, FailureCertificateName,
		FailureCertificateUntrusted:
		f.Alert = tls.AlertError(sent)
		return f
	}
	return Failure{FailureRefused, tls.AlertError(sent)}
}

// String returns the class, and the alert if there is one.
func (f Failure) String() string {
	if f.Alert == 0 {
		return string(f.Class)
	}
	return fmt.Sprintf("%s (%v)", f.Class, f.Alert)
}

// LogValue returns the class, and the alert with its number if there is one, as attributes.
func (f Failure) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("class", string(f.Class))}
	if f.Alert != 0 {
		attrs = append(attrs, slog.String("alert", f.Alert.Error()), slog.Int("alert_number", int(f.Alert)))
	}
	return slog.GroupValue(attrs...)
}

// LogValue returns the field, the reason and the cause as attributes.
func (e *ConfigError) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("field", e.Field), slog.String("reason", e.Reason)}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("cause", e.Err))
	}
	return slog.GroupValue(attrs...)
}

// LogValue returns the text, the operation, OpenSSL's error codes in hexadecimal, and the alert
// that was sent, as attributes.
func (e *LibraryError) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("text", e.Error()), slog.String("op", e.Op)}
	if e.Reason != "" {
		attrs = append(attrs, slog.String("reason", e.Reason))
	}
	if len(e.Codes) > 0 {
		codes := make([]string, len(e.Codes))
		for i, code := range e.Codes {
			codes[i] = fmt.Sprintf("%08X", code) // as OpenSSL prints them
		}
		attrs = append(attrs, slog.Any("codes", codes))
	}
	var alert tls.AlertError
	if errors.As(e.cause, &alert) {
		attrs = append(attrs, slog.String("alert", alert.Error()))
	}
	return slog.GroupValue(attrs...)
}

// resumptionOfClient returns how a client has resumed a session, whose encoding is der.
func resumptionOfClient(version uint16, der []byte) Resumption {
	if version < tls.VersionTLS13 && !hasTicket(der) {
		return ResumedID
	}
	return ResumedTicket
}

// hasTicket reports whether an SSL_SESSION in libssl's encoding has a ticket: d2i_SSL_SESSION(3).
func hasTicket(der []byte) bool {
	const ticket = 10 // its tag
	var session asn1.RawValue
	if _, err := asn1.Unmarshal(der, &session); err != nil {
		return false
	}
	for rest := session.Bytes; len(rest) > 0; {
		var field asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &field); err != nil {
			return false
		}
		if field.Class == asn1.ClassContextSpecific && field.Tag == ticket {
			return true
		}
	}
	return false
}
