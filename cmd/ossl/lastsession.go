package main

import (
	"crypto/tls"
	"sync"
)

// A lastSession is a tls.ClientSessionCache that keeps the session that a server has given last, and
// gives it to any number of connections. In TLS 1.3 a ticket is meant for one use, but a measurement
// must not run out of them.
type lastSession struct {
	put func() // called when there is a new session; nil for none

	mu      sync.Mutex
	session *tls.ClientSessionState // guarded by mu
}

func (s *lastSession) Get(string) (*tls.ClientSessionState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session, s.session != nil
}

func (s *lastSession) Put(_ string, session *tls.ClientSessionState) {
	if session == nil { // it was used
		return
	}
	s.mu.Lock()
	s.session = session
	s.mu.Unlock()
	if s.put != nil {
		s.put()
	}
}
