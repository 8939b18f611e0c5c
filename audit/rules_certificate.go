package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ossl-go/ossl/policy"
)

// certificateRules are about the chains that a server sends.
var certificateRules = []Rule{
	{
		ID: "certificate-untrusted", Axis: Safe,
		Title:  "Clients don't trust the certificate",
		Reason: "Clients refuse the connection, and users who go on can't tell the server from an impostor.",
		Source: "RFC 5280, section 6.1",
		check:  checkUntrusted,
	},
	{
		ID: "certificate-malformed", Axis: Safe,
		Title:  "Some clients can't read a certificate",
		Reason: "Clients differ in how strictly they read certificates. Those in Go refuse this one, OpenSSL's may take it.",
		Source: "RFC 5280, section 4.1",
		check:  eachLeaf(checkMalformed),
	},
	{
		ID: "certificate-name", Axis: Safe,
		Title:  "The certificate is for another name",
		Reason: "Clients refuse a certificate whose subject alternative names don't have the server's name.",
		Source: "RFC 9525, section 6",
		check:  eachLeaf(checkName),
	},
	{
		ID: "certificate-expired", Axis: Safe,
		Title:  "A certificate has expired",
		Reason: "Clients refuse the connection.",
		Source: "RFC 5280, section 6.1.3",
		check:  eachLeaf(checkExpired),
	},
	{
		ID: "certificate-not-yet-valid", Axis: Safe,
		Title:  "A certificate isn't valid yet",
		Reason: "Clients refuse the connection until the certificate's first day. The server's clock may be wrong.",
		Source: "RFC 5280, section 6.1.3",
		check:  eachLeaf(checkNotYetValid),
	},
	{
		ID: "certificate-expires-soon", Axis: Safe,
		Title:  "The certificate expires soon",
		Reason: "Automatic renewal replaces certificates earlier than this, so it probably fails.",
		Source: "RFC 8555, section 7.4",
		check:  eachLeaf(checkExpiresSoon),
	},
	{
		ID: "certificate-lifetime", Axis: Safe,
		Title:  "The certificate is valid for too long",
		Reason: "A stolen key is of use until the certificate expires, because most clients don't look for revocations.",
		Source: "CA/Browser Forum, ballot SC-081v3",
		check:  eachLeaf(checkLifetime),
	},
	{
		ID: "certificate-hash", Axis: Safe,
		Title:  "A certificate is signed with a hash function that isn't allowed",
		Reason: "Collisions of a weak hash function let attackers make certificates of their own.",
		Source: "RFC 9155, section 1",
		check:  eachLeaf(checkHash),
	},
	{
		ID: "key-weak", Axis: Safe,
		Title:  "A key is too short",
		Reason: "An attacker with enough computers can find the private key, and then be the server.",
		Source: "RFC 9325, section 4.5",
		check:  eachLeaf(checkWeakKey),
	},
	{
		ID: "key-not-in-policy", Axis: Safe,
		Title:  "The policy doesn't allow the certificate's key",
		Reason: "The policy lists the kinds of keys that are strong enough and that clients support.",
		Source: "the policy's list of keys",
		check:  eachLeaf(checkKeyPolicy),
	},
	{
		ID: "chain-incomplete", Axis: Safe,
		Title: "The chain lacks a certificate",
		Reason: "Browsers that have seen the missing certificate elsewhere can connect, " +
			"but curl, Java, Go and most other programs can't.",
		Source: "RFC 8446, section 4.4.2",
		check:  eachLeaf(checkIncomplete),
	},
	{
		ID: "chain-order", Axis: Safe,
		Title:  "The chain is in the wrong order",
		Reason: "Clients of TLS 1.2 may demand that each certificate certifies the one before it, and some do.",
		Source: "RFC 5246, section 7.4.2",
		check:  eachLeaf(checkOrder),
	},
	{
		ID: "chain-root", Axis: Fast,
		Title:  "The server sends a root certificate",
		Reason: "A client has the root already, or doesn't trust it. Each full handshake carries its bytes for nothing.",
		Source: "RFC 8446, section 4.4.2",
		check:  eachLeaf(checkRoot),
	},
	{
		ID: "chain-needless", Axis: Fast,
		Title:  "The server sends certificates that no client needs",
		Reason: "Each full handshake carries their bytes for nothing.",
		Source: "RFC 8446, section 4.4.2",
		check:  eachLeaf(checkNeedless),
	},
	{
		ID: "staple-missing", Axis: Safe,
		Title: "The server staples no OCSP response",
		Reason: "Without one, clients ask the authority, which costs time and tells it who visits the server, " +
			"or they don't learn of a revocation.",
		Source: "RFC 6066, section 8",
		check:  eachLeaf(checkStapleMissing),
	},
	{
		ID: "staple-invalid", Axis: Safe,
		Title:  "The stapled OCSP response is invalid",
		Reason: "Clients that verify it refuse the connection.",
		Source: "RFC 6960, section 3.2",
		check:  eachLeaf(checkStaple),
	},
	{
		ID: "certificate-revoked", Axis: Safe, crls: true,
		Title:  "A certificate was revoked",
		Reason: "Its authority no longer vouches for it: the key may be another's. Clients that look at revocation lists refuse it.",
		Source: "RFC 5280, section 6.3",
		check:  checkRevoked,
	},
}

// eachLeaf returns a check of all chains whose leaf can be parsed. A leaf that can't be parsed fails it,
// unless another chain has a finding.
func eachLeaf(check func(*judgement, *ChainFacts) []Finding) func(*judgement) ([]Finding, Outcome) {
	return func(j *judgement) (findings []Finding, outcome Outcome) {
		facts := &j.facts.Certificates
		if facts.State != Tested {
			return nil, facts.Outcome
		}
		outcome = Outcome{State: Tested}
		for i := range facts.Chains {
			chain := &facts.Chains[i]
			if len(chain.Certificates) == 0 || chain.Certificates[0].Error != "" {
				outcome = Outcome{Failed, chain.TrustError}
				continue
			}
			for _, f := range check(j, chain) {
				if len(facts.Chains) > 1 {
					f.Evidence = "Chain of the " + chain.Key + " key: " + f.Evidence
				}
				findings = append(findings, f)
			}
		}
		if len(findings) > 0 { // even if another chain wasn't tested
			outcome = Outcome{State: Tested}
		}
		return findings, outcome
	}
}

// needed returns the certificates on the chain's path.
func (c *ChainFacts) needed() (all []*CertificateFact) {
	for _, i := range c.Path {
		all = append(all, &c.Certificates[i])
	}
	return all
}

// name returns the certificate's subject for people, or a name if it has none.
func (c *CertificateFact) name() string {
	switch {
	case c.Subject != "":
		return c.Subject
	case len(c.Names) > 0:
		return c.Names[0]
	}
	return "without a subject, SHA-256 " + short(c.SHA256)
}

// sourceOf returns sources of a policy's values for people: each document once, with its sections.
func sourceOf(p *policy.Policy, sources ...string) string {
	var keys []string
	sections := map[string][]string{}
	for _, source := range sources {
		for part := range strings.SplitSeq(source, "; ") {
			key, section, _ := strings.Cut(part, " ")
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
			if section != "" && !slices.Contains(sections[key], section) {
				sections[key] = append(sections[key], section)
			}
		}
	}
	for i, key := range keys {
		keys[i] = orElse(p.Sources[key].Title, key)
		if sections[key] != nil {
			keys[i] += " (" + strings.Join(sections[key], ", ") + ")"
		}
	}
	return strings.Join(keys, "; ")
}

func checkUntrusted(j *judgement) (findings []Finding, outcome Outcome) {
	facts := &j.facts.Certificates
	if facts.State != Tested {
		return nil, facts.Outcome
	}
	outcome = Outcome{State: Tested}
	for i := range facts.Chains {
		chain := &facts.Chains[i]
		if chain.Trusted {
			continue
		}
		if open := untestable(chain); open.State != Tested {
			if outcome.State != Failed {
				outcome = open
			}
			continue
		}
		finding := Finding{
			Severity: Critical,
			Evidence: capital(chain.TrustError) + ".",
			Remedy:   "Install a certificate of an authority that your clients trust, or give your clients its root certificate.",
		}
		if n := len(chain.Path); n > 0 {
			end := &chain.Certificates[chain.Path[n-1]]
			finding.Evidence = fmt.Sprintf("The path ends at “%s”, which was issued by “%s”: %s.",
				end.name(), end.Issuer, chain.TrustError)
			if n == 1 && end.Subject == end.Issuer {
				finding.Evidence = fmt.Sprintf("The certificate of “%s” is self-signed: %s.", end.name(), chain.TrustError)
			}
		}
		findings = append(findings, finding)
	}
	if len(findings) > 0 { // even if another chain can't be judged
		outcome = Outcome{State: Tested}
	}
	return findings, outcome
}

// untestable returns the reason why an untrusted chain is no evidence about its trust anchor,
// unless its State is Tested.
func untestable(chain *ChainFacts) Outcome {
	switch {
	case chain.Missing != "":
		return Outcome{NotTested, "the chain is incomplete, so nothing can be said on its trust anchor"}
	case slices.ContainsFunc(chain.needed(), brokenHash):
		return Outcome{NotTested, "a certificate is signed with a broken hash function, and is refused for that"}
	case strings.HasPrefix(chain.TrustError, unverifiable):
		return Outcome{Failed, chain.TrustError}
	}
	return Outcome{State: Tested}
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func checkMalformed(j *judgement, c *ChainFacts) (findings []Finding) {
	for _, cert := range c.needed() {
		if cert.Refused != "" {
			findings = append(findings, Finding{
				Severity: Medium,
				Evidence: fmt.Sprintf("The certificate of “%s”: %s.", cert.name(), cert.Refused),
				Remedy:   "Have the certificate issued again as RFC 5280 demands, with a key of a kind that all clients have.",
			})
		}
	}
	return findings
}

func checkName(j *judgement, c *ChainFacts) []Finding {
	if c.NameError == "" {
		return nil
	}
	names := c.Certificates[0].Names
	list := strings.Join(names[:min(len(names), 8)], ", ")
	if len(names) > 8 {
		list += fmt.Sprintf(" and %d more", len(names)-8)
	}
	return []Finding{{
		Severity: Critical,
		Evidence: fmt.Sprintf("%s. Its names: %s.", capital(c.NameError), orNone(list)),
		Remedy:   "Get a certificate with this name, or configure the server that has it for this name (SNI).",
	}}
}

func checkExpired(j *judgement, c *ChainFacts) (findings []Finding) {
	for _, cert := range c.needed() {
		if j.at.After(cert.NotAfter) {
			findings = append(findings, Finding{
				Severity: Critical,
				Evidence: fmt.Sprintf("The certificate of “%s” expired on %s, %s ago.", cert.name(),
					cert.NotAfter.UTC().Format(time.DateTime+" UTC"), days(j.at.Sub(cert.NotAfter))),
				Remedy: "Renew the certificate, install the authority's current intermediates with it, and reload the server. " +
					"Renewal should be automatic.",
			})
		}
	}
	return findings
}

func checkNotYetValid(j *judgement, c *ChainFacts) (findings []Finding) {
	for _, cert := range c.needed() {
		if j.at.Before(cert.NotBefore) {
			findings = append(findings, Finding{
				Severity: Critical,
				Evidence: fmt.Sprintf("The certificate of “%s” is valid from %s on, in %s.", cert.name(),
					cert.NotBefore.UTC().Format(time.DateTime+" UTC"), days(cert.NotBefore.Sub(j.at))),
				Remedy: "Use the earlier certificate until then, and correct the clock of the machine that issued this one.",
			})
		}
	}
	return findings
}

// soon returns how long before it expires a certificate should have been renewed: a fifth of its
// lifetime, 14 days at most. ACME clients renew when a third is left.
func soon(cert *CertificateFact) time.Duration {
	return min(cert.NotAfter.Sub(cert.NotBefore)/5, 14*24*time.Hour)
}

func checkExpiresSoon(j *judgement, c *ChainFacts) (findings []Finding) {
	for _, cert := range c.needed() {
		left := cert.NotAfter.Sub(j.at)
		if left < 0 || left >= soon(cert) || j.at.Before(cert.NotBefore) {
			continue
		}
		findings = append(findings, Finding{
			Severity: Low,
			Evidence: fmt.Sprintf("The certificate of “%s” expires on %s, in %s.", cert.name(),
				cert.NotAfter.UTC().Format(time.DateTime+" UTC"), days(left)),
			Remedy: "Renew the certificate, and look at the log of the program that should have renewed it.",
		})
	}
	return findings
}

// days writes a duration in days, or in hours if it has less than two.
func days(d time.Duration) string {
	if hours := int(d.Hours()); hours < 48 {
		return fmt.Sprintf("%d hours", hours)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

func checkLifetime(j *judgement, c *ChainFacts) []Finding {
	leaf := &c.Certificates[0]
	lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
	finding := Finding{Remedy: "Get certificates with a shorter lifetime, and renew them automatically."}
	limit := j.policy.Chain.Lifetime
	over := func(l policy.Limit) bool { return l.Value > 0 && lifetime > time.Duration(l.Value)*24*time.Hour }
	switch {
	case over(limit):
		finding.Severity = Low
	case over(j.policy.Chain.Recommended):
		limit = j.policy.Chain.Recommended
		finding.Severity = Info
	default:
		return nil
	}
	finding.Source = sourceOf(j.policy, limit.Source)
	const day = 24 * time.Hour
	// A part of a day counts as a day: CA/Browser Forum, Baseline Requirements, section 6.3.2.
	finding.Evidence = fmt.Sprintf("The certificate is valid for %d days; the policy has %d days.", (lifetime+day-1)/day,
		limit.Value)
	return []Finding{finding}
}

// brokenHash reports whether a certificate was signed with a hash function for which collisions are
// known. The signature of a self-signed certificate doesn't matter.
func brokenHash(c *CertificateFact) bool {
	h := hashOf(c)
	return c.Subject != c.Issuer && (h == "SHA-1" || h == "MD5" || h == "MD2")
}

// hashOf returns the name of the hash function that a certificate was signed with, or "" if its
// signature has none to choose (Ed25519) or isn't known.
func hashOf(c *CertificateFact) string {
	for _, h := range []struct{ part, name string }{
		{"SHA512", "SHA-512"}, {"SHA384", "SHA-384"}, {"SHA256", "SHA-256"}, {"SHA1", "SHA-1"}, {"MD5", "MD5"}, {"MD2", "MD2"},
	} {
		if strings.Contains(c.Signature, h.part) {
			return h.name
		}
	}
	return ""
}

func checkHash(j *judgement, c *ChainFacts) (findings []Finding) {
	allowed := j.policy.Chain.Hashes
	for _, cert := range c.needed() {
		hash := hashOf(cert)
		i := slices.IndexFunc(allowed, func(v policy.Value) bool { return v.Name == hash && !v.Until.Passed(j.at) })
		finding := Finding{
			Evidence: fmt.Sprintf("The signature on the certificate of “%s” is %s.", cert.name(), cert.Signature),
			Remedy:   "Have the certificate issued again, with a signature that uses SHA-256.",
		}
		switch {
		case brokenHash(cert):
			finding.Severity, finding.Source = High, "RFC 9325, section 4.5; RFC 6194"
		case hash == "" || cert.Subject == cert.Issuer || len(allowed) == 0:
			continue
		case i < 0:
			finding.Severity, finding.Source = Medium, j.policy.Title
		case allowed[i].Level == policy.PhaseOut:
			finding.Severity, finding.Source = Low, sourceOf(j.policy, allowed[i].Source)
		default:
			continue
		}
		findings = append(findings, finding)
	}
	return findings
}
