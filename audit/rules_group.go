package audit

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ossl-go/ossl/policy"
)

// groupBits finds the size in the name of an elliptic curve.
var groupBits = regexp.MustCompile(`^(?:sect|secp)(\d+)`)

// weakGroup reports whether a curve has less than 112 bits of security (NIST SP 800-57, part 1).
func weakGroup(name string) bool {
	m := groupBits.FindStringSubmatch(name)
	if m == nil || strings.Contains(strings.ToUpper(name), "MLKEM") {
		return false
	}
	n, _ := strconv.Atoi(m[1])
	return n < 224
}

// isPostQuantum reports whether a group is post-quantum.
func isPostQuantum(group string) bool {
	return strings.Contains(group, "MLKEM") || strings.Contains(group, "Kyber")
}

// groups returns the groups of all versions.
func (j *judgement) groups() (all []string) {
	for _, version := range j.offered() {
		for _, g := range j.facts.Protocols.Versions[version].Groups {
			if !slices.Contains(all, g) {
				all = append(all, g)
			}
		}
	}
	return all
}

func checkGroupWeak(j *judgement) ([]Finding, Outcome) {
	var findings []Finding
	weak := slices.DeleteFunc(j.groups(), func(g string) bool { return !weakGroup(g) })
	if len(weak) > 0 {
		findings = append(findings, Finding{
			Severity: Medium, Evidence: "The server chose " + strings.Join(weak, ", ") + ".",
			Remedy: "Name the groups of the policy in the server's configuration.",
		})
	}
	smallest := 0
	for _, version := range j.offered() {
		if n := j.facts.Protocols.Versions[version].PrimeBits; n > 0 && (smallest == 0 || n < smallest) {
			smallest = n
		}
	}
	if smallest > 0 && smallest < 2048 {
		severity := High
		if smallest < 1024 {
			severity = Critical
		}
		findings = append(findings, Finding{
			Severity: severity, Title: "The server's Diffie-Hellman parameters are too small",
			Evidence: fmt.Sprintf("The prime has %d bits, or the temporary RSA key.", smallest), Source: "RFC 9325, section 4.4",
			Remedy: "Turn DHE and export suites off, or use a group of RFC 7919.",
		})
	}
	return j.outcome(findings, true, j.listed()...)
}

func checkGroupOther(j *judgement) ([]Finding, Outcome) {
	now := j.now()
	if len(now.Groups) == 0 {
		return nil, Outcome{NotTested, "the policy names no groups"}
	}
	kinds := map[Severity][]string{}
	for _, g := range j.groups() {
		v, passed := value(now.Groups, g), value(j.policy.Groups, g)
		switch {
		case weakGroup(g), v != nil && v.Level != policy.PhaseOut:
		case v != nil:
			kinds[Info] = append(kinds[Info], g+" (the policy phases it out)")
		case passed != nil:
			kinds[Medium] = append(kinds[Medium], g+" (allowed until "+passed.Until.String()+")")
		default:
			kinds[Medium] = append(kinds[Medium], g)
		}
	}
	var findings []Finding
	for _, severity := range []Severity{Medium, Info} {
		if groups := kinds[severity]; len(groups) > 0 {
			findings = append(findings, Finding{
				Severity: severity, Source: j.listSource(j.policy.Groups),
				Evidence: "The server chose " + strings.Join(groups, ", ") + ".",
				Remedy:   "Name the groups of the policy in the server's configuration.",
			})
		}
	}
	return j.outcome(findings, true, j.listed()...)
}

func checkGroupMissing(j *judgement) ([]Finding, Outcome) {
	v13 := j.facts.Protocols.Versions["TLS 1.3"]
	var findings []Finding
	for _, level := range []policy.Level{policy.Required, policy.Recommended} {
		var missing []string
		for _, v := range j.now().Groups {
			// A certificate's curve can hide others in TLS 1.2. Post-quantum groups have their own
			// rule.
			if v.Level == level && !isPostQuantum(v.Name) && !hasName(v13.Groups, v.Name) && v13.Offered && v13.Partial == "" {
				missing = append(missing, v.Name)
			}
		}
		if len(missing) == 0 {
			continue
		}
		severity := Info
		if level == policy.Required {
			severity = Medium
		}
		findings = append(findings, Finding{
			Severity: severity, Title: fmt.Sprintf("The server doesn't offer groups that are %s", level),
			Evidence: "Not offered: " + strings.Join(missing, ", ") + ".", Source: j.listSource(j.policy.Groups),
			Remedy: "Add them to the server's groups.",
		})
	}
	if len(findings) == 0 && v13.State == Tested && !v13.Offered {
		return nil, Outcome{NotTested, "without TLS 1.3, the groups can't all be seen"}
	}
	return j.outcome(findings, true, "TLS 1.3")
}

// hasName reports whether a list has a name, whose case is ignored.
func hasName(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

func checkPostQuantum(j *judgement) ([]Finding, Outcome) {
	v13 := j.facts.Protocols.Versions["TLS 1.3"]
	if v13.State == Tested && !v13.Offered {
		return nil, Outcome{NotTested, "only TLS 1.3 has post-quantum groups"}
	}
	var findings []Finding
	if v13.State == Tested && v13.Partial == "" && !slices.ContainsFunc(v13.Groups, isPostQuantum) {
		f := Finding{
			Severity: Info, Evidence: "The groups are " + strings.Join(v13.Groups, ", ") + ".", settled: true,
			Remedy: "The policy has no post-quantum group: wait for its next edition, or choose another policy.",
		}
		if slices.ContainsFunc(j.now().Groups, func(v policy.Value) bool { return isPostQuantum(v.Name) }) {
			f.Severity = Low
			f.Remedy = cmp.Or(j.directives(true, "groups"),
				"Add X25519MLKEM768 to the server's groups. OpenSSL has it since 3.5, Go since 1.24.")
		}
		findings = append(findings, f)
	}
	return j.outcome(findings, true, "TLS 1.3")
}

// withoutX25519 reports whether the server has TLS 1.3 without x25519.
func (j *judgement) withoutX25519() bool {
	v13 := j.facts.Protocols.Versions["TLS 1.3"]
	return v13.State == Tested && v13.Offered && v13.Partial == "" && !slices.Contains(v13.Groups, "x25519")
}

func checkGroupRetry(j *judgement) ([]Finding, Outcome) {
	v13 := j.facts.Protocols.Versions["TLS 1.3"]
	if v13.State == Tested && !v13.Offered {
		return nil, Outcome{NotTested, "without TLS 1.3 there are no HelloRetryRequests"}
	}
	var findings []Finding
	if j.withoutX25519() {
		f := Finding{
			Severity: Medium, Evidence: "The groups are " + strings.Join(v13.Groups, ", ") + ": without x25519.",
			Remedy: "Add x25519 to the server's groups.",
			Price:  Price{RoundTrips: 1, Method: "a HelloRetryRequest is one round trip"},
		}
		if len(j.now().Groups) > 0 && value(j.now().Groups, "x25519") == nil {
			f.Severity, f.settled = Info, true
			f.Remedy = "The policy doesn't have x25519: accept the round trip, or choose another policy."
		} else if j.oneCurve() {
			f.Severity, f.settled = Info, true
			f.Remedy = "PostgreSQL before 18 takes one curve, and X25519 can't be it. From 18 on, name the policy's groups in " +
				"ssl_groups: update it, or keep connections open in a pool."
		}
		if retry, _, clients := j.retries(); len(retry) > 0 {
			f.Evidence += fmt.Sprintf(" Of %d simulated clients, %d were asked again: %s.", clients, len(retry),
				strings.Join(retry, ", "))
			f.Price = retryPrice(len(retry), clients)
		}
		findings = append(findings, f)
	}
	return j.outcome(findings, true, "TLS 1.3")
}

func checkSignatureWeak(j *judgement) ([]Finding, Outcome) {
	v12 := j.facts.Protocols.Versions["TLS 1.2"]
	if v12.State == Tested && !v12.Offered {
		return nil, Outcome{NotTested, "TLS 1.3 has no weak signature schemes, and earlier versions than TLS 1.2 no others"}
	}
	var findings []Finding
	for _, weak := range []struct {
		suffix, hash string
		severity     Severity
	}{{"_md5", "MD5", High}, {"_sha1", "SHA-1", Medium}} {
		schemes := slices.DeleteFunc(slices.Clone(v12.Signatures), func(s string) bool {
			return !strings.HasSuffix(s, weak.suffix)
		})
		if len(schemes) == 0 {
			continue
		}
		f := Finding{
			Severity: weak.severity, Title: "The server signs handshakes with " + weak.hash,
			Evidence: "To a client without better schemes the server signed with " + strings.Join(schemes, ", ") + ".",
			Remedy: "Name the signature schemes of the policy in the server's configuration, or raise OpenSSL's security " +
				"level to 1 or higher.",
		}
		if weak.hash == "SHA-1" && j.onCryptoTLS() {
			f.Severity, f.settled = Info, true
			f.Remedy = "crypto/tls signs so only for a client that offers nothing better, and " + productNames[j.product] +
				" can't set the schemes. Built with Go 1.25 or newer, it refuses SHA-1 if it is started with GODEBUG=tlssha1=0."
		}
		findings = append(findings, f)
	}
	return j.outcome(findings, true, "TLS 1.2")
}

// checkSignatureOther is about the schemes that the server chose. Weak ones have a rule of their own.
func checkSignatureOther(j *judgement) ([]Finding, Outcome) {
	v12 := j.facts.Protocols.Versions["TLS 1.2"]
	allowed := j.now().Signatures
	switch {
	case len(allowed) == 0:
		return nil, Outcome{NotTested, "the policy names no signature schemes"}
	case v12.State == Tested && !v12.Offered:
		return nil, Outcome{NotTested, "in TLS 1.3 the certificate's key decides, which has a rule of its own"}
	}
	other := slices.DeleteFunc(slices.Clone(v12.Signatures), func(s string) bool {
		return value(allowed, s) != nil || strings.HasSuffix(s, "_md5") || strings.HasSuffix(s, "_sha1")
	})
	if len(other) == 0 {
		return j.outcome(nil, true, "TLS 1.2")
	}
	return []Finding{{
		Severity: Medium, Source: j.listSource(j.policy.Signatures),
		Evidence: "From all schemes, the server chose " + strings.Join(other, ", ") + ".",
		Remedy:   "Name the signature schemes of the policy in the server's configuration.",
	}}, Outcome{State: Tested}
}
