package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/session"
)

// A store is the state that connections of a test share: a client's session, or a server's keys and
// cache.
type store struct {
	session *tls.ClientSessionState
	made    bool // the current connection made a session; a server's has an ID

	ring  *session.Ring
	cache session.Cache
}

func newStore() (*store, error) {
	ring, err := session.NewRing(newTicketKey())
	if err != nil {
		return nil, err
	}
	return &store{ring: ring, cache: session.NewCache(16)}, nil
}

func newTicketKey() session.TicketKey {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	return session.KeyOf(secret)
}

// next prepares for the next connection.
func (s *store) next(settings *settings, resumes bool) error {
	s.made = false
	if resumes && !settings.server && s.session == nil {
		return errors.New("bogoshim: no session to offer")
	}
	if settings.renewTicket && resumes { // the last key's tickets must be renewed
		keys, _ := s.ring.Snapshot()
		return s.ring.Set(append([]session.TicketKey{newTicketKey()}, keys...)...)
	}
	if settings.skipTicket {
		s.ring.Clear()
	}
	return nil
}

// keepsSessions reports whether a client keeps sessions. It does so only if the test needs it,
// since that affects the record path: libssl has the records until the first ticket.
func (s *settings) keepsSessions() bool {
	return s.resumeCount > 0 || s.expectNoSession || s.sessionCache
}

// configure makes a connection use the store.
func (s *store) configure(settings *settings, config *tls.Config) (opts []ossl.Option) {
	if !settings.server {
		if settings.keepsSessions() {
			config.ClientSessionCache = (*sessionOfLast)(s)
		}
		return nil
	}
	if !config.SessionTicketsDisabled {
		opts = append(opts, ossl.WithTicketKeys(s.ring))
	}
	if settings.sessionCache || settings.expectSessionID {
		opts = append(opts, ossl.WithSessionCache(notingCache{s.cache, s}))
	}
	return opts
}

// sessionOfLast is a client's cache for one server: it holds the last connection's session.
type sessionOfLast store

func (s *sessionOfLast) Get(string) (*tls.ClientSessionState, bool) {
	return s.session, s.session != nil
}

func (s *sessionOfLast) Put(_ string, session *tls.ClientSessionState) {
	s.session = session
	if session != nil {
		s.made = true
	}
}

// notingCache is a server's cache.
type notingCache struct {
	session.Cache
	store *store
}

func (c notingCache) Put(ctx context.Context, id, session []byte, expires time.Time) error {
	c.store.made = true
	return c.Cache.Put(ctx, id, session, expires)
}

// checkSession compares a handshake's effect on sessions with the flags' expectations.
func checkSession(s *settings, state *tls.ConnectionState, seen *seen) error {
	if want := seen.resumes && !s.expectSessionMiss; state.DidResume != want {
		return fmt.Errorf("bogoshim: resumption of a session is %v, not %v", state.DidResume, want)
	}
	made := seen.store.made
	switch {
	case s.server && s.expectSessionID && !seen.resumes && !made:
		return errors.New("bogoshim: no session was cached")
	case s.server && s.expectNoSessionID && !s.sessionCache && !seen.resumes && made:
		return errors.New("bogoshim: a session was cached")
	case s.server || !s.keepsSessions() || state.Version >= tls.VersionTLS13: // TLS 1.3 tickets come later: checkTicket
		return nil
	}
	if want := !s.expectNoSession && (!state.DidResume || s.expectTicketRenewal); made != want {
		return fmt.Errorf("bogoshim: a new session is there: %v, not %v", made, want)
	}
	return nil
}

// checkTicket does the same for TLS 1.3 tickets, after the exchange of data.
func checkTicket(s *settings, c *ossl.Conn, store *store) error {
	if s.server || !s.keepsSessions() || c.ConnectionState().Version < tls.VersionTLS13 {
		return nil
	}
	if want := !s.expectNoSession; store.made != want && !s.shimShutsDown { // shutting down may come before the tickets
		return fmt.Errorf("bogoshim: a new session is there: %v, not %v", store.made, want)
	}
	return nil
}
