package bench

import (
	"errors"
	"net"
)

// handshakeBatch is the number of TCP connections that are made at a time. They are kept until the
// next Prepare, so it is small: many would measure caches rather than handshakes.
const handshakeBatch = 16

// A handshake measures the time from two connected sockets to two TLS connections: making both
// Conns and shaking hands, the server in a goroutine of its own. It excludes connecting and
// closing, which Connections measures.
type handshake struct {
	ends    *Ends
	tcp     *loopback
	ready   [][2]net.Conn // client, server
	open    []Conn
	servers chan net.Conn
	results chan result
	ops     int
}

type result struct {
	conn Conn
	err  error
}

// NewHandshake measures full handshakes.
func NewHandshake(p Pair) (Measure, error) {
	ends, tcp, err := p.start()
	if err != nil {
		return nil, err
	}
	h := &handshake{
		ends:    ends,
		tcp:     tcp,
		ready:   make([][2]net.Conn, 0, handshakeBatch),
		open:    make([]Conn, 0, 2*handshakeBatch),
		servers: make(chan net.Conn),
		results: make(chan result),
	}
	go func() {
		defer close(h.results)
		for raw := range h.servers {
			c := ends.Server(raw)
			err := c.Handshake()
			if err != nil {
				raw.Close() // otherwise the client would wait for it forever
			}
			h.results <- result{c, err}
		}
	}()
	return h, nil
}

// start opens p and makes a first connection, which checks p and warms it up.
func (p Pair) start() (*Ends, *loopback, error) {
	ends, err := p.Open()
	if err != nil {
		return nil, nil, err
	}
	tcp, err := newLoopback()
	if err != nil {
		return nil, nil, err
	}
	if err := ends.try(tcp); err != nil {
		tcp.Close()
		return nil, nil, err
	}
	return ends, tcp, nil
}

// connected returns both sides of one connection of p, after a first one that warmed it up.
func (p Pair) connected() (client, server net.Conn, err error) {
	if p == Plain {
		tcp, err := newLoopback()
		if err != nil {
			return nil, nil, err
		}
		defer tcp.Close()
		return tcp.connect()
	}
	ends, tcp, err := p.start()
	if err != nil {
		return nil, nil, err
	}
	defer tcp.Close()
	return ends.establish(tcp)
}

func (h *handshake) Prepare() (int, error) {
	h.cleanUp()
	for len(h.ready) < handshakeBatch {
		client, server, err := h.tcp.connect()
		if err != nil {
			return 0, err
		}
		h.ready = append(h.ready, [2]net.Conn{client, server})
	}
	return handshakeBatch, nil
}

func (h *handshake) cleanUp() {
	for _, c := range h.open {
		c.Close()
	}
	h.open = h.open[:0]
}

func (h *handshake) Do() error {
	raw := h.ready[len(h.ready)-1]
	h.ready = h.ready[:len(h.ready)-1]
	h.servers <- raw[1]
	c := h.ends.Client(raw[0])
	err := c.Handshake()
	if err != nil {
		raw[0].Close()
	}
	server := <-h.results
	h.open = append(h.open, c, server.conn)
	h.ops++
	return errors.Join(err, server.err)
}

func (h *handshake) Close() (int, error) {
	close(h.servers)
	<-h.results
	h.cleanUp()
	for _, raw := range h.ready {
		raw[0].Close()
		raw[1].Close()
	}
	return h.ops, h.tcp.Close()
}
