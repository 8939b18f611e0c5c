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
	"github.com/ossl-go/ossl/internal/record"
)

// A Conn is a TLS connection over another connection. It has the methods of [tls.Conn], with the same meanings.
//
// Read and Write may be called at the same time, and Close at any time.
type Conn struct {
	// Constant.
	conn       net.Conn
	isClient   bool
	serverName string                            // the name a client asks for
	configErr  error                             // why there is no handshake, or nil
	verify     []func(tls.ConnectionState) error // of WithVerification

	// ctx is constant, but for a server's GetConfigForClient during the handshake. Who changes it, or asks meanwhile, holds askMu.
	ctx *Context

	complete     atomic.Bool // the handshake succeeded
	takenOver    atomic.Bool // libssl is out of it; set by a handshake or, with readMu and mu held, by a Read, and never taken back
	handshakeMu  sync.Mutex
	handshakeErr error      // guarded by handshakeMu
	hs           *handshake // the handshake under way, guarded by handshakeMu

	// state is written during the handshake and constant once it is complete.
	state tls.ConnectionState
	// exportErr says why no keying material can be exported, or nil. Like state.
	exportErr error

	readMu  sync.Mutex
	in      input // guarded by readMu
	readErr error // guarded by readMu; sticky
	pending bool  // guarded by readMu; decrypted bytes wait inside libssl
	opened  own   // guarded by readMu; of a connection that was taken over from libssl

	writeMu         sync.Mutex // held across network writes
	writeErr        error      // guarded by writeMu; sticky
	closeNotifySent bool       // guarded by writeMu
	kernelAsked     bool       // guarded by writeMu; whether it takes the sending side
	closeNotifyErr  error      // guarded by writeMu
	packetsSent     int        // guarded by writeMu; records, for dynamic sizing
	bytesSent       int64      // guarded by writeMu

	engine  engine
	queue   outQueue    // guarded by engine
	sealErr error       // guarded by engine; why nothing more is sealed, of a connection that was taken over
	kernel  *kernelSide // guarded by engine, and set with writeMu held too; nil unless the kernel seals

	// readMoved is closed by the next crossing of a Read, for Writes that wait for input. Guarded by mu; nil if none waits.
	readMoved chan struct{}
	turns     turns

	watched atomic.Bool // between watchSilence and heard

	// activeCall is crypto/tls's interlock of Write and Close: the low bit is set by Close, the rest counts Writes.
	activeCall atomic.Int32
	flushing   atomic.Int32 // Reads that send what they had to

	cachedID []byte // guarded by readMu; of the session in the server's cache, which dies with a fatal alert

	closing     chan struct{} // guarded by askMu; closed by Close, to end waits that are not for the network
	closingOnce sync.Once
	askMu       sync.Mutex // held for an instant: nothing is called meanwhile, and no other lock taken
}

var _ net.Conn = (*Conn)(nil)

// unlockRead unlocks readMu, and frees the reading side if release asked for that in the meantime.
func (c *Conn) unlockRead() {
	c.readMu.Unlock()
	if c.engine.released.Load() {
		c.freeOpened()
	}
}

func (c *Conn) freeOpened() {
	if c.readMu.TryLock() {
		c.opened.free()
		c.readMu.Unlock()
	}
}

// release frees the connection's C memory: now, or when the crossing or the Read under way has ended. It never waits.
func (c *Conn) release() {
	c.engine.release()
	c.heard()
	if c.readMu.TryLock() {
		c.unlockRead()
	}
}

// LocalAddr returns the local network address.
func (c *Conn) LocalAddr() net.Addr { return c.conn.LocalAddr() }

// RemoteAddr returns the remote network address.
func (c *Conn) RemoteAddr() net.Addr { return c.conn.RemoteAddr() }

// SetDeadline sets the read and write deadlines of the connection. After a Write has timed out, the connection can't be written
// to.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.setDeadlines(t, true, true, c.conn.SetDeadline)
}

// SetReadDeadline sets the read deadline of the connection.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.setDeadlines(t, true, false, c.conn.SetReadDeadline)
}

// SetWriteDeadline sets the write deadline of the connection. After a Write has timed out, the connection can't be written to.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.setDeadlines(t, false, true, c.conn.SetWriteDeadline)
}

// NetConn returns the connection beneath. Reading from it or writing to it corrupts the TLS connection.
func (c *Conn) NetConn() net.Conn { return c.conn }

// ConnectionState returns basic TLS details about the connection. It waits for a handshake under way.
//
// Its ExportKeyingMaterial works as long as the connection is open; see [Conn.ExportKeyingMaterial].
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

// OCSPResponse returns the OCSP response that the server stapled, for clients.
func (c *Conn) OCSPResponse() []byte { return c.ConnectionState().OCSPResponse }

// VerifyHostname checks that the peer's certificate chain is valid for host. If so, it returns nil; if not, it returns an error
// that describes the problem. It's for clients only.
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

// ExportKeyingMaterial returns length bytes of exported keying material, as RFC 5705 and RFC 8446, section 7.5, define it. A nil
// context differs from an empty one in TLS 1.2. It fails without TLS 1.3 or Extended Master Secret, and after Close.
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

// Handshake runs the handshake if it has not run yet. Most uses need not call it: Read and Write do. [Conn.HandshakeContext]
// bounds it.
func (c *Conn) Handshake() error { return c.HandshakeContext(context.Background()) }

// HandshakeContext runs the handshake if it has not run yet. If ctx ends first, the connection beneath is closed and ctx's error
// returned; afterwards ctx has no effect on the connection.
func (c *Conn) HandshakeContext(ctx context.Context) (err error) {
	if c.complete.Load() {
		return nil
	}
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
	c.readMu.Lock()
	defer c.unlockRead()
	c.handshakeErr = c.runHandshake(ctx)
	if c.handshakeErr != nil {
		c.release()
	}
	return c.handshakeErr
}

// Close sends close_notify, unless a Write is under way, and closes the connection beneath.
func (c *Conn) Close() error {
	var x int32
	for {
		x = c.activeCall.Load()
		if x&1 != 0 {
			return net.ErrClosed
		}
		if c.activeCall.CompareAndSwap(x, x|1) {
			break
		}
	}
	c.signalClosing()
	defer c.release()
	if x != 0 {
		// As in crypto/tls: a Close while a Write is under way is there to break it, and does not wait for it.
		return c.conn.Close()
	}
	var alertErr error
	if c.complete.Load() {
		if c.flushing.Load() > 0 { // by a Read, which the peer may not let go on
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

// CloseWrite sends close_notify: the peer reads to its end, and may go on writing.
func (c *Conn) CloseWrite() error {
	if !c.complete.Load() {
		return errEarlyCloseWrite
	}
	return c.closeNotify(false)
}

// closeNotifyTimeout bounds the write of close_notify, as in crypto/tls.
const closeNotifyTimeout = 5 * time.Second

// closeNotify sends close_notify once; free ends the record path with the same crossing.
func (c *Conn) closeNotify(free bool) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if c.closeNotifySent || c.writeErr != nil {
		return c.closeNotifyErr
	}
	if c.kernel != nil {
		return c.closeKernel(free)
	}
	out := getBuffer(smallBuffers)
	defer out.put()
	last, err := c.lastRecords(free, out.mem)
	if err != nil {
		return err
	}
	if len(last) == 0 { // the connection has failed, and its alert was sent
		return nil
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(closeNotifyTimeout))
	_, c.closeNotifyErr = c.conn.Write(last)
	_ = c.conn.SetWriteDeadline(time.Now()) // any later write fails
	return c.closeNotifyErr
}

// lastRecords returns close_notify, behind the records that must be sent before it. writeMu is held.
func (c *Conn) lastRecords(free bool, out []byte) ([]byte, error) {
	for waiting := false; ; waiting = true {
		_, err := c.engine.lock()
		if err != nil {
			return nil, err
		}
		step := c.sealCloseNotify(free, out)
		if step.Status != libssl.WantRead {
			filled := c.queue.filled.Load()
			queued := c.queue.take()
			c.engine.unlock()
			c.closeNotifySent = true
			if step.Produced == 0 && !filled { // after a fatal alert, tickets are of no use to the peer
				return nil, nil
			}
			return append(queued, out[:step.Produced]...), nil
		}
		moved := c.awaitMove()
		c.engine.unlock()
		if !waiting {
			_ = c.SetWriteDeadline(time.Now().Add(closeNotifyTimeout))
		}
		if err := c.finishMessage(moved); err != nil {
			c.writeErr = permanent(err)
			return nil, err
		}
	}
}

// sealCloseNotify seals close_notify, unless an alert has ended the connection before, and frees what it can. mu is held.
func (c *Conn) sealCloseNotify(free bool, out []byte) (step libssl.Step) {
	if !c.takenOver.Load() {
		if !free {
			return c.engine.ssl.CloseNotify(out)
		}
		step = c.engine.ssl.Free(true, out)
		c.engine.forgetLocked()
		return step
	}
	notify := c.sealErr == nil && c.kernel == nil
	c.sealErr = errShutdown
	switch {
	case free && c.readMu.TryLock():
		step = c.engine.ssl.FreeSide(libssl.BothSides, notify, out)
		c.opened.tls = nil
		c.engine.forgetLocked()
		c.readMu.Unlock()
	case free: // the Read under way frees its side
		step = c.engine.ssl.FreeSide(libssl.WriteSide, notify, out)
		c.engine.forgetLocked()
	case notify:
		step = c.engine.ssl.Seal(record.Alert, []byte{alertLevelWarning, alertCloseNotify}, out, 0, 0, 0)
	}
	return step
}

// closed returns a channel that Close closes.
func (c *Conn) closed() <-chan struct{} {
	c.askMu.Lock()
	defer c.askMu.Unlock()
	if c.closing == nil {
		c.closing = make(chan struct{})
		if c.activeCall.Load()&1 != 0 {
			c.closingOnce.Do(func() { close(c.closing) })
		}
	}
	return c.closing
}

func (c *Conn) signalClosing() {
	c.askMu.Lock()
	defer c.askMu.Unlock()
	if c.closing != nil {
		c.closingOnce.Do(func() { close(c.closing) })
	}
}
