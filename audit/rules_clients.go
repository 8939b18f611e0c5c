package audit

import (
	"fmt"
	"strings"
)

// clientRules are about the simulated clients.
var clientRules = []Rule{
	{
		ID: "client-refused", Axis: Safe, Title: "Common clients can't connect",
		Reason: "The users of these clients get an error.",
		Source: "RFC 9325, section 4.2.1", check: checkClientRefused,
	},
	{
		ID: "client-retry", Axis: Fast, Title: "Common clients pay a HelloRetryRequest",
		Reason: "The server wants a group for which these clients send no key share at first, so each full handshake takes " +
			"another round trip.",
		Source: "RFC 8446, section 2.1", check: checkClientRetry,
	},
}

// commonClients returns the tested ones of the clients that a public server should serve, and the
// outcome of a rule without findings.
func (j *judgement) commonClients() (clients []SimulatedClient, outcome Outcome) {
	f := j.facts.Clients
	if f.State != Tested {
		return nil, f.Outcome
	}
	outcome = Outcome{State: Tested}
	for _, c := range f.Clients {
		switch {
		case !c.Common:
		case c.State == Tested:
			clients = append(clients, c)
		case outcome.State != Failed:
			outcome = Outcome{c.State, c.Name + ": " + c.Reason}
		}
	}
	return clients, outcome
}

func checkClientRefused(j *judgement) ([]Finding, Outcome) {
	clients, outcome := j.commonClients()
	var refused []string
	for _, c := range clients {
		if c.Refused != "" {
			refused = append(refused, c.Name+" ("+c.Refused+")")
		}
	}
	if len(refused) == 0 {
		return nil, outcome
	}
	return []Finding{{
		Severity: Medium, Evidence: fmt.Sprintf("Refused: %s, of %d clients.", strings.Join(refused, ", "), len(clients)),
		Remedy: "Offer TLS 1.3 or TLS 1.2 with ECDHE and AES-GCM, and a group that clients have: x25519 or secp256r1.",
	}}, Outcome{State: Tested}
}

// retries returns the common clients that were asked for another key share, the groups that the
// server asked for, and the number of common clients.
func (j *judgement) retries() (retry, groups []string, clients int) {
	common, _ := j.commonClients()
	for _, c := range common {
		if c.Retry {
			retry = append(retry, c.Name)
			if !hasName(groups, c.Group) {
				groups = append(groups, c.Group)
			}
		}
	}
	return retry, groups, len(common)
}

func retryPrice(retry, clients int) Price {
	return Price{RoundTrips: 1, Share: float64(retry) / float64(clients),
		Method: "a HelloRetryRequest is one round trip; the share is that of the simulated clients"}
}

// checkClientRetry has no finding if the reason is that the server lacks x25519: group-retry says it.
func checkClientRetry(j *judgement) ([]Finding, Outcome) {
	_, outcome := j.commonClients()
	retry, groups, clients := j.retries()
	if len(retry) == 0 {
		return nil, outcome
	}
	if j.withoutX25519() {
		return nil, Outcome{State: Tested}
	}
	severity := Low
	if 2*len(retry) >= clients {
		severity = Medium
	}
	return []Finding{{
		Severity: severity,
		Evidence: fmt.Sprintf("The server asked %s for a key share of %s: %d of %d clients.", strings.Join(retry, ", "),
			strings.Join(groups, ", "), len(retry), clients),
		Remedy: "Let the server take a group for which the client sent a key share: x25519 or X25519MLKEM768 before others.",
		Price:  retryPrice(len(retry), clients),
	}}, Outcome{State: Tested}
}
