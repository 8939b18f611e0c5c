package bench

import (
	"errors"
	"fmt"
	"io"
	"net"
)

var ping, pong = []byte("PING\n"), []byte("PONG\n")

// A latency measures round trips on one connection: the client writes five bytes, the server
// answers with five.
type latency struct {
	client net.Conn
	reply  []byte
	served chan error
	ops    int
}

// NewLatency measures round trips.
func NewLatency(p Pair) (Measure, error) {
	client, server, err := p.connected()
	if err != nil {
		return nil, err
	}
	l := &latency{client: client, reply: make([]byte, len(pong)), served: make(chan error, 1)}
	go func() { l.served <- answer(server) }()
	return l, nil
}

// answer answers each ping with a pong, until the client closes; then it closes too.
func answer(c net.Conn) error {
	request := make([]byte, len(ping))
	for {
		_, err := io.ReadFull(c, request)
		if err == nil {
			_, err = c.Write(pong)
		}
		switch {
		case err == io.EOF:
			return c.Close()
		case err != nil:
			c.Close()
			return err
		}
	}
}

// ask sends a ping and awaits the pong.
func ask(c net.Conn, reply []byte) error {
	if _, err := c.Write(ping); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, reply); err != nil {
		return err
	}
	if string(reply) != string(pong) {
		return fmt.Errorf("bench: the server answered %q", reply)
	}
	return nil
}

func (l *latency) Prepare() (int, error) { return always, nil }

func (l *latency) Do() error {
	l.ops++
	return ask(l.client, l.reply)
}

func (l *latency) Close() (int, error) {
	err := l.client.Close()
	return l.ops, errors.Join(err, <-l.served)
}
