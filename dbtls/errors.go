package dbtls

import (
	"context"
	"errors"
	"io"
	"strconv"
)

// ErrNoTLS is wrapped by the error of a server that doesn't offer TLS.
var ErrNoTLS = errors.New("the server doesn't offer TLS")

// ErrPlaintext is wrapped by the error of a server that sent bytes between its consent to TLS and
// the handshake. There, others can insert theirs.
var ErrPlaintext = errors.New("the server sent unencrypted data after its consent to TLS")

// An Error reports the step at which a connection failed on its way to TLS.
type Error struct {
	Protocol string // as in "PostgreSQL"
	Step     string // as in "SSLRequest" or "TLS handshake"
	Err      error
}

func (e *Error) Error() string { return "dbtls: " + e.Protocol + ", " + e.Step + ": " + e.Err.Error() }

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// ended returns the reason why an operation failed: ctx's error if ctx is done, and
// io.ErrUnexpectedEOF if the connection was closed.
func ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	}
	return err
}

// quote returns the first bytes of a server's text in quotation marks. The text is not
// authenticated, and is written to logs.
func quote[T string | []byte](text T) string {
	const most = 100
	if len(text) > most {
		return strconv.QuoteToASCII(string(text[:most])) + "…"
	}
	return strconv.QuoteToASCII(string(text))
}
