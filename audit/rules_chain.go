package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/policy"
)

// keySize splits the name of a kind of key: "RSA", "", 2048 or "ECDSA", "secp256r1", 256.
func keySize(key string) (kind, curve string, bits int) {
	kind, rest, _ := strings.Cut(key, " ")
	switch kind {
	case "RSA":
		fmt.Sscanf(rest, "%d", &bits)
	case "ECDSA":
		curve = rest
		fmt.Sscanf(rest, "secp%dr1", &bits)
	}
	return kind, curve, bits
}

// weak reports whether a key gives less than 112 bits of security.
func weak(key string) bool {
	kind, _, bits := keySize(key)
	return kind == "DSA" || kind == "RSA" && bits < 2048 || kind == "ECDSA" && bits > 0 && bits < 224
}

func checkWeakKey(j *judgement, c *ChainFacts) (findings []Finding) {
	for _, cert := range c.needed() {
		if !weak(cert.Key) {
			continue
		}
		f := Finding{
			Severity: High,
			Evidence: fmt.Sprintf("The certificate of “%s” has a key of kind %s.", cert.name(), cert.Key),
			Remedy: "Make an ECDSA key on P-256 (openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256), and get a " +
				"certificate for it.",
		}
		if kind, _, bits := keySize(cert.Key); kind == "RSA" && bits < 1024 {
			f.Severity = Critical // 829 bits were factored in public in 2020
		}
		findings = append(findings, f)
	}
	return findings
}

func checkKeyPolicy(j *judgement, c *ChainFacts) []Finding {
	keys := j.policy.Keys
	if len(keys) == 0 || weak(c.Key) {
		return nil // a weak key is a finding of its own
	}
	kind, curve, bits := keySize(c.Key)
	var names []string
	finding := Finding{
		Severity: Medium,
		Evidence: fmt.Sprintf("The certificate's key is %s.", c.Key),
		Source:   j.policy.Title,
	}
	for _, k := range keys {
		if k.Until.Passed(j.at) {
			continue
		}
		names = append(names, keyText(k))
		if k.Type != kind && !(k.Type == "ML-DSA" && strings.HasPrefix(kind, "ML-DSA")) ||
			kind == "RSA" && bits < k.Bits || len(k.Curves) > 0 && !slices.Contains(k.Curves, curve) {
			continue
		}
		if k.Level != policy.PhaseOut {
			return nil
		}
		finding.Severity, finding.Source = Low, sourceOf(j.policy, k.Source)
		finding.Evidence += " The policy phases it out."
	}
	finding.Remedy = "Make a key of one of these kinds, and get a certificate for it: " + strings.Join(names, "; ") + "."
	return []Finding{finding}
}

func keyText(k policy.Key) string {
	switch {
	case len(k.Curves) > 0:
		return k.Type + " on " + strings.Join(k.Curves, " or ")
	case k.Bits > 0:
		return fmt.Sprintf("%s with at least %d bits", k.Type, k.Bits)
	}
	return k.Type
}

func checkIncomplete(j *judgement, c *ChainFacts) []Finding {
	if c.Missing == "" {
		return nil
	}
	return []Finding{{
		Severity: High,
		Evidence: fmt.Sprintf("The server sends %d certificates, and no path leads from the leaf to a trust anchor: its issuer “%s” "+
			"is not sent, and is not a trust anchor.", len(c.Certificates), c.Missing),
		Remedy: "Append the certificate of “" + c.Missing + "” to the leaf's, in the file that the server sends. Certificate " +
			"authorities give both in one file, often called fullchain.pem. If it is the root of an authority of your own, your " +
			"clients need it, not the server.",
	}}
}

func checkOrder(j *judgement, c *ChainFacts) []Finding {
	if c.InOrder {
		return nil
	}
	var order []string
	for _, cert := range c.needed() {
		order = append(order, "“"+cert.name()+"”")
	}
	places := make([]string, len(c.Path))
	for i, p := range c.Path {
		places[i] = fmt.Sprint(p + 1)
	}
	return []Finding{{
		Severity: Low,
		Evidence: fmt.Sprintf("Each certificate is issued by the next in the order %s of those sent.", strings.Join(places, ", ")),
		Remedy:   "Write the certificates to the server's file in this order: " + strings.Join(order, ", ") + ".",
	}}
}

func checkRoot(j *judgement, c *ChainFacts) []Finding {
	return needless(j, c, true, "Remove this root from the file that the server sends: %s. It stays in your clients' stores.")
}

func checkNeedless(j *judgement, c *ChainFacts) []Finding {
	return needless(j, c, false, "Remove these certificates from the file that the server sends: %s.")
}

// needless returns the finding on needless certificates that are self-signed, or on the others.
func needless(j *judgement, c *ChainFacts, root bool, remedy string) []Finding {
	if j.policy.Chain.Shortest.Value == "no" {
		return nil
	}
	var names []string
	size := 0
	for _, i := range c.Needless {
		cert := &c.Certificates[i]
		if (cert.Error == "" && cert.Subject == cert.Issuer) != root {
			continue
		}
		text := fmt.Sprintf("number %d, “%s”", i+1, cert.name())
		switch {
		case cert.Error != "":
			text = fmt.Sprintf("number %d, which is malformed (%s)", i+1, cert.Error)
		case slices.ContainsFunc(c.Certificates[:i], func(o CertificateFact) bool { return o.SHA256 == cert.SHA256 }):
			text += ", sent twice"
		}
		names = append(names, text)
		size += cert.Bytes + certificateHeader
	}
	if size == 0 {
		return nil
	}
	price := Price{Bytes: size, Method: "counted in the server's Certificate message"}
	if f := j.facts.Flight; f.RoundTrips > 1 && f.Bytes-size <= safeWindow {
		price.RoundTrips = f.RoundTrips - 1
		price.Method += fmt.Sprintf("; the flight of %d bytes was measured to take %.0f round trips", f.Bytes, f.RoundTrips)
	}
	list := strings.Join(names, "; ")
	return []Finding{{
		Severity: Low,
		Evidence: fmt.Sprintf("%d of the chain's %d bytes are needless: %s.",
			size, c.Bytes+certificateHeader*len(c.Certificates), list),
		Remedy: fmt.Sprintf(remedy, list) + fmt.Sprintf(" It saves %d bytes a full handshake.", size),
		Price:  price,
	}}
}

// certificateHeader is the length of a certificate in a Certificate message: 3 bytes in all versions.
// TLS 1.3 has 2 more for extensions.
const certificateHeader = 3

func checkStapleMissing(j *judgement, c *ChainFacts) []Finding {
	finding := Finding{
		Remedy: "Turn on OCSP stapling. The server needs the issuer's certificate, a resolver and a way to the responder.",
	}
	rule := j.policy.Stapling
	switch {
	case c.Stapled:
		return nil
	case c.MustStaple:
		finding.Severity, finding.Source = High, "RFC 7633, section 4.2.2"
		finding.Evidence = "The certificate demands a stapled response (must-staple), and the server doesn't staple one."
	case len(c.OCSP) > 0 && rule.Missing.Value == "finding":
		finding.Severity, finding.Source = Low, sourceOf(j.policy, rule.Missing.Source)
		finding.Evidence = fmt.Sprintf("The certificate names the responder %s, and the server doesn't staple a response.", c.OCSP[0])
		if j.product == "postgresql" {
			finding.Severity, finding.settled = Info, true
			finding.Remedy = "PostgreSQL can't staple. A certificate with a short lifetime needs no revocation."
		}
	case len(c.OCSP) == 0 && rule.NoURI.Value == "finding":
		finding.Severity, finding.Source = Low, sourceOf(j.policy, rule.NoURI.Source)
		finding.Evidence = "The certificate names no responder, so the server can't staple a response."
		finding.Remedy = "Get a certificate of an authority that has OCSP, if the policy is to be followed."
	default:
		return nil
	}
	return []Finding{finding}
}

// checkRevoked fails if a list is missing, unless a certificate is revoked by another one.
func checkRevoked(j *judgement) (findings []Finding, outcome Outcome) {
	var unknown string
	findings, outcome = eachLeaf(func(_ *judgement, c *ChainFacts) (findings []Finding) {
		for _, certificate := range c.needed() {
			switch {
			case certificate.Revoked != "":
				findings = append(findings, Finding{
					Severity: Critical,
					Evidence: fmt.Sprintf("“%s”: %s.", certificate.name(), certificate.Revoked),
					Remedy:   "Get a new certificate, with a new key.",
				})
			case certificate.RevocationUnknown != "" && unknown == "":
				unknown = fmt.Sprintf("“%s”: %s", certificate.name(), certificate.RevocationUnknown)
			}
		}
		return findings
	})(j)
	if len(findings) == 0 && outcome.State == Tested && unknown != "" {
		outcome = Outcome{Failed, unknown}
	}
	return findings, outcome
}

func checkStaple(j *judgement, c *ChainFacts) []Finding {
	if c.StapleError == "" {
		return nil
	}
	return []Finding{{
		Severity: High,
		Evidence: "The response: " + c.StapleError + ".",
		Remedy: "Make the server fetch a new response: correct its clock, " +
			"its way to the responder and its file of the issuer's certificate.",
	}}
}
