package audit

import (
	"fmt"
	"strings"
)

// securityHeaders are the headers that [Options.Extra] keeps.
var securityHeaders = []string{"Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy"}

// extraRules are about the surroundings of TLS. They are judged if [Options.Extra] asked for them.
var extraRules = []Rule{
	{
		ID: "caa-missing", Axis: Safe, extra: true,
		Title: "Every certificate authority may issue certificates for the name",
		Reason: "With a CAA record, an authority that the owner doesn't use refuses to issue, so an attacker has to deceive " +
			"the one that is named.",
		Source: "RFC 8659, section 3",
		check:  checkCAA,
	},
	{
		ID: "sct-missing", Axis: Safe, extra: true,
		Title: "The certificate has fewer than two timestamps of public logs",
		Reason: "Chrome and Safari refuse certificates of public authorities that aren't in logs, and the owner doesn't learn " +
			"of certificates that others obtained.",
		Source: "RFC 9162, section 1",
		check:  checkSCTs,
	},
	{
		ID: "http-headers", Axis: Safe, extra: true,
		Title:  "Headers that limit scripts and frames are missing",
		Reason: "Browsers then run scripts of any source, guess the types of files, and show the page in others' frames.",
		Source: "Content Security Policy Level 3, section 6; Fetch Standard, section 3.6",
		check:  checkHeaders,
	},
}

func checkCAA(j *judgement) ([]Finding, Outcome) {
	f := &j.facts.DNS
	if f.State != Tested || len(f.CAA) > 0 {
		return nil, f.Outcome
	}
	return []Finding{{
		Severity: Low,
		Evidence: "Neither the name nor a name above it has a record of type CAA.",
		Remedy:   "Add a record such as “CAA 0 issue \"ca.example\"” to the zone, with the domain that your authority documents.",
	}}, f.Outcome
}

func checkSCTs(j *judgement) (findings []Finding, outcome Outcome) {
	f := &j.facts.Certificates
	switch {
	case f.State != Tested:
		return nil, f.Outcome
	case j.facts.Extra.OwnRoots:
		return nil, Outcome{NotTested, "the trust anchors are your own, and logs are for public authorities"}
	}
	for _, chain := range f.Chains {
		if !chain.Trusted || chain.SCTs >= 2 {
			continue
		}
		findings = append(findings, Finding{
			Severity: Medium,
			Evidence: fmt.Sprintf("The %s certificate has %d.", chain.Key, chain.SCTs),
			Remedy:   "Get the certificate from an authority that puts timestamps into it, as all public ones do by default.",
		})
	}
	return findings, f.Outcome
}

func checkHeaders(j *judgement) ([]Finding, Outcome) {
	f, headers := &j.facts.HTTP, j.facts.Extra.Headers
	switch {
	case f.State != Tested:
		return nil, f.Outcome
	case j.facts.Extra.Status/100 != 2:
		return nil, Outcome{NotTested, fmt.Sprintf("the page / has the status %d", j.facts.Extra.Status)}
	}
	csp := headers["Content-Security-Policy"]
	var missing []string
	if csp == "" {
		missing = append(missing, "Content-Security-Policy")
	}
	if !strings.EqualFold(headers["X-Content-Type-Options"], "nosniff") {
		missing = append(missing, "X-Content-Type-Options: nosniff")
	}
	if headers["X-Frame-Options"] == "" && !strings.Contains(strings.ToLower(csp), "frame-ancestors") {
		missing = append(missing, "X-Frame-Options (or frame-ancestors in Content-Security-Policy)")
	}
	if headers["Referrer-Policy"] == "" {
		missing = append(missing, "Referrer-Policy")
	}
	if missing == nil {
		return nil, f.Outcome
	}
	return []Finding{{
		Severity: Low,
		Evidence: "The answer to GET / lacks " + strings.Join(missing, ", ") + ".",
		Remedy: "Send “X-Content-Type-Options: nosniff”, “Referrer-Policy: strict-origin-when-cross-origin” and a " +
			"Content-Security-Policy that fits the page, such as “default-src 'self'; frame-ancestors 'none'”.",
	}}, f.Outcome
}
