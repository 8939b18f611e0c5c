package terminator

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"
)

// errShare is the error of requests of an address whose other requests leave no place for them.
var errShare = errors.New("the requests of the client's address were under way for too long: address-requests")

// A shares bounds the requests of each address that are under way at a backend, lest one address holds
// all connections to it, with slow bodies for example.
type shares struct {
	each    int           // requests
	timeout time.Duration // for a place
	mu      sync.Mutex
	of      map[netip.Prefix]*share // as many as there are requests
}

// A share has the places of an address.
type share struct {
	places chan struct{} // full if all are taken
	users  int           // requests with a place, and those that wait; guarded by shares.mu
}

func newShares(l *Limits, timeout Time) *shares {
	each := l.RequestsPerSource
	if each == 0 {
		each = (l.BackendConns + 1) / 2
	}
	return &shares{each: each, timeout: time.Duration(timeout), of: map[netip.Prefix]*share{}}
}

// enter returns the share of an address, and the function that must be called when it isn't used any more.
func (s *shares) enter(from netip.Prefix) (mine *share, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine = s.of[from]
	if mine == nil {
		mine = &share{places: make(chan struct{}, s.each)}
		s.of[from] = mine
	}
	mine.users++
	return mine, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if mine.users--; mine.users == 0 {
			delete(s.of, from)
		}
	}
}

// join takes a place for a connection that a former process has made, if there is one, and returns the
// function that gives it up.
func (s *shares) join(from netip.Prefix) (release func()) {
	mine, leave := s.enter(from)
	select {
	case mine.places <- struct{}{}:
		return func() {
			<-mine.places
			leave()
		}
	default:
		return leave
	}
}

// take waits for a place, and returns the function that gives it up. full is called if the request
// must wait. take returns errShare after the timeout, or the context's error.
func (s *shares) take(ctx context.Context, from netip.Prefix, full func()) (release func(), err error) {
	mine, leave := s.enter(from)
	release = func() {
		<-mine.places
		leave()
	}
	select {
	case mine.places <- struct{}{}:
		return release, nil
	default:
	}
	full()
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	select {
	case mine.places <- struct{}{}:
		return release, nil
	case <-timer.C:
		err = errShare
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	leave()
	return nil, err
}
