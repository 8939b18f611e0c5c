package bench

import (
	"errors"
	"net"
)

// A connections measures whole connections, one after another, as a client and
// a server have them: dial, accept, handshake, one round trip, close at both
// ends. The server has a goroutine for each.
type connections struct {
	ends   *Ends
	tcp    *loopback
	reply  []byte
	served chan error
	ops    int
}

// NewConnections measures whole connections.
func NewConnections(p Pair) (Measure, error) {
	ends, tcp, err := p.start()
	if err != nil {
		return nil, err
	}
	c := &connections{ends: ends, tcp: tcp, reply: make([]byte, len(pong)), served: make(chan error)}
	go func() {
		for {
			raw, err := tcp.listener.Accept()
			if err != nil {
				return // closed
			}
			go func() { c.served <- answer(ends.Server(raw)) }()
		}
	}()
	return c, nil
}

func (c *connections) Prepare() (int, error) { return always, nil }

func (c *connections) Do() error {
	c.ops++
	addr := c.tcp.listener.Addr()
	raw, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		return err
	}
	conn := c.ends.Client(raw)
	err = errors.Join(ask(conn, c.reply), conn.Close())
	return errors.Join(err, <-c.served)
}

func (c *connections) Close() (int, error) { return c.ops, c.tcp.Close() }
