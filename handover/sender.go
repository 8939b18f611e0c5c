package handover

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// A Sender is the old process's side of a hand-over. Its methods may be called at the same time.
type Sender struct {
	conn *net.UnixConn

	// Places, of which a connection takes one for a time. There are few, so that no connection waits
	// for many others while it is in neither process.
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
	Lost        int // that are closed
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

// Close reports to the new process that nothing follows, and stops the hand-over. Calls that are under
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
	case written == 0 && ctx.Err() != nil:
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

// ended counts a call that had an ID.
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
