package audit

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/audit/confgen"
)

// Products are the servers whose directives remedies can name.
var Products = []string{"nginx", "apache", "haproxy", "lighttpd", "caddy", "postgresql", "go"}

// productNames are the names of products for people.
var productNames = map[string]string{"nginx": "nginx", "apache": "Apache", "haproxy": "HAProxy", "lighttpd": "lighttpd",
	"caddy": "Caddy", "postgresql": "PostgreSQL", "go": "crypto/tls"}

// Product returns the product's name in [Products] of a server such as "Apache/2.4.62 (Debian)", or "".
func Product(server string) string {
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(server)), "/")
	name, _, _ = strings.Cut(name, " ")
	switch name {
	case "httpd":
		return "apache"
	case "openresty", "tengine":
		return "nginx"
	case "postgres":
		return "postgresql"
	}
	if slices.Contains(Products, name) {
		return name
	}
	return ""
}

// productOf returns the product of the server at hand, or "" if it isn't known.
func productOf(facts *Facts, target Target) string {
	product := Product(facts.Server)
	if product == "" && target.Protocol == "postgres" {
		product = "postgresql"
	}
	return product
}

// onCryptoTLS reports whether the product is known to be on crypto/tls.
func (j *judgement) onCryptoTLS() bool { return j.product == "caddy" || j.product == "go" }

// oneCurve reports whether the server is a PostgreSQL that takes one curve: before 18, all do.
func (j *judgement) oneCurve() bool {
	return j.product == "postgresql" && len(j.facts.Protocols.Versions["TLS 1.3"].Groups) == 1
}

// NextStep returns the command that writes the server's configuration anew and compares it with the present one,
// or "" if no finding is about the configuration. FILE is the present one, and SERVER stands for a product that
// isn't known.
func (r *Report) NextStep() string {
	if !slices.ContainsFunc(rules, func(rule Rule) bool {
		return (rule.settings != nil || rule.remedies != nil) &&
			slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Rule == rule.ID && f.Severity != Info })
	}) {
		return ""
	}
	options := ""
	if r.Policy != defaultPolicyName {
		options = " --policy " + r.Policy
	}
	switch product := productOf(&r.Facts, r.Target); product {
	case "":
		return "ossl config SERVER" + options + " --from FILE --try"
	case "go": // it has no file
		return "ossl config go" + options
	default:
		return "ossl config " + product + options + " --from FILE --try"
	}
}

// takesEffect describes how each product takes a new configuration.
var takesEffect = map[string]string{"nginx": ", and reload.", "apache": ", and reload.", "haproxy": ", and reload.",
	"lighttpd": ", and restart.", "caddy": " in the site's tls block, and reload.", "postgresql": ", and reload.",
	"go": " in the tls.Config."}

// remedyFor returns the remedy for a rule: a text for the product; else the product's directives with the
// policy's values, if there are any; else the general text.
func (j *judgement) remedyFor(rule Rule, general string) string {
	return cmp.Or(rule.remedies[j.product], j.directives(false, rule.settings...), general)
}

// directives returns the remedy that sets the product's directives for settings of the policy, or "" if there
// are none.
func (j *judgement) directives(postQuantum bool, settings ...string) string {
	if j.product == "" || len(settings) == 0 {
		return ""
	}
	server, known := j.server(postQuantum)
	config, err := confgen.Generate(confgen.Options{Server: server, Policy: j.policy, At: j.at})
	if err != nil { // a version that is too old, for example
		return ""
	}
	var lines []string
	for _, d := range config.Directives {
		if !slices.Contains(settings, d.Setting) || d.Name == "ssl" { // PostgreSQL's ssl is on: there was an audit
			continue
		}
		line := strings.TrimSuffix(d.Line(j.product), ",")
		if !known && d.NeedsNewer(j.product) && !postQuantum {
			line += " (needs " + d.Needs + ")"
		}
		lines = append(lines, line)
	}
	if lines == nil {
		return ""
	}
	effect := takesEffect[j.product]
	if settings[0] == "hsts" {
		effect = strings.Replace(effect, "tls block", "block", 1)
	}
	remedy := "Set " + strings.Join(lines, " and ") + effect
	remedy = strings.Replace(remedy, ";, and", "; and", 1)
	if postQuantum && j.product != "caddy" && j.product != "go" {
		remedy = productNames[j.product] + " needs OpenSSL 3.5 or newer for it. " + remedy
	}
	return remedy
}

// opensslVersion finds OpenSSL's version in the header Server, as Apache sends it.
var opensslVersion = regexp.MustCompile(`OpenSSL/(\d+\.\d+\.\d+)`)

// server returns the version of the product and of its OpenSSL, as far as the facts show, and
// otherwise the newest product and OpenSSL 3.0, or 3.5 if the server has post-quantum groups or
// should get them. It reports whether the product's version is known.
func (j *judgement) server(postQuantum bool) (s confgen.Server, known bool) {
	s = confgen.Server{Kind: j.product, Version: confgen.Newest(j.product), OpenSSL: confgen.Version{Major: 3}}
	if _, version, ok := strings.Cut(j.facts.Server, "/"); ok && Product(j.facts.Server) == j.product {
		if v, err := confgen.ParseVersion(version); err == nil {
			s.Version, known = v, true
		}
	} else if j.oneCurve() {
		s.Version = confgen.Version{Major: 17}
	}
	if m := opensslVersion.FindStringSubmatch(j.facts.Server); m != nil {
		s.OpenSSL, _ = confgen.ParseVersion(m[1])
	}
	newer := confgen.Version{Major: 3, Minor: 5}
	if s.OpenSSL.Before(newer) && (postQuantum || slices.ContainsFunc(j.groups(), isPostQuantum)) {
		s.OpenSSL = newer
		if j.product == "postgresql" && postQuantum {
			s.Version = confgen.Newest(j.product)
		}
	}
	return s, known
}
