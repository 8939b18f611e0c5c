package audit

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// initialWindow is the number of bytes that a sender may have on its way before the first
	// acknowledgment: ten segments of 1,460 bytes (RFC 6928).
	initialWindow = 14600
	// safeWindow is the size that fits into the window although the last segment of each write is
	// partial: in measurements, a flight of 9.5 kB took one round trip, and 13.0 kB took two.
	safeWindow = 10000
)

// flightRules are about the server's first flight, and its speed.
var flightRules = []Rule{
	{
		ID: "key-slow", Axis: Fast,
		Title: "The server signs with RSA instead of ECDSA",
		Reason: "An RSA signature is the largest part of a server's work for a handshake: an RSA key of 2048 bits " +
			"takes ten times as long as an ECDSA key on P-256, one of 4096 bits over a hundred times.",
		Source: "RFC 9325, section 4.2.1",
		check:  checkKeySlow,
	},
	{
		ID: "chain-flight", Axis: Fast,
		Title: "The server's first flight doesn't fit into TCP's initial window",
		Reason: "A server may send ten segments before the first acknowledgment. If its flight is larger, each new " +
			"connection waits for another round trip.",
		Source: "RFC 6928, section 2",
		check:  checkChainFlight,
	},
}

// isRSA reports whether a kind of key, as in ChainFacts.Key, is RSA.
func isRSA(key string) bool { return strings.HasPrefix(key, "RSA") }

func checkKeySlow(j *judgement) ([]Finding, Outcome) {
	f := j.facts
	var keys []string
	for _, chain := range f.Certificates.Chains {
		keys = append(keys, chain.Key)
	}
	for key := range f.Timing.PublicKey {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		if f.Certificates.State == NotTested && f.Timing.State == NotTested {
			return nil, Outcome{NotTested, "no certificate was looked at"}
		}
		return nil, Outcome{Failed, "the server's keys are unknown"}
	}
	slices.Sort(keys)
	if slices.ContainsFunc(keys, func(key string) bool { return !isRSA(key) }) {
		return nil, Outcome{State: Tested}
	}
	key := keys[len(keys)-1]
	price := Price{Method: "not measurable here: the server's work wasn't timed"}
	if i := f.Timing.PublicKey[key]; i != nil {
		price = Price{ServerMillis: i, Millis: i, Method: workMethod + "; the key exchange is part of it"}
	} else if f.Timing.State == Tested {
		price.Method = f.unmeasured()
	}
	severity := Low
	var bits int
	if fmt.Sscanf(key, "RSA %d", &bits); bits > 3072 {
		severity = Medium
	}
	return []Finding{{
		Severity: severity,
		Evidence: fmt.Sprintf("The server's only kind of key is %s.", strings.Join(keys, " and ")),
		Remedy:   "Get a certificate for an ECDSA key on P-256. Keep the one for RSA beside it if you have clients without ECDSA.",
		Price:    price,
	}}, Outcome{State: Tested}
}

func checkChainFlight(j *judgement) ([]Finding, Outcome) {
	f := j.facts.Flight
	if f.State != Tested {
		return nil, f.Outcome
	}
	finding := Finding{
		Remedy: "Send the leaf and the intermediate certificates that clients need, and no root; use ECDSA keys, whose " +
			"certificates are smaller.",
	}
	switch {
	case f.RoundTrips > 1:
		finding.Evidence = fmt.Sprintf("The flight has %d bytes and took %.0f round trips.", f.Bytes, f.RoundTrips)
		finding.Price = Price{RoundTrips: f.RoundTrips - 1, Method: "the server's pauses within its flight, of a round trip each"}
	case f.RoundTrips == 0 && f.Bytes > initialWindow:
		finding.Evidence = fmt.Sprintf("The flight has %d bytes; ten segments have %d.", f.Bytes, initialWindow)
		finding.Price = Price{RoundTrips: 1, Method: "computed from the initial window; the link here is too fast to measure it"}
	case f.RoundTrips == 0 && f.Bytes > safeWindow:
		return nil, Outcome{State: Tested, Reason: f.Reason}
	default:
		return nil, Outcome{State: Tested}
	}
	finding.Severity = Medium
	return []Finding{finding}, Outcome{State: Tested}
}
