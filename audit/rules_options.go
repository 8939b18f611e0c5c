package audit

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"slices"
	"strings"
)

// optionRules are about extensions and settings of the handshake.
var optionRules = []Rule{
	{
		ID: "alpn-h2", Axis: Fast,
		Title:  "The server doesn't offer HTTP/2",
		Reason: "Browsers open up to six connections for HTTP/1.1, each with a handshake of its own, and one for HTTP/2.",
		Source: "RFC 9113, section 3.2",
		check:  checkALPN,
	},
	switchRule("ems-missing", "The server has no extended master secret",
		"Without it, an attacker between two TLS 1.2 connections can give both the same master secret (triple handshake).",
		"RFC 9325, section 3.5", Medium, false, func(o *OptionFacts) Switch { return o.ExtendedMaster },
		"The server answers a TLS 1.2 ClientHello with extended_master_secret without the extension.",
		"Update the server's TLS library: OpenSSL has the extension from 1.1.0 on."),
	switchRule("renegotiation-insecure", "The server has no secure renegotiation",
		"An attacker can put data of its own before a client's, and have the server take both for the client's.",
		"RFC 5746", High, false, func(o *OptionFacts) Switch { return o.SecureRenegotiation },
		"The server answers a TLS 1.2 ClientHello with renegotiation_info without the extension.",
		"Update the server's TLS library: OpenSSL has the extension from 0.9.8m on."),
	switchRule("renegotiation-client", "The server renegotiates when a client asks",
		"One client can make the server do the work of many handshakes on one connection, past limits on connections.",
		"RFC 9325, section 3.5", Low, true, func(o *OptionFacts) Switch { return o.ClientRenegotiation },
		"The server answered a second ClientHello on a TLS 1.2 connection by a ServerHello.",
		"Turn renegotiation off: OpenSSL's option no_renegotiation, the default of 3.0 for clients' requests."),
	switchRule("compression-on", "The server compresses records",
		"The length of compressed data tells an attacker about secrets beside data of its own (CRIME).",
		"RFC 9325, section 3.3", High, true, func(o *OptionFacts) Switch { return o.Compression },
		"The server chose DEFLATE for a TLS 1.2 ClientHello.",
		"Turn TLS compression off: OpenSSL's option no_compression."),
	switchRule("fallback-missing", "The server accepts a fallback to an older version",
		"An attacker can break off handshakes until a client tries an older version, and so choose the version.",
		"RFC 7507", Low, false, func(o *OptionFacts) Switch { return o.Fallback },
		"The server accepted an older version together with TLS_FALLBACK_SCSV.",
		"Update the server's TLS library, or turn the older versions off."),
	{
		ID: "certificate-compression", Axis: Fast, info: true,
		Title:  "The server doesn't compress its certificates",
		Reason: "Browsers take compressed certificates, which makes the server's first flight shorter.",
		Source: "RFC 8879",
		check:  checkCertificateCompression,
	},
}

// switchRule is a rule that is broken if a switch is in the position bad.
func switchRule(id, title, reason, source string, severity Severity, bad bool, facts func(*OptionFacts) Switch,
	evidence, remedy string) Rule {
	return Rule{ID: id, Axis: Safe, Title: title, Reason: reason, Source: source,
		check: func(j *judgement) ([]Finding, Outcome) {
			s := facts(&j.facts.Options)
			if s.State != Tested || s.On != bad {
				return nil, s.Outcome
			}
			f := Finding{Severity: severity, Evidence: evidence, Remedy: remedy}
			if id == "ems-missing" && j.onCryptoTLS() && !j.policy.FIPS {
				f.Severity = Low // the attack ends in a renegotiation, and crypto/tls has none
			}
			return []Finding{f}, s.Outcome
		}}
}

func checkALPN(j *judgement) ([]Finding, Outcome) {
	f := j.facts.Options.ALPN
	if f.State != Tested || slices.Contains(f.Values, "h2") {
		return nil, f.Outcome
	}
	evidence := "The server chooses no protocol of h2 and http/1.1."
	if len(f.Values) > 0 {
		evidence = fmt.Sprintf("Of h2 and http/1.1, the server offers %s.", strings.Join(f.Values, " and "))
	}
	return []Finding{{Severity: Low, Evidence: evidence, Remedy: "Turn HTTP/2 on, and put h2 before http/1.1."}}, f.Outcome
}

func checkCertificateCompression(j *judgement) ([]Finding, Outcome) {
	f := j.facts.Options.CompressCertificate
	if f.State != Tested || len(f.Values) > 0 {
		return nil, f.Outcome
	}
	return []Finding{{
		Severity: Info,
		Evidence: "The server sends its certificates plain to a client that takes zlib, brotli and zstd.",
		Remedy:   "Turn the compression of certificates on, if the server has it: OpenSSL has it from 3.2 on.",
		Price:    j.facts.compressionPrice(),
	}}, f.Outcome
}

// compressionPrice compresses the chain.
func (f *Facts) compressionPrice() Price {
	if len(f.Certificates.Chains) == 0 {
		return Price{}
	}
	var out bytes.Buffer
	z, n := zlib.NewWriter(&out), 0
	for _, der := range f.Certificates.Chains[0].DER {
		z.Write(der)
		n += len(der)
	}
	z.Close()
	if n == 0 || out.Len() >= n {
		return Price{}
	}
	return Price{Bytes: n - out.Len(), Method: "the server's chain, compressed here with zlib"}
}
