package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/policy"
)

func checkSuiteWeak(j *judgement) ([]Finding, Outcome) {
	found := map[*weakClass][]string{}
	for _, version := range j.offered() {
		if version == "SSL 2" {
			continue // version-old: all its suites are weak
		}
		for _, s := range j.facts.Protocols.Versions[version].Suites {
			if c := weakness(s); c != nil && !slices.Contains(found[c], s) {
				found[c] = append(found[c], s)
			}
		}
	}
	var findings []Finding
	for i := range weakClasses {
		c := &weakClasses[i]
		if suites := found[c]; len(suites) > 0 {
			findings = append(findings, Finding{
				Severity: c.severity, Title: "The server offers suites with which " + c.why,
				Evidence: j.chosen(suites), Source: c.source,
				Remedy: "Name the cipher suites of the policy in the server's configuration, instead of excluding others.",
			})
		}
	}
	return j.outcome(findings, true, j.listed()...)
}

// suites returns the policy's suites for a version.
func suitesOf(p *policy.Policy, version string) []policy.Value {
	if version == "TLS 1.3" {
		return p.Suites13
	}
	return p.Suites12
}

// chosen returns the evidence of suites, with a hint if there may be more.
func (j *judgement) chosen(suites []string) string {
	text := "Chosen by the server: " + strings.Join(suites, ", ")
	if slices.ContainsFunc(j.offered(), func(v string) bool { return bounded12(j.facts.Protocols.Versions[v].Partial) }) {
		text += ", and perhaps others: --all finds all"
	}
	return text + "."
}

// bounded12 reports whether VersionFacts.Partial is that the list of suites was too long.
func bounded12(partial string) bool {
	return strings.HasPrefix(partial, partialBound[:strings.Index(partialBound, "%")])
}

func checkSuiteOther(j *judgement) ([]Finding, Outcome) {
	p := j.now()
	const (
		noSecrecy = iota
		foreign
		fixed // foreign, and the product can't turn them off
		phasedOut
	)
	var kinds [4][]string
	var conditional []string // suites that the policy allows with encrypt-then-MAC only
	for _, version := range j.offered() {
		allowed := suitesOf(p, version)
		if version == "SSL 2" || len(allowed) == 0 {
			continue
		}
		for _, s := range j.facts.Protocols.Versions[version].Suites {
			v := value(allowed, s)
			kind := foreign
			id, _ := hello.Suite(s)
			x, _ := hello.SuiteExchange(id)
			switch {
			case weakness(s) != nil:
				continue
			case v != nil && v.Needs == policy.EncryptThenMAC && !slices.Contains(conditional, s):
				conditional = append(conditional, s)
			}
			switch {
			case v != nil && v.Level != policy.PhaseOut:
				continue
			case v != nil:
				kind = phasedOut
			case x == hello.RSAExchange, x == hello.StaticDH:
				kind = noSecrecy
			case version == "TLS 1.3" && j.fixedSuite(s) != "":
				kind = fixed
			}
			if !slices.Contains(kinds[kind], s) {
				kinds[kind] = append(kinds[kind], s)
			}
		}
	}
	var findings []Finding
	for i, f := range []Finding{
		noSecrecy: {Severity: Medium, Title: "The server offers suites without forward secrecy",
			Reason: "A stolen private key decrypts all connections that were recorded before."},
		foreign:   {Severity: Medium},
		fixed:     {Severity: Info, settled: true},
		phasedOut: {Severity: Info, Title: "The server offers suites that the policy phases out"},
	} {
		suites := kinds[i]
		if len(suites) == 0 {
			continue
		}
		f.Source, f.Evidence = j.listSource(p.Suites13, p.Suites12), j.chosen(suites)
		f.Remedy = "Name the cipher suites of the policy in the server's configuration."
		if i == fixed {
			f.Remedy = j.fixedSuite(suites[0])
		}
		findings = append(findings, f)
	}
	findings, unknown := j.appendMACFirst(findings, conditional)
	if len(findings) == 0 && unknown != "" {
		return nil, Outcome{Failed, unknown}
	}
	return j.outcome(findings, true, j.listed()...)
}

// fixedSuite returns the remedy for a TLS 1.3 suite that the product at hand can't turn off in its
// configuration, or "" if it can.
func (j *judgement) fixedSuite(suite string) string {
	if !slices.Contains([]string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}, suite) {
		return "" // not a default: somebody has chosen it
	}
	switch {
	case j.onCryptoTLS() && j.policy.FIPS:
		return productNames[j.product] + " can't set the suites of TLS 1.3. Built with Go 1.24 or newer, it has those of FIPS alone " +
			"if it is started with GODEBUG=fips140=on."
	case j.onCryptoTLS():
		return productNames[j.product] + " can't set the suites of TLS 1.3: crypto/tls has three, and offers all."
	case j.oneCurve():
		return "PostgreSQL before 18 can't set the suites of TLS 1.3: update it, or set Ciphersuites in the openssl.cnf that it " +
			"reads."
	}
	return ""
}

func checkSuiteMissing(j *judgement) ([]Finding, Outcome) {
	p := j.now()
	byLevel := map[policy.Level][]string{}
	var looked []string
	for _, version := range []string{"TLS 1.3", "TLS 1.2"} {
		facts := j.facts.Protocols.Versions[version]
		if facts.State == Tested && !facts.Offered {
			continue
		}
		looked = append(looked, version)
		if !facts.Offered || facts.Partial != "" {
			continue
		}
		for _, v := range suitesOf(p, version) {
			if !slices.Contains(facts.Suites, v.Name) && (version == "TLS 1.3" || usable(v.Name, facts.Suites)) {
				byLevel[v.Level] = append(byLevel[v.Level], v.Name)
			}
		}
	}
	var findings []Finding
	for _, level := range []policy.Level{policy.Required, policy.Recommended} {
		if len(byLevel[level]) == 0 {
			continue
		}
		severity := Info
		if level == policy.Required {
			severity = Medium
		}
		findings = append(findings, Finding{
			Severity: severity, Title: fmt.Sprintf("The server doesn't offer cipher suites that are %s", level),
			Evidence: "Not offered: " + strings.Join(byLevel[level], ", ") + ".",
			Source:   j.listSource(p.Suites13, p.Suites12),
			Remedy:   "Add them to the server's cipher suites.",
		})
	}
	findings, outcome := j.outcome(findings, true, looked...)
	if len(findings) == 0 && outcome.State == Tested {
		for _, version := range looked {
			if partial := j.facts.Protocols.Versions[version].Partial; partial != "" { // others may be there, or not
				return nil, Outcome{NotTested, version + ": " + partial}
			}
		}
	}
	return findings, outcome
}

// usable reports whether the server has a certificate for a suite: another of its suites needs the
// same kind.
func usable(name string, suites []string) bool {
	for _, kind := range []string{"_ECDSA_", "_RSA_", "_DSS_"} {
		if strings.Contains(name, kind) {
			return slices.ContainsFunc(suites, func(s string) bool { return strings.Contains(s, kind) })
		}
	}
	return true
}

func checkSuiteOrder(j *judgement) ([]Finding, Outcome) {
	p := j.now()
	if p.Order.Value != orderServer && p.Order.Value != orderClient {
		return nil, Outcome{NotTested, "the policy leaves the order open"}
	}
	var findings []Finding
	for _, version := range []string{"TLS 1.3", "TLS 1.2"} {
		facts := j.facts.Protocols.Versions[version]
		if facts.Order == "" {
			continue
		}
		f := Finding{Severity: Low, Source: sourceOf(j.policy, p.Order.Source)}
		switch whose, _, _ := strings.Cut(facts.Order, ","); {
		case whose != p.Order.Value && whose == orderClient:
			f.Evidence = fmt.Sprintf("%s: from the same suites in another order, the server chose the client's first.", version)
			f.Remedy = "Let the server's order decide."
		case whose != p.Order.Value:
			f.Severity = Info
			f.Evidence = fmt.Sprintf("%s: from the same suites in another order, the server chose the same one.", version)
			f.Remedy = "Let the client's order decide: it knows whether it has instructions for AES."
		default:
			before, after := misplaced(facts.Suites, suitesOf(p, version))
			if whose != orderServer || before == "" {
				continue
			}
			f.Evidence = fmt.Sprintf("%s: the server prefers %s to %s.", version, before, after)
			f.Remedy = "Order the suites as the policy does."
		}
		if n := len(findings) - 1; n >= 0 { // one finding for both versions, as severe as the worse one
			f.Evidence = findings[n].Evidence + " " + f.Evidence
			if f.Remedy != findings[n].Remedy {
				f.Remedy = findings[n].Remedy + " " + f.Remedy
			}
			if findings[n].Severity.Rank() > f.Severity.Rank() {
				f.Severity = findings[n].Severity
			}
			findings = findings[:0]
		}
		findings = append(findings, f)
	}
	return j.outcome(findings, false, "TLS 1.3", "TLS 1.2")
}

// misplaced returns two suites of which the server prefers the one that has a lower level in the
// policy, or that isn't in it.
func misplaced(suites []string, values []policy.Value) (before, after string) {
	rank := func(name string) int {
		v := value(values, name)
		switch {
		case v == nil:
			return 3
		case v.Level == policy.Required, v.Level == policy.Recommended:
			return 0
		case v.Level == policy.PhaseOut:
			return 2
		}
		return 1
	}
	for i := 1; i < len(suites); i++ {
		if rank(suites[i-1]) > rank(suites[i]) {
			return suites[i-1], suites[i]
		}
	}
	return "", ""
}
