package ossl

import (
	"bytes"
	"crypto/tls"
	"errors"
	"sync"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/stdtls"
	"github.com/ossl-go/ossl/internal/unchanged"
)

// A handOver ends a server's handshake that crypto/tls goes on with, from the ClientHello on: a callback
// has returned what ossl refuses, and nothing was sent yet. It happens in programs that "ossl go" has
// built, and only there.
type handOver struct {
	reason error
	hello  []byte           // all that was received, in records
	config *tls.Config      // that GetConfigForClient has returned, or the server's own
	cert   *tls.Certificate // that GetCertificate has returned, or nil
	//lint:ignore U1000 used in unchanged.go, which staticcheck doesn't compile
	count sync.Once
}

func (e *handOver) Error() string   { return unchanged.ErrHandedOver.Error() + ": " + e.reason.Error() }
func (e *handOver) Unwrap() []error { return []error{unchanged.ErrHandedOver, e.reason} }

// orHandOver returns err, or the handOver in its place if crypto/tls may go on and err is a refusal.
func (h *handshake) orHandOver(err error, config *tls.Config, cert *tls.Certificate) error {
	if ctx := h.c.context(); ctx.opts.handsOver == nil || !ctx.opts.handsOver() || ctx.fips || !errors.As(err, new(*ConfigError)) {
		return err
	}
	over := &handOver{reason: err, config: config, cert: cert}
	if err := h.withSSL(func(ssl *libssl.Conn) { over.hello = stdtls.HelloRecords(ssl.Message()) }); err != nil {
		return err
	}
	over.hello = append(over.hello, bytes.Clone(h.in.Data)...)
	return over
}

// refuseHello sends the alert for a ClientHello that err refuses, unless crypto/tls goes on with it.
func (h *handshake) refuseHello(alert uint8, err error) error {
	if !errors.Is(err, unchanged.ErrHandedOver) {
		h.sendAlert(alert)
	}
	return err
}
