package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/policy"
)

// clientRules are about the simulated clients.
var clientRules = []Rule{
	{
		ID: "client-refused", Axis: Safe, Title: "Common clients can't connect",
		Reason: "The users of these clients get an error.",
		Source: "RFC 9325, section 4.2.1", check: checkClientRefused,
		settings: []string{"versions", "suites12", "suites13", "groups"},
	},
	{
		ID: "client-retry", Axis: Fast, Title: "Common clients pay a HelloRetryRequest",
		Reason: "The server wants a group for which these clients send no key share at first, so each full handshake takes " +
			"another round trip.",
		Source: "RFC 8446, section 2.1", check: checkClientRetry, settings: []string{"groups"},
	},
}

// commonClients returns the tested clients that a public server should serve, and the outcome of a
// rule without findings.
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
	var refused, left []string
	for _, c := range clients {
		switch {
		case c.Refused == "":
		case j.serves(c.Name):
			refused = append(refused, c.Name+" ("+c.Refused+")")
		default:
			left = append(left, c.Name+" ("+c.Refused+")")
		}
	}
	var findings []Finding
	if len(refused) > 0 {
		findings = append(findings, Finding{
			Severity: Medium, Evidence: fmt.Sprintf("Refused: %s, of %d clients.", strings.Join(refused, ", "), len(clients)),
			Remedy: "Offer TLS 1.3 or TLS 1.2 with ECDHE and AES-GCM, and a group that clients have: " +
				j.allowedOf("x25519", "secp256r1", "X25519MLKEM768") + ".",
		})
	}
	if len(left) > 0 {
		findings = append(findings, Finding{
			Severity: Info, Title: "The policy leaves common clients out", settled: true,
			Evidence: fmt.Sprintf("Refused: %s, of %d clients.", strings.Join(left, ", "), len(clients)),
			Remedy:   "These clients have nothing that the policy allows: do without them, or choose another policy.",
		})
	}
	if findings == nil {
		return nil, outcome
	}
	return findings, Outcome{State: Tested}
}

// allowedOf returns the groups that the policy allows, for people; all of them if it allows none.
func (j *judgement) allowedOf(groups ...string) string {
	allowed := j.now().Groups
	in := slices.DeleteFunc(slices.Clone(groups), func(g string) bool { return value(allowed, g) == nil })
	if len(in) == 0 {
		in = groups
	}
	return strings.Join(in, " or ")
}

// serves reports whether a server that has all that the policy allows, and no more, could serve a client.
// An empty list of the policy allows everything.
func (j *judgement) serves(client string) bool {
	hellos, err := clientHellos()
	i := slices.IndexFunc(hellos, func(c clientHello) bool { return c.Name == client })
	if err != nil || i < 0 {
		return true
	}
	p, c := j.now(), &hellos[i]
	common := func(values []policy.Value, names []string) bool {
		return len(values) == 0 || slices.ContainsFunc(names, func(n string) bool { return value(values, n) != nil })
	}
	versions := c.Versions
	if len(versions) == 0 {
		versions = []string{c.Version}
	}
	for _, version := range []string{"TLS 1.3", "TLS 1.2"} {
		if slices.Contains(versions, version) && common(p.Versions, []string{version}) &&
			common(suitesOf(p, version), c.Suites) && (len(c.Groups) == 0 || common(p.Groups, c.Groups)) {
			return true
		}
	}
	return false
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

// checkClientRetry has no finding if the reason is that the server lacks x25519: group-retry reports that.
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
		Remedy: "Let the server take a group for which the client sent a key share: " +
			j.allowedOf("x25519", "X25519MLKEM768") + " before others.",
		Price: retryPrice(len(retry), clients),
	}}, Outcome{State: Tested}
}
