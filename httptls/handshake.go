package httptls

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"time"

	"github.com/ossl-go/ossl"
)

// The timeouts of http.DefaultTransport.
const (
	defaultDialTimeout           = 30 * time.Second
	defaultIdleConnTimeout       = 90 * time.Second
	defaultTLSHandshakeTimeout   = 10 * time.Second
	defaultExpectContinueTimeout = time.Second
)

// handshakeTimeoutError is net/http's error for TLSHandshakeTimeout.
type handshakeTimeoutError struct{}

func (handshakeTimeoutError) Timeout() bool   { return true }
func (handshakeTimeoutError) Temporary() bool { return true }
func (handshakeTimeoutError) Error() string   { return "net/http: TLS handshake timeout" }

// handshake runs conn's handshake, bounded by ctx and TLSHandshakeTimeout. It closes conn if that
// fails.
func (s *settings) handshake(ctx context.Context, conn *ossl.Conn) error {
	bounded := ctx
	if s.base.TLSHandshakeTimeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeoutCause(ctx, s.base.TLSHandshakeTimeout, handshakeTimeoutError{})
		defer cancel()
	}
	err := conn.HandshakeForWrite(bounded) // a request follows, or the HTTP/2 preface
	if err == nil {
		return nil
	}
	_ = conn.NetConn().Close()
	if ctx.Err() == nil && context.Cause(bounded) == (handshakeTimeoutError{}) {
		return handshakeTimeoutError{}
	}
	return err
}

// tracedHandshake is handshake with the hooks of the request's trace.
func (s *settings) tracedHandshake(ctx context.Context, conn *ossl.Conn) error {
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.TLSHandshakeStart != nil {
		trace.TLSHandshakeStart()
	}
	err := s.handshake(ctx, conn)
	if trace != nil && trace.TLSHandshakeDone != nil {
		var state tls.ConnectionState
		if err == nil {
			state = conn.ConnectionState()
		}
		trace.TLSHandshakeDone(state, err)
	}
	return err
}
