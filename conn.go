package ossl

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
)

// A Conn is a TLS connection over another connection. It has the methods of [tls.Conn], with the
// same meanings.
//
// Read and Write may be called at the same time, and Close at any time.
type Conn struct {
	// Goroutines wait for the locks in this order: handshakeMu, in, out, engine. Against this order
	// they only try to lock in, as a Write that must read does. The locks in turns, calls and
	// counters come last.

	// Constant.
	conn       net.Conn
	isClient   bool
	serverName string                            // the name that a client asks for
	configErr  error                             // the reason why there is no handshake, or nil
	verify     []func(tls.ConnectionState) error // of WithVerification

	// ctx is nil if the configuration was refused. A server's GetConfigForClient may replace it
	// during the handshake.
	ctx atomic.Pointer[Context]

	pinned *sharedContext // until the SSL is made, if the Context is shared; guarded by handshakeMu

	complete     atomic.Bool // the handshake succeeded
	handshakeMu  sync.Mutex
	handshakeErr error // guarded by handshakeMu

	// state is written during the handshake and constant once it is complete.
	state       tls.ConnectionState
	identity    *clientIdentity        // of a client whose server has asked for a certificate; written like state
	pskIdentity atomic.Pointer[[]byte] // nil if no pre-shared key is agreed on
	// exportErr is the reason why no keying material can be exported, or nil. It is written like
	// state.
	exportErr error

	watch  observation
	in     reader
	out    writer
	engine engine
	turns  turns     // of Reads and Writes to read, while libssl has the records
	calls  interlock // of Write, Read and Close
}

var _ net.Conn = (*Conn)(nil)

// release frees the connection's C memory: now, or when the crossing or the Read under way returns.
// It never waits.
func (c *Conn) release() {
	c.engine.release()
	c.heard()
	c.in.release()
}

// beginRecords hands the records of an established connection to libssl, or to ossl if the
// handshake has taken the connection over. The reader and the engine are locked.
func (c *Conn) beginRecords(ssl *libssl.Conn, takenOver bool) {
	ssl.SetSocket(c.in.Socket())
	if takenOver {
		c.takeOver(ssl)
		return
	}
	c.in.opener, c.engine.sealer = newLibssl(c, ssl)
}

// takeOver hands the records of a connection that C has taken over from libssl to ossl. The reader
// and the engine are locked.
func (c *Conn) takeOver(ssl *libssl.Conn) {
	opener, sealer := &c.in.direct, &c.engine.direct
	opener.side, sealer.side = ssl.Sides()
	opener.sealer, sealer.opener, sealer.ssl = sealer, opener, ssl
	opener.records.Version, opener.records.IsClient = c.state.Version, c.isClient
	c.in.opener, c.engine.sealer = opener, sealer
	c.turns.end()
}

// context returns the connection's Context.
func (c *Conn) context() *Context { return c.ctx.Load() }

// LocalAddr returns the local network address.
func (c *Conn) LocalAddr() net.Addr { return c.conn.LocalAddr() }

// RemoteAddr returns the remote network address.
func (c *Conn) RemoteAddr() net.Addr { return c.conn.RemoteAddr() }

// SetDeadline sets the read and write deadlines of the connection. After a Write has timed out, the
// connection can't be written to.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.setDeadlines(t, true, true, c.conn.SetDeadline)
}

// SetReadDeadline sets the read deadline of the connection.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.setDeadlines(t, true, false, c.conn.SetReadDeadline)
}

// SetWriteDeadline sets the write deadline of the connection. After a Write has timed out, the
// connection can't be written to.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.setDeadlines(t, false, true, c.conn.SetWriteDeadline)
}

// NetConn returns the underlying connection. Reading from it or writing to it corrupts the TLS
// connection.
func (c *Conn) NetConn() net.Conn { return c.conn }

// ConnectionState returns basic TLS details about the connection. It waits for a handshake under
// way.
//
// The ExportKeyingMaterial method of the state works as long as the connection is open; see
// [Conn.ExportKeyingMaterial].
func (c *Conn) ConnectionState() tls.ConnectionState {
	if !c.complete.Load() {
		c.handshakeMu.Lock()
		defer c.handshakeMu.Unlock()
	}
	state := c.state
	//lint:ignore SA1019 deprecated, and set by crypto/tls
	state.NegotiatedProtocolIsMutual = true
	return state
}

// OCSPResponse returns the OCSP response that the server stapled, if any. It is for clients only.
func (c *Conn) OCSPResponse() []byte { return c.ConnectionState().OCSPResponse }

// VerifyHostname checks that the peer's certificate chain is valid for host. If so, it returns nil;
// if not, it returns an error that describes the problem. It is for clients only.
func (c *Conn) VerifyHostname(host string) error {
	c.handshakeMu.Lock()
	defer c.handshakeMu.Unlock()
	switch {
	case !c.isClient:
		return errors.New("tls: VerifyHostname called on TLS server connection")
	case !c.complete.Load():
		return errors.New("tls: handshake has not yet been performed")
	case len(c.state.VerifiedChains) == 0:
		return errors.New("tls: handshake did not verify certificate chain")
	}
	return c.state.PeerCertificates[0].VerifyHostname(host)
}

// ExportKeyingMaterial returns length bytes of exported keying material, as RFC 5705 and RFC 8446,
// section 7.5, define it. In TLS 1.2, a nil context differs from an empty one. ExportKeyingMaterial
// returns an error after Close, and if the connection has neither TLS 1.3 nor Extended Master
// Secret.
func (c *Conn) ExportKeyingMaterial(label string, context []byte, length int) ([]byte, error) {
	if !c.complete.Load() {
		return nil, errors.New("tls: handshake has not yet been performed")
	}
	if c.exportErr != nil {
		return nil, c.exportErr
	}
	switch label { // reserved by RFC 5705, section 4
	case "client finished", "server finished", "master secret", "key expansion":
		return nil, fmt.Errorf("crypto/tls: reserved ExportKeyingMaterial label: %s", label)
	}
	if len(context) >= 1<<16 || length < 0 {
		return nil, errors.New("crypto/tls: ExportKeyingMaterial context or length out of range")
	}
	ssl, err := c.engine.lock()
	if err != nil {
		return nil, err
	}
	defer c.engine.unlock()
	out, err := ssl.Export(label, context, context != nil, length)
	if err != nil {
		return nil, libraryError(err)
	}
	return out, nil
}

// Handshake runs the handshake if it has not run yet. Most programs need not call it, because the
// first Read or Write does. Use [Conn.HandshakeContext] to cancel a handshake or bound its time.
func (c *Conn) Handshake() error { return c.HandshakeContext(context.Background()) }

// HandshakeContext runs the handshake if it has not run yet. If ctx is done first, HandshakeContext
// closes the underlying connection and returns ctx's error. After the handshake, ctx has no effect
// on the connection.
func (c *Conn) HandshakeContext(ctx context.Context) error { return c.shakeHands(ctx, nothingFollows) }

// HandshakeForWrite is HandshakeContext for a client that is going to write before it reads, as in
// HTTP and gRPC. The client's last message then leaves with the first data, in the same segment. If
// there is no data for a second, it leaves alone; until it has left, the server waits. A Read
// doesn't send it.
//
// A Write that runs the handshake sends the message with its data too.
func (c *Conn) HandshakeForWrite(ctx context.Context) error { return c.shakeHands(ctx, writeExpected) }

// A sequel is the call that the caller of a handshake makes next.
type sequel int

const (
	nothingFollows sequel = iota // the call is unknown
	writeFollows                 // a Write, which flushes the queue even if it has no data
	writeExpected                // probably a Write
)

// shakeHands is HandshakeContext. If a Write follows, a client's last message waits for its data.
func (c *Conn) shakeHands(ctx context.Context, next sequel) error {
	if c.complete.Load() {
		return nil
	}
	var ran bool
	err := errPanicked // remains if a callback panics
	defer func() {
		if ran {
			c.handshakeEnded(ctx, err)
		}
	}()
	err = c.labeled(ctx, func(ctx context.Context) error { return c.shakeHandsOnce(ctx, next, &ran) })
	return err
}

// shakeHandsOnce is shakeHands, and sets ran if this call runs the handshake.
func (c *Conn) shakeHandsOnce(ctx context.Context, next sequel, ran *bool) (err error) {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
		defer func() {
			if !stop() {
				err = ctx.Err()
			} else if err != nil && ctx.Err() != nil { // the handshake saw the end before AfterFunc did
				_ = c.conn.Close()
				err = ctx.Err()
			}
		}()
	}
	c.handshakeMu.Lock()
	defer c.handshakeMu.Unlock()
	if c.handshakeErr != nil {
		return c.handshakeErr
	}
	if c.complete.Load() {
		return nil
	}
	c.in.lock()
	defer c.in.unlock()
	*ran, c.watch.began = true, time.Now()
	c.handshakeErr = c.runHandshake(ctx, next)
	if c.handshakeErr != nil {
		c.release()
	}
	return c.handshakeErr
}

// Close sends close_notify, unless a Write is under way, and closes the underlying
// connection. After [Conn.Detach], it does nothing.
func (c *Conn) Close() error {
	writing, ok := c.calls.close()
	switch {
	case !ok && c.calls.detached():
		return nil
	case !ok:
		return net.ErrClosed
	}
	broken := c.brokenBy() // the next steps make errors of their own
	defer func() { c.ended(closeCalled, broken) }()
	defer c.release()
	if writing {
		// As in crypto/tls, a Close while a Write is under way interrupts it, and does not wait for
		// it.
		return c.conn.Close()
	}
	var alertErr error
	if c.complete.Load() {
		if c.calls.flushing.Load() > 0 { // by a Read, which the peer may block
			_ = c.conn.SetWriteDeadline(time.Now().Add(closeNotifyTimeout))
		}
		if err := c.closeNotify(true); err != nil {
			alertErr = fmt.Errorf("tls: failed to send closeNotify alert (but connection was closed anyway): %w", err)
		} else {
			c.drain()
		}
	}
	if err := c.conn.Close(); err != nil {
		return err
	}
	return alertErr
}

// CloseWrite sends close_notify. The peer's reads then return io.EOF, and it may go on writing.
func (c *Conn) CloseWrite() error {
	if !c.complete.Load() {
		return errEarlyCloseWrite
	}
	return c.closeNotify(false)
}

// closeNotifyTimeout bounds the write of close_notify, as in crypto/tls.
const closeNotifyTimeout = 5 * time.Second

// closeNotify sends close_notify once. If free is set, it also frees the C memory, in the same
// crossing.
func (c *Conn) closeNotify(free bool) error {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.out.closeNotifySent || c.out.err != nil {
		return c.out.closeNotifyErr
	}
	return c.out.sender.closeNotify(c, free)
}
