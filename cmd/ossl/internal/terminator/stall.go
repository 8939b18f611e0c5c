package terminator

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// errStalled is the error of requests whose backend neither takes the body nor goes on with its
// response.
var errStalled = errors.New("the backend has stalled: idle-timeout")

// A stall watches the bodies of a request and of its response. It cancels the request if the backend
// doesn't take the request's body, or if there is no progress while it owes some of the response's.
// http.Transport itself would wait until the client leaves, and notice that only over HTTP/2.
type stall struct {
	cancel context.CancelCauseFunc
	idle   Time
	answer Time // the time for the response's header when the request's body has been taken

	body     *time.Timer // runs while the backend must take more of the request's body
	taken    activity    // of the request's body
	ended    atomic.Bool // there is a response
	stalled  atomic.Bool // the request was canceled
	answered *time.Timer // runs while the backend must send more of the response's body
	reading  atomic.Bool // it has: a Read of the response waits
}

func newStall(cancel context.CancelCauseFunc, idle, answer Time) *stall {
	s := &stall{cancel: cancel, idle: idle, answer: answer}
	stopped := func(f func()) *time.Timer {
		timer := time.AfterFunc(time.Hour, f)
		timer.Stop()
		return timer
	}
	s.body = stopped(s.untaken)
	s.answered = stopped(s.late)
	return s
}

// responded stops the watch of the request's body: a response may come before it has been taken.
func (s *stall) responded() {
	s.ended.Store(true)
	s.body.Stop()
}

// A takenBody is a request's body.
type takenBody struct {
	io.ReadCloser
	stall *stall
	hold  bool        // Close does nothing before the first Read
	read  atomic.Bool // a Read has begun
	ill   atomic.Bool // a Read has failed, before Close
	// closed means that the transport needs no more of the body: a Read that fails then is not the
	// client's fault.
	closed atomic.Bool
	// unsent means that http.Transport has chosen a connection that is closed. It doesn't try another one
	// for requests with a body, and closes the body.
	unsent atomic.Bool
}

func (b *takenBody) Close() error {
	if (b.hold || b.unsent.Load()) && !b.read.Load() {
		return nil // net/http closes it when the handler returns
	}
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

// again reports whether the request has failed because the connection was closed before, and can be
// sent again: nothing has read the body. b may be nil.
func (b *takenBody) again() bool { return b != nil && b.unsent.Swap(false) && !b.read.Load() }

// failed reports whether the client hasn't sent the body, in time or at all. b may be nil.
func (b *takenBody) failed() bool { return b != nil && b.ill.Load() }

// Read reads more for the backend. The reader within bounds the time for the client to send it.
func (b *takenBody) Read(p []byte) (int, error) {
	s := b.stall
	b.read.Store(true)
	s.body.Stop()
	n, err := b.ReadCloser.Read(p)
	s.taken.note()
	if err != nil && !errors.Is(err, io.EOF) && !b.closed.Load() {
		b.ill.Store(true)
	}
	switch {
	case s.ended.Load():
	case err == nil:
		s.body.Reset(time.Duration(s.idle))
	case errors.Is(err, io.EOF): // the end of the body is still in the transport's buffer
		s.body.Reset(time.Duration(s.idle + s.answer))
	}
	return n, err
}

// A stallingBody is a response's body.
type stallingBody struct {
	io.ReadCloser
	stall *stall
	ended func() // called by Close, or nil
}

func (b *stallingBody) Close() error {
	if b.ended != nil {
		b.ended()
	}
	return b.ReadCloser.Close()
}

// Read reads more of the response. A request's body that is still being taken is progress too.
func (b *stallingBody) Read(p []byte) (int, error) {
	s := b.stall
	s.reading.Store(true)
	s.answered.Reset(time.Duration(s.idle))
	n, err := b.ReadCloser.Read(p)
	s.reading.Store(false)
	s.answered.Stop()
	if errors.Is(err, io.EOF) && s.stalled.Load() { // a backend may complete its response because it is cancelled
		err = errStalled
	}
	return n, err
}

// untaken is called when the backend takes no more of the request's body. A Read may have set the timer
// just when the response came; then nothing is wrong.
func (s *stall) untaken() {
	if !s.ended.Load() {
		s.end()
	}
}

// late is called when a Read of the response takes too long. It may also have set the timer when the
// Read had just returned; then the time is the client's.
func (s *stall) late() {
	if !s.reading.Load() {
		return
	}
	if left := time.Until(s.taken.until(s.idle)); left > 0 {
		s.answered.Reset(left)
		return
	}
	s.end()
}

// end cancels the request.
func (s *stall) end() {
	s.stalled.Store(true)
	s.cancel(errStalled)
}
