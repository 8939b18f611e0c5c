package ossl

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime/pprof"
	"time"
)

// An Event is a [*HandshakeEvent], a [*CloseEvent], a [*SessionEvent] or a [*RevocationEvent]. Later
// versions may have more types.
type Event interface{ event() }

// A HandshakeEvent reports that a handshake has succeeded or failed. It comes after
// VerifyConnection, and before the call that ran the handshake returns. If a callback has panicked,
// Err is an error that reports this.
type HandshakeEvent struct {
	Conn    *Conn
	Server  bool            // this side is the server
	Context context.Context // of [Conn.HandshakeContext]; context.Background if a Read or a Write ran the handshake

	Start    time.Time // on a server, when the client's first bytes came, if any did
	Duration time.Duration

	Resumption Resumption // if Err is nil
	Err        error      // the error that the call returns, or nil
	Failure    Failure    // of Err, with the alert
}

// A CloseEvent reports that a connection whose handshake has succeeded was closed with
// [Conn.Close], or because the context of [Conn.HandshakeContext] was done just after that. It
// comes after the connection's HandshakeEvent.
type CloseEvent struct {
	Conn     *Conn
	Server   bool          // this side is the server
	Duration time.Duration // since the end of the handshake

	BytesRead, BytesWritten uint64 // of application data

	// Err is the error with which reading or writing failed before the connection was closed, or
	// nil. The peer's close_notify is not an error. The error of a Read or a Write under way may be
	// missing.
	Err     error
	Failure Failure // of Err
}

// A SessionEvent reports that a server has called its [session.Cache]: during a handshake, or to
// remove a session after a fatal alert.
type SessionEvent struct {
	Op       string // "get", "put" or "remove"
	Hit      bool   // of a get
	Duration time.Duration
	Err      error
}

// A RevocationEvent reports that a peer's chain has passed during a handshake although no revocation
// list tells that it is good: [WithCRLSoftFail]. Refusals are in the HandshakeEvent.
type RevocationEvent struct {
	Server bool // this side is the server
	Err    *RevocationError
}

func (*HandshakeEvent) event()  {}
func (*CloseEvent) event()      {}
func (*SessionEvent) event()    {}
func (*RevocationEvent) event() {}

// WithEvents calls f at each [Event] of the Context's connections, including those for which
// GetConfigForClient has chosen another configuration. The call that causes the event waits for f,
// so f should be fast. Several goroutines may call f at the same time. f may use the event's
// connection. The option may be given several times: each f is called.
func WithEvents(f func(Event)) Option {
	return func(o *options) error {
		if f == nil {
			return &ConfigError{Field: "WithEvents", Reason: "nil"}
		}
		before := o.events
		if before == nil {
			o.events = f
			return nil
		}
		o.events = func(e Event) {
			before(e)
			f(e)
		}
		return nil
	}
}

// WithProfileLabels labels the goroutine that runs a handshake for package [pprof], so that profiles
// show which role pays: "tls" is "handshake", and "tls.role" is "client" or "server". The labels of
// the context of [Conn.HandshakeContext] are kept; others of the goroutine are lost, as with
// [pprof.Do].
func WithProfileLabels() Option {
	return func(o *options) error {
		o.labels = true
		return nil
	}
}

var (
	clientLabels = pprof.Labels("tls", "handshake", "tls.role", "client")
	serverLabels = pprof.Labels("tls", "handshake", "tls.role", "server")
)

// labeled calls f with the goroutine labeled, if the Context asks for that.
func (c *Conn) labeled(ctx context.Context, f func(ctx context.Context) error) (err error) {
	if !c.watch.counting().labels {
		return f(ctx)
	}
	labels := serverLabels
	if c.isClient {
		labels = clientLabels
	}
	pprof.Do(ctx, labels, func(ctx context.Context) { err = f(ctx) })
	return err
}

// handshakeEnded counts a handshake that has failed, and reports a handshake whether it has
// succeeded or failed. No lock is held.
func (c *Conn) handshakeEnded(ctx context.Context, err error) {
	o := c.watch.counting()
	took := time.Since(c.watch.began)
	failure := FailureOf(err)
	if ended := ctx.Err(); c.watch.alertSent != 0 && (ended == nil || !errors.Is(err, ended)) {
		failure = failure.withAlert(c.watch.alertSent)
	}
	if err != nil && !c.complete.Load() { // else ctx was done after it succeeded
		f := FailureStats{Server: !c.isClient, Failure: failure}
		o.count(func(t *counters) { increment(&t.failures, f) })
	}
	if c.complete.Load() {
		ends := handshakeReported
		if err != nil { // the underlying connection is closed, so many callers don't call Close
			ends |= closeCalled
		}
		defer c.ended(ends, nil) // even if the function for events panics
	}
	if c.watch.tracer != nil {
		c.watch.tracer.end(c, err, failure)
	}
	if o.events != nil {
		o.events(&HandshakeEvent{c, !c.isClient, ctx, c.watch.began, took, c.watch.resumption, err, failure})
	}
}

// established counts a handshake that has succeeded. It is called before the state is seen as
// complete, so that a Close which follows counts after it.
func (c *Conn) established(helloRetry bool, records RecordStats) {
	c.watch.opened = time.Now()
	took := c.watch.opened.Sub(c.watch.began)
	h := HandshakeStats{!c.isClient, c.state.Version, c.state.CipherSuite, c.state.CurveID, c.watch.resumption, helloRetry, 0}
	c.watch.counting().count(func(t *counters) {
		t.handshake(h, took)
		t.records.add(records)
	})
}

// The events after which a connection whose handshake has succeeded counts as closed.
const (
	handshakeReported uint32 = 1 << iota
	closeCalled
)

// ended reports the connection as closed after both events: Close may be called before the
// handshake is reported. broken is the error that broke the connection before Close, or nil.
func (c *Conn) ended(ends uint32, broken error) {
	const both = handshakeReported | closeCalled
	if before := c.watch.ends.Or(ends); before != both && before|ends == both {
		c.closeEnded(broken)
	}
}

// closeEnded counts a connection that was closed after its handshake, and reports it.
func (c *Conn) closeEnded(err error) {
	w := &c.watch
	o := w.counting()
	w.bytesRead.closed.Store(true)
	w.bytesWritten.closed.Store(true)
	w.reportRead()
	w.reportWritten()
	failure := FailureOf(err)
	if err != nil {
		o.count(func(t *counters) { increment(&t.broken, FailureStats{Server: !c.isClient, Failure: failure}) })
	}
	o.counters.closed.Add(1)
	if o.events != nil {
		o.events(&CloseEvent{c, !c.isClient, time.Since(w.opened), w.bytesRead.total.Load(), w.bytesWritten.total.Load(), err, failure})
	}
}

// SetIdle records whether the protocol above is between two messages. Only the statistics and
// events use this. Many HTTP clients close an idle connection without close_notify, or with a
// reset, since nothing is lost then: [Stats.Broken] doesn't count that, and the [CloseEvent] has no
// error. Package httptls calls it for its servers' connections.
func (c *Conn) SetIdle(idle bool) {
	// An HTTP/2 server also calls SetIdle(true) when it has given up its streams because of an
	// error. An HTTP/1 server doesn't, and the client may leave before the server does.
	if idle && c.complete.Load() && c.state.NegotiatedProtocol == "h2" && c.failed() != nil {
		return
	}
	c.watch.idle.Store(idle)
}

// brokenBy returns the error that broke the connection, or nil.
func (c *Conn) brokenBy() error {
	err := c.failed()
	if err == nil || !c.watch.idle.Load() {
		return err
	}
	if class := FailureOf(err).Class; class == FailureTruncated || class == FailurePeerClosed {
		return nil
	}
	return err
}

// failed returns the error after which nothing can be read or written, or nil.
func (c *Conn) failed() error {
	if c.in.tryLock() {
		err := c.in.err
		c.in.unlock()
		if err != nil && err != io.EOF && !errors.Is(err, net.ErrClosed) {
			return err
		}
	}
	if c.out.mu.TryLock() {
		err := c.out.err
		c.out.mu.Unlock()
		if err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
	}
	return nil
}

// didRead counts n bytes of data that a Read returns.
func (w *observation) didRead(n int) {
	if w.bytesRead.add(int64(n)) {
		w.reportRead()
	}
}

// didWrite counts n bytes of data that were sent.
func (w *observation) didWrite(n int64) {
	if w.bytesWritten.add(n) {
		w.reportWritten()
	}
}

func (w *observation) reportRead()    { w.bytesRead.report(&w.counting().read) }
func (w *observation) reportWritten() { w.bytesWritten.report(&w.counting().written) }

func (w *observation) countRecords(records RecordStats) {
	w.counting().count(func(t *counters) { t.records.add(records) })
}

// sessionCall counts a call of the session cache that began at start, and reports it.
func (w *observation) sessionCall(op string, hit bool, start time.Time, err error) {
	o := w.counting()
	o.count(func(t *counters) {
		switch {
		case op == "get" && err != nil:
			t.sessions.Errors++
		case op == "get" && hit:
			t.sessions.Hits++
		case op == "get":
			t.sessions.Misses++
		case op == "put" && err != nil:
			t.sessions.PutErrors++
		case op == "put":
			t.sessions.Puts++
		}
	})
	if o.events != nil {
		o.events(&SessionEvent{op, hit, time.Since(start), err})
	}
}
