package terminator

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"github.com/ossl-go/ossl/session"
)

// A copier keeps the data of its Writes: the caller wipes its own.
type copier struct{ to *[]byte }

func (c copier) Write(b []byte) (int, error) {
	*c.to = append(*c.to, b...)
	return len(b), nil
}

// For tests.
var (
	ParseFile        = parse
	ParseProxyHeader = parseProxyHeader
	WriteProxyHeader = writeProxyHeader
	// FileHandler also returns a function that tells how many files are kept in memory, and their bytes.
	FileHandler = func(root string, list bool, limit int) (http.Handler, func() (files, bytes int), error) {
		cache := newFileCache(limit)
		h, err := newFileHandler(&Site{Root: root, List: list}, new(secretFiles), cache, slog.New(slog.DiscardHandler))
		return h, func() (int, int) {
			cache.mu.RLock()
			defer cache.mu.RUnlock()
			return len(cache.entries), cache.size
		}, err
	}
	NotFound    = notFound
	AppendOffer = appendOffer
	SplitOffer  = splitOffer
	PortOfTLS   = (*Config).portOfTLS
	// CoversAfter returns the reason why a process that Landlock has confined for one Config can't serve
	// another one.
	CoversAfter = func(first *Config, later func() *Config) error {
		confinement := func(c *Config) *confinement {
			places, _ := c.compileListen()
			return c.confinement(places, c.acmePlan())
		}
		confined := confinement(first)
		d, err := confined.needs()
		if err != nil {
			return err
		}
		d.ABI, d.Read = connectABI, append(d.Read, confined.spare()...)
		return d.covers(confinement(later()))
	}
	// RotateAges has keys of some ages, the youngest first, change, and returns the ages of the result.
	RotateAges = func(period, lifetime time.Duration, ages ...time.Duration) (rest []time.Duration) {
		now := time.Now()
		var keys []agedKey
		for _, age := range ages {
			keys = append(keys, agedKey{session.NewTicketKey(), now.Add(-age)})
		}
		for _, k := range rotated(keys, now, period, lifetime) {
			rest = append(rest, k.age(now))
		}
		return rest
	}
	// PassTicketKeys hands keys over by bytes, which change alters, and returns the former process's keys
	// and those with which the next one begins.
	PassTicketKeys = func(change func([]byte) []byte) (before, after []session.TicketKey, err error) {
		first, err := newTicketKeys(0, 0, []agedKey{{session.NewTicketKey(), time.Now().Add(-time.Hour)}})
		if err != nil {
			return nil, nil, err
		}
		defer first.stop()
		var text []byte
		if err := first.write(copier{&text}); err != nil {
			return nil, nil, err
		}
		keys, err := readTicketKeys(bytes.NewReader(change(text)), time.Now())
		if err != nil {
			return nil, nil, err
		}
		next, err := newTicketKeys(0, 0, keys)
		if err != nil {
			return nil, nil, err
		}
		defer next.stop()
		before, _ = first.ring.Snapshot()
		after, _ = next.ring.Snapshot()
		return before, after, nil
	}
	// ChallengeConfigs returns the function that returns the configuration for the handshake of a challenge.
	ChallengeConfigs = func(c *Config) func(*tls.ClientHelloInfo) (*tls.Config, error) {
		challenges := newTLSChallenges(c.acmePlan())
		return func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return challenges.config(hello, &tls.Config{}) }
	}
	ParseTarget = func(to string) error { _, err := parseTarget(to); return err }

	// ProgressHandler makes a handler answer as a Server does.
	ProgressHandler = func(h http.Handler, timeout Time) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			pw := newProgressWriter(w, r, nil, timeout)
			defer pw.end()
			h.ServeHTTP(pw, pw.guardBody(r, 0))
		})
	}
)

// Places returns the number of connections that have places.
func (s *Server) Places() int { return s.gate.slots.inUse() }

// RestAll asks all connections to rest, and returns the number of those that can.
func (s *Server) RestAll() (n int) {
	for _, c := range s.current.Load().tunnels() {
		if r := c.rest.Load(); r != nil && r.begin(restPatience, func() {}) {
			n++
		}
	}
	return n
}

// LateTimers fires both timers of a request before the response arrives or, if responded is set, between
// two reads of its body. It reports whether the request was cancelled.
func LateTimers(responded bool) bool {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	s := newStall(cancel, 1, 1)
	if responded {
		s.responded()
	}
	s.untaken()
	s.late()
	return ctx.Err() != nil
}

// DropBallast undoes HoldBallast.
func DropBallast() { ballast = nil }

// Compiled returns the numbers of loaded certificates and of Contexts that the sites have.
func (s *Server) Compiled() (certificates, contexts int) {
	e := s.current.Load().engine
	return len(e.current.Load().used), len(e.checks.contexts)
}

// SecretNames returns the names of the files that no client may read.
func (c *Config) SecretNames() []string { return c.secretNames(c.acmePlan()) }

// ACMEFile returns the file of the certificate of a site with ACME.
func (c *Config) ACMEFile(s *Site) string { return c.ACME.file(s) }

// LookAtACME makes a server look at once whether its certificates by ACME are due.
func (s *Server) LookAtACME() { s.acme.set(s.current.Load().acme) }
