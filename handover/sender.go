package handover

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/connstate"
)

// A Sender is the old process's side of a hand-over. Its methods may be called at the same time.
type Sender struct {
	conn *net.UnixConn

	// Places, of which a connection takes one for a time. There are few, so that no connection waits for
	// many others while it is in neither process.
	offers  chan struct{} // while the new process has the socket, or is asked to take it
	asking  chan struct{} // while it is asked
	unacked chan struct{} // while the connection is in neither process
	blocked chan struct{} // while Detach is tried again, because a Write was under way

	writing chan struct{} // the place of the writer, which alone uses certs
	certs   certs

	failed chan struct{} // closed when err is set

	mu      sync.Mutex
	err     error // sticky
	lastID  uint32
	replies map[uint32]chan header
	counts  Counts
}

// Numbers of places.
const (
	maxAsking  = 4
	maxUnacked = 4
	maxBlocked = 2
)

// Counts are the numbers of connections and listeners that a [Sender] was asked to send.
type Counts struct {
	Listeners   int // that the new process has
	Connections int // that the new process has
	Waiting     int // that are being sent
	Stayed      int // that couldn't be sent, and stay in this process
	Lost        int // that have ended
}

// NewSender returns a Sender when the new process asks for connections by [NewReceiver]. The Sender
// takes conn.
//
// It returns an error that wraps [ErrUser], [ErrVersion] or [ErrFormat] if the other process isn't the
// right one, and ctx's error if that doesn't ask before ctx is done.
func NewSender(ctx context.Context, conn *net.UnixConn) (*Sender, error) {
	if err := greet(ctx, conn, oldProcess, newProcess); err != nil {
		return nil, err
	}
	s := &Sender{
		conn: conn, failed: make(chan struct{}), replies: make(map[uint32]chan header),
		offers: make(chan struct{}, maxOffers), asking: make(chan struct{}, maxAsking), unacked: make(chan struct{}, maxUnacked),
		blocked: make(chan struct{}, maxBlocked), writing: make(chan struct{}, 1),
	}
	go s.readReplies()
	return s, nil
}

// greet exchanges hellos. It closes conn if it returns an error.
func greet(ctx context.Context, conn *net.UnixConn, own, other role) (err error) {
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	if err := checkPeer(conn); err != nil {
		return err
	}
	hello := appendHello(nil, own, lowestVersion, highestVersion)
	if err := interruptible(ctx, conn.SetDeadline, func() error {
		if _, err := conn.Write(hello); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, hello)
		return err
	}); err != nil {
		return errorf("the other process sends no hello: %w", err)
	}
	_, err = agree(hello, other, lowestVersion, highestVersion)
	return err
}

// Counts returns the progress. The numbers are complete when no call of another method is under way.
func (s *Sender) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Close reports to the new process that nothing follows, and ends the hand-over. Calls that are under
// way fail.
//
// Close returns the error by which the hand-over has failed before, if any.
func (s *Sender) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := s.write(ctx, func() (int, error) { return s.conn.Write(header{kind: msgDone}.append(nil)) })
	s.fail(net.ErrClosed)
	return err
}

// closeTimeout bounds the write of msgDone to a process that doesn't read.
const closeTimeout = time.Second

// fail makes all calls fail with err, unless they fail already.
func (s *Sender) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		close(s.failed)
		s.conn.Close()
	}
}

// orFailure returns err, or the error with which the Sender has failed if err stands for it.
func (s *Sender) orFailure(err error) error {
	if !errors.Is(err, errFailed) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errorf("%w", s.err)
}

// readReplies hands the new process's replies to those that wait for them.
func (s *Sender) readReplies() {
	buf := make([]byte, headerLen)
	for {
		h, err := s.readReply(buf)
		if err != nil {
			s.fail(err)
			return
		}
		s.mu.Lock()
		reply := s.replies[h.id]
		s.mu.Unlock()
		if reply == nil {
			continue // of a call that has given up
		}
		select {
		case reply <- h:
		default:
			s.fail(errorf("%w: two replies to one message", ErrFormat))
		}
	}
}

// readReply reads one reply. The reason of msgRefused is the header's length then.
func (s *Sender) readReply(buf []byte) (header, error) {
	for {
		if _, err := io.ReadFull(s.conn, buf); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return header{}, errorf("the new process has gone: %w", err)
		}
		h, skip, err := parseHeader(buf, newProcess)
		switch {
		case err != nil:
			return header{}, err
		case skip:
			if _, err := io.CopyN(io.Discard, s.conn, int64(h.length)); err != nil {
				return header{}, errorf("the new process has gone: %w", err)
			}
			continue
		case h.kind == msgRefused:
			var reason [1]byte
			if _, err := io.ReadFull(s.conn, reason[:]); err != nil {
				return header{}, errorf("the new process has gone: %w", err)
			}
			h.length = uint32(reason[0])
		}
		return h, nil
	}
}

// write calls f, which writes one message or more and returns the number of bytes written. If ctx
// interrupts it in a message, the Sender fails.
func (s *Sender) write(ctx context.Context, f func() (int, error)) error {
	if err := enter(ctx, s.writing, s.failed); err != nil {
		return err
	}
	defer func() { <-s.writing }()
	written := 0
	err := interruptible(ctx, s.conn.SetWriteDeadline, func() (err error) {
		written, err = f()
		return err
	})
	switch {
	case err == nil:
		return nil
	case written == 0 && (ctx.Err() != nil || cantSendDescriptor(err)):
		return err
	}
	s.fail(errorf("write to the new process: %w", err))
	return errFailed
}

// newID returns the number of a new message, and the channel of its replies.
func (s *Sender) newID() (uint32, chan header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Waiting++
	for {
		s.lastID++
		if _, taken := s.replies[s.lastID]; !taken {
			break
		}
	}
	// There is room for both replies, so that the reader of the replies never waits.
	reply := make(chan header, 2)
	s.replies[s.lastID] = reply
	return s.lastID, reply
}

// ended counts the end of a call that had an ID.
func (s *Sender) ended(id uint32, count *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.replies, id)
	s.counts.Waiting--
	*count++
}

// await returns the error that a reply stands for: nil if it is want.
func (s *Sender) await(ctx context.Context, reply <-chan header, want byte) error {
	var err error
	select {
	case h := <-reply:
		return s.judge(h, want)
	case <-s.failed:
		err = errFailed
	case <-ctx.Done():
		err = ctx.Err()
	}
	select {
	case h := <-reply: // it came at the same time
		return s.judge(h, want)
	default:
		return err
	}
}

func (s *Sender) judge(h header, want byte) error {
	switch {
	case h.kind == want:
		return nil
	case h.kind == msgRefused && h.length == refusedFull:
		return errorf("%w", ErrFull)
	case h.kind == msgRefused && h.length == refusedUnfit:
		return errorf("%w: the new process refuses the socket", ErrUnfit)
	case h.kind == msgRefused:
		return errorf("%w: the new process can't read the state", ErrFormat)
	}
	s.fail(errorf("%w: a reply of kind %d in place of %d", ErrFormat, h.kind, want))
	return errFailed
}

// SendListener gives the new process a listener, which must be a *net.TCPListener or a
// *net.UnixListener, with at most [MaxData] bytes of the application's. If it returns nil, both
// processes accept connections until this one closes l. No connection is refused in between.
//
// The socket of a *net.UnixListener keeps its path when this process closes it.
func (s *Sender) SendListener(ctx context.Context, l net.Listener, data []byte) error {
	raw, err := rawConn(l)
	if err != nil {
		return err
	}
	if len(data) > MaxData {
		return errDataTooLong(data)
	}
	id, reply := s.newID()
	h := header{kind: msgListener, flags: flagDescriptor, id: id, length: uint32(len(data))}
	if err = s.sendSocket(ctx, h, raw, data); err == nil {
		err = s.await(ctx, reply, msgTaken)
	}
	if err != nil {
		s.ended(id, &s.counts.Stayed)
		return s.orFailure(err)
	}
	if l, ok := l.(*net.UnixListener); ok {
		l.SetUnlinkOnClose(false)
	}
	s.ended(id, &s.counts.Listeners)
	return nil
}

// rawConn returns the socket of a connection or a listener. Types that wrap package net's may hold bytes
// that were read, or count what is open.
func rawConn(v any) (syscall.RawConn, error) {
	switch v.(type) {
	case *net.TCPConn, *net.UnixConn, *net.TCPListener, *net.UnixListener:
	default:
		return nil, errorf("%w: a %T isn't package net's own type for TCP or Unix sockets", ErrUnfit, v)
	}
	raw, err := v.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, errorf("%w", err)
	}
	return raw, nil
}

func errDataTooLong(data []byte) error {
	return errorf("%w: the application's data has %d bytes, and at most %d are possible", ErrUnfit, len(data), MaxData)
}

// sendSocket writes a message with a descriptor.
func (s *Sender) sendSocket(ctx context.Context, h header, raw syscall.RawConn, body []byte) error {
	return s.write(ctx, func() (int, error) {
		n, err := sendDescriptor(s.conn, h.append(nil), raw)
		if err == nil && n != headerLen {
			err = io.ErrShortWrite
		}
		if err != nil || len(body) == 0 {
			return n, err
		}
		m, err := s.conn.Write(body)
		return n + m, err
	})
}

// Send hands a connection over, with at most [MaxData] bytes of the application's, which
// [Receiver.Receive] returns with it. The connection's Reads and Writes then return [ossl.ErrDetached].
// A Write that is under way is finished first.
//
// If Send returns nil, the new process has the connection, and Send has closed the underlying one here.
// If it returns an error that wraps [ErrLost], it has closed the underlying connection, and the peer
// sees that end. After all other errors, the connection goes on here as if nothing had happened. This
// holds too if ctx is done first, or if the new process dies.
func (s *Sender) Send(ctx context.Context, conn *ossl.Conn, data []byte) error {
	if len(data) > MaxData {
		return errDataTooLong(data)
	}
	return s.SendFunc(ctx, conn, func() []byte { return data })
}

// SendFunc is Send for an application whose data is known only when the connection stands still: it
// calls data when Reads and Writes return [ossl.ErrDetached], and before the new process goes on. data
// may wait for the goroutines that use the connection to end. The peer waits for it.
func (s *Sender) SendFunc(ctx context.Context, conn *ossl.Conn, data func() []byte) error {
	return s.send(ctx, conn.NetConn(), func(id uint32) error { return s.sendState(ctx, id, conn, data) })
}

// SendPlain is Send for a connection without TLS, a *net.TCPConn or a *net.UnixConn, which the
// application has stopped to use: no Read or Write may be under way.
func (s *Sender) SendPlain(ctx context.Context, conn net.Conn, data []byte) error {
	if len(data) > MaxData {
		return errDataTooLong(data)
	}
	return s.send(ctx, conn, func(id uint32) error {
		if err := enter(ctx, s.unacked, s.failed); err != nil {
			return err
		}
		h := header{kind: msgPlain, id: id, length: uint32(len(data))}
		if err := s.write(ctx, func() (int, error) { return writeAll(s.conn, h.append(nil), data) }); err != nil {
			<-s.unacked
			return s.lost(err)
		}
		return nil
	})
}

// lost returns the error of a connection that is lost because of err.
func (s *Sender) lost(err error) error { return &lostError{s.orFailure(err)} }

type lostError struct{ err error }

func (e *lostError) Error() string   { return "handover: " + ErrLost.Error() + ": " + e.err.Error() }
func (e *lostError) Unwrap() []error { return []error{ErrLost, e.err} }

// send sends a connection's socket and then, by sendRest, all that belongs to it. sendRest leaves a
// place of s.unacked taken if it returns nil.
func (s *Sender) send(ctx context.Context, conn net.Conn, sendRest func(id uint32) error) (err error) {
	raw, err := rawConn(conn)
	if err != nil {
		return err
	}
	if err := enter(ctx, s.offers, s.failed); err != nil {
		return s.orFailure(err)
	}
	defer func() { <-s.offers }()
	id, reply := s.newID()
	defer func() {
		switch {
		case err == nil:
			s.ended(id, &s.counts.Connections)
			_ = conn.Close()
		case errors.Is(err, ErrLost):
			end(conn)
			s.ended(id, &s.counts.Lost)
		default:
			s.ended(id, &s.counts.Stayed)
		}
	}()
	if err := s.ask(ctx, id, raw, reply); err != nil {
		return s.orFailure(err)
	}
	if err := sendRest(id); err != nil {
		if !errors.Is(err, ErrLost) {
			s.keep(id)
		}
		return s.orFailure(err)
	}
	defer func() { <-s.unacked }()
	if err := s.await(ctx, reply, msgTaken); err != nil {
		return s.lost(err)
	}
	return nil
}

// ask gives the new process a socket, and waits until it has it.
func (s *Sender) ask(ctx context.Context, id uint32, raw syscall.RawConn, reply <-chan header) error {
	if err := enter(ctx, s.asking, s.failed); err != nil {
		return err
	}
	defer func() { <-s.asking }()
	if err := s.sendSocket(ctx, header{kind: msgSocket, flags: flagDescriptor, id: id}, raw, nil); err != nil {
		return err
	}
	err := s.await(ctx, reply, msgHave)
	if err != nil && ctx.Err() != nil {
		s.keep(id)
	}
	return err
}

// keep lets the new process forget a socket. If that isn't possible, the hand-over ends.
func (s *Sender) keep(id uint32) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := s.write(ctx, func() (int, error) { return s.conn.Write(header{kind: msgKeep, id: id}.append(nil)) })
	if err != nil {
		s.fail(errorf("the new process doesn't read: %w", err))
	}
}

// sendState detaches a connection, and sends its state and the application's data.
func (s *Sender) sendState(ctx context.Context, id uint32, conn *ossl.Conn, data func() []byte) error {
	state, err := s.detach(ctx, conn)
	if err != nil {
		return err // the connection goes on here
	}
	defer clear(state)
	err = s.writeState(ctx, id, state, data())
	if err != nil {
		<-s.unacked
		return s.lost(err)
	}
	return nil
}

// detachTimeout bounds the time for which a connection whose Write waits for its peer keeps others from
// being sent. It is long enough for a Read that Detach interrupts, after which there is no way back.
const detachTimeout = 500 * time.Millisecond

// detach detaches a connection, and takes a place of s.unacked for it.
func (s *Sender) detach(ctx context.Context, conn *ossl.Conn) (state []byte, err error) {
	if state, err = s.tryDetach(ctx, conn); !timedOut(ctx, err) {
		return state, err
	}
	for pause := detachTimeout / 4; ; pause = min(2*pause, 4*detachTimeout) {
		// A Write is under way, and waits for the peer. Only some of these connections try again at a time,
		// so that the others have places.
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.failed:
			return nil, errFailed
		}
		if err := enter(ctx, s.blocked, s.failed); err != nil {
			return nil, err
		}
		state, err = s.tryDetach(ctx, conn)
		<-s.blocked
		if !timedOut(ctx, err) {
			return state, err
		}
	}
}

// timedOut reports whether err, of tryDetach, is due to detachTimeout.
func timedOut(ctx context.Context, err error) bool {
	return ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded)
}

func (s *Sender) tryDetach(ctx context.Context, conn *ossl.Conn) ([]byte, error) {
	if err := enter(ctx, s.unacked, s.failed); err != nil {
		return nil, err
	}
	try, cancel := context.WithTimeout(ctx, detachTimeout)
	defer cancel()
	state, err := conn.Detach(try)
	if err != nil {
		<-s.unacked
	}
	return state, err
}

// writeState writes the certificates that the new process doesn't have, and the state. It wipes what it
// makes of the state.
func (s *Sender) writeState(ctx context.Context, id uint32, state, data []byte) error {
	core, chain, err := connstate.Split(state)
	if err != nil {
		return errorf("%w", err)
	}
	defer clear(core)
	size := 0
	for _, der := range chain {
		size += len(der)
	}
	switch {
	case len(data) > MaxData:
		return errDataTooLong(data)
	case len(core) > maxCore:
		return errorf("%w: the state has %d bytes, and at most %d are possible", ErrUnfit, len(core), maxCore)
	case size > maxChain || len(chain) > maxCertificates/4:
		return errorf("%w: %d certificates with %d bytes", ErrUnfit, len(chain), size)
	}
	return s.write(ctx, func() (written int, err error) {
		for {
			der, sum, found := s.certs.missing(chain)
			if !found {
				break
			}
			h := header{kind: msgCertificate, length: uint32(len(der))}
			n, err := writeAll(s.conn, h.append(nil), der)
			if written += n; err != nil {
				return written, err
			}
			s.certs.add(sum, bytes.Clone(der)) // a part of the state, which is wiped
		}
		h := header{kind: msgState, id: id, length: uint32(4 + len(core) + len(data))}
		n, err := writeAll(s.conn, binary.BigEndian.AppendUint32(h.append(nil), uint32(len(core))), core, data)
		return written + n, err
	})
}

// writeAll writes parts with one system call, if the socket has room.
func writeAll(conn *net.UnixConn, parts ...[]byte) (int, error) {
	buffers := net.Buffers(parts)
	n, err := buffers.WriteTo(conn)
	return int(n), err
}
