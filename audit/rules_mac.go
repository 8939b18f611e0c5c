package audit

import "strings"

// appendMACFirst appends a finding if the server offers suites that the policy allows with
// encrypt-then-MAC only, and doesn't negotiate it. If the facts don't show whether it does, unknown
// is the reason why the rule can't pass.
func (j *judgement) appendMACFirst(findings []Finding, suites []string) (_ []Finding, unknown string) {
	etm := j.facts.Options.EncryptThenMAC
	switch {
	case len(suites) == 0, etm.State == Tested && etm.On:
		return findings, ""
	case etm.State != Tested:
		return findings, "the policy needs encrypt-then-MAC for " + strings.Join(suites, ", ") +
			", and it isn't known whether the server negotiates it: " + orElse(etm.Reason, "not tested")
	}
	return append(findings, Finding{
		Severity: Low, Title: "The server offers suites with CBC, but not encrypt-then-MAC",
		Reason: "The policy allows these suites with encrypt-then-MAC only: without it, nothing protects the padding, and " +
			"an attacker who measures the server's answers can read plaintext (Lucky 13).",
		Source: j.source(value(j.now().Suites12, suites[0])),
		Evidence: j.chosen(suites) + " A hello that offered only suites with CBC, and " +
			"the extension encrypt_then_mac, was answered without the extension.",
		Remedy: "Remove these suites. Where a client needs one, use a server that has encrypt-then-MAC: those on OpenSSL do, " +
			"and crypto/tls doesn't.",
	}), ""
}
