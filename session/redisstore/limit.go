package redisstore

import (
	"context"
	"errors"
	"net"
	"strconv"
)

// A Dialer is the type of [redis.Options.Dialer].
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// ErrReply is the error of a connection that is closed because the store has sent a reply that is
// malformed or exceeds the limits of [LimitReplies].
var ErrReply = errors.New("redisstore: malformed or excessive reply from the store")

// LimitReplies returns a Dialer whose connections fail with [ErrReply] at a string of more than 1
// MiB, a list of more than 65,536 elements, lists nested deeper than 8, or a line of more than 64
// KiB. The client allocates the size that a reply's header announces before the reply arrives:
// without limits, one line from a compromised store can make the process run out of memory.
func LimitReplies(dial Dialer) Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &limitedConn{Conn: conn}, nil
	}
}

const (
	maxString   = 1 << 20
	maxElements = 1 << 16
	maxDepth    = 8
	maxLine     = 1 << 16
)

// A limitedConn parses the replies that are read from a connection (the Redis serialization
// protocol, versions 2 and 3). It never returns the whole of a reply that it rejects.
type limitedConn struct {
	net.Conn
	replies replies
	err     error
}

func (c *limitedConn) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.Conn.Read(p)
	if c.err = c.replies.follow(p[:n]); c.err != nil {
		clear(p[:n])
		return 0, c.err
	}
	return n, err
}

// replies is the state between two reads.
type replies struct {
	line []byte // of an incomplete header, without its end
	long int    // bytes so far of a text line
	text bool   // inside such a line
	skip int    // bytes of a string still to come
	open []int  // for each open list, the number of elements still to come
}

func (r *replies) follow(b []byte) error {
	for len(b) > 0 {
		if r.skip > 0 {
			n := min(r.skip, len(b))
			r.skip -= n
			b = b[n:]
			if r.skip == 0 {
				r.done()
			}
			continue
		}
		c := b[0]
		b = b[1:]
		switch {
		case r.text && c == '\n':
			r.text = false
			r.done()
		case r.text:
			if r.long++; r.long > maxLine {
				return ErrReply
			}
		case len(r.line) == 0 && isText(c):
			r.text, r.long = true, 0
		case c == '\n':
			if err := r.header(); err != nil {
				return err
			}
			r.line = r.line[:0]
		case len(r.line) > 24: // longer than any number
			return ErrReply
		default:
			r.line = append(r.line, c)
		}
	}
	return nil
}

// isText reports whether b is the first byte of a reply that is one line.
func isText(c byte) bool {
	switch c {
	case '+', '-', ':', '_', '#', ',', '(':
		return true
	}
	return false
}

// header parses the line that begins a string or a list.
func (r *replies) header() error {
	if len(r.line) < 3 || r.line[len(r.line)-1] != '\r' {
		return ErrReply
	}
	n, err := strconv.Atoi(string(r.line[1 : len(r.line)-1]))
	if err != nil || n < -1 {
		return ErrReply
	}
	switch r.line[0] {
	case '$', '=', '!':
		if n > maxString {
			return ErrReply
		}
		if n < 0 {
			r.done()
		} else {
			r.skip = n + 2
		}
		return nil
	case '*', '~', '>', '%', '|':
		if n > maxElements {
			return ErrReply
		}
		if r.line[0] == '%' || r.line[0] == '|' {
			n *= 2
		}
		if r.line[0] == '|' {
			n++ // attributes precede the value that they belong to
		}
		if n <= 0 {
			r.done()
			return nil
		}
		if len(r.open) == maxDepth {
			return ErrReply
		}
		r.open = append(r.open, n)
		return nil
	}
	return ErrReply
}

// done counts a complete element, and the lists that it completes.
func (r *replies) done() {
	for len(r.open) > 0 {
		last := len(r.open) - 1
		if r.open[last]--; r.open[last] > 0 {
			return
		}
		r.open = r.open[:last]
	}
}
