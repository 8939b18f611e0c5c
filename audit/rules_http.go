package audit

import (
	"fmt"
	"strings"
)

// httpRules are about plain HTTP, and HTTP over TLS.
var httpRules = []Rule{
	{
		ID: "http-redirect", Axis: Safe,
		Title: "Plain HTTP doesn't lead to HTTPS",
		Reason: "Users who type the name without https:// stay on plain HTTP, where everybody on the way can read and " +
			"change the page.",
		Source: "RFC 6797, section 7.2",
		check:  checkRedirect,
	},
	{
		ID: "http-hsts", Axis: Safe,
		Title: "The server has no strict transport security",
		Reason: "Without it, a browser's first request may go to plain HTTP on every visit, " +
			"and users can dismiss warnings of certificates.",
		Source: "RFC 6797, section 7.1",
		check:  checkHSTS, settings: []string{"hsts"},
	},
}

func checkRedirect(j *judgement) ([]Finding, Outcome) {
	f := &j.facts.HTTP
	if f.Redirect.State != Tested {
		return nil, f.Redirect
	}
	evidence := fmt.Sprintf("Port 80 answers with status %d and no redirection.", f.PlainStatus)
	switch {
	case len(f.Redirects) >= 8 && strings.EqualFold(f.Redirects[:8], "https://"):
		return nil, f.Redirect
	case f.Redirects != "":
		evidence = fmt.Sprintf("Port 80 redirects to %q.", f.Redirects)
	case f.PlainStatus >= 400: // no page to be read or changed
		return nil, f.Redirect
	}
	return []Finding{{
		Severity: Medium,
		Evidence: evidence,
		Remedy:   "Answer every request on port 80 with status 301 and the same URL with https://, or close the port.",
	}}, f.Redirect
}

func checkHSTS(j *judgement) ([]Finding, Outcome) {
	f := &j.facts.HTTP
	least := j.policy.Sockets.HSTS
	switch {
	case f.State != Tested:
		return nil, f.Outcome
	case f.NoName:
		return nil, Outcome{NotTested, "the target is an address, for which clients ignore it"}
	}
	finding := Finding{
		Severity: Info,
		Evidence: "The server's answer has no header Strict-Transport-Security.",
		Remedy: "Once all of the name is reached by HTTPS, send the header “Strict-Transport-Security: max-age=31536000” " +
			"with every answer, those of errors too.",
	}
	if least.Value > 0 {
		finding.Severity, finding.Source = Low, sourceOf(j.policy, least.Source)
		finding.Remedy = strings.Replace(finding.Remedy, "31536000", fmt.Sprint(max(least.Value, 31536000)), 1)
	}
	switch {
	case f.HSTS == "":
	case f.HSTSAge == 0:
		finding.Evidence = fmt.Sprintf("The header is %q, which turns it off.", f.HSTS)
	case f.HSTSAge < least.Value:
		finding.Evidence = fmt.Sprintf("The header is %q; the policy has at least %d seconds.", f.HSTS, least.Value)
	default:
		return nil, f.Outcome
	}
	return []Finding{finding}, f.Outcome
}

// dnsRules are about the name's records.
var dnsRules = []Rule{
	{
		ID: "dns-https", Axis: Fast, info: true,
		Title: "The name has no HTTPS record",
		Reason: "With the record, browsers begin with HTTPS, and with HTTP/3 if it is offered, without asking plain HTTP " +
			"or Alt-Svc first.",
		Source: "RFC 9460, section 9",
		check:  checkHTTPSRecord,
	},
	{
		ID: "ech-missing", Axis: Safe, info: true,
		Title:  "The name has no keys for Encrypted Client Hello",
		Reason: "Without them, everybody on the way sees the name that a client asks for.",
		Source: "RFC 9849",
		check:  checkECH,
	},
}

func checkHTTPSRecord(j *judgement) ([]Finding, Outcome) {
	f := &j.facts.DNS
	if f.ECH.State != Tested || len(f.HTTPS) > 0 { // if the target isn't HTTPS, nothing asked
		return nil, f.ECH.Outcome
	}
	return []Finding{{
		Severity: Info,
		Evidence: "The resolver has no record of type HTTPS for the name.",
		Remedy:   "Add a record such as “HTTPS 1 . alpn=h2” to the name's zone.",
	}}, f.Outcome
}

func checkECH(j *judgement) ([]Finding, Outcome) {
	return switched(j.facts.DNS.ECH, false, Finding{
		Severity: Info,
		Evidence: "No HTTPS record of the name has an ech parameter.",
		Remedy: "If others' names are served at the same address, so that hiding the name is of use: give the server ECH keys, and " +
			"publish their configuration in the ech parameter of the HTTPS record.",
	})
}

// startTLSRules are about the part of a connection before TLS.
var startTLSRules = []Rule{{
	ID: "starttls-injection", Axis: Safe,
	Title: "The server executes commands that came before TLS",
	Reason: "An attacker on the way can put commands in clear text before a client's encrypted ones, and the server " +
		"takes them for the client's.",
	Source: "RFC 3207, section 4.2; CVE-2011-0411",
	check: func(j *judgement) ([]Finding, Outcome) {
		return switched(j.facts.Injection, true, Finding{
			Severity: High,
			Evidence: "A command that was sent in one segment with the request for TLS was answered within TLS.",
			Remedy:   "Update the server: it has to discard what it read before TLS began.",
		})
	},
}}
