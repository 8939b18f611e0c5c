package handover

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/connstate"
)

// A Receiver is the new process's side of a hand-over.
type Receiver struct {
	conn *net.UnixConn

	mu      sync.Mutex // held by Receive
	err     error      // sticky
	sockets map[uint32]net.Conn
	certs   certs
	header  [headerLen]byte
	reply   []byte // reused
}

// NewReceiver asks the old process for its connections. Call it when this process is ready for them:
// its Contexts are made, for instance. The Receiver takes conn, which is [Inherited]'s, or was dialed
// to the path of [Listen].
//
// It returns an error that wraps [ErrUser], [ErrVersion] or [ErrFormat] if the other process isn't the
// right one, and ctx's error if that doesn't answer before ctx is done.
func NewReceiver(ctx context.Context, conn *net.UnixConn) (*Receiver, error) {
	if err := greet(ctx, conn, newProcess, oldProcess); err != nil {
		return nil, err
	}
	return &Receiver{conn: conn, sockets: make(map[uint32]net.Conn)}, nil
}

// An Item is a listener or a connection that this process has received, and that no other process uses.
type Item struct {
	// Listener is nil if the item is a connection. The old process may accept connections until it
	// closes the listener.
	Listener net.Listener
	// Conn is nil if the item is a listener. Nothing may be read from it or written to it before
	// Attach, unless [Sender.SendPlain] has sent it.
	Conn net.Conn
	// TLS reports whether Attach must be called to go on.
	TLS bool
	// Data is the application's.
	Data []byte

	state []byte
}

// Attach goes on with a TLS connection. The Context must suit the state: see [ossl.Context.Attach]. It
// can be called once, and wipes the state. If it fails, it closes the connection.
func (i *Item) Attach(ctx *ossl.Context) (*ossl.Conn, error) {
	if i.state == nil {
		return nil, errorf("%w: the item has no state, or was attached before", ErrUnfit)
	}
	defer func() {
		clear(i.state)
		i.state = nil
	}()
	conn, err := ctx.Attach(i.Conn, i.state)
	if err != nil {
		end(i.Conn)
		return nil, err
	}
	return conn, nil
}

// Close wipes the state, and closes the listener or the connection, without an alert.
func (i *Item) Close() error {
	clear(i.state)
	i.state = nil
	if i.Listener != nil {
		return i.Listener.Close()
	}
	return i.Conn.Close()
}

// Close stops the hand-over. Connections that were not received stay in the old process.
func (r *Receiver) Close() error {
	err := r.conn.Close() // interrupts Receive
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.fail(net.ErrClosed)
	return err
}

// fail makes all calls fail with err, unless they fail already, and closes the sockets of connections
// that the old process still has, or that are lost.
func (r *Receiver) fail(err error) error {
	if r.err == nil {
		r.err = err
		r.conn.Close()
	}
	for id, conn := range r.sockets {
		conn.Close()
		delete(r.sockets, id)
	}
	return r.err
}

// Receive waits for the next listener or connection. At the end of the hand-over it returns io.EOF. If
// the old process dies before that, or breaks the connection, it returns another error; the items
// that were received before belong to this process.
//
// If ctx is done, Receive returns ctx's error. It can be called again if no message was under way.
//
// Nothing else happens until Receive is called again, and connections wait meanwhile. So each item is
// best handed to a goroutine of its own.
func (r *Receiver) Receive(ctx context.Context) (item *Item, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return nil, r.err
	}
	for item == nil {
		within := false // a message
		err := interruptible(ctx, r.conn.SetDeadline, func() (err error) {
			item, within, err = r.receive()
			return err
		})
		if err != nil && item != nil { // its confirmation isn't sent, so the old process closes it
			item.Close()
		}
		switch {
		case err == nil:
		case !within && ctx.Err() != nil:
			return nil, err
		default:
			return nil, r.fail(err)
		}
	}
	return item, nil
}

// receive reads one message, and answers it. The item is nil if it brings none. within reports whether
// it has read a part of the message, at least.
func (r *Receiver) receive() (item *Item, within bool, err error) {
	got, n, err := readHeaderBytes(r.conn, r.header[:])
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, n > 0, errorf("the old process has gone: %w", err)
	}
	defer got.close()
	h, skip, err := parseHeader(r.header[:], oldProcess)
	if err != nil {
		return nil, true, err
	}
	if skip {
		_, err := io.CopyN(io.Discard, r.conn, int64(h.length))
		return nil, true, err
	}
	if withSocket[h.kind] != (got.fd >= 0 || got.lost) {
		return nil, true, errorf("%w: a message of kind %d with or without a descriptor", ErrFormat, h.kind)
	}
	body := make([]byte, h.length)
	if _, err := io.ReadFull(r.conn, body); err != nil {
		clear(body)
		return nil, true, errorf("the old process has gone: %w", err)
	}
	item, err = r.handle(h, &got, body)
	return item, true, err
}

// handle carries a message out.
func (r *Receiver) handle(h header, got *received, body []byte) (*Item, error) {
	switch h.kind {
	case msgSocket:
		return nil, r.takeSocket(h.id, got)
	case msgKeep:
		if conn := r.sockets[h.id]; conn != nil { // else it was refused, at the same time
			delete(r.sockets, h.id)
			conn.Close()
		}
		return nil, nil
	case msgCertificate:
		r.certs.add(sha256.Sum256(body), body)
		return nil, nil
	case msgState:
		defer clear(body) // but the data
		return r.takeState(h, body)
	case msgPlain:
		conn, err := r.socketOf(h)
		if err != nil {
			return nil, err
		}
		return &Item{Conn: conn, Data: body}, r.answer(msgTaken, h.id)
	case msgListener:
		return r.takeListener(h.id, got, body)
	default: // msgDone
		return nil, io.EOF
	}
}

// answer sends a reply.
func (r *Receiver) answer(kind byte, id uint32, reason ...byte) error {
	r.reply = append(header{kind: kind, id: id, length: uint32(len(reason))}.append(r.reply[:0]), reason...)
	if _, err := r.conn.Write(r.reply); err != nil {
		return errorf("the old process has gone: %w", err)
	}
	return nil
}

// socketOf takes the socket that was received under a message's ID.
func (r *Receiver) socketOf(h header) (net.Conn, error) {
	conn := r.sockets[h.id]
	if conn == nil {
		return nil, errorf("%w: a message of kind %d without a socket", ErrFormat, h.kind)
	}
	delete(r.sockets, h.id)
	return conn, nil
}

// refusal is the reason if a socket can't be made of a descriptor.
func refusal(err error) byte {
	if noDescriptorLeft(err) {
		return refusedFull
	}
	return refusedUnfit
}

// takeSocket keeps the socket of a connection until its state follows.
func (r *Receiver) takeSocket(id uint32, got *received) error {
	if len(r.sockets) >= maxOffers || r.sockets[id] != nil {
		return errorf("%w: more than %d sockets at a time, or two with one number", ErrFormat, maxOffers)
	}
	if got.lost {
		return r.answer(msgRefused, id, refusedFull)
	}
	conn, err := got.connection()
	if err != nil {
		return r.answer(msgRefused, id, refusal(err))
	}
	r.sockets[id] = conn
	return r.answer(msgHave, id)
}

// takeListener takes a listener.
func (r *Receiver) takeListener(id uint32, got *received, data []byte) (*Item, error) {
	if got.lost {
		return nil, r.answer(msgRefused, id, refusedFull)
	}
	l, err := got.listener()
	if err != nil {
		return nil, r.answer(msgRefused, id, refusal(err))
	}
	return &Item{Listener: l, Data: data}, r.answer(msgTaken, id)
}

// takeState takes a connection whose socket has come before.
func (r *Receiver) takeState(h header, body []byte) (*Item, error) {
	conn, err := r.socketOf(h)
	if err != nil {
		return nil, err
	}
	core, data, err := splitState(body)
	if err != nil {
		conn.Close()
		return nil, err
	}
	state, err := connstate.Join(core, func(sum [sha256.Size]byte) []byte { return r.certs.der[sum] })
	if err != nil {
		end(conn)
		return nil, r.answer(msgRefused, h.id, refusedState)
	}
	item := &Item{Conn: conn, TLS: true, state: state}
	if len(data) > 0 {
		item.Data = append([]byte(nil), data...)
	}
	return item, r.answer(msgTaken, h.id)
}
