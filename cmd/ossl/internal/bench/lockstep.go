package bench

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"runtime"
	"slices"
	"time"
)

// CPU is the processor time that client and server take for one operation.
type CPU struct{ Client, Server time.Duration }

// A Script is an operation that can be done in lockstep: the actions of client and server with one
// pair of connections, or with a new pair each time.
type Script struct {
	fresh          bool // each operation has its own connections, including the handshake
	client, server func(Conn) error
}

// HandshakeScript is a full handshake, including the making of the Conn.
func HandshakeScript() Script {
	return Script{fresh: true, client: Conn.Handshake, server: Conn.Handshake}
}

// LatencyScript is a round trip on one connection.
func LatencyScript() Script {
	request, reply := make([]byte, len(ping)), make([]byte, len(pong))
	return Script{
		client: func(c Conn) error { return ask(c, reply) },
		server: func(c Conn) error {
			_, err := io.ReadFull(c, request)
			if err == nil {
				_, err = c.Write(pong)
			}
			return err
		},
	}
}

// ConnectionScript is a connection with one round trip, including the making of the Conn; this is
// the operation that resumption speeds up. With p.Resume each connection resumes the previous one's
// session.
func ConnectionScript() Script {
	s := LatencyScript()
	s.fresh = true
	return s
}

// BulkScript is one write of size bytes and the reads that receive them.
func BulkScript(dir Dir, size int) Script {
	data, buf := make([]byte, size), make([]byte, readBuffer)
	send := func(c Conn) error {
		_, err := c.Write(data)
		return err
	}
	receive := func(c Conn) error {
		for left := size; left > 0; {
			n, err := c.Read(buf[:min(left, len(buf))])
			if err != nil {
				return err
			}
			left -= n
		}
		return nil
	}
	if dir == Down {
		return Script{client: receive, server: send}
	}
	return Script{client: send, server: receive}
}

// SplitCPU does operations of s, at most n and for about d, and returns the average processor time
// of one operation at each end.
//
// The client and the server run on one thread, in turns: each end runs until it needs bytes that the
// other has not written, through memory, without sockets and without the scheduler. The thread's own
// clock (CLOCK_THREAD_CPUTIME_ID) is read at each turn. So the result includes an end's computations,
// with the allocations and the garbage collection that the allocator makes it assist in; it excludes
// collection in the background, the network and waiting. The time for reading the clock is measured
// and subtracted; the remaining cost of a turn is the switch to another stack.
//
// SplitCPU fails on other systems than Linux.
func SplitCPU(p Pair, s Script, n int, d time.Duration) (CPU, error) {
	if err := hasThreadTime(); err != nil {
		return CPU{}, err
	}
	ends, err := p.Open()
	if err != nil {
		return CPU{}, err
	}
	// The coroutine of iter.Pull stays on the thread that made it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	l := &lockstep{ends: ends, reading: readingTime()}
	next, stop := iter.Pull(func(yield func(error) bool) { l.serve(s, yield) })
	defer stop()
	l.next = next

	if err := l.operation(s); err != nil { // a warm-up, not counted
		return CPU{}, err
	}
	if err := ends.check(l.client, l.server); err != nil {
		return CPU{}, err
	}
	var total CPU
	ops := 0
	for start := time.Now(); ops < n && (ops == 0 || time.Since(start) < d); ops++ {
		if s.fresh {
			l.closeBoth()
		}
		l.used, l.since = CPU{}, threadTime()
		if err := l.operation(s); err != nil {
			return CPU{}, err
		}
		l.charge(&l.used.Client)
		if p.Resume != "" && !(l.client.ConnectionState().DidResume && l.server.ConnectionState().DidResume) {
			return CPU{}, errNotResumed
		}
		total.Client += l.used.Client
		total.Server += l.used.Server
	}
	l.closeBoth()
	return CPU{total.Client / time.Duration(ops), total.Server / time.Duration(ops)}, nil
}

// A lockstep runs the client on its caller's goroutine and the server in a
// coroutine.
type lockstep struct {
	ends           *Ends
	up, down       stream
	client, server Conn

	next  func() (error, bool) // runs the server until it waits
	yield func(error) bool     // called when the server waits
	done  bool                 // the server's part of the operation is done
	stuck int                  // turns in a row without a byte read
	used  CPU

	since   time.Duration // the thread's clock at the beginning of the running end's turn
	reading time.Duration // the time for reading that clock
}

// readingTime returns the advance of the thread's clock from one reading to the next. It is a
// system call: some hundred nanoseconds, as much as sealing a small record.
func readingTime() time.Duration {
	steps := make([]time.Duration, 101)
	for i := range steps {
		start := threadTime()
		steps[i] = threadTime() - start
	}
	slices.Sort(steps)
	return steps[len(steps)/2]
}

// errDone means that the server's part of an operation is done, and that it doesn't wait for bytes.
var errDone = errors.New("bench: operation done")

// errStuck is the error of an end when both wait.
var errStuck = errors.New("bench: both ends wait for the other")

// operation does one operation of s.
func (l *lockstep) operation(s Script) error {
	if l.client == nil || s.fresh {
		l.up, l.down = stream{data: l.up.data[:0]}, stream{data: l.down.data[:0]}
		l.server = nil // the server's turn makes its own
		l.client = l.ends.Client(&lockstepConn{l: l, in: &l.down, out: &l.up, wait: l.waitForServer})
	}
	l.done, l.stuck = false, 0
	if err := s.client(l.client); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	// The client's last write has yet to be read.
	if l.done {
		return nil
	}
	if err := l.waitForServer(); err != nil {
		return err
	}
	if !l.done {
		return errStuck
	}
	return nil
}

// serve is the server's coroutine: it does one operation after each errDone it yields.
func (l *lockstep) serve(s Script, yield func(error) bool) {
	l.yield = yield
	for {
		if l.server == nil {
			l.server = l.ends.Server(&lockstepConn{l: l, in: &l.up, out: &l.down, wait: l.waitForClient})
		}
		err := s.server(l.server)
		if err == nil {
			err = errDone
		}
		if !yield(err) {
			return
		}
	}
}

func (l *lockstep) charge(end *time.Duration) {
	now := threadTime()
	*end += max(0, now-l.since-l.reading)
	l.since = now
}

// waitForServer runs the server until it waits or is done.
func (l *lockstep) waitForServer() error {
	if l.done {
		return errStuck
	}
	l.charge(&l.used.Client)
	err, _ := l.next()
	l.charge(&l.used.Server)
	switch {
	case err == errDone:
		l.done = true
	case err != nil:
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

func (l *lockstep) waitForClient() error {
	if !l.yield(nil) {
		return io.ErrClosedPipe
	}
	return nil
}

// closeBoth closes both connections. Each Close may write, and none reads.
func (l *lockstep) closeBoth() {
	l.client.Close()
	l.server.Close()
}

// streamLimit is about the capacity of a socket: a writer with more bytes in transit yields to the
// other end's reads.
const streamLimit = 256 << 10

// A stream carries bytes in one direction.
type stream struct {
	data   []byte
	read   int // data[:read] has been read
	closed bool
}

// A lockstepConn is one end of the transport between client and server.
type lockstepConn struct {
	l       *lockstep
	in, out *stream
	wait    func() error
}

func (c *lockstepConn) Read(p []byte) (int, error) {
	for c.in.read == len(c.in.data) {
		if c.in.closed {
			return 0, io.EOF
		}
		if c.l.stuck++; c.l.stuck > 4 {
			return 0, errStuck
		}
		if err := c.wait(); err != nil {
			return 0, err
		}
	}
	c.l.stuck = 0
	n := copy(p, c.in.data[c.in.read:])
	if c.in.read += n; c.in.read == len(c.in.data) {
		c.in.data, c.in.read = c.in.data[:0], 0
	}
	return n, nil
}

func (c *lockstepConn) Write(p []byte) (int, error) {
	if c.out.closed {
		return 0, net.ErrClosed
	}
	c.out.data = append(c.out.data, p...)
	for len(c.out.data)-c.out.read > streamLimit {
		before := len(c.out.data) - c.out.read
		if err := c.wait(); err != nil {
			return 0, err
		}
		if len(c.out.data)-c.out.read >= before {
			break // the reader waits for another reason; it catches up later
		}
	}
	return len(p), nil
}

// Close closes both directions: neither side reads after it.
func (c *lockstepConn) Close() error {
	c.in.closed, c.out.closed = true, true
	return nil
}

func (c *lockstepConn) LocalAddr() net.Addr                { return lockstepAddr{} }
func (c *lockstepConn) RemoteAddr() net.Addr               { return lockstepAddr{} }
func (c *lockstepConn) SetDeadline(time.Time) error        { return nil }
func (c *lockstepConn) SetReadDeadline(time.Time) error    { return nil }
func (c *lockstepConn) SetWriteDeadline(t time.Time) error { return nil }

type lockstepAddr struct{}

func (lockstepAddr) Network() string { return "memory" }
func (lockstepAddr) String() string  { return "memory" }
