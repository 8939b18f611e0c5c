package handover

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/connstate"
)

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

// rawConn returns the socket of a connection or a listener. Types that wrap package net's may hold
// bytes that were read, or count the open ones.
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
	var unsent error
	err := s.write(ctx, func() (n int, err error) {
		n, unsent, err = sendDescriptor(s.conn, h.append(nil), raw)
		if err == nil && unsent == nil && n != headerLen {
			err = io.ErrShortWrite
		}
		if err != nil || unsent != nil || len(body) == 0 {
			return n, err
		}
		m, err := s.conn.Write(body)
		return n + m, err
	})
	if err == nil && unsent != nil {
		err = errorf("%w", unsent)
	}
	return err
}

// Send hands a connection over, with at most [MaxData] bytes of the application's, which
// [Receiver.Receive] returns with it. The connection's Reads and Writes then return [ossl.ErrDetached].
// A Write that is under way is finished first.
//
// If Send returns nil, the new process has the connection, and Send has closed the underlying one
// here. If it returns an error that wraps [ErrLost], it has closed the underlying connection, and the
// peer sees that end. After all other errors, the connection goes on here as if nothing had happened,
// unless it was closed by another goroutine, or by a failure of [ossl.Conn.Detach], whose comment has
// more. This holds too if ctx is done first, or if the new process dies.
func (s *Sender) Send(ctx context.Context, conn *ossl.Conn, data []byte) error {
	if len(data) > MaxData {
		return errDataTooLong(data)
	}
	return s.SendFunc(ctx, conn, func() []byte { return data })
}

// SendFunc is Send for an application whose data is known only when the connection stands still: it
// calls data when Reads and Writes return [ossl.ErrDetached], and before the new process goes on.
// data may wait for the goroutines that use the connection to return. The peer waits for it. If ctx
// is done first, the connection is lost.
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

// keep lets the new process forget a socket. If that isn't possible, the Sender fails.
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
	rest, err := within(ctx, data)
	if err == nil {
		err = s.writeState(ctx, id, state, rest)
	}
	if err != nil {
		<-s.unacked
		return s.lost(err)
	}
	return nil
}

// within returns data's result, or an error if ctx is done first.
func within(ctx context.Context, data func() []byte) ([]byte, error) {
	result := make(chan []byte, 1)
	go func() { result <- data() }()
	select {
	case rest := <-result:
		return rest, nil
	case <-ctx.Done():
		return nil, errorf("the application's data: %w", ctx.Err())
	}
}

// detachTimeout bounds the time for which a connection whose Write waits for its peer keeps others from
// being sent.
const detachTimeout = 500 * time.Millisecond

// detach detaches a connection, and takes a place of s.unacked for it.
func (s *Sender) detach(ctx context.Context, conn *ossl.Conn) (state []byte, err error) {
	if state, err = s.tryDetach(ctx, conn); !timedOut(ctx, err) {
		return state, err
	}
	for pause := detachTimeout / 4; ; pause = min(2*pause, 4*detachTimeout) {
		// A Write is under way, and waits for the peer. Only some of these connections try again at a
		// time, so that the others have places.
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

// writeState writes the certificates that the new process doesn't have, and the state. It wipes its
// own copies of the state.
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
