package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/policy"
)

// protocolRules are about versions, cipher suites, groups and signature schemes.
var protocolRules = []Rule{
	{
		ID: "version-old", Axis: Safe, Title: "The server offers a version that the policy doesn't allow",
		Reason: "SSL 2 and SSL 3 are broken, and TLS 1.0 and 1.1 depend on MD5 and SHA-1: an attacker on the network can make " +
			"clients use the oldest version that both sides have.",
		Source: "RFC 8996; RFC 7568; RFC 6176", check: checkVersionOld,
	},
	{
		ID: "version-missing", Axis: Safe, Title: "The server doesn't offer a version that the policy wants",
		Reason: "Clients without another version are refused, and the others get weaker protection.",
		Source: "RFC 9325, section 3.1", check: checkVersionMissing,
	},
	{
		ID: "tls13-missing", Axis: Fast, Title: "Handshakes need the second round trip of TLS 1.2",
		Reason: "A full handshake of TLS 1.2 takes two round trips, one of TLS 1.3 takes one.",
		Source: "RFC 8446, section 2", check: checkTLS13,
	},
	{
		ID: "suite-weak", Axis: Safe, Title: "The server offers weak cipher suites",
		Reason: "A client that prefers such a suite, or an attacker who influences the choice, gets a connection that can be read.",
		Source: "RFC 9325, section 4.1", check: checkSuiteWeak,
	},
	{
		ID: "suite-not-in-policy", Axis: Safe, Title: "The server offers cipher suites that the policy doesn't have",
		Reason: "Each suite that no client needs is code and configuration that an attacker can try.",
		Source: "RFC 9325, section 4.2", check: checkSuiteOther,
	},
	{
		ID: "suite-missing", Axis: Safe, Title: "The server doesn't offer cipher suites that the policy wants",
		Reason: "Clients negotiate a suite that the policy wants less, or none.",
		Source: "RFC 9325, section 4.2", check: checkSuiteMissing,
	},
	{
		ID: "suite-order", Axis: Safe, Title: "The order of the cipher suites isn't the policy's",
		Reason: "The order decides the suite of every client that has several.",
		Source: "RFC 9325, section 4.2.1", check: checkSuiteOrder,
	},
	{
		ID: "group-weak", Axis: Safe, Title: "The server offers weak key exchange groups",
		Reason: "The key of a connection is as strong as the group that it was agreed in.",
		Source: "RFC 9325, sections 4.3 and 4.4", check: checkGroupWeak,
	},
	{
		ID: "group-not-in-policy", Axis: Safe, Title: "The server offers groups that the policy doesn't have",
		Reason: "Clients may agree on a key in a group that the policy doesn't want, or no longer wants.",
		Source: "RFC 8446, section 4.2.7", check: checkGroupOther,
	},
	{
		ID: "group-missing", Axis: Safe, Title: "The server doesn't offer groups that the policy wants",
		Reason: "Clients agree on a key in a group that the policy wants less.",
		Source: "RFC 8446, section 9.1", check: checkGroupMissing,
	},
	{
		ID: "group-postquantum", Axis: Safe, Title: "The server offers no post-quantum key exchange",
		Reason: "Connections that are recorded today can be decrypted once there are quantum computers.",
		Source: "RFC 10024", check: checkPostQuantum,
	},
	{
		ID: "group-retry", Axis: Fast, Title: "Common clients have to send their first message twice",
		Reason: "Browsers, curl and Go begin with a key share of x25519. A server that doesn't have the group answers by a " +
			"HelloRetryRequest, which is another round trip.",
		Source: "RFC 8446, section 2.1", check: checkGroupRetry,
	},
	{
		ID: "signature-weak", Axis: Safe, Title: "The server signs handshakes with a weak hash function",
		Reason: "Collisions in MD5 and SHA-1 can be computed, and a client that allows them can be given a forged key exchange.",
		Source: "RFC 9155", check: checkSignatureWeak,
	},
	{
		ID: "protocol-lies", Axis: Safe, Title: "The server's answers break the protocol",
		Reason: "A server that chooses what nobody offered, or that answers TLS by something else, fails with strict clients.",
		Source: "RFC 8446, section 4.1.3", check: checkLies,
	},
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
		case lists && v.Partial != "" && !strings.HasPrefix(v.Partial, partialBound[:strings.Index(partialBound, "%")]):
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
func (j *judgement) now() *policy.Policy { return j.policy.At(j.at) }

// value returns the policy's entry for a name, whose case is ignored.
func value(values []policy.Value, name string) *policy.Value {
	i := slices.IndexFunc(values, func(v policy.Value) bool { return strings.EqualFold(v.Name, name) })
	if i < 0 {
		return nil
	}
	return &values[i]
}

// source returns where the policy says something on a value, and otherwise the policy's title.
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
			severity = Low
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
		})
	}
	return j.outcome(findings, false, "TLS 1.3")
}

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
				Evidence: "Chosen by the server: " + strings.Join(suites, ", ") + ".", Source: c.source,
				Remedy: "Name the cipher suites of the policy in the server's configuration, instead of excluding others.",
			})
		}
	}
	return j.outcome(findings, true, j.listed()...)
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

// suites returns the policy's suites for a version.
func suitesOf(p *policy.Policy, version string) []policy.Value {
	if version == "TLS 1.3" {
		return p.Suites13
	}
	return p.Suites12
}

func checkSuiteOther(j *judgement) ([]Finding, Outcome) {
	p := j.now()
	bySeverity := map[Severity][]string{}
	var conditional []string // suites that the policy allows with encrypt-then-MAC only
	for _, version := range j.offered() {
		allowed := suitesOf(p, version)
		if version == "SSL 2" || len(allowed) == 0 {
			continue
		}
		for _, s := range j.facts.Protocols.Versions[version].Suites {
			v := value(allowed, s)
			severity := Low
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
				severity = Info
			case x == hello.RSAExchange, x == hello.StaticDH:
				severity = Medium
			}
			if !slices.Contains(bySeverity[severity], s) {
				bySeverity[severity] = append(bySeverity[severity], s)
			}
		}
	}
	var findings []Finding
	for _, kind := range []Finding{
		{Severity: Medium, Title: "The server offers suites without forward secrecy",
			Reason: "A stolen private key decrypts all connections that were recorded before."},
		{Severity: Low},
		{Severity: Info, Title: "The server offers suites that the policy phases out"},
	} {
		if suites := bySeverity[kind.Severity]; len(suites) > 0 {
			findings = append(findings, Finding{
				Severity: kind.Severity, Title: kind.Title, Reason: kind.Reason, Source: j.listSource(p.Suites13, p.Suites12),
				Evidence: "Chosen by the server: " + strings.Join(suites, ", ") + ".",
				Remedy:   "Name the cipher suites of the policy in the server's configuration.",
			})
		}
	}
	findings, unknown := j.appendMACFirst(findings, conditional)
	if len(findings) == 0 && unknown != "" {
		return nil, Outcome{Failed, unknown}
	}
	return j.outcome(findings, true, j.listed()...)
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
	return j.outcome(findings, true, looked...)
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

func checkLies(j *judgement) ([]Finding, Outcome) {
	var findings []Finding
	for _, lie := range j.facts.Protocols.Lies {
		remedy := "Update the server, and look for a device on the way that answers in its place."
		if strings.HasSuffix(lie, "HTTP without TLS") {
			remedy = "Turn TLS on for this port, or audit the port that has TLS."
		}
		findings = append(findings, Finding{
			Severity: Medium, Evidence: strings.ToUpper(lie[:1]) + lie[1:] + ".", Remedy: remedy,
		})
	}
	tested := slices.ContainsFunc(versionOrder, func(v string) bool { return j.facts.Protocols.Versions[v].State == Tested })
	if len(findings) == 0 && !tested {
		return j.outcome(nil, false, versionOrder...)
	}
	return j.outcome(findings, false)
}
