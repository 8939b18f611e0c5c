package audit

import (
	"fmt"
	"strings"
)

// addressRules are about the addresses of a name.
var addressRules = []Rule{
	{
		ID: "address-unreachable", Axis: Fast,
		Title: "An address of the name can't be reached",
		Reason: "A client that begins with this address waits for a refusal or a time-out before it tries the " +
			"next one, and a client that tries one address only fails.",
		Source: "RFC 8305, section 5",
		check:  checkUnreachable,
	},
	{
		ID: "address-differs", Axis: Safe,
		Title: "The addresses of the name differ",
		Reason: "Each client gets the address that its resolver puts first, so some clients have weaker " +
			"TLS, or another certificate, than this audit shows.",
		Source: "RFC 9325, section 3.1",
		check:  checkDifferent,
	},
}

func checkUnreachable(j *judgement) (findings []Finding, outcome Outcome) {
	if len(j.facts.Addresses) == 0 {
		return nil, Outcome{Failed, "the name has no address"}
	}
	reached := 0
	outcome = Outcome{State: Tested}
	for _, a := range j.facts.Addresses {
		switch a.State {
		case Tested:
			reached++
		case NotTested:
			outcome = Outcome{NotTested, a.Address + ": " + a.Reason}
		case Failed:
			findings = append(findings, Finding{
				Severity: Medium,
				Evidence: fmt.Sprintf("%s: %s.", a.Address, a.Reason),
				Remedy:   "Start the server on this address, open its port in the firewall, or remove the address from DNS.",
				Address:  a.Address,
			})
		}
	}
	switch {
	case reached == 0:
		return nil, Outcome{Failed, "no address can be reached"}
	case len(findings) > 0:
		outcome = Outcome{State: Tested}
	}
	return findings, outcome
}

func checkDifferent(j *judgement) (findings []Finding, outcome Outcome) {
	var first *AddressFacts
	compared := 0
	outcome = Outcome{State: Tested}
	for i, a := range j.facts.Addresses {
		if a.State != Tested {
			continue
		}
		if a.Version == "" && a.Refused == "" {
			if a.TLSError != "" {
				outcome = Outcome{Failed, a.Address + ": " + a.TLSError}
			}
			continue
		}
		compared++
		if first == nil {
			first = &j.facts.Addresses[i]
			continue
		}
		if differences := differences(first, &a); len(differences) > 0 {
			findings = append(findings, Finding{
				Severity: Medium,
				Evidence: fmt.Sprintf("%s and %s differ: %s.", first.Address, a.Address, strings.Join(differences, "; ")),
				Remedy:   "Give the servers of all addresses the same configuration, and install renewed certificates on all.",
				Address:  a.Address,
			})
		}
	}
	switch {
	case len(findings) > 0:
		outcome = Outcome{State: Tested}
	case compared < 2 && outcome.State == Tested:
		outcome = Outcome{NotTested, "fewer than two addresses were compared"}
	}
	return findings, outcome
}

func differences(a, b *AddressFacts) (all []string) {
	for _, d := range []struct{ name, a, b string }{
		{"refusal", a.Refused, b.Refused},
		{"version", a.Version, b.Version},
		{"cipher suite", a.Suite, b.Suite},
		{"group", a.Group, b.Group},
		{"certificate's SHA-256", short(a.Certificate), short(b.Certificate)},
	} {
		if d.a != d.b {
			all = append(all, fmt.Sprintf("%s %s and %s", d.name, orNone(d.a), orNone(d.b)))
		}
	}
	return all
}

func short(sum string) string { return sum[:min(len(sum), 16)] }

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
