package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/policy"
)

// protocolRules are about versions, cipher suites, groups and signature schemes.
var protocolRules = []Rule{
	{
		ID: "version-old", Axis: Safe, Title: "The server offers a version that the policy doesn't allow",
		Reason: "SSL 2 and SSL 3 are broken, and TLS 1.0 and 1.1 depend on MD5 and SHA-1: an attacker on the network can make " +
			"clients use the oldest version that both sides have.",
		Source: "RFC 8996; RFC 7568; RFC 6176", check: checkVersionOld, settings: []string{"versions"},
	},
	{
		ID: "version-missing", Axis: Safe, Title: "The server doesn't offer a version that the policy wants",
		Reason: "Clients without another version are refused, and the others get weaker protection.",
		Source: "RFC 9325, section 3.1", check: checkVersionMissing, settings: []string{"versions"},
		remedies: noVersionRemedies,
	},
	{
		ID: "tls13-missing", Axis: Fast, Title: "Handshakes need the second round trip of TLS 1.2",
		Reason: "A full handshake of TLS 1.2 takes two round trips, one of TLS 1.3 takes one.",
		Source: "RFC 8446, section 2", check: checkTLS13, settings: []string{"versions"},
		remedies: noVersionRemedies,
	},
	{
		ID: "suite-weak", Axis: Safe, Title: "The server offers weak cipher suites",
		Reason: "A client that prefers such a suite, or an attacker who influences the choice, gets a connection that can be read.",
		Source: "RFC 9325, section 4.1", check: checkSuiteWeak, settings: []string{"suites12", "suites13"},
	},
	{
		ID: "suite-not-in-policy", Axis: Safe, Title: "The server offers cipher suites that the policy doesn't have",
		Reason: "Each suite that no client needs is code and configuration that an attacker can try.",
		Source: "RFC 9325, section 4.2", check: checkSuiteOther, settings: []string{"suites12", "suites13"},
	},
	{
		ID: "suite-missing", Axis: Safe, Title: "The server doesn't offer cipher suites that the policy wants",
		Reason: "Clients negotiate a suite that the policy wants less, or none.",
		Source: "RFC 9325, section 4.2", check: checkSuiteMissing, settings: []string{"suites12", "suites13"},
	},
	{
		ID: "suite-order", Axis: Safe, Title: "The order of the cipher suites isn't the policy's",
		Reason: "The order decides the suite of every client that has several.",
		Source: "RFC 9325, section 4.2.1", check: checkSuiteOrder, settings: []string{"order", "suites12", "suites13"},
		impossible: byProduct{
			"caddy": "crypto/tls, which Caddy uses, orders the suites itself",
			"go":    "crypto/tls orders the suites itself",
		},
	},
	{
		ID: "group-weak", Axis: Safe, Title: "The server offers weak key exchange groups",
		Reason: "The key of a connection is as strong as the group that it was agreed in.",
		Source: "RFC 9325, sections 4.3 and 4.4", check: checkGroupWeak, settings: []string{"groups"},
	},
	{
		ID: "group-not-in-policy", Axis: Safe, Title: "The server offers groups that the policy doesn't have",
		Reason: "Clients may agree on a key in a group that the policy doesn't want, or no longer wants.",
		Source: "RFC 8446, section 4.2.7", check: checkGroupOther, settings: []string{"groups"},
	},
	{
		ID: "group-missing", Axis: Safe, Title: "The server doesn't offer groups that the policy wants",
		Reason: "Clients agree on a key in a group that the policy wants less.",
		Source: "RFC 8446, section 9.1", check: checkGroupMissing, settings: []string{"groups"},
	},
	{
		ID: "group-postquantum", Axis: Safe, Title: "The server offers no post-quantum key exchange",
		Reason: "Connections that are recorded today can be decrypted once there are quantum computers.",
		Source: "RFC 10024", check: checkPostQuantum, settings: []string{"groups"},
	},
	{
		ID: "group-retry", Axis: Fast, Title: "Common clients have to send their first message twice",
		Reason: "Browsers, curl and Go begin with a key share of x25519. A server that doesn't have the group answers by a " +
			"HelloRetryRequest, which is another round trip.",
		Source: "RFC 8446, section 2.1", check: checkGroupRetry, settings: []string{"groups"},
	},
	{
		ID: "signature-weak", Axis: Safe, Title: "The server signs handshakes with a weak hash function",
		Reason: "Collisions in MD5 and SHA-1 can be computed, and a client that allows them can be given a forged key exchange.",
		Source: "RFC 9155", check: checkSignatureWeak, settings: []string{"signatures"},
		remedies: signatureRemedies,
	},
	{
		ID: "signature-not-in-policy", Axis: Safe, Title: "The server signs handshakes with schemes that the policy doesn't have",
		Reason: "The policy lists the schemes whose signatures can't be forged.",
		Source: "RFC 8446, section 4.2.3", check: checkSignatureOther, settings: []string{"signatures"},
		remedies: signatureRemedies,
	},
	{
		ID: "hello-large", Axis: Safe, Title: "The server doesn't answer large ClientHellos",
		Reason: "A ClientHello with post-quantum key shares has over 1,400 bytes, and so needs two segments of TCP. Browsers, Go and " +
			"OpenSSL 3.5 send such hellos, and can't connect.",
		Source: "RFC 8446, section 4.1.2; tldr.fail", check: checkHelloLarge,
	},
	{
		ID: "protocol-lies", Axis: Safe, Title: "The server's answers break the protocol",
		Reason: "A server that chooses what nobody offered, or that answers TLS by something else, fails with strict clients.",
		Source: "RFC 8446, section 4.1.3", check: checkLies,
	},
}

// noVersionRemedies are for products with bounds on versions, of which one is to be removed.
var noVersionRemedies = byProduct{
	"haproxy":  "Remove no-tlsv13, no-tlsv12, ssl-max-ver and force-tlsv12 from the bind options, and reload.",
	"lighttpd": "Remove MaxProtocol from ssl.openssl.ssl-conf-cmd, and restart.",
}

var signatureRemedies = byProduct{
	"caddy": "Caddy can't set the signature schemes: crypto/tls chooses by the key. Use an ECDSA key on P-256.",
	"postgresql": "PostgreSQL can't set the signature schemes: name those of the policy as SignatureAlgorithms in the openssl.cnf " +
		"that it reads.",
	"go": "crypto/tls chooses the scheme by the key: use an ECDSA key on P-256.",
}

// oldVersions are the versions below TLS 1.2, with the severity of offering them.
var oldVersions = map[string]Severity{"SSL 2": Critical, "SSL 3": High, "TLS 1.0": Medium, "TLS 1.1": Medium}

// deprecations are the documents that forbid a version.
var deprecations = map[string]string{"SSL 2": "RFC 6176", "SSL 3": "RFC 7568", "TLS 1.0": "RFC 8996", "TLS 1.1": "RFC 8996"}

// versionOrder are all versions, the latest first.
var versionOrder = []string{"TLS 1.3", "TLS 1.2", "TLS 1.1", "TLS 1.0", "SSL 3", "SSL 2"}

// outcome returns the outcome of a rule with findings: a version that wasn't tested, or whose lists
// may be incomplete, keeps a rule without findings from being tested.
func (j *judgement) outcome(findings []Finding, lists bool, versions ...string) ([]Finding, Outcome) {
	if j.facts.Protocols.Versions == nil {
		o := j.facts.Protocols.Outcome
		if o.State == "" || o.State == Tested {
			o = Outcome{NotTested, "the versions weren't looked at"}
		}
		return nil, o
	}
	if len(findings) > 0 {
		return findings, Outcome{State: Tested}
	}
	for _, version := range versions {
		v := j.facts.Protocols.Versions[version]
		switch {
		case v.State != Tested:
			return nil, Outcome{Failed, version + ": " + orElse(v.Reason, "not tested")}
		case lists && v.Partial != "" && !bounded12(v.Partial):
			return nil, Outcome{Failed, version + ": " + v.Partial}
		}
	}
	return nil, Outcome{State: Tested}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// now returns the policy on the day of the judgement.
func (j *judgement) now() *policy.Policy {
	if j.onDay == nil {
		j.onDay = j.policy.At(j.at)
	}
	return j.onDay
}

// value returns the policy's entry for a name, whose case is ignored.
func value(values []policy.Value, name string) *policy.Value {
	i := slices.IndexFunc(values, func(v policy.Value) bool { return strings.EqualFold(v.Name, name) })
	if i < 0 {
		return nil
	}
	return &values[i]
}

// source returns the source that the policy names for a value, or the policy's title if v is nil.
func (j *judgement) source(v *policy.Value) string {
	if v == nil {
		return j.policy.Title
	}
	return sourceOf(j.policy, v.Source)
}

// listSource returns the documents from which the policy has the values of lists, with the sections.
func (j *judgement) listSource(lists ...[]policy.Value) string {
	var sources []string
	for _, v := range slices.Concat(lists...) {
		sources = append(sources, v.Source)
	}
	if len(sources) == 0 {
		return j.policy.Title
	}
	return sourceOf(j.policy, sources...)
}

// offered returns the versions that the server has, the latest first.
func (j *judgement) offered() (versions []string) {
	for _, v := range versionOrder {
		if j.facts.Protocols.Versions[v].Offered {
			versions = append(versions, v)
		}
	}
	return versions
}

func checkVersionOld(j *judgement) ([]Finding, Outcome) {
	var findings []Finding
	allowed := j.now().Versions
	for _, version := range j.offered() {
		v := value(allowed, version)
		severity, old := oldVersions[version]
		switch {
		case v != nil && v.Level != policy.PhaseOut, v == nil && len(allowed) == 0 && !old:
			continue
		case v != nil:
			severity = Info
		case !old:
			severity = Medium
		}
		findings = append(findings, Finding{
			Severity: severity, Title: "The server offers " + version,
			Evidence: fmt.Sprintf("A hello of %s was answered by %s.", version,
				orElse(strings.Join(j.facts.Protocols.Versions[version].Suites, ", "), "a ServerHello")),
			Source: orElse(deprecations[version], j.policy.Title),
			Remedy: "Turn " + version + " off in the server's list of versions.",
		})
	}
	return j.outcome(findings, false, versionOrder...)
}

func checkVersionMissing(j *judgement) ([]Finding, Outcome) {
	var findings []Finding
	var looked []string
	for _, v := range j.now().Versions {
		if v.Level != policy.Required && v.Level != policy.Recommended {
			continue
		}
		looked = append(looked, v.Name)
		facts := j.facts.Protocols.Versions[v.Name]
		if facts.State != Tested || facts.Offered {
			continue
		}
		severity := Low
		if v.Level == policy.Required {
			severity = Medium
		}
		findings = append(findings, Finding{
			Severity: severity, Title: "The server doesn't offer " + v.Name,
			Evidence: "A hello of " + v.Name + " was refused.", Source: j.source(&v),
			Remedy: "Add " + v.Name + " to the server's list of versions, or update the server.",
		})
	}
	return j.outcome(findings, false, looked...)
}

func checkTLS13(j *judgement) ([]Finding, Outcome) {
	var findings []Finding
	if v := j.facts.Protocols.Versions["TLS 1.3"]; v.State == Tested && !v.Offered {
		latest := "none"
		if offered := j.offered(); len(offered) > 0 {
			latest = offered[0]
		}
		findings = append(findings, Finding{
			Severity: Medium, Evidence: "The latest version is " + latest + ".",
			Remedy: "Turn TLS 1.3 on. OpenSSL has it since 1.1.1.",
			Price:  Price{RoundTrips: 1, Method: "a full handshake of TLS 1.2 has two round trips, one of TLS 1.3 has one"},
		})
	}
	return j.outcome(findings, false, "TLS 1.3")
}

// listed returns the versions whose lists matter: those that are offered, or unknown.
func (j *judgement) listed() (versions []string) {
	for _, name := range versionOrder {
		v := j.facts.Protocols.Versions[name]
		if name != "SSL 2" && (v.Offered || v.State != Tested) {
			versions = append(versions, name)
		}
	}
	return versions
}

func checkLies(j *judgement) ([]Finding, Outcome) {
	var findings []Finding
	for _, lie := range j.facts.Protocols.Lies {
		findings = append(findings, Finding{
			Severity: Medium, Evidence: strings.ToUpper(lie[:1]) + lie[1:] + ".",
			Remedy: "Update the server, and look for a device on the way that answers in its place.",
		})
	}
	tested := slices.ContainsFunc(versionOrder, func(v string) bool { return j.facts.Protocols.Versions[v].State == Tested })
	if len(findings) == 0 && !tested {
		return j.outcome(nil, false, versionOrder...)
	}
	return j.outcome(findings, false)
}
