package audit

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/ossl-go/ossl/audit/internal/client"
)

// probeWatch looks at the keys of tickets over time.
func probeWatch(ctx context.Context, r *run) error {
	if r.options.Watch <= 0 {
		return nil
	}
	f := &r.facts.Resumption
	for _, k := range kinds[:2] {
		if facts := k.facts(f); facts.State == Tested && facts.Offered {
			w := &watch{run: r, kind: k, facts: &WatchFacts{Since: time.Now(), Changes: []time.Time{}}, seen: map[string]bool{}}
			f.Watch = w.facts
			return w.all(ctx)
		}
	}
	return nil
}

// keyNameSize is the size of a key's name, with which OpenSSL's and GnuTLS's tickets begin. (RFC
// 5077, section 4, recommends it.)
const keyNameSize = 16

// A watch is a watch over one kind of ticket.
type watch struct {
	run   *run
	kind  kind
	facts *WatchFacts
	first *client.Session
	named bool // tickets begin with the name of their key
	seen  map[string]bool
	once  bool // tickets can be used once, so that the first one shows nothing about keys
	lost  bool // the first ticket isn't accepted any more
}

func (w *watch) all(ctx context.Context) error {
	every := w.run.options.WatchEvery
	if every <= 0 {
		every = time.Hour
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	if w.once {
		return nil
	}
	end := w.facts.Since.Add(w.run.options.Watch)
	for n := 1; ; n++ {
		next := w.facts.Since.Add(time.Duration(n) * every)
		if next.After(end) {
			return ctx.Err()
		}
		if err := sleep(ctx, time.Until(next)); err != nil {
			return err
		}
		if err := w.sample(ctx); err != nil {
			return err
		}
		w.run.progress("watch")
	}
}

// begin takes the first ticket, and another one to see whether they begin with the name of a key.
func (w *watch) begin(ctx context.Context) error {
	sample := WatchSample{Time: time.Now()}
	var tickets []*client.Session
	for range 2 {
		_, got, err := w.kind.connect(ctx, w.run, w.run.address, nil)
		if err != nil {
			sample.Error = err.Error()
			break
		}
		if len(got) > 0 {
			tickets = append(tickets, got[len(got)-1])
		}
	}
	if len(tickets) > 0 {
		w.first = tickets[0]
		sample.KeyName = ticketKeyName(w.first)
		w.named = len(tickets) == 2 && sample.KeyName == ticketKeyName(tickets[1]) && sample.KeyName != ""
		if !w.named {
			sample.KeyName = ""
		}
		w.seen[sample.KeyName] = true
		if !w.named && len(tickets) == 2 {
			w.once = w.usedOnce(ctx, tickets[1])
		}
		if w.once {
			sample.Error = "the tickets have no name of a key, and can be used once only: no change of their key can be seen"
		}
	}
	w.add(sample)
	return ctx.Err()
}

// usedOnce reports whether the server resumes a session, and not a second time.
func (w *watch) usedOnce(ctx context.Context, session *client.Session) bool {
	first, _, err := w.kind.connect(ctx, w.run, w.run.address, session)
	if err != nil || !first {
		return false
	}
	second, _, err := w.kind.connect(ctx, w.run, w.run.address, session)
	return err == nil && !second
}

func ticketKeyName(s *client.Session) string {
	if len(s.Ticket) < 2*keyNameSize {
		return ""
	}
	return hex.EncodeToString(s.Ticket[:keyNameSize])
}

func (w *watch) add(sample WatchSample) {
	w.facts.Samples = append(w.facts.Samples, sample)
	w.facts.Until = sample.Time
}

// sample offers the first ticket, and looks at a new one.
func (w *watch) sample(ctx context.Context) error {
	if w.first == nil {
		return w.begin(ctx) // the server could not be reached before
	}
	w.run.mu.Lock()
	w.run.slow = 0 // a server that was slow an hour ago is asked again
	w.run.mu.Unlock()
	sample := WatchSample{Time: time.Now()}
	offer := w.first
	if life := time.Duration(offer.Lifetime) * time.Second; life > 0 && time.Since(offer.Received) > life {
		offer = nil // the server refuses it for its age
	}
	resumed, tickets, err := w.kind.connect(ctx, w.run, w.run.address, offer)
	if err == nil && resumed && w.named && w.kind.version < 0x0304 {
		// A TLS 1.2 server that resumes needn't send a new ticket.
		_, tickets, err = w.kind.connect(ctx, w.run, w.run.address, nil)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		sample.Error = err.Error()
		w.add(sample)
		return nil
	}
	if offer != nil {
		sample.Accepted = &resumed
	}
	changed := false
	if w.named && len(tickets) > 0 {
		sample.KeyName = ticketKeyName(tickets[len(tickets)-1])
		changed = sample.KeyName != "" && !w.seen[sample.KeyName]
		w.seen[sample.KeyName] = true
	}
	if !w.named && offer != nil && !resumed && !w.lost {
		changed, w.lost = true, true
	}
	if changed {
		w.facts.Changes = append(w.facts.Changes, sample.Time)
	}
	w.add(sample)
	return nil
}
