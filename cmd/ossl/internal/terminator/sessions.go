package terminator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/policy"
	"github.com/ossl-go/ossl/policy/apply"
	"github.com/ossl-go/ossl/session"
)

// sessions are the policy's configuration, and the state by which clients resume. They outlive the
// generation that made them, since a reload must not cost full handshakes.
type sessions struct {
	settings string
	base     *tls.Config
	options  []ossl.Option
	ring     *session.Ring // of ticket keys in files, or nil
	watch    *ossl.Watch   // of these files
	log      *slog.Logger
	sealing  *session.Ring // the ring in use, or nil if the TLS library has the keys
	own      *ticketKeys   // those that only this process has, or nil
	redis    *redisStore   // or nil
	end      func()
}

// resumption returns the settings that sessions are made for.
func (c *Config) resumption() string {
	return fmt.Sprintf("%q", []any{c.Engine, c.Sessions, len(c.TicketKeys) > 0, c.Redis, c.RedisSecret, c.RedisUser, c.RedisPassword,
		c.RedisCA, c.RedisName, c.RedisCert, c.RedisKey, c.FIPS, c.Policy, c.Plain})
}

// newSessions makes the state of a configuration. former are the ticket keys that only the former process
// had.
func newSessions(ctx context.Context, p *tlsPlan, former []agedKey, log *slog.Logger) (*sessions, error) {
	s := &sessions{settings: p.resumption, base: &tls.Config{}, log: log, end: func() {}}
	if p.engine == "go" || p.plain {
		return s, nil // crypto/tls's own ticket keys, or none
	}
	var period, lifetime time.Duration
	if p.policy.Policy != nil {
		var err error
		if period, lifetime, err = s.follow(p.policy.At(time.Now()), log); err != nil {
			return nil, err
		}
	}
	if p.store != nil {
		return s, s.useRedis(ctx, p.store, log)
	}
	if p.sessions > 0 {
		s.keep(session.NewCache(p.sessions))
	}
	switch {
	case len(p.ticketKeys) > 0:
		s.ring = new(session.Ring)
		s.sealing = s.ring
		if err := s.reload(p); err != nil {
			return nil, err
		}
		s.options = append(s.options, ossl.WithTicketKeys(s.ring))
		s.end = func() { s.watch.Close() }
	case !p.fips: // in which the module makes the keys, for each Context
		var err error
		if s.own, err = newTicketKeys(period, lifetime, former); err != nil {
			return nil, err
		}
		s.own.settings, s.sealing = s.settings, s.own.ring
		s.options = append(s.options, ossl.WithTicketKeys(s.sealing))
		s.end = func() {
			s.own.stop()
			<-s.own.done
		}
	}
	return s, nil
}

// follow takes a policy's configuration, and returns the times of ticket keys that it wants, 0 for
// crypto/tls's.
func (s *sessions) follow(p *policy.Policy, log *slog.Logger) (period, lifetime time.Duration, err error) {
	var unmet []apply.Unmet
	if s.base, s.options, unmet, err = apply.Server(p); err != nil {
		return 0, 0, err
	}
	for _, u := range unmet {
		log.Debug("a part of the policy is not this server's", "policy", p.Name, "part", u.String())
	}
	const day = 24 * time.Hour
	if period = time.Duration(p.Resumption.Rotation.Value) * time.Second; period <= 0 || period > day {
		return 0, 0, nil
	}
	return period, max(period, time.Duration(p.Resumption.Lifetime.Value)*time.Second), nil
}

// keep keeps sessions in a cache, except those that are in tickets.
func (s *sessions) keep(cache session.Cache) {
	s.options = append(s.options, ossl.WithSessionCache(cache))
	if !s.base.SessionTicketsDisabled {
		s.options = append(s.options, ossl.WithTLS13Tickets())
	}
}

// reload reads the files of ticket keys, which s follows from then on, and the file of the store's password.
func (s *sessions) reload(p *tlsPlan) error {
	if s.redis != nil {
		return s.redis.readPassword(p.store.RedisPassword)
	}
	if s.ring == nil {
		return nil
	}
	if err := loadTicketKeys(new(session.Ring), p.ticketKeys); err != nil {
		return err
	}
	if s.watch != nil {
		s.watch.Close()
		_ = s.watch.Reload() // waits for keys that it loads at this moment
	}
	s.watch = ossl.NewWatch(func() error { return loadTicketKeys(s.ring, p.ticketKeys) }, p.ticketKeys...)
	s.watch.OnEvent = func(e ossl.WatchEvent) {
		if e.Err != nil {
			s.log.Error("ticket keys not replaced", "error", e.Err)
		} else {
			s.log.Info("ticket keys replaced")
		}
	}
	return s.watch.Start(context.Background(), 0)
}

// loadTicketKeys makes a ring have the keys in files.
func loadTicketKeys(ring *session.Ring, files []string) error {
	list, err := session.ReadTicketKeyFiles(files...)
	if err != nil {
		return err
	}
	return ring.Set(list...)
}

// readFull reads until b is full or the file ends, and returns the number of bytes.
func readFull(r io.Reader, b []byte) (int, error) {
	n, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}
