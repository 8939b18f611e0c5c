package main

import (
	"regexp"
	"strings"
)

// A difference is a disagreement between an audit and another tool.
type difference struct{ server, fact, tool, ours, theirs string }

// A decision names the tool that is right about differences, and the fact that shows it. Empty
// patterns match everything.
type decision struct {
	server, fact, tool, ours, theirs string // regular expressions for the whole
	right, why                       string
}

// decide returns the tool that is right, and why, or nothing.
func (d difference) decide() (right, why string) {
	for _, one := range decisions {
		if matches(one.server, d.server) && matches(one.fact, d.fact) && matches(one.tool, d.tool) &&
			matches(one.ours, d.ours) && matches(one.theirs, d.theirs) {
			return one.right, one.why
		}
	}
	return "", ""
}

func matches(pattern, text string) bool {
	return pattern == "" || regexp.MustCompile("^(?:"+pattern+")$").MatchString(text)
}

const (
	scripted = "ssl-2|ssl-3|ssl-3-up|export|rc4|null|dh-1024|compression"
	ours     = "ossl check"
	both     = "both"
	tests    = "testssl.sh" // right about a fact that an audit reports as not tested
)

// decisions are in the order of their use: the first that matches decides.
var decisions = []decision{
	{server: "rate-limit", tool: "sslyze", right: ours,
		why: "ServerHello of TLS 1.2 and of TLS 1.3 at the next connection: sslyze reads a connection that the limit " +
			"closed as a refusal"},
	{fact: factTrusted, server: "certificate-expired", right: both,
		why: "notAfter of the leaf: `ossl check` reports it as certificate-expired, and doesn't count it against the " +
			"chain too"},
	{fact: factTrusted, server: "certificate-wrong-name", right: both,
		why: "subjectAltName of the leaf: `ossl check` reports it as certificate-name, and doesn't count it against " +
			"the chain too"},
	{fact: factTrusted, server: "certificate-sha-1", right: ours,
		why: "signatureAlgorithm of the leaf, sha1WithRSAEncryption: current clients refuse it, `openssl verify` " +
			"without a security level doesn't"},
	{fact: factGroups, tool: "sslyze", theirs: "secp256r1", right: ours,
		why: "ServerKeyExchange with x25519: the suites are ECDSA's, and for each group sslyze sends that group alone, " +
			"without the key's curve"},
	{fact: factGroups, tool: "sslyze", right: ours, why: "HelloRetryRequest for group 0x001d, x25519"},
	{fact: factEarly, tool: "sslyze", right: ours, why: "EncryptedExtensions with early_data (RFC 8446, section 4.2.10)"},
	{server: "ssl-3|export|null", ours: "", tool: "testssl.sh", theirs: "yes|no|RSA 2048", right: tests,
		fact: strings.Join([]string{factSHA1, factChainOrder, factTrusted, factExpired, factKey, factName, factStapled}, "|"),
		why:  "Certificate: `ossl check` takes the chain from handshakes, and has no suite of this server for one"},
	{server: "go-1.0-only", ours: "", right: "the other",
		fact: strings.Join([]string{factClient, factCompression, factEMS, factSecure}, "|"),
		why:  "ServerHello: `ossl check` asks for these in TLS 1.2 only, and reports the version"},
	{server: "null", fact: factSecure, ours: "", right: tests,
		why: "renegotiation_info in ServerHello: `ossl check` asks for it with suites that encrypt"},
	{server: scripted, ours: "", right: both,
		why: "none: the server is a script that ends after ServerHelloDone. `ossl check` says \"not tested\", the " +
			"other \"no\""},
	{fact: factID, tool: "testssl.sh", right: ours,
		why: "in TLS 1.2, Certificate after the second ServerHello; testssl.sh asked in TLS 1.3, where the server " +
			"resumes by ticket"},
	{fact: factID, tool: "sslyze", right: ours,
		why: "the second ServerHello repeats the session ID, and ChangeCipherSpec follows; OpenSSL forgets a session " +
			"that ended without close_notify"},
	{fact: factTicket, tool: "testssl.sh", right: ours,
		why: "ChangeCipherSpec after the second ServerHello; NewSessionTicket has lifetime 0, \"unspecified\" (RFC " +
			"5077, section 3.3), which testssl.sh reads as none"},
	{fact: factTicket, tool: "sslyze", right: ours,
		why: "ChangeCipherSpec after the second ServerHello, and no Certificate"},
	{fact: "suites of TLS 1.2", tool: "sslyze", server: "s-server-trixie-old", right: ours,
		why: "ServerHello with suite 0x00bf and with 0x00c5: sslyze doesn't ask for them"},
}
