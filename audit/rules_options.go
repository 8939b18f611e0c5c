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
		remedies: byProduct{
			"nginx":    "Set http2 on; (before nginx 1.25.1: listen 443 ssl http2;) and reload.",
			"apache":   "Set Protocols h2 http/1.1 with the event MPM and mod_http2, and reload.",
			"haproxy":  "Add alpn h2,http/1.1 to the bind line, and reload.",
			"lighttpd": "Remove server.h2proto from server.feature-flags, and restart.",
		},
	},
	{
		ID: "ems-missing", Axis: Safe,
		Title:  "The server has no extended master secret",
		Reason: "Without it, an attacker between two TLS 1.2 connections can give both the same master secret (triple handshake).",
		Source: "RFC 9325, section 3.5",
		check: func(j *judgement) ([]Finding, Outcome) {
			f := Finding{
				Severity: Medium,
				Evidence: "The server answers a ClientHello with extended_master_secret without the extension.",
				Remedy:   "Update the server's TLS library: OpenSSL has the extension from 1.1.0 on.",
			}
			if j.onCryptoTLS() && !j.policy.FIPS {
				f.Severity = Low // the attack needs a renegotiation, and crypto/tls has none
			}
			return switched(j.facts.Options.ExtendedMaster, false, f)
		},
		remedies: byProduct{
			"nginx":      "Run nginx with OpenSSL 1.1.0 or newer.",
			"apache":     "Run Apache with OpenSSL 1.1.0 or newer.",
			"haproxy":    "Run HAProxy with OpenSSL 1.1.0 or newer.",
			"lighttpd":   "Run lighttpd with OpenSSL 1.1.0 or newer.",
			"caddy":      "Update Caddy: it has the extension if it was built with Go 1.21 or newer.",
			"postgresql": "Run PostgreSQL with OpenSSL 1.1.0 or newer.",
			"go":         "Build the server with Go 1.21 or newer.",
		},
	},
	{
		ID: "renegotiation-insecure", Axis: Safe,
		Title:  "The server has no secure renegotiation",
		Reason: "An attacker can put data of its own before a client's, and have the server take both for the client's.",
		Source: "RFC 5746",
		check: func(j *judgement) ([]Finding, Outcome) {
			return switched(j.facts.Options.SecureRenegotiation, false, Finding{
				Severity: High,
				Evidence: "The server answers a ClientHello with renegotiation_info without the extension.",
				Remedy:   "Update the server's TLS library: OpenSSL has the extension from 0.9.8m on.",
			})
		},
	},
	{
		ID: "renegotiation-client", Axis: Safe,
		Title:  "The server renegotiates when a client asks",
		Reason: "One client can make the server do the work of many handshakes on one connection, past limits on connections.",
		Source: "RFC 9325, section 3.5",
		check: func(j *judgement) ([]Finding, Outcome) {
			return switched(j.facts.Options.ClientRenegotiation, true, Finding{
				Severity: Low,
				Evidence: "The server answered a second ClientHello on a connection by a ServerHello.",
				Remedy:   "Turn renegotiation off: OpenSSL's option no_renegotiation, the default of 3.0 for clients' requests.",
			})
		},
		remedies: byProduct{
			"nginx":  "Update nginx: it refuses clients' renegotiation since 0.8.23.",
			"apache": "Update Apache: it refuses clients' renegotiation since 2.2.15.",
		},
	},
	{
		ID: "compression-on", Axis: Safe,
		Title:  "The server compresses records",
		Reason: "The length of compressed data tells an attacker about secrets beside data of its own (CRIME).",
		Source: "RFC 9325, section 3.3",
		check: func(j *judgement) ([]Finding, Outcome) {
			return switched(j.facts.Options.Compression, true, Finding{
				Severity: High,
				Evidence: "The server chose DEFLATE for a ClientHello that offered it.",
				Remedy:   "Turn TLS compression off: OpenSSL's option no_compression.",
			})
		},
		remedies: byProduct{
			"nginx":      "Update nginx: it turns compression off since 1.3.2.",
			"apache":     "Set SSLCompression off, and reload.",
			"haproxy":    "Run HAProxy with OpenSSL 1.1.0 or newer, whose compression is off.",
			"lighttpd":   "Set ssl.openssl.ssl-conf-cmd += ( \"Options\" => \"-Compression\" ), and restart.",
			"postgresql": "Update PostgreSQL: it turns compression off since 14.",
		},
	},
	{
		ID: "fallback-missing", Axis: Safe,
		Title:  "The server accepts a fallback to an older version",
		Reason: "An attacker can break off handshakes until a client tries an older version, and so choose the version.",
		Source: "RFC 7507",
		check: func(j *judgement) ([]Finding, Outcome) {
			return switched(j.facts.Options.Fallback, false, Finding{
				Severity: Low,
				Evidence: "The server accepted an older version together with TLS_FALLBACK_SCSV.",
				Remedy:   "Update the server's TLS library, or turn the older versions off.",
			})
		},
		settings: []string{"versions"},
	},
	{
		ID: "certificate-compression", Axis: Fast, info: true,
		Title:  "The server doesn't compress its certificates",
		Reason: "Browsers take compressed certificates, which makes the server's first flight shorter.",
		Source: "RFC 8879",
		check:  checkCertificateCompression,
		remedies: byProduct{
			"nginx":   "Set ssl_certificate_compression on; and reload. It needs nginx 1.29.1 and OpenSSL 3.2.",
			"haproxy": "Set tune.ssl.certificate-compression auto, and restart. It needs OpenSSL 3.2.",
		},
		impossible: byProduct{
			"apache":     "Apache has no setting for it",
			"lighttpd":   "lighttpd has no setting for it",
			"caddy":      "crypto/tls, which Caddy uses, compresses no certificates",
			"postgresql": "PostgreSQL compresses no certificates",
			"go":         "crypto/tls compresses no certificates",
		},
	},
}

// switched returns a finding if a switch is in the position bad.
func switched(s Switch, bad bool, f Finding) ([]Finding, Outcome) {
	if s.State != Tested || s.On != bad {
		return nil, s.Outcome
	}
	return []Finding{f}, s.Outcome
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
