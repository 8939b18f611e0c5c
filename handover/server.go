package handover

import (
	"context"
	"io"
	"net"
	"os/exec"
	"sync"
	"time"

	"github.com/ossl-go/ossl"
)

// A Server serves TLS connections by a function, and hands them over to a new process, in which a
// Server with the same function goes on. Programs with more to hand over use a [Sender] and a
// [Receiver].
type Server struct {
	// Context makes the connections, and goes on with those of the old process. It is required.
	Context *ossl.Context

	// Serve serves a connection, which the Server closes when Serve returns. Serve is required.
	//
	// When a Read or a Write returns [ossl.ErrDetached], Serve must return soon, with the bytes that
	// it has read and not dealt with, or any other data. The Server of the new process calls its
	// Serve with the connection and this data. Data of new connections is nil.
	Serve func(conn *ossl.Conn, data []byte) (rest []byte)

	mu        sync.Mutex
	conns     map[*served]bool
	accepting map[net.Listener]int // calls of Accept
	shaking   int                  // handshakes under way
	changed   chan struct{}        // closed when one of these may have changed
}

// A served connection is established.
type served struct {
	conn *ossl.Conn
	rest chan []byte // gets Serve's result
	by   *Sender     // that has sent it, or tried
}

// handshakeTimeout bounds the handshakes, for which Send waits.
const handshakeTimeout = 10 * time.Second

// firstPause is that of Accept, after which it tries again.
const firstPause = 5 * time.Millisecond

// update changes the fields that mu guards.
func (s *Server) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns, s.accepting = make(map[*served]bool), make(map[net.Listener]int)
	}
	change()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// look looks at these fields. It returns a channel that is closed when they change.
func (s *Server) look(at func()) (changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// Accept accepts connections, and serves each in a goroutine of its own, until l is closed. It
// returns l's error. If the process has no descriptor left, it tries again after at most a second.
func (s *Server) Accept(l net.Listener) error {
	s.update(func() { s.accepting[l]++ })
	defer s.update(func() { s.accepting[l]-- })
	for pause := firstPause; ; {
		conn, err := l.Accept()
		if err != nil && noDescriptorLeft(err) {
			time.Sleep(pause)
			pause = min(2*pause, time.Second)
			continue
		}
		if err != nil {
			return err
		}
		pause = firstPause
		s.update(func() { s.shaking++ })
		go func() {
			defer s.update(func() { s.shaking-- })
			ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
			defer cancel()
			c := s.Context.Server(conn)
			if err := c.HandshakeContext(ctx); err != nil {
				_ = c.Close()
				return
			}
			s.start(c, nil)
		}()
	}
}

// start serves an established connection.
func (s *Server) start(conn *ossl.Conn, data []byte) {
	c := &served{conn: conn, rest: make(chan []byte, 1)}
	s.update(func() { s.conns[c] = true })
	go func() {
		c.rest <- s.Serve(conn, data)
		_ = conn.Close()
		s.update(func() { delete(s.conns, c) })
	}()
}

// Inherit is [Server.Receive] for a process that Replace has started. It returns nil if none has.
// Call it before this process starts others.
func (s *Server) Inherit(ctx context.Context) (listeners []net.Listener, err error) {
	conn, err := Inherited()
	if conn == nil {
		return nil, err
	}
	r, err := NewReceiver(ctx, conn)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return s.Receive(ctx, r)
}

// Replace starts a new process, and hands everything over by [Server.Send]. If the new process
// doesn't ask for that before ctx is done, Replace kills it. After other errors it may go on with
// the connections that it has. Replace calls cmd.Wait.
func (s *Server) Replace(ctx context.Context, cmd *exec.Cmd, listeners ...net.Listener) (Counts, error) {
	conn, err := Start(cmd)
	if err != nil {
		return Counts{}, err
	}
	go cmd.Wait()
	sender, err := NewSender(ctx, conn)
	if err != nil {
		_ = cmd.Process.Kill()
		return Counts{}, err
	}
	err = s.Send(ctx, sender, listeners...)
	return sender.Counts(), err
}

// Receive takes all that the old process sends, and begins to accept and to serve at once. When the
// old process has sent everything, it returns the listeners, which this process needs for its own
// successor.
//
// If it returns an error, the listeners and connections that were received before belong to this
// process. The old process has died, or it goes on with the others; or the connections don't suit
// the Context.
func (s *Server) Receive(ctx context.Context, r *Receiver) (listeners []net.Listener, err error) {
	var attaching sync.WaitGroup
	var mu sync.Mutex
	var unsuited error // the first one
	for {
		item, err := r.Receive(ctx)
		if err != nil {
			attaching.Wait()
			if err == io.EOF {
				err = unsuited
			}
			return listeners, err
		}
		if item.Listener != nil {
			listeners = append(listeners, item.Listener)
			go s.Accept(item.Listener)
			continue
		}
		attaching.Go(func() {
			conn, err := item.Attach(s.Context)
			if err == nil {
				s.start(conn, item.Data)
				return
			}
			_ = item.Close()
			mu.Lock()
			defer mu.Unlock()
			if unsuited == nil {
				unsuited = err
			}
		})
	}
}

// Send gives the new process the listeners, and all connections. It accepts connections until that
// process has the others, then closes the listeners, and waits for handshakes under way, 10 s at
// most. At the end it closes the Sender.
//
// If it returns an error, the new process has failed, or ctx was done. The Server goes on with the
// connections that it still has. The listeners are open, unless the error comes at the very end. If
// Send returns nil, connections that couldn't be sent may be left: see [Sender.Counts] and
// [Server.Wait].
func (s *Server) Send(ctx context.Context, sender *Sender, listeners ...net.Listener) (err error) {
	defer func() {
		if err != nil {
			sender.fail(err) // so that the new process knows
		}
	}()
	for _, l := range listeners {
		if err := sender.SendListener(ctx, l, nil); err != nil {
			return err
		}
	}
	if err := s.sendAll(ctx, sender, nil); err != nil {
		return err
	}
	for _, l := range listeners {
		_ = l.Close()
	}
	if err := s.sendAll(ctx, sender, listeners); err != nil {
		return err
	}
	return sender.Close()
}

// sendAll sends the connections that sender hasn't tried to send before. If listeners are given,
// which are closed, it also waits for the connections that these have accepted, and sends them.
func (s *Server) sendAll(ctx context.Context, sender *Sender, listeners []net.Listener) error {
	var sends sync.WaitGroup
	for waiting := true; waiting; {
		changed := s.look(func() {
			for c := range s.conns {
				if c.by != sender {
					c.by = sender
					sends.Go(func() { _ = sender.SendFunc(ctx, c.conn, func() []byte { return <-c.rest }) })
				}
			}
			waiting = listeners != nil && s.shaking > 0
			for _, l := range listeners {
				waiting = waiting || s.accepting[l] > 0
			}
		})
		if waiting {
			select {
			case <-changed:
			case <-sender.failed:
				waiting = false
			case <-ctx.Done():
				waiting = false
			}
		}
	}
	sends.Wait()
	select {
	case <-sender.failed:
		return sender.orFailure(errFailed)
	default:
		return ctx.Err()
	}
}

// Wait waits until no connection is left, or ctx is done. Call it after Send, and before the
// process exits.
func (s *Server) Wait(ctx context.Context) error {
	for {
		var left int
		changed := s.look(func() { left = len(s.conns) + s.shaking })
		if left == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
