package audit

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ossl-go/ossl/policy"
)

// sessionRules are about resumption, tickets and early data.
var sessionRules = []Rule{
	{ID: "resume-none", Axis: Fast, Title: "No session is resumed",
		Reason: "Each returning client pays a full handshake: the server signs, and the client verifies its chain.",
		Source: "RFC 8446, section 2.2", check: checkResumeNone,
		settings: []string{"resumption.id", "resumption.tickets"},
		remedies: byProduct{
			"caddy": "Remove the setting that turns session_tickets off from Caddy's JSON, and reload.",
			"go":    "Remove SessionTicketsDisabled from the tls.Config.",
		},
		impossible: byProduct{"postgresql": poolInstead}},
	{ID: "resume-tls13", Axis: Fast, Title: "Sessions of TLS 1.3 are not resumed",
		Reason: "Each returning client of TLS 1.3 pays a full handshake.",
		Source: "RFC 8446, section 2.2", check: resumeRule(kinds[0]),
		remedies: byProduct{
			"nginx": "Set ssl_session_tickets on; and ssl_session_cache shared:TLS:10m; and reload. Without a cache, and " +
				"without tickets, nginx resumes nothing.",
			"apache":   "Set SSLSessionTickets on and SSLSessionCache shmcb:/run/apache2/ssl(512000), and reload.",
			"haproxy":  "Remove no-tls-tickets from the bind options, and reload.",
			"lighttpd": "Remove -SessionTicket from Options in ssl.openssl.ssl-conf-cmd, and restart.",
			"go":       "Remove SessionTicketsDisabled from the tls.Config.",
		},
		impossible: byProduct{"postgresql": poolInstead}},
	{ID: "resume-tls12-id", Axis: Fast, Title: "Sessions of TLS 1.2 are not resumed by their IDs",
		Reason: "Small clients, microcontrollers for example, have IDs and no tickets: each " +
			"of their connections pays a full handshake.",
		Source: "RFC 5246, section 7.3", check: resumeRule(kinds[2]),
		settings: []string{"resumption.id"},
		remedies: byProduct{
			"nginx":    "Set ssl_session_cache shared:TLS:10m; and reload.",
			"apache":   "Set SSLSessionCache shmcb:/run/apache2/ssl(512000), and reload.",
			"haproxy":  "Raise tune.ssl.cachesize and tune.ssl.lifetime, and restart.",
			"lighttpd": "Set server.feature-flags += (\"ssl.session-cache\" => \"enable\"), and restart.",
		},
		impossible: byProduct{
			"postgresql": poolInstead,
			"caddy":      "crypto/tls, which Caddy uses, has no sessions by ID; clients with tickets resume",
			"go":         "crypto/tls has no sessions by ID; clients with tickets resume",
		}},
	{ID: "resume-tls12-ticket", Axis: Fast, Title: "Sessions of TLS 1.2 are not resumed by their tickets",
		Reason: "Clients that return after the server's cache has forgotten them pay a full handshake.",
		Source: "RFC 5077, section 3.1", check: resumeRule(kinds[1]),
		remedies: byProduct{
			"nginx":    "Set ssl_session_tickets on; and reload.",
			"apache":   "Set SSLSessionTickets on, and reload.",
			"haproxy":  "Remove no-tls-tickets from the bind options, and reload.",
			"lighttpd": "Remove -SessionTicket from Options in ssl.openssl.ssl-conf-cmd, and restart.",
			"go":       "Remove SessionTicketsDisabled from the tls.Config.",
		},
		impossible: byProduct{"postgresql": poolInstead}},
	{ID: "resume-fleet", Axis: Fast, Title: "The addresses of the name don't share their sessions",
		Reason: "A client that returns to another address pays a full handshake.",
		Source: "RFC 5077, section 5.5", check: checkFleet,
		remedies: byProduct{
			"nginx":    "Give all servers the same files by ssl_session_ticket_key, and replace them often.",
			"apache":   "Give all servers the same SSLSessionTicketKeyFile, and replace it often.",
			"haproxy":  "Give all servers the same tls-ticket-keys file, and replace it often.",
			"lighttpd": "Give all servers the same ssl.stek-file, and replace it often.",
			"caddy":    "Give all servers the same storage: Caddy shares its ticket keys there.",
			"go":       "Give all servers the same keys by Config.SetSessionTicketKeys.",
		}},
	{ID: "resume-lifetime", Axis: Safe, Title: "Tickets live longer than the policy allows",
		Reason: "For as long as a ticket lives, the key that opens it opens the connections that resume with it.",
		Source: "RFC 8446, section 4.6.1", check: checkSessionLifetime,
		settings: []string{"resumption.lifetime"},
		impossible: byProduct{
			"caddy":    "crypto/tls, which Caddy uses, gives its tickets 7 days",
			"go":       "crypto/tls gives its tickets 7 days",
			"lighttpd": "lighttpd can't set the lifetime of sessions",
		}},
	{ID: "ticket-key-weak", Axis: Safe, Title: "Everyone can open the server's tickets",
		Reason: "The server seals its tickets with a key that is publicly known. An eavesdropper decrypts them, and with them " +
			"connections of TLS 1.2, resumed ones of TLS 1.3 and early data; an attacker can answer in the server's name.",
		Source: "RFC 5077, section 5.5", check: checkWeakTicketKey},
	{ID: "ticket-rotation", Axis: Safe, Title: "The key of the tickets is not changed often enough",
		Reason: "One stolen key opens all tickets that were sealed with it, and so connections that were recorded.",
		Source: "RFC 9325, section 3.4", check: checkRotation,
		remedies: byProduct{
			"nginx":    "Use nginx 1.23.2 or newer with a shared ssl_session_cache and no ssl_session_ticket_key, or reload it daily.",
			"apache":   "Reload Apache daily, or replace the SSLSessionTicketKeyFile daily.",
			"haproxy":  "Reload HAProxy daily, or replace the keys of tls-ticket-keys by set ssl tls-key.",
			"lighttpd": "Remove ssl.stek-file: lighttpd changes its own key every 8 hours.",
		}},
	{ID: "early-data-on", Axis: Safe, Title: "The server accepts early data",
		Reason: "Early data has no forward secrecy, and can be replayed.",
		Source: "RFC 8446, section 8", check: checkEarly,
		remedies: byProduct{
			"nginx":   "Set ssl_early_data off; and reload, unless what is behind nginx refuses early requests with 425.",
			"haproxy": "Remove allow-0rtt from the bind line, and reload, unless the backend refuses early requests with 425.",
		}},
	{ID: "early-data-replay", Axis: Safe, Title: "The server executes replayed requests",
		Reason: "An attacker who records a client's first flight can have its request executed again and again.",
		Source: "RFC 8470, section 3", check: checkReplay,
		remedies: byProduct{
			"nginx": "Set ssl_early_data off; and reload. Or pass Early-Data ($ssl_early_data) to the application, and let it answer " +
				"425 Too Early to all that changes something. (Options AntiReplay keeps nginx with a shared cache from resuming " +
				"any TLS 1.3 session.)",
			"haproxy": "Remove allow-0rtt from the bind line, or wait with http-request wait-for-handshake, and reload.",
		}},
}

const poolInstead = "PostgreSQL resumes no sessions, by design; keep connections open in a pool"

// resumptionOf returns the facts on all kinds, and the outcome of a rule that needs them.
func resumptionOf(j *judgement) (tested, works int, outcome Outcome) {
	outcome = Outcome{NotTested, "the server makes no handshake that could be resumed"}
	for _, k := range kinds {
		facts := k.facts(&j.facts.Resumption)
		switch facts.State {
		case Tested:
			tested++
			if facts.Hits > 0 {
				works++
			}
		case Failed:
			outcome = facts.Outcome
		}
	}
	if works > 0 || tested > 0 && outcome.State != Failed {
		outcome = Outcome{State: Tested}
	}
	return tested, works, outcome
}

func checkResumeNone(j *judgement) ([]Finding, Outcome) {
	_, works, outcome := resumptionOf(j)
	if outcome.State != Tested || works > 0 {
		return nil, outcome
	}
	f, v13 := &j.facts.Resumption, j.facts.Protocols.Versions["TLS 1.3"]
	if p := j.policy.Resumption; p.TLS13.Value == "no" && p.ID.Value == "no" && p.Tickets.Value == "no" {
		return nil, Outcome{NotTested, "the policy forbids resumption"}
	}
	var evidence []string
	for _, k := range kinds {
		if facts := k.facts(f); facts.State == Tested {
			evidence = append(evidence, k.name+": "+lowerFirst(resumedText(facts)))
		}
	}
	return []Finding{{
		Severity: High,
		Evidence: strings.Join(evidence, "; ") + ".",
		Remedy:   "Turn the session cache and tickets on.",
		Price:    j.facts.resumptionPrice(1, v13.State == Tested && !v13.Offered),
	}}, outcome
}

func resumedText(f *Resumed) string {
	switch {
	case !f.Offered:
		return "The server gave no session"
	case f.Hits == 0:
		return fmt.Sprintf("The server gave sessions, and resumed 0 of %d", f.Tries)
	}
	return fmt.Sprintf("The server resumed %d of %d", f.Hits, f.Tries)
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// resumeRule is the check of one way to resume. If there is no way at all, resume-none reports it.
func resumeRule(k kind) func(*judgement) ([]Finding, Outcome) {
	return func(j *judgement) ([]Finding, Outcome) {
		facts := k.facts(&j.facts.Resumption)
		want, remedy := resumeWanted(k, &j.policy.Resumption)
		if facts.State != Tested || want.Value == "" {
			if facts.State == Tested {
				return nil, Outcome{NotTested, "the policy leaves it open"}
			}
			return nil, facts.Outcome
		}
		outcome := Outcome{State: Tested}
		_, works, _ := resumptionOf(j)
		finding := Finding{Evidence: resumedText(facts) + ".", Source: sourceOf(j.policy, want.Source), Remedy: remedy,
			Severity: Medium, Price: j.facts.resumptionPrice(0, k.name != kinds[0].name)}
		switch {
		case want.Value == "no" && facts.Hits > 0:
			finding.Title = k.name + ": sessions are resumed, which the policy doesn't allow"
			setting := "resumption.tickets"
			if k.name == kinds[2].name {
				setting = "resumption.id"
			}
			finding.Severity, finding.settled = Low, true // the product's remedy would turn it on
			finding.Remedy = cmp.Or(j.directives(false, setting), "Turn this kind of resumption off.")
			finding.Reason = "The policy doesn't allow it."
		case want.Value == "no" || works == 0 || facts.Tries > 0 && facts.Hits == facts.Tries:
			return nil, outcome
		case facts.Hits > 0:
			finding.Title = k.name + ": only some sessions are resumed"
			finding.Reason = "The server's processes don't share their sessions: some returning clients pay a full handshake."
			finding.Price.Share = float64(facts.Tries-facts.Hits) / float64(facts.Tries)
		default:
			finding.Price.Share = 1
			if k.name == kinds[2].name || j.facts.Resumption.ID12.Hits > 0 && k.name == kinds[1].name {
				finding.Severity = Low // few clients, or the server's cache works
			}
		}
		return []Finding{finding}, outcome
	}
}

func resumeWanted(k kind, p *policy.Resumption) (policy.Setting, string) {
	switch k.name {
	case kinds[0].name:
		return p.TLS13, "Turn tickets on."
	case kinds[1].name:
		return p.Tickets, "Turn tickets on, with a key that all processes share."
	}
	return p.ID, "Turn on a session cache that all processes share."
}

func checkFleet(j *judgement) ([]Finding, Outcome) {
	outcome := Outcome{NotTested, "the name has one address, or no session is resumed"}
	var evidence []string
	allTries, allHits := 0, 0
	for _, k := range kinds {
		tries, hits := 0, 0
		var missed []string
		for _, cell := range j.facts.Resumption.Fleet {
			if cell.Kind != k.name {
				continue
			}
			if cell.State != Tested {
				if outcome.State != Tested {
					outcome = cell.Outcome
				}
				continue
			}
			outcome = Outcome{State: Tested}
			tries, hits = tries+cell.Tries, hits+cell.Hits
			if cell.Hits < cell.Tries && len(missed) < 4 {
				missed = append(missed, cell.From+" to "+cell.To)
			}
		}
		if hits < tries {
			evidence = append(evidence, fmt.Sprintf("%s: another address resumed %d of %d sessions; not from %s.",
				k.name, hits, tries, strings.Join(missed, ", ")))
		}
		allTries, allHits = allTries+tries, allHits+hits
	}
	if evidence == nil {
		return nil, outcome
	}
	return []Finding{{
		Severity: Medium,
		Evidence: strings.Join(evidence, " "),
		Remedy:   "Give all servers the same ticket keys, or a session cache that they share.",
		Price:    j.facts.resumptionPrice(float64(allTries-allHits)/float64(allTries), false),
	}}, outcome
}

func checkSessionLifetime(j *judgement) ([]Finding, Outcome) {
	f, limit := &j.facts.Resumption, j.policy.Resumption.Lifetime
	if f.Ticket13.State != Tested && f.Ticket12.State != Tested {
		return nil, f.noTickets()
	}
	if limit.Value == 0 {
		return nil, Outcome{NotTested, "the policy leaves it open"}
	}
	seconds := max(f.Lifetime12, f.Lifetime13)
	if seconds <= limit.Value {
		return nil, Outcome{State: Tested}
	}
	severity := Info
	switch {
	case seconds > 7*24*3600: // RFC 8446, section 4.6.1, forbids it
		severity = Medium
	case limit.Level == policy.Required:
		severity = Low
	}
	return []Finding{{
		Severity: severity,
		Evidence: fmt.Sprintf("The server says that its tickets live for %v; the policy allows %v.",
			spell(duration(seconds)), spell(duration(limit.Value))),
		Source: sourceOf(j.policy, limit.Source),
		Remedy: fmt.Sprintf("Set the lifetime of sessions to %d s.", limit.Value),
	}}, Outcome{State: Tested}
}

func duration(seconds int) time.Duration { return time.Duration(seconds) * time.Second }

// spell returns a time as people write it: "7 days", "10 minutes".
func spell(d time.Duration) string {
	d = d.Round(time.Second)
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		switch n := d / unit.size; {
		case d%unit.size != 0 && unit.size > time.Second && d < 100*unit.size:
		case n == 1:
			return "1 " + unit.name
		case n > 1:
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return "0 seconds"
}

func checkWeakTicketKey(j *judgement) ([]Finding, Outcome) {
	f := j.facts.Resumption.WeakKey
	if f.State != Tested || f.Key == "" {
		return nil, f.Outcome
	}
	return []Finding{{
		Severity: Critical,
		Evidence: "A ticket of the server was opened with a known key: " + f.Key + ".",
		Remedy: "Let the server make its own ticket keys, or write a key file from a random source (openssl rand 80 > FILE), " +
			"and restart it. Treat what it sent so far as read by others.",
	}}, f.Outcome
}

func checkRotation(j *judgement) ([]Finding, Outcome) {
	w, limit := j.facts.Resumption.Watch, j.policy.Resumption.Rotation
	switch {
	case w == nil:
		return nil, Outcome{NotTested, "it takes a watch over time"}
	case limit.Value == 0:
		return nil, Outcome{NotTested, "the policy leaves it open"}
	}
	good, reason := 0, "the watch was shorter than the time between two samples"
	for _, s := range w.Samples {
		if s.Error == "" {
			good++
		} else {
			reason = s.Error
		}
	}
	if good < 2 {
		return nil, Outcome{Failed, reason}
	}
	// The longest time for which one key was in use.
	longest, since := time.Duration(0), w.Since
	for _, change := range append(w.Changes[:len(w.Changes):len(w.Changes)], w.Until) {
		longest, since = max(longest, change.Sub(since)), change
	}
	watched := w.Until.Sub(w.Since)
	if longest <= duration(limit.Value) {
		if len(w.Changes) == 0 {
			return nil, Outcome{NotTested, fmt.Sprintf("not rotated since start: %v watched, and the policy allows %v",
				spell(watched), spell(duration(limit.Value)))}
		}
		return nil, Outcome{State: Tested}
	}
	return []Finding{{
		Severity: Low,
		Evidence: fmt.Sprintf("In %v the key changed %d times; one key was in use for at least %v.",
			spell(watched), len(w.Changes), spell(longest)),
		Source: sourceOf(j.policy, limit.Source),
		Remedy: "Change ticket keys regularly.",
	}}, Outcome{State: Tested}
}

func checkEarly(j *judgement) ([]Finding, Outcome) {
	f := &j.facts.EarlyData
	want := j.policy.Resumption.Early
	if f.State != Tested {
		return nil, f.Outcome
	}
	if want.Value != "no" {
		return nil, Outcome{NotTested, "the policy leaves it open"}
	}
	if !f.Accepted {
		return nil, f.Outcome
	}
	return []Finding{{
		Severity: Low,
		Evidence: fmt.Sprintf("The server accepted early data; its tickets allow %d bytes.", f.Limit),
		Source:   sourceOf(j.policy, want.Source),
		Remedy:   "Turn early data off, or see to it that requests that change something are answered by 425 Too Early.",
	}}, f.Outcome
}

func checkReplay(j *judgement) ([]Finding, Outcome) {
	f := &j.facts.EarlyData.Replay
	if f.State != Tested || f.Executed == 0 {
		return nil, f.Outcome
	}
	return []Finding{{
		Severity: High,
		Evidence: fmt.Sprintf("A recorded first flight was sent again %d times: %d requests were executed, %d answered by 425.",
			f.Sent, f.Executed, f.TooEarly),
		Remedy: "Turn early data off, or pass the header Early-Data to the application, and let it answer 425 Too Early to all " +
			"that changes something.",
	}}, f.Outcome
}
