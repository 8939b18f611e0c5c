package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// A kind of server is a way of keeping sessions.
type kind string

const (
	tickets    kind = "tickets"     // the client keeps them
	cacheAlone kind = "cache alone" // the server does
	both       kind = "both"        // ossl's server with tickets and a cache
	control    kind = "crypto/tls"  // crypto/tls's tickets
	serverName      = "localhost"   // and the name that certificates are for
	answer          = "ok\n"        // to each request
	cached          = 1000          // sessions in a cache
)

// kinds are the columns of the table.
var kinds = []kind{tickets, cacheAlone, both, control}

// newContext makes the Context of a kind that is ossl's.
func (k kind) newContext(config *tls.Config) (*ossl.Context, error) {
	config.SessionTicketsDisabled = k == cacheAlone
	if k == tickets {
		return ossl.NewContext(config)
	}
	return ossl.NewContext(config, ossl.WithSessionCache(session.NewCache(cached)))
}

// An httpsServer answers one request a connection and remembers each connection's state, in the
// order they were accepted.
type httpsServer struct {
	listener net.Listener
	http     *http.Server
	served   chan error

	mu     sync.Mutex
	errors strings.Builder // net/http's log
	conns  []net.Conn
	open   sync.WaitGroup
}

// tlsConn has the methods that *tls.Conn and *ossl.Conn have in common.
type tlsConn interface {
	net.Conn
	ConnectionState() tls.ConnectionState
}

// start starts a server on 127.0.0.1.
func start(k kind, version string, key tlstest.KeyKind) (*httpsServer, error) {
	number := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[version]
	config := &tls.Config{
		Certificates: []tls.Certificate{tlstest.New(tlstest.Options{Kind: key, Names: []string{serverName}})},
		MinVersion:   number,
		MaxVersion:   number,
		NextProtos:   []string{"http/1.1"},
	}
	listen := func(l net.Listener) net.Listener { return tls.NewListener(l, config) }
	if k != control {
		ctx, err := k.newContext(config)
		if err != nil {
			return nil, err
		}
		listen = ctx.NewListener
	}
	s := &httpsServer{served: make(chan error, 1)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.listener = listen(l)
	s.http = &http.Server{
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answer) }),
		ErrorLog:  log.New(s, "", 0),
		ConnState: s.state,
	}
	s.http.SetKeepAlivesEnabled(false)
	go func() { s.served <- s.http.Serve(s.listener) }()
	return s, nil
}

func (s *httpsServer) port() string {
	_, port, _ := net.SplitHostPort(s.listener.Addr().String())
	return port
}

// Write takes net/http's log.
func (s *httpsServer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errors.Write(b)
}

// state is called by the accepting goroutine when a connection is new, hence in order.
func (s *httpsServer) state(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.open.Add(1)
		s.mu.Lock()
		s.conns = append(s.conns, conn)
		s.mu.Unlock()
	case http.StateClosed, http.StateHijacked:
		s.open.Done()
	}
}

// stop waits until the connections are closed and returns their states.
func (s *httpsServer) stop(ctx context.Context) ([]tls.ConnectionState, error) {
	defer s.http.Close()
	s.listener.Close()
	if err := <-s.served; !errors.Is(err, net.ErrClosed) {
		return nil, fmt.Errorf("serve: %w", err)
	}
	ended := make(chan struct{})
	go func() { s.open.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		return nil, fmt.Errorf("connections stay open: %w", ctx.Err())
	case <-time.After(10 * time.Second): // the client has exited: its connections are closed, or never will be
		return nil, errors.New("connections stay open")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.errors.Len() > 0 {
		return nil, errors.New("the server says: " + strings.TrimSpace(s.errors.String()))
	}
	states := make([]tls.ConnectionState, len(s.conns))
	for i, conn := range s.conns {
		states[i] = conn.(tlsConn).ConnectionState()
	}
	return states, nil
}
