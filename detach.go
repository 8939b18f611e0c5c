package ossl

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ossl-go/ossl/internal/connstate"
	"github.com/ossl-go/ossl/internal/ktls"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// ErrDetached is the error of a Read or a Write after [Conn.Detach]. It wraps [net.ErrClosed].
var ErrDetached error = detachedError{}

type detachedError struct{}

func (detachedError) Error() string { return "ossl: the connection was detached" }
func (detachedError) Unwrap() error { return net.ErrClosed }

// ErrBadState is wrapped by the errors of [Context.Attach] for a state that can't be used: it is damaged, it
// was made by a version of ossl with another format, or it was attached before.
var ErrBadState = errors.New("ossl: bad state of a connection")

// A DetachError is the reason why [Conn.Detach] has refused a connection, which goes on as before.
type DetachError struct {
	Reason string
	Err    error // with which the connection has failed, or nil
}

func (e *DetachError) Error() string {
	s := "ossl: the connection can't be detached: " + e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns Err.
func (e *DetachError) Unwrap() error { return e.Err }

// Detach ends the connection here, so that it can go on elsewhere: it destroys the keys and returns the
// connection's state. [Context.Attach] makes a Conn of the state and the same underlying connection, in this
// process or in another one. The peer notices nothing. The state includes received data that was not read, and
// sealed records that were not sent. The underlying connection, [Conn.NetConn], stays open without deadlines,
// and belongs to the caller.
//
// The state holds the keys. Whoever has it can read the connection and write to it, so it must go to one place
// only, by a way that nobody else reads, and be cleared when it was used.
//
// Detach waits for a Write under way, and interrupts a Read that waits for the network. That Read and later
// Reads and Writes return [ErrDetached]; Close then does nothing. SendFile, ReadFrom and io.Copy stop between two
// Writes. As after any Write that fails, the data that ReadFrom has read last from its source is lost, unless the
// source is a file. If ctx is done while a Write is under way, Detach returns ctx's error, and the connection
// goes on. If Detach fails after it has interrupted a Read, it closes the connection, since the Read's deadline
// is lost. So it waits ten seconds for that Read to return, even if ctx is done.
//
// Detach returns a [*DetachError], and the connection goes on, if the handshake is not complete, if libssl has
// the records ([RecordPath]; a TLS 1.3 client with a ClientSessionCache until it has read its first data), in
// FIPS mode, which doesn't let keys leave the module, in TLS 1.2 without Extended Master Secret, and if the
// connection has failed. If the kernel seals ([WithKernelTLS]), it goes on to seal.
func (c *Conn) Detach(ctx context.Context) (state []byte, err error) {
	m := &move{decided: make(chan struct{})}
	switch {
	case c.calls.detached():
		return nil, ErrDetached
	case c.calls.isClosed():
		return nil, net.ErrClosed
	case !c.complete.Load():
		return nil, &DetachError{Reason: "the handshake is not complete"}
	case !c.calls.move.CompareAndSwap(nil, m):
		return nil, &DetachError{Reason: "another call of Detach is under way"}
	}
	state, interrupted, err := c.detach(ctx, m)
	switch {
	case err != nil && interrupted:
		_ = c.Close() // its error is that it was closed before, or of a connection that is lost anyway
	case err != nil:
		c.calls.move.Store(nil)
	}
	close(m.decided)
	if err != nil {
		c.flushQueue(byCall) // of a Read that could not lock the writer
		return nil, err
	}
	c.heard()
	c.ended(closeCalled, nil) // which may call a function of the user
	return state, nil
}

// A move is a call of Detach.
type move struct {
	done    atomic.Bool   // the connection was detached
	decided chan struct{} // closed when the call is over
}

func (c *Conn) detach(ctx context.Context, m *move) (state []byte, interrupted bool, err error) {
	if err := lockWithin(ctx, &c.out.mu); err != nil {
		return nil, false, err
	}
	defer c.out.mu.Unlock()
	if err := c.detachable(); err != nil {
		return nil, false, err
	}
	if interrupted, err = c.lockReader(ctx); err != nil {
		return nil, interrupted, err
	}
	defer c.in.unlock()
	state, err = c.takeState(m)
	return state, interrupted, err
}

// detached reports whether the connection was detached.
func (l *interlock) detached() bool {
	m := l.move.Load()
	return m != nil && m.done.Load()
}

// closedError returns the error of a call on a connection that is closed.
func (l *interlock) closedError() error {
	if l.detached() {
		return ErrDetached
	}
	return net.ErrClosed
}

// interrupted reports whether err, of a Read, is due to a call of Detach, after it has waited for the call's
// end. The reader is not locked.
func (l *interlock) interrupted(err error) bool {
	m := l.move.Load()
	if m == nil {
		return false
	}
	if e, ok := err.(net.Error); !ok || !e.Timeout() {
		return false
	}
	<-m.decided
	return true
}

// lockWithin locks mu, unless ctx is done first.
func lockWithin(ctx context.Context, mu *sync.Mutex) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if mu.TryLock() {
		return nil
	}
	locked, gaveUp := make(chan struct{}), make(chan struct{})
	go func() {
		mu.Lock()
		select {
		case locked <- struct{}{}:
		case <-gaveUp:
			mu.Unlock()
		}
	}()
	select {
	case <-locked:
		return nil
	case <-ctx.Done():
		close(gaveUp)
		return ctx.Err()
	}
}

// readGrace is the least time for which Detach waits for a Read that it has interrupted. On a machine that stands still
// for a moment, the end of ctx must not cost a connection.
var readGrace = 10 * time.Second

// lockReader locks the reader, and interrupts a Read that waits for the network. The writer is locked.
func (c *Conn) lockReader(ctx context.Context) (interrupted bool, err error) {
	var since time.Time // the interruption
	for wait := 10 * time.Microsecond; !c.in.tryLock(); wait = min(2*wait, time.Millisecond) {
		// Again each time: the user may set a deadline too.
		if err := c.conn.SetReadDeadline(longAgo); err != nil {
			if c.calls.isClosed() {
				return interrupted, net.ErrClosed
			}
			return interrupted, &DetachError{Reason: "a Read waits, and the underlying connection has no deadlines", Err: err}
		}
		if !interrupted {
			interrupted, since = true, time.Now()
		}
		switch time.Sleep(wait); {
		case c.calls.isClosed(): // Close waits for the writer
			return true, net.ErrClosed
		case ctx.Err() != nil && time.Since(since) >= readGrace:
			return true, ctx.Err()
		}
	}
	return interrupted, nil
}

// detachable returns the reason why the connection can't be detached, as far as it is known before a Read is
// interrupted. The writer is locked.
func (c *Conn) detachable() error {
	if _, err := c.engine.lock(); err != nil {
		return c.calls.closedError()
	}
	defer c.engine.unlock()
	s, own := c.engine.sealer.(*directSealer)
	switch {
	case c.context().fips:
		return &DetachError{Reason: "in FIPS mode, keys don't leave the module"}
	case !own:
		return &DetachError{Reason: "libssl has the records (RecordPath)"}
	case s.kernel != nil && !ktls.Shows(s.kernel.raw, c.state.CipherSuite):
		return &DetachError{Reason: "the kernel seals the records (WithKernelTLS), and doesn't show the key"}
	case c.exportErr != nil:
		return &DetachError{Reason: "TLS 1.2 without Extended Master Secret"}
	case c.out.err != nil:
		return &DetachError{Reason: "a Write has failed", Err: c.out.err}
	case s.err != nil && !c.out.closeNotifySent:
		return &DetachError{Reason: "the connection has failed", Err: s.err}
	}
	return nil
}

// takeState takes the connection's state, and destroys the keys. The writer and the reader are locked.
func (c *Conn) takeState(m *move) ([]byte, error) {
	if c.in.err != nil && c.in.err != io.EOF {
		return nil, &DetachError{Reason: "a Read has failed", Err: c.in.err}
	}
	ssl, err := c.engine.lock()
	if err != nil {
		return nil, c.calls.closedError()
	}
	defer c.engine.unlock()
	s := &connstate.State{Process: thisProcess(), Number: detached.Add(1)}
	defer func() { s.Secrets = libssl.Secrets{} }()
	if c.in.direct.side == nil || c.engine.direct.err != nil && !c.out.closeNotifySent || !ssl.Secrets(&s.Secrets) {
		return nil, &DetachError{Reason: "the connection has failed", Err: c.engine.direct.err}
	}
	c.describe(s)
	state, err := s.Encode()
	if err != nil {
		return nil, err
	}
	m.done.Store(true)
	if _, ok := c.calls.close(); !ok { // Close was first, and waits for the writer
		m.done.Store(false)
		clear(state)
		return nil, net.ErrClosed
	}
	ssl.Free(false, nil)
	c.in.direct.side = nil
	c.engine.forgetLocked()
	clear(c.engine.queue.take())
	clear(c.in.Data)
	c.in.Consume(len(c.in.Data))
	c.in.direct.records.Forget()
	c.in.err, c.out.err, c.out.closeNotifyErr = ErrDetached, ErrDetached, ErrDetached
	_ = c.conn.SetDeadline(time.Time{})
	return state, nil
}

// describe fills s, except for the secrets and its name. All locks are held.
func (c *Conn) describe(s *connstate.State) {
	q, o := &c.engine.queue, &c.in.direct
	s.Client, s.ReadEnd, s.WriteEnd = c.isClient, c.in.err == io.EOF, c.out.closeNotifySent
	s.Output, s.Answering, s.Held = q.data, q.answered, !q.filled.Load()
	s.SentRecords, s.SentBytes = uint32(c.out.sizes.records), uint64(c.out.sizes.bytes)
	s.Input, s.Text, s.Tail = c.in.Data, uint32(o.rest), uint32(o.tail)
	s.Message, s.Ignored = o.records.State()
	if k := c.engine.direct.kernel; k != nil {
		s.Kernel = k.encode()
	}
	s.SessionID = c.in.cachedID
	s.Opened = c.watch.opened.UnixNano()
	s.ByID = c.watch.resumption == ResumedID

	from := &c.state
	s.Version, s.Suite, s.Group = from.Version, from.CipherSuite, uint16(from.CurveID)
	s.Resumed, s.HelloRetry = from.DidResume, stdtls.HelloRetry(from)
	s.Protocol, s.ServerName, s.Unique = []byte(from.NegotiatedProtocol), []byte(from.ServerName), from.TLSUnique
	if identity := c.pskIdentity.Load(); identity != nil {
		s.PSK, s.PSKIdentity = true, *identity
	}
	s.Peer, s.Local, s.OCSP, s.SCTs = raw(from.PeerCertificates), stdtls.LocalCertificate(from), from.OCSPResponse,
		from.SignedCertificateTimestamps
	for _, chain := range from.VerifiedChains {
		s.Verified = append(s.Verified, raw(chain))
	}
}

// raw returns the encodings of certificates.
func raw(certs []*x509.Certificate) (list [][]byte) {
	for _, cert := range certs {
		list = append(list, cert.Raw)
	}
	return list
}

// thisProcess returns a random number, with which this process names its states.
var thisProcess = sync.OnceValue(func() (p [16]byte) {
	_, _ = rand.Read(p[:]) // never fails
	return p
})

var detached atomic.Uint64 // the number of the process's last state

// Attach returns the Conn that goes on with a connection from its state, over the same underlying connection as
// before: [Conn.Detach]. Its ConnectionState, its exporter, its session in a server's cache and its half-closed
// directions are as they were. Counts, such as those of the [CloseEvent], begin again. The connection was
// accepted under its former configuration, and the Context's doesn't judge it again.
//
// Attach sends nothing; the first Read or Write may. So a program can attach a state, and use the connection only
// if nobody else does.
//
// A state can be attached once in a process; Attach can't know whether another process has attached it. Attach
// copies the parts of the state that it needs, and the caller clears the state. If Attach fails, the underlying connection stays
// open. The error wraps [ErrBadState] if the state can't be used, and is a [*ConfigError] if the Context can't
// have the connection: in FIPS mode, with [RecordsLibssl], or without the connection's cipher suite.
func (ctx *Context) Attach(conn net.Conn, state []byte) (*Conn, error) {
	s, err := connstate.Decode(state)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	defer func() { s.Secrets = libssl.Secrets{} }()
	switch {
	case ctx.fips:
		return nil, &ConfigError{Field: "Attach", Reason: "in FIPS mode, keys don't come from outside of the module"}
	case !ctx.directRecords:
		return nil, &ConfigError{Field: "Attach", Reason: "libssl, which can't go on with a connection, has the records (RecordPath)"}
	}
	c := (&Conn{conn: conn, isClient: s.Client}).with(ctx, nil)
	if err := c.recall(s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	ssl, err := attached.use(s, ctx.ssl)
	if err != nil {
		return nil, err
	}
	if err := c.goOn(s, ssl); err != nil {
		c.release()
		return nil, err
	}
	return c, nil
}

// recall sets the ConnectionState.
func (c *Conn) recall(s *connstate.State) error {
	known := map[*byte]*x509.Certificate{} // a certificate that is in several chains
	parse := func(list [][]byte) (certs []*x509.Certificate, err error) {
		for _, der := range list {
			cert := known[unsafe.SliceData(der)]
			if cert == nil {
				if cert, err = x509.ParseCertificate(der); err != nil {
					return nil, err
				}
				known[unsafe.SliceData(der)] = cert
			}
			certs = append(certs, cert)
		}
		return certs, nil
	}
	to := &c.state
	var err error
	if to.PeerCertificates, err = parse(s.Peer); err != nil {
		return err
	}
	for _, list := range s.Verified {
		chain, err := parse(list)
		if err != nil {
			return err
		}
		to.VerifiedChains = append(to.VerifiedChains, chain)
	}
	to.Version, to.CipherSuite, to.CurveID = s.Version, s.Suite, tls.CurveID(s.Group)
	to.HandshakeComplete, to.DidResume = true, s.Resumed
	to.NegotiatedProtocol, to.ServerName, to.TLSUnique = string(s.Protocol), string(s.ServerName), s.Unique
	//lint:ignore SA1019 deprecated, and set by crypto/tls
	to.NegotiatedProtocolIsMutual = true
	to.OCSPResponse, to.SignedCertificateTimestamps = s.OCSP, s.SCTs
	stdtls.SetHelloRetry(to, s.HelloRetry)
	stdtls.SetLocalCertificate(to, s.Local)
	stdtls.SetExporter(to, c.ExportKeyingMaterial)
	if s.PSK {
		c.pskIdentity.Store(&s.PSKIdentity)
	}
	if s.Client {
		c.serverName = to.ServerName
	}
	return nil
}

// goOn opens a Conn, which nobody else knows yet, for use.
func (c *Conn) goOn(s *connstate.State, ssl *libssl.Conn) error {
	c.engine.begin(ssl, runtime.AddCleanup(c, func(ssl *libssl.Conn) { ssl.Free(false, nil) }, ssl))
	c.in.Open(c.conn)
	c.beginRecords(ssl, true)
	records := RecordStats{Direct: 1}
	if s.Secrets.Kernel != 0 {
		if err := c.goOnInKernel(s.Kernel); err != nil {
			return fmt.Errorf("%w: the kernel seals: %w", ErrBadState, err)
		}
		records.Kernel = 1
	}
	c.in.Set(s.Input)
	clear(s.Input)
	c.in.cachedID = s.SessionID
	o, q := &c.in.direct, &c.engine.queue
	o.rest, o.tail = int(s.Text), int(s.Tail)
	o.records.Restore(s.Message, s.Ignored)
	if s.ReadEnd {
		c.in.err = io.EOF
	}
	if s.WriteEnd {
		c.out.closeNotifySent, c.engine.direct.err = true, errShutdown
	}
	c.out.sizes = recordSizes{int(s.SentRecords), int64(s.SentBytes)}
	q.data, q.answered = s.Output, s.Answering
	q.filled.Store(!s.Held)

	c.watch.opened = time.Unix(0, s.Opened)
	switch {
	case s.ByID:
		c.watch.resumption = ResumedID
	case s.Resumed:
		c.watch.resumption = ResumedTicket
	}
	c.watch.counting().count(func(t *counters) {
		t.opened++
		t.records.add(records)
	})
	c.watch.ends.Store(handshakeReported)
	c.in.silent = s.Held && len(s.Output) > 0
	c.complete.Store(true)
	return nil
}

// attached are the states that this process has attached.
var attached usedStates

// usedStates are the numbers of the states of each process. A process that moves its connections attaches
// nearly all numbers of its predecessor, so they are few spans.
type usedStates struct {
	mu        sync.Mutex
	processes map[[16]byte][]span // guarded by mu; in order, and never adjacent
}

type span struct{ first, last uint64 }

// use makes the connection of a state, unless the state was used before.
func (u *usedStates) use(s *connstate.State, ctx *libssl.Context) (*libssl.Conn, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	at, used := u.find(s.Process, s.Number)
	if used {
		return nil, fmt.Errorf("%w: it was attached before", ErrBadState)
	}
	ssl, err := ctx.OfSecrets(&s.Secrets)
	var e *libssl.Error
	switch {
	case err == nil:
		u.add(s.Process, at, s.Number)
	case errors.As(err, &e) && len(e.Codes) == 0:
		return nil, &ConfigError{Field: "Attach", Reason: "the library can't go on with " + tls.CipherSuiteName(s.Suite)}
	default:
		return nil, libraryError(err)
	}
	return ssl, nil
}

// find returns the place of the number n among the spans, and whether it is in one.
func (u *usedStates) find(process [16]byte, n uint64) (at int, used bool) {
	return slices.BinarySearchFunc(u.processes[process], n, func(x span, n uint64) int {
		switch {
		case x.last < n:
			return -1
		case x.first > n:
			return 1
		}
		return 0
	})
}

// add adds the number n, whose place among the spans is at.
func (u *usedStates) add(process [16]byte, at int, n uint64) {
	if u.processes == nil {
		u.processes = make(map[[16]byte][]span)
	}
	spans := u.processes[process]
	before, behind := at > 0 && spans[at-1].last+1 == n, at < len(spans) && spans[at].first-1 == n
	switch {
	case before && behind:
		spans[at-1].last = spans[at].last
		spans = slices.Delete(spans, at, at+1)
	case before:
		spans[at-1].last = n
	case behind:
		spans[at].first = n
	default:
		spans = slices.Insert(spans, at, span{n, n})
	}
	u.processes[process] = spans
}
