package report_test

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/ossl-go/ossl/audit"
	"github.com/ossl-go/ossl/audit/report"
)

// hostile is text that a server may put into names, headers and errors.
const hostile = "\x1b[31mred\r\n</td><script>alert(1)</script> | `code` *bold* [link](http://x) " +
	"www.example.com @name $x$ \xff\x00\u009b2J\u202e\U000e0041"

// sample returns a document with three reports: findings of all severities, none, and no connection.
func sample() *report.Document {
	day := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	stapled := day.Add(-90 * time.Minute)
	one := audit.Interval{Median: 18.24, Low: 18.1, High: 18.4}
	tested := audit.Outcome{State: audit.Tested}
	full := &audit.Report{
		Target: audit.Target{Host: "shop.example", Port: 443, Protocol: "https"}, Policy: "fast-and-safe",
		At: "2026-11-23", Started: day, Seconds: 0.412,
		Fast: audit.Grade{Mark: "D", Rule: "resume-tls13"}, Safe: audit.Grade{Mark: "?", Rule: "staple-missing", Best: "C"},
		Cost: audit.Cost{Connections: 41, Handshakes: 9, Signatures: 7, Retried: 1, Bytes: 61234},
	}
	full.Facts = audit.Facts{
		Address: "192.0.2.1:443", Server: "nginx/1.22.1 " + hostile,
		Addresses: []audit.AddressFacts{
			{Outcome: tested, Address: "192.0.2.1:443", RoundTrip: &one, Version: "TLS 1.3"},
			{Outcome: audit.Outcome{State: audit.Failed, Reason: "connection refused"}, Address: "[2001:db8::1]:443"},
		},
		Protocols: audit.ProtocolFacts{Versions: map[string]audit.VersionFacts{
			"TLS 1.3": {Outcome: tested, Offered: true, Suites: []string{"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"},
				Order: "server", Groups: []string{"X25519MLKEM768", "X25519", "secp256r1"}, GroupOrder: "server"},
			"TLS 1.0": {Outcome: tested},
		}},
		Certificates: audit.CertificateFacts{Outcome: tested, Chains: []audit.ChainFacts{{
			Key: "RSA 2048", Bytes: 3120, Trusted: true, InOrder: true, Stapled: true, StapleFrom: &stapled, StapleUntil: &day,
			OCSP: []string{hostile}, CRL: []string{hostile},
			Certificates: []audit.CertificateFact{{Subject: "CN=" + hostile, Names: []string{"shop.example", hostile},
				NotBefore: day.AddDate(0, -1, 0), NotAfter: day.AddDate(0, 2, 0), Key: "RSA 2048", Signature: "SHA256-RSA", Bytes: 1300,
				Revoked: hostile, RevocationUnknown: hostile}},
		}}},
		Flight: audit.FlightFacts{Outcome: tested, Bytes: 4015, RoundTrips: 1},
		Timing: audit.TimingFacts{Outcome: tested, RoundTrip: &one, Retry: &audit.Interval{Median: 18.6, Low: 18.4, High: 18.9},
			Full: &audit.Interval{Median: 20.1, Low: 19.8, High: 20.6}, Resumed: &audit.Interval{Median: 18.9, Low: 18.6, High: 19.2},
			PublicKey: map[string]*audit.Interval{"RSA 2048": {Median: 1.5, Low: 1.4, High: 1.6}, "ECDSA secp256r1": nil}},
		Resumption: audit.ResumptionFacts{Ticket13: audit.Resumed{Outcome: tested, Offered: true, Tries: 5},
			Watch: &audit.WatchFacts{Since: day, Until: day.Add(2 * time.Hour), Changes: []time.Time{day.Add(time.Hour)},
				Samples: []audit.WatchSample{{Time: day}, {Time: day.Add(time.Hour), KeyName: "c0ffee"}, {Error: hostile}}}},
		EarlyData: audit.EarlyDataFacts{Outcome: tested, Accepted: true, Limit: 16384,
			Replay: audit.Replay{Outcome: tested, Sent: 3, Executed: 1, TooEarly: 2}},
	}
	full.Findings = []audit.Finding{
		{Rule: "resume-tls13", Axis: audit.Fast, Severity: audit.High, Title: "TLS 1.3 sessions are not resumed",
			Evidence: "0 of 5 connections were resumed.", Reason: "Each returning visitor pays a full handshake.",
			Source: "fast-and-safe 3", Remedy: "ssl_session_cache shared:TLS:10m;",
			Price: audit.Price{Millis: &audit.Interval{Median: 1.2, Low: 1.1, High: 1.3}, Share: 0.5, Bytes: 3020,
				Method: "full handshakes beside resumed ones, in pairs"}},
		{Rule: "certificate-name", Axis: audit.Safe, Severity: audit.Medium, Title: "The certificate isn't valid for the name",
			Evidence: "It names " + hostile, Reason: "Clients refuse it.", Source: "RFC 9525", Remedy: "Get another.",
			Address: "192.0.2.1:443", Price: audit.Price{Method: "not measurable here: clients refuse"}},
		{Rule: "dns-https", Axis: audit.Fast, Severity: audit.Info, Title: "The name has no HTTPS record",
			Evidence: "No record of type 65.", Price: audit.Price{RoundTrips: 1, Method: "computed"}},
	}
	full.Results = []audit.Result{
		{Rule: "resume-tls13", State: audit.Tested, Findings: 1}, {Rule: "certificate-name", State: audit.Tested, Findings: 1},
		{Rule: "dns-https", State: audit.Tested, Findings: 1},
		{Rule: "staple-missing", State: audit.Failed, Reason: "the connection was lost twice " + hostile},
		{Rule: "early-data-replay", State: audit.NotTested, Reason: "not asked for"},
	}
	clean := &audit.Report{
		Target: audit.Target{Host: "2001:db8::2", Port: 8443, Protocol: "tls"}, Policy: "fast-and-safe", At: "2026-11-23",
		Started: day, Fast: audit.Grade{Mark: "A"}, Safe: audit.Grade{Mark: "A"}, Findings: []audit.Finding{},
		Facts:   audit.Facts{Address: "[2001:db8::2]:8443"},
		Results: []audit.Result{{Rule: "resume-tls13", State: audit.Tested}},
	}
	dead := &audit.Report{
		Target: audit.Target{Host: "dead.example", Port: 25, Protocol: "smtp"}, Policy: "fast-and-safe", At: "2026-11-23",
		Started: day, Fast: audit.Grade{Mark: "?", Rule: "resume-tls13", Best: "A"}, Safe: audit.Grade{Mark: "?", Best: "A"},
		Error: "no address can be reached", Interrupted: true, Findings: []audit.Finding{},
		Results: []audit.Result{{Rule: "resume-tls13", State: audit.Failed, Reason: "no address can be reached"}},
	}
	d := &report.Document{Version: 1, Tool: "ossl v0.1.0, go1.26.0", Written: day, Reports: []*audit.Report{full, clean, dead}}
	text, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	text = bytes.ReplaceAll(text, []byte(`"state":""`), []byte(`"state":"not tested"`)) // as Check does
	d = new(report.Document)
	if err := json.Unmarshal(text, d); err != nil {
		panic(err)
	}
	return d
}
