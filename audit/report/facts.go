package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ossl-go/ossl/audit"
)

// versions are the versions of the protocol, the newest first.
var versions = []string{"TLS 1.3", "TLS 1.2", "TLS 1.1", "TLS 1.0", "SSL 3", "SSL 2"}

// A row is a fact in words.
type row struct{ name, text string }

// offers writes the most important facts.
func (s *screen) offers(r *audit.Report) {
	for _, row := range summary(r) {
		s.field(row.name, row.text)
	}
}

// summary returns the facts that belong on the first screen.
func summary(r *audit.Report) (rows []row) {
	f := &r.Facts
	add := func(name, text string) {
		if text != "" {
			rows = append(rows, row{name, text})
		}
	}
	for _, version := range versions {
		v := f.Protocols.Versions[version]
		switch {
		case v.State == audit.Failed:
			add(version, "failed to test: "+v.Reason)
		case v.Offered:
			text := plural(len(v.Suites), "cipher suite")
			if v.Partial != "" || v.Inherits {
				text = "at least " + text
			}
			if v.Order != "" {
				text += " in the order of the " + v.Order
			}
			if len(v.Groups) > 0 {
				text += "; " + strings.Join(v.Groups, ", ")
			}
			add(version, text)
		}
	}
	if n := f.Protocols.Silent; n > 0 {
		add("refusals", plural(n, "connection")+" closed without an alert, between others that were answered")
	}
	for _, c := range f.Certificates.Chains {
		add("certificate", chainText(c, r.Started))
	}
	if f.Flight.State == audit.Tested {
		text := bytesText(f.Flight.Bytes)
		if f.Flight.RoundTrips > 0 {
			text += " in " + plural(f.Flight.RoundTrips, "round trip")
		}
		add("first flight", text)
	}
	add("resumption", resumptionText(&f.Resumption))
	add("ticket keys", watchText(f.Resumption.Watch))
	add("ALPN", strings.Join(f.Options.ALPN.Values, ", "))
	return rows
}

func chainText(c audit.ChainFacts, now time.Time) string {
	text := c.Key
	if len(c.Certificates) > 0 && c.Certificates[0].Error == "" {
		text += ", " + validityText(c.Certificates[0], now)
	}
	return text + fmt.Sprintf("; chain of %s, %s", plural(len(c.Certificates), "certificate"), bytesText(c.Bytes))
}

func validityText(c audit.CertificateFact, now time.Time) string {
	left := c.NotAfter.Sub(now)
	switch days := int(left.Hours() / 24); {
	case now.Before(c.NotBefore):
		return "not valid yet"
	case days > 0:
		return "valid for " + plural(days, "more day")
	case left >= 0:
		return "valid for less than a day"
	case days == 0:
		return "expired less than a day ago"
	default:
		return "expired " + plural(-days, "day") + " ago"
	}
}

func resumptionText(f *audit.ResumptionFacts) string {
	var parts []string
	for _, kind := range []struct {
		name string
		audit.Resumed
	}{{"TLS 1.3", f.Ticket13}, {"TLS 1.2 by ID", f.ID12}, {"TLS 1.2 by ticket", f.Ticket12}} {
		switch kind.State {
		case audit.Tested:
			if kind.Tries == 0 {
				parts = append(parts, kind.name+" no session")
				continue
			}
			parts = append(parts, fmt.Sprintf("%s %d of %d", kind.name, kind.Hits, kind.Tries))
		case audit.Failed:
			parts = append(parts, kind.name+" failed to test")
		}
	}
	return strings.Join(parts, ", ")
}

// watchText describes the changes of ticket keys that a watch saw. It returns "" without a watch.
func watchText(w *audit.WatchFacts) string {
	if w == nil {
		return ""
	}
	failed := 0
	for _, s := range w.Samples {
		if s.Error != "" {
			failed++
		}
	}
	at := func(t time.Time) string { return t.UTC().Format(time.DateTime) }
	text := fmt.Sprintf("%s from %s to %s UTC", plural(len(w.Samples), "look"), at(w.Since), at(w.Until))
	if failed > 0 {
		text += fmt.Sprintf(", of which %d failed", failed)
	}
	if len(w.Changes) == 0 {
		return text + "; no change was seen"
	}
	var changes []string
	for _, c := range w.Changes[:min(len(w.Changes), maxChanges)] {
		changes = append(changes, at(c))
	}
	if more := len(w.Changes) - maxChanges; more > 0 {
		changes = append(changes, fmt.Sprintf("%d more", more))
	}
	return text + "; " + plural(len(w.Changes), "change") + ": " + strings.Join(changes, ", ")
}

// maxChanges bounds the changes of keys that are written one by one.
const maxChanges = 24

// facts writes all facts.
func (s *screen) facts(r *audit.Report) {
	s.line("")
	s.line("Facts")
	for _, row := range factRows(r) {
		s.paragraph(fmt.Sprintf("  %-30s  ", row.name), 34, row.text)
	}
}

func factRows(r *audit.Report) (rows []row) {
	f := &r.Facts
	add := func(name, text string) { rows = append(rows, row{name, text}) }
	for _, version := range versions {
		v, ok := f.Protocols.Versions[version]
		switch {
		case !ok:
			continue
		case v.State != audit.Tested:
			add(version, outcomeText(v.Outcome))
			continue
		case !v.Offered:
			add(version, "not offered")
			continue
		}
		add(version, strings.Join(v.Suites, ", "))
		for _, extra := range []row{
			{"perhaps more", moreText(v)},
			{"order", v.Order},
			{"groups", strings.Join(v.Groups, ", ")},
			{"order of groups", v.GroupOrder},
			{"signature schemes", strings.Join(v.Signatures, ", ")},
		} {
			if extra.text != "" {
				add("  "+extra.name, extra.text)
			}
		}
		if v.PrimeBits > 0 {
			add("  prime", fmt.Sprintf("%d bits", v.PrimeBits))
		}
	}
	rows = append(rows, optionRows(&f.Options)...)
	for _, c := range f.Certificates.Chains {
		rows = append(rows, chainRows(c, r.Started)...)
	}
	return append(rows, otherRows(f)...)
}

// moreText returns the reason why a version may have more suites than the audit found, or "".
func moreText(v audit.VersionFacts) string {
	if v.Partial == "" && v.Inherits {
		return "the suites of the later version weren't asked for again, except the first"
	}
	return v.Partial
}

func optionRows(o *audit.OptionFacts) (rows []row) {
	for _, option := range []struct {
		name string
		audit.Switch
	}{
		{"extended master secret", o.ExtendedMaster}, {"encrypt then MAC", o.EncryptThenMAC},
		{"secure renegotiation", o.SecureRenegotiation}, {"client renegotiation", o.ClientRenegotiation},
		{"compression", o.Compression}, {"fallback is refused", o.Fallback},
	} {
		if option.State == "" {
			continue
		}
		text := "no"
		if option.On {
			text = "yes"
		}
		if option.State != audit.Tested {
			text = outcomeText(option.Outcome)
		}
		rows = append(rows, row{option.name, text})
	}
	for _, list := range []struct {
		name string
		audit.ListFacts
	}{{"ALPN", o.ALPN}, {"certificate compression", o.CompressCertificate}} {
		if list.State == "" {
			continue
		}
		text := "none"
		if len(list.Values) > 0 {
			text = strings.Join(list.Values, ", ")
		}
		if list.State != audit.Tested {
			text = outcomeText(list.Outcome)
		}
		rows = append(rows, row{list.name, text})
	}
	return rows
}

func chainRows(c audit.ChainFacts, now time.Time) (rows []row) {
	for i, certificate := range c.Certificates {
		text := fmt.Sprintf("%s; %s, %s, %s, %s to %s", certificate.Subject, certificate.Key, certificate.Signature,
			bytesText(certificate.Bytes), certificate.NotBefore.Format(time.DateOnly), certificate.NotAfter.Format(time.DateOnly))
		if len(certificate.Names) > 0 && i == 0 {
			text += "; " + strings.Join(certificate.Names, ", ")
		}
		if certificate.Error != "" {
			text = "can't be parsed: " + certificate.Error
		}
		rows = append(rows, row{fmt.Sprintf("certificate %d", i), text})
		for _, more := range []row{{"  revoked", certificate.Revoked}, {"  perhaps revoked", certificate.RevocationUnknown}} {
			if more.text != "" {
				rows = append(rows, more)
			}
		}
	}
	for _, more := range []row{
		{"  not trusted", c.TrustError}, {"  wrong name", c.NameError}, {"  missing", c.Missing}, {"  stapling", stapleText(&c, now)},
		{"  OCSP responder", strings.Join(c.OCSP, ", ")}, {"  revocation list at", strings.Join(c.CRL, ", ")},
	} {
		if more.text != "" {
			rows = append(rows, more)
		}
	}
	return rows
}

// stapleText describes a stapled OCSP response at a time.
func stapleText(c *audit.ChainFacts, now time.Time) string {
	var parts []string
	switch {
	case c.StapleError != "":
		parts = append(parts, c.StapleError)
	case c.Stapled:
		parts = append(parts, "good")
	case c.MustStaple:
		return "none, though the certificate demands one (must-staple)"
	default:
		return ""
	}
	if c.StapleFrom != nil {
		age := now.Sub(*c.StapleFrom).Round(time.Minute)
		parts = append(parts, fmt.Sprintf("from %s, %v old", c.StapleFrom.Format(time.RFC3339), age))
	}
	if c.StapleUntil != nil {
		parts = append(parts, "until "+c.StapleUntil.Format(time.RFC3339))
	}
	return strings.Join(parts, ", ")
}

func otherRows(f *audit.Facts) (rows []row) {
	add := func(name, text string) {
		if text != "" {
			rows = append(rows, row{name, text})
		}
	}
	for _, t := range []struct {
		name string
		i    *audit.Interval
	}{
		{"round trip", f.Timing.RoundTrip}, {"to HelloRetryRequest", f.Timing.Retry},
		{"to the end of the flight", f.Timing.Full}, {"resumed", f.Timing.Resumed},
	} {
		if t.i != nil {
			add(t.name, intervalText(t.i))
		}
	}
	var keys []string
	for key := range f.Timing.PublicKey {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if i := f.Timing.PublicKey[key]; i != nil {
			add("public-key work, "+key, intervalText(i))
		}
	}
	add("resumption", resumptionText(&f.Resumption))
	add("ticket keys", watchText(f.Resumption.Watch))
	for _, cell := range f.Resumption.Fleet {
		text := fmt.Sprintf("%d of %d", cell.Hits, cell.Tries)
		if cell.State != audit.Tested {
			text = outcomeText(cell.Outcome)
		}
		add("session of "+cell.From, fmt.Sprintf("at %s by %s: %s", cell.To, cell.Kind, text))
	}
	early := outcomeText(f.EarlyData.Outcome)
	if f.EarlyData.State == audit.Tested {
		early = "not accepted"
		if f.EarlyData.Accepted {
			early = "accepted, at most " + bytesText(f.EarlyData.Limit)
		}
	}
	add("early data", early)
	if replay := f.EarlyData.Replay; replay.State == audit.Tested {
		add("replayed requests", fmt.Sprintf("%d sent, %d executed, %d answered by 425", replay.Sent, replay.Executed, replay.TooEarly))
	}
	if f.HTTP.State == audit.Tested {
		add("HSTS", f.HTTP.HSTS)
		add("plain HTTP leads to", f.HTTP.Redirects)
		add("Alt-Svc", f.HTTP.HTTP3)
	}
	if f.Extra != nil {
		for _, name := range slices.Sorted(maps.Keys(f.Extra.Headers)) {
			add(name, f.Extra.Headers[name])
		}
	}
	add("HTTPS records", strings.Join(f.DNS.HTTPS, "; "))
	add("CAA records", strings.Join(f.DNS.CAA, "; "))
	for _, c := range f.Clients.Clients {
		add(c.Name, clientText(c))
	}
	return rows
}

func clientText(c audit.SimulatedClient) string {
	switch {
	case c.State != audit.Tested:
		return outcomeText(c.Outcome)
	case c.Refused != "":
		return "refused: " + c.Refused
	}
	text := c.Version + ", " + c.Suite
	if c.Group != "" {
		text += ", " + c.Group
	}
	if c.Retry {
		text += ", after a HelloRetryRequest"
	}
	return text
}

func intervalText(i *audit.Interval) string {
	if i.Low == i.High {
		return millis(i)
	}
	return fmt.Sprintf("%s (95 %%: %s to %s)", millis(i), number(i.Low), number(i.High))
}

func outcomeText(o audit.Outcome) string {
	if o.Reason == "" {
		return string(o.State)
	}
	return string(o.State) + ": " + o.Reason
}
