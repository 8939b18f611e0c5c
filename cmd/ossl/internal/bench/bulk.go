package bench

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
)

// A Dir is the direction of a stream.
type Dir string

// The directions, as benchmark names spell them.
const (
	Up   Dir = "up"   // the client sends
	Down Dir = "down" // the server sends
)

// readBuffer is the size of the receiver's reads, for all sizes of writes: between io.Copy's 32 KB
// and the buffers of large readers.
const readBuffer = 64 << 10

// A bulk measures a stream on one connection. The sender writes without pause. An operation is
// complete when the receiver has read as many bytes as one write has, so bytes in the socket's
// buffers never count.
type bulk struct {
	size     int
	receiver net.Conn
	buf      []byte
	ahead    int // bytes read beyond the last operation
	started  bool
	start    chan struct{}
	stop     atomic.Bool
	sent     chan sent
}

type sent struct {
	writes int
	err    error
}

// NewBulk measures a stream in direction dir, sent in writes of size bytes.
func NewBulk(p Pair, dir Dir, size int) (Measure, error) {
	sender, receiver, err := p.connected()
	if err != nil {
		return nil, err
	}
	if dir == Down {
		sender, receiver = receiver, sender
	}
	b := &bulk{
		size:     size,
		receiver: receiver,
		buf:      make([]byte, readBuffer),
		start:    make(chan struct{}),
		sent:     make(chan sent, 1),
	}
	go func() {
		<-b.start
		s := sent{}
		data := make([]byte, size)
		for s.err == nil && !b.stop.Load() {
			_, s.err = sender.Write(data)
			s.writes++
		}
		s.err = errors.Join(s.err, sender.Close())
		b.sent <- s
	}()
	return b, nil
}

func (b *bulk) Prepare() (int, error) { return always, nil }

func (b *bulk) Do() error {
	if !b.started {
		b.started = true
		close(b.start)
	}
	for b.ahead < b.size {
		n, err := b.receiver.Read(b.buf)
		if err != nil {
			return err
		}
		b.ahead += n
	}
	b.ahead -= b.size
	return nil
}

func (b *bulk) Close() (int, error) {
	b.stop.Store(true)
	if !b.started {
		close(b.start)
	}
	// Reads the bytes in transit, so that the sender's last write finishes and both sides close in
	// order.
	_, err := io.Copy(io.Discard, struct{ io.Reader }{b.receiver})
	s := <-b.sent
	return s.writes, errors.Join(err, s.err, b.receiver.Close())
}
