package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

// probeResumption resumes sessions, in all ways that there are. One session proves that a server can
// resume; the second try finds servers whose processes don't share their sessions, and further tries
// follow only if these two differ.
func probeResumption(ctx context.Context, r *run) error {
	f := &r.facts.Resumption
	var sessions []*client.Session
	for _, k := range kinds {
		facts := k.facts(f)
		*facts = r.resume(ctx, k, r.address, &sessions)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for _, s := range sessions {
		if s.Version == hello.TLS13 {
			f.Lifetime13 = max(f.Lifetime13, int(s.Lifetime))
		} else {
			f.Lifetime12 = max(f.Lifetime12, int(s.Lifetime))
		}
	}
	if f.WeakKey.Outcome, f.WeakKey.Key = weakKey(sessions); f.WeakKey.State == NotTested {
		f.WeakKey.Outcome = f.noTickets()
	}
	if err := r.fleet(ctx); err != nil {
		return err
	}
	return ctx.Err()
}

// noTickets is the outcome of questions on tickets if none was seen: whether the server gives any isn't
// known if a probe failed.
func (f *ResumptionFacts) noTickets() Outcome {
	for _, resumed := range []*Resumed{&f.Ticket13, &f.Ticket12} {
		if resumed.State == Failed {
			return resumed.Outcome
		}
	}
	return Outcome{NotTested, "the server gives no tickets"}
}

// A kind is a way to resume.
type kind struct {
	name    string
	version uint16
	ticket  bool
	facts   func(*ResumptionFacts) *Resumed
}

var kinds = []kind{
	{"TLS 1.3", hello.TLS13, true, func(f *ResumptionFacts) *Resumed { return &f.Ticket13 }},
	{"TLS 1.2 ticket", hello.TLS12, true, func(f *ResumptionFacts) *Resumed { return &f.Ticket12 }},
	{"TLS 1.2 ID", hello.TLS12, false, func(f *ResumptionFacts) *Resumed { return &f.ID12 }},
}

// config returns the offer of a client that resumes in this way.
func (k kind) config(r *run, session *client.Session) *client.Config {
	h := client.Default(r.options.ServerName, k.version)
	if k.version != hello.TLS13 && !k.ticket {
		h.Ticket = nil
	}
	return &client.Config{Hello: h, Session: session}
}

// connect makes a handshake that offers a session, if it isn't nil. It returns whether the server
// resumed it, and the sessions of the connection. TLS 1.3 sessions can be used once.
func (k kind) connect(ctx context.Context, r *run, address string, session *client.Session) (bool, []*client.Session, error) {
	conn, err := r.shake(ctx, address, k.version, k.config(r, session))
	if err != nil {
		return false, nil, err
	}
	defer conn.Close()
	if k.version == hello.TLS13 {
		return conn.State.Resumed, r.tickets13(conn), nil
	}
	var usable []*client.Session
	for _, s := range conn.Sessions() {
		if k.ticket {
			s.ID = nil
		}
		if len(s.Ticket) > 0 || !k.ticket && len(s.ID) > 0 {
			usable = append(usable, s)
		}
	}
	return conn.State.Resumed, usable, nil
}

// possible reports whether the server may have a version that can resume in this way.
func (k kind) possible(f *ProtocolFacts) bool {
	names := []string{"TLS 1.3"}
	if k.version != hello.TLS13 {
		names = []string{"TLS 1.2", "TLS 1.1", "TLS 1.0"}
	}
	for _, name := range names {
		if v := f.Versions[name]; v.Offered || v.State != Tested {
			return true
		}
	}
	return false
}

// settle is the time after which a server has stored a session: HAProxy 2.6 does it after it has sent
// its last message, and then another of its threads may look for the session.
const settle = 10 * time.Millisecond

const (
	resumeTries     = 2
	resumeMoreTries = 5 // if the first tries differ
)

// resume finds out whether an address resumes sessions of one kind. It adds the sessions that it got
// to all.
func (r *run) resume(ctx context.Context, k kind, address string, all *[]*client.Session) (f Resumed) {
	if !k.possible(&r.facts.Protocols) {
		f.Outcome = Outcome{NotTested, "the server doesn't offer " + k.name[:len("TLS 1.3")]}
		return f
	}
	_, sessions, err := k.connect(ctx, r, address, nil)
	if err != nil {
		f.Outcome = shakeOutcome(k.name[:len("TLS 1.3")], err)
		return f
	}
	f.State = Tested
	f.Offered = len(sessions) > 0
	*all = append(*all, sessions...)
	if k.version == hello.TLS13 {
		r.facts.Resumption.Tickets13 = len(sessions)
	}
	if len(sessions) > 0 && k.version != hello.TLS13 && !k.ticket {
		if err := sleep(ctx, settle); err != nil {
			f.Outcome = Outcome{Failed, err.Error()}
			return f
		}
	}
	for len(sessions) > 0 && (f.Tries < resumeTries || f.Tries < resumeMoreTries && f.Hits > 0 && f.Hits < f.Tries) {
		session := sessions[len(sessions)-1]
		if k.version == hello.TLS13 { // a ticket may be good for once only
			sessions = sessions[:len(sessions)-1]
		}
		resumed, more, err := k.connect(ctx, r, address, session)
		if err != nil {
			f.Outcome = Outcome{Failed, fmt.Sprintf("%d of %d tries: %v", f.Hits, f.Tries, err)}
			return f
		}
		f.Tries++
		*all = append(*all, more...)
		if resumed {
			f.Hits++
		}
		if k.version == hello.TLS13 {
			sessions = append(sessions, more...)
		} else if len(more) > 0 { // a renewed ticket replaces the old one
			sessions = more
		}
	}
	if k.version == hello.TLS13 {
		r.sessions13 = sessions
	}
	return f
}
