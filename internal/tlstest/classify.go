package tlstest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// ErrDenied is the error that callbacks in tests return to refuse.
var ErrDenied = errors.New("tlstest: denied by a callback")

// Class names an error by everything a program can learn from it with errors.Is and errors.As. Two
// implementations agree on an error if its classes are equal. Text counts only for a peer's alert:
// crypto/tls has an unexported type there.
func Class(err error) string {
	if err == nil {
		return "ok"
	}
	class := kind(err)
	var op *net.OpError
	if errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error") {
		class = op.Op + ": " + op.Err.Error()
	}
	var cve *tls.CertificateVerificationError
	if errors.As(err, &cve) {
		class = fmt.Sprintf("CertificateVerificationError(%d): %s", len(cve.UnverifiedCertificates), class)
	}
	return class
}

func kind(err error) string {
	var (
		unknown    x509.UnknownAuthorityError
		hostname   x509.HostnameError
		invalid    x509.CertificateInvalidError
		constraint x509.ConstraintViolationError
		critical   x509.UnhandledCriticalExtension
		insecure   x509.InsecureAlgorithmError
		roots      x509.SystemRootsError
		header     tls.RecordHeaderError
		timeout    net.Error
	)
	switch {
	case errors.Is(err, ErrDenied):
		return "denied by callback"
	case errors.As(err, &unknown):
		return "x509.UnknownAuthorityError"
	case errors.As(err, &hostname):
		return "x509.HostnameError"
	case errors.As(err, &invalid):
		return fmt.Sprintf("x509.CertificateInvalidError(%d)", invalid.Reason)
	case errors.As(err, &constraint):
		return "x509.ConstraintViolationError"
	case errors.As(err, &critical):
		return "x509.UnhandledCriticalExtension"
	case errors.As(err, &insecure):
		return "x509.InsecureAlgorithmError"
	case errors.As(err, &roots):
		return "x509.SystemRootsError"
	case errors.As(err, &header):
		return fmt.Sprintf("tls.RecordHeaderError(conn=%v header=%x)", header.Conn != nil, header.RecordHeader)
	case errors.Is(err, context.Canceled):
		return "context.Canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "context.DeadlineExceeded"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("os.ErrDeadlineExceeded(timeout=%v)", errors.As(err, &timeout) && timeout.Timeout())
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, net.ErrClosed):
		return "net.ErrClosed"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "io.ErrUnexpectedEOF"
	case errors.Is(err, io.EOF):
		return "io.EOF"
	case errors.Is(err, io.ErrClosedPipe):
		return "io.ErrClosedPipe"
	}
	return "other"
}
