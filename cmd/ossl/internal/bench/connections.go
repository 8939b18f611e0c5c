package bench

import (
	"errors"
	"net"
)

// A connections measures whole connections of a client and a server, one after another: dial, accept,
// handshake, one round trip, close on both sides. The server has a goroutine for each.
type connections struct {
	ends   *Ends
	tcp    *loopback
	reply  []byte
	served chan error
	resume bool // each connection except the first resumes a session
	ops    int
}

// NewConnections measures whole connections.
func NewConnections(p Pair) (Measure, error) {
	ends, tcp, err := p.start()
	if err != nil {
		return nil, err
	}
	c := &connections{ends: ends, tcp: tcp, reply: make([]byte, len(pong)), served: make(chan error), resume: p.Resume != ""}
	go func() {
		for {
			raw, err := tcp.listener.Accept()
			if err != nil {
				return // closed
			}
			go func() { c.served <- answer(ends.Server(raw)) }()
		}
	}()
	if c.resume { // the session that the others resume
		if _, err := c.connect(); err != nil {
			return nil, errors.Join(err, tcp.Close())
		}
	}
	return c, nil
}

func (c *connections) Prepare() (int, error) { return always, nil }

func (c *connections) Do() error {
	c.ops++
	_, err := c.connect()
	return err
}

// connect makes one connection and reports whether it resumed a session.
func (c *connections) connect() (resumed bool, err error) {
	addr := c.tcp.listener.Addr()
	raw, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		return false, err
	}
	conn := c.ends.Client(raw)
	err = ask(conn, c.reply)
	if c.resume && err == nil {
		resumed = conn.ConnectionState().DidResume
		if !resumed && c.ops > 0 {
			err = errNotResumed
		}
	}
	err = errors.Join(err, conn.Close())
	return resumed, errors.Join(err, <-c.served)
}

var errNotResumed = errors.New("bench: a session was not resumed")

func (c *connections) Close() (int, error) { return c.ops, c.tcp.Close() }
