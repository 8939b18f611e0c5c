package audit

import (
	"context"
	"errors"
	"net"
	"time"
)

const (
	// farTrip is the time of a TCP handshake from which on the audit makes the next connection while it
	// waits for an answer: a probe of many hellos then takes half of the time.
	farTrip = 5 * time.Millisecond
	// spareAge bounds the time that such a connection waits for its hello. A server may close it later.
	spareAge = 2 * time.Second
	// roomy is a bound on connections that audits don't reach. Under a lower one, no connection is made
	// that may not be needed.
	roomy = 150
)

// A spare is a connection without a hello yet.
type spare struct {
	address string
	ready   chan struct{} // closed when conn and err are set
	conn    net.Conn
	err     error
	since   time.Time
}

// dialAhead is dial for hellos, which follow each other: it returns the spare connection if there is
// one, and makes the next spare one if the server is far away. It makes none if the rate is bounded,
// and none after a lost connection.
func (r *run) dialAhead(ctx context.Context, address string) (net.Conn, error) {
	conn, err := r.takeSpare(address)
	if conn == nil && err == nil {
		conn, err = r.dial(ctx, address)
	}
	if err != nil {
		return nil, err
	}
	if trip := conn.(*countedConn).connect; r.nearest == 0 || trip < r.nearest {
		r.nearest = trip
	}
	r.mu.Lock()
	gentle := r.options.Rate > 0 || r.options.MaxConnections < roomy || r.cost.Retried > 0
	r.mu.Unlock()
	if r.nearest < farTrip || gentle {
		return conn, nil
	}
	next := &spare{address: address, ready: make(chan struct{}), since: time.Now()}
	r.spare = next
	protocol := r.target.Protocol // which may change while the connection is made: see recognise
	go func() {
		defer close(next.ready)
		next.conn, next.err = r.dialAs(ctx, address, protocol)
	}()
	return conn, nil
}

// takeSpare returns the spare connection, or nil if there is none for the address. It has as much
// time as a new one.
func (r *run) takeSpare(address string) (net.Conn, error) {
	s := r.spare
	if s == nil || s.address != address || time.Since(s.since) > spareAge {
		r.dropSpare()
		return nil, nil
	}
	r.spare = nil
	<-s.ready
	if s.err != nil {
		return nil, s.err
	}
	counted := s.conn.(*countedConn)
	if err := counted.limit(r.options.Timeout); err != nil {
		return nil, errors.Join(err, counted.Close())
	}
	return counted, nil
}

// dropSpare closes the spare connection, if there is one.
func (r *run) dropSpare() {
	if s := r.spare; s != nil {
		r.spare = nil
		if <-s.ready; s.conn != nil {
			s.conn.Close()
		}
	}
}
