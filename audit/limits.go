package audit

import "slices"

// productNames are the names of products for people.
var productNames = map[string]string{"nginx": "nginx", "apache": "Apache", "haproxy": "HAProxy", "lighttpd": "lighttpd",
	"caddy": "Caddy", "postgresql": "PostgreSQL", "go": "crypto/tls"}

// impossible says, by rule and product, why a product can't follow a rule by design. Only a rule about
// something that is missing as a whole is here: values that a product can't turn off are excused one by one.
var impossible = map[string]map[string]string{
	"resume-none":         {"postgresql": poolInstead},
	"resume-tls13":        {"postgresql": poolInstead},
	"resume-tls12-ticket": {"postgresql": poolInstead},
	"resume-tls12-id": {
		"postgresql": poolInstead,
		"caddy":      "crypto/tls, which Caddy uses, has no sessions by ID; clients with tickets resume",
		"go":         "crypto/tls has no sessions by ID; clients with tickets resume",
	},
	"suite-order": {
		"caddy": "crypto/tls, which Caddy uses, orders the suites itself",
		"go":    "crypto/tls orders the suites itself",
	},
	"resume-lifetime": {
		"caddy":    "crypto/tls, which Caddy uses, gives its tickets 7 days",
		"go":       "crypto/tls gives its tickets 7 days",
		"lighttpd": "lighttpd can't set the lifetime of sessions",
	},
	"certificate-compression": {
		"apache":     "Apache has no setting for it",
		"lighttpd":   "lighttpd has no setting for it",
		"caddy":      "crypto/tls, which Caddy uses, compresses no certificates",
		"postgresql": "PostgreSQL compresses no certificates",
		"go":         "crypto/tls compresses no certificates",
	},
}

const poolInstead = "PostgreSQL resumes no sessions, by design; keep connections open in a pool"

// impossible returns why the product at hand can't follow a rule, or "" if it can.
func (j *judgement) impossible(rule string) string { return impossible[rule][j.product] }

// onCryptoTLS reports whether the product is known to be on crypto/tls.
func (j *judgement) onCryptoTLS() bool { return j.product == "caddy" || j.product == "go" }

// oneCurve reports whether the server is a PostgreSQL that takes one curve: before 18, all do.
func (j *judgement) oneCurve() bool {
	return j.product == "postgresql" && len(j.facts.Protocols.Versions["TLS 1.3"].Groups) == 1
}

// fixedSuite returns the remedy for a suite of TLS 1.3 that the product at hand can't turn off in its
// configuration, or "" if it can.
func (j *judgement) fixedSuite(suite string) string {
	if !slices.Contains([]string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}, suite) {
		return "" // not a default: somebody has chosen it
	}
	switch {
	case j.onCryptoTLS() && j.policy.FIPS:
		return productNames[j.product] + " can't set the suites of TLS 1.3. Built with Go 1.24 or newer, it has those of FIPS alone " +
			"if it is started with GODEBUG=fips140=on."
	case j.onCryptoTLS():
		return productNames[j.product] + " can't set the suites of TLS 1.3: crypto/tls has three, and offers all."
	case j.oneCurve():
		return "PostgreSQL before 18 can't set the suites of TLS 1.3: update it, or set Ciphersuites in the openssl.cnf that it " +
			"reads."
	}
	return ""
}
