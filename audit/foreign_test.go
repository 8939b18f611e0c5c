package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/policy"
)

// following returns the facts of a server that has all that a policy allows, and no more.
func following(p *policy.Policy) Facts {
	tested := Outcome{State: Tested}
	names := func(values []policy.Value) (all []string) {
		for _, v := range values {
			if v.Level != policy.PhaseOut && v.Needs == "" {
				all = append(all, v.Name)
			}
		}
		return all
	}
	f := Facts{Protocols: ProtocolFacts{Outcome: tested, Versions: map[string]VersionFacts{}}}
	for _, name := range versionOrder {
		v := VersionFacts{Outcome: tested}
		if slices.Contains(names(p.Versions), name) {
			v = VersionFacts{Outcome: tested, Offered: true, Suites: names(suitesOf(p, name)), Groups: names(p.Groups),
				Order: p.Order.Value}
		}
		if name == "TLS 1.2" && v.Offered {
			v.Signatures = names(p.Signatures)
		}
		f.Protocols.Versions[name] = v
	}
	key := p.Keys[0].Type
	switch {
	case len(p.Keys[0].Curves) > 0:
		key += " " + p.Keys[0].Curves[0]
	case p.Keys[0].Bits > 0:
		key += fmt.Sprint(" ", p.Keys[0].Bits)
	}
	leaf := CertificateFact{Key: key, NotBefore: someDay, NotAfter: someDay.AddDate(0, 0, 30), Signature: "ECDSA-SHA256"}
	f.Certificates = CertificateFacts{Outcome: tested, Chains: []ChainFacts{{Key: key, Trusted: true, InOrder: true,
		Certificates: []CertificateFact{leaf}}}}
	return f
}

// failing returns the rules with findings of the severity medium or worse.
func failing(f Facts, p *policy.Policy) (rules []string) {
	r := &Report{Facts: f}
	r.Judge(p, someDay.AddDate(0, 0, 1))
	for _, finding := range r.Findings {
		if finding.Severity.Rank() >= Medium.Rank() {
			rules = append(rules, finding.Rule)
		}
	}
	return rules
}

// TestForeignValues gives a server that follows a policy one more value: every suite, group, version, scheme and
// key that the policy doesn't have fails it, and all that it has passes.
func TestForeignValues(t *testing.T) {
	for _, name := range policy.Names() {
		t.Run(name, func(t *testing.T) {
			p, err := policy.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := failing(following(p), p); got != nil {
				t.Fatalf("a server with the policy's values fails: %v", got)
			}
			foreign := 0
			try := func(value, rules string, change func(*Facts)) {
				t.Helper()
				foreign++
				f := following(p)
				change(&f)
				if got := failing(f, p); !slices.ContainsFunc(got, func(rule string) bool {
					return slices.Contains(strings.Fields(rules), rule)
				}) {
					t.Errorf("%s: %v fail", value, got)
				}
			}
			with := func(version string, change func(*VersionFacts)) func(*Facts) {
				return func(f *Facts) {
					v := f.Protocols.Versions[version]
					v.Offered = true
					change(&v)
					f.Protocols.Versions[version] = v
				}
			}
			for _, version := range versionOrder {
				if value(p.Versions, version) == nil {
					try(version, "version-old", with(version, func(*VersionFacts) {}))
				}
			}
			for _, version := range []string{"TLS 1.3", "TLS 1.2"} {
				ids := offered12
				if version == "TLS 1.3" {
					ids = offered13
				}
				for _, id := range ids {
					suite := hello.SuiteName(id)
					if value(p.Versions, version) == nil || value(suitesOf(p, version), suite) != nil {
						continue
					}
					try(suite, "suite-weak suite-not-in-policy", with(version, func(v *VersionFacts) { v.Suites = append(v.Suites, suite) }))
				}
				for _, id := range groups13 {
					group := hello.GroupName(id)
					if value(p.Versions, version) == nil || value(p.Groups, group) != nil {
						continue
					}
					try(group, "group-weak group-not-in-policy", with(version, func(v *VersionFacts) { v.Groups = append(v.Groups, group) }))
				}
			}
			for _, id := range signatureSchemes {
				scheme := hello.SchemeName(id)
				if value(p.Versions, "TLS 1.2") == nil || value(p.Signatures, scheme) != nil {
					continue
				}
				try(scheme, "signature-weak signature-not-in-policy",
					with("TLS 1.2", func(v *VersionFacts) { v.Signatures = append(v.Signatures, scheme) }))
			}
			for _, key := range []string{"RSA 1024", "DSA 2048", "ECDSA secp256k1", "ECDSA secp192r1", "Ed448"} {
				try(key, "key-weak key-not-in-policy", func(f *Facts) {
					chain := &f.Certificates.Chains[0]
					chain.Key, chain.Certificates[0].Key, chain.Path = key, key, []int{0}
				})
			}
			if foreign < 25 { // of a policy with TLS 1.3 alone
				t.Errorf("%d foreign values", foreign)
			}
		})
	}
}

// TestPolicyAgainstAdvice: a server that follows its policy doesn't fail a rule whose advice the
// policy forbids. The rule's remedy names the conflict.
func TestPolicyAgainstAdvice(t *testing.T) {
	for _, server := range []string{"nginx", "Apache/2.4.62", "haproxy", ""} {
		p, err := policy.Get("bsi")
		if err != nil {
			t.Fatal(err)
		}
		f := following(p)
		f.Server = server
		r := &Report{Facts: f}
		r.Judge(p, someDay)
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "group-retry" })
		if i < 0 || r.Findings[i].Severity != Info || !strings.HasPrefix(r.Findings[i].Remedy, "The policy doesn't have x25519") {
			t.Errorf("%q: %+v", server, r.Findings)
		}
		// Without x25519, a server of a policy that has it does fail.
		if p, err = policy.Get("mozilla-intermediate"); err != nil {
			t.Fatal(err)
		}
		f = following(p)
		v := f.Protocols.Versions["TLS 1.3"]
		v.Groups = []string{"secp256r1"}
		f.Protocols.Versions["TLS 1.3"] = v
		if got := failing(f, p); !slices.Contains(got, "group-retry") {
			t.Errorf("%q: %v", server, got)
		}
	}
}

// TestRemedies: a product's remedies name its own directives with the policy's values, and no other product. Some
// product has directives for each setting that a rule names.
func TestRemedies(t *testing.T) {
	names := []string{"nginx", "apache", "haproxy", "lighttpd", "caddy", "postgresql"}
	settings := map[string]bool{} // with directives
	for _, name := range policy.Names() {
		p, err := policy.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, product := range Products {
			f := following(p)
			j := &judgement{facts: &f, policy: p, at: someDay, product: product}
			for _, rule := range rules {
				for _, s := range rule.settings {
					settings[s] = settings[s] || j.directives(false, s) != ""
				}
				remedy := j.remedyFor(rule, "general")
				if rule.ID == "group-postquantum" { // whose remedy is its own
					none := Facts{Protocols: ProtocolFacts{Versions: map[string]VersionFacts{
						"TLS 1.3": {Outcome: Outcome{State: Tested}, Offered: true}}}}
					findings, _ := rule.check(&judgement{facts: &none, policy: p, at: someDay, product: product})
					remedy = findings[0].Remedy
				}
				for _, other := range names {
					if other != product && strings.Contains(strings.ToLower(remedy), other) {
						t.Errorf("%s, %s, %s: %s", name, product, rule.ID, remedy)
					}
				}
				words := strings.FieldsFunc(remedy, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
				if value(p.Groups, "x25519") == nil && hasName(words, "x25519") {
					t.Errorf("%s has no x25519; %s, %s: %s", name, product, rule.ID, remedy)
				}
				old := func(name string) bool { return strings.Contains(remedy, name) }
				if value(p.Versions, "TLS 1.2") == nil && slices.ContainsFunc([]string{"TLSv1.2", "tls1.2", "VersionTLS12"}, old) {
					t.Errorf("%s has no TLS 1.2; %s, %s: %s", name, product, rule.ID, remedy)
				}
			}
		}
	}
	for s, found := range settings {
		if !found {
			t.Errorf("no product has a directive for %s", s)
		}
	}
	p, err := policy.Get("bsi")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ server, rule, want string }{
		{"nginx/1.22.1", "suite-not-in-policy", "ssl_ciphers ECDHE-ECDSA-AES256-GCM-SHA384:"},
		{"Apache/2.4.62 (Debian) OpenSSL/3.0.15", "group-not-in-policy", "Set SSLOpenSSLConfCmd Groups prime256v1:secp384r1:"},
		{"Caddy", "suite-weak", "Set ciphers TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 "},
		{"haproxy", "group-weak", "Set ssl-default-bind-curves prime256v1:"},
		{"lighttpd/1.4.79", "version-old", `Set ssl.openssl.ssl-conf-cmd += ( "MinProtocol" => "TLSv1.2" ), and restart.`},
		{"PostgreSQL", "version-old", "Set ssl_min_protocol_version = 'TLSv1.2'"},
		{"go", "version-old", "Set MinVersion: tls.VersionTLS12 and MaxVersion: tls.VersionTLS13 in the tls.Config."},
	} {
		f := following(p)
		f.Server = test.server
		j := &judgement{facts: &f, policy: p, at: someDay, product: Product(test.server)}
		i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == test.rule })
		if got := j.remedyFor(rules[i], "general"); !strings.Contains(got, test.want) {
			t.Errorf("%s, %s: %s", test.server, test.rule, got)
		}
	}
}

// TestForbiddenResumption: the remedy for tickets that the policy forbids turns them off.
func TestForbiddenResumption(t *testing.T) {
	p, err := policy.Get("fast-and-safe")
	if err != nil {
		t.Fatal(err)
	}
	without := *p
	without.Resumption.TLS13.Value, without.Resumption.Tickets.Value = "no", "no"
	f := following(p)
	f.Server = "nginx/1.26.3"
	f.Resumption.Ticket13 = Resumed{Outcome: Outcome{State: Tested}, Offered: true, Tries: 4, Hits: 4}
	r := &Report{Facts: f}
	r.Judge(&without, someDay)
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "resume-tls13" })
	if i < 0 || r.Findings[i].Remedy != "Set ssl_session_tickets off; and reload." {
		t.Errorf("%+v", r.Findings)
	}
}

// TestLimits: a product is excused for a value that it can't turn off, and for no other one.
func TestLimits(t *testing.T) {
	p, err := policy.Get("bsi")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		server, version, suite string
		fails                  bool
	}{
		{"Caddy", "TLS 1.3", "TLS_CHACHA20_POLY1305_SHA256", false},
		{"Caddy", "TLS 1.3", "TLS_AES_128_CCM_8_SHA256", true},
		{"Caddy", "TLS 1.2", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", true},
		{"nginx", "TLS 1.3", "TLS_CHACHA20_POLY1305_SHA256", true},
		{"PostgreSQL", "TLS 1.3", "TLS_CHACHA20_POLY1305_SHA256", true}, // with several groups: 18 or newer
	} {
		f := following(p)
		f.Server = test.server
		v := f.Protocols.Versions[test.version]
		v.Suites = append(v.Suites, test.suite)
		f.Protocols.Versions[test.version] = v
		if got := failing(f, p); slices.Contains(got, "suite-not-in-policy") != test.fails {
			t.Errorf("%s, %s: %v", test.server, test.suite, got)
		}
	}
	tested := Outcome{State: Tested}
	f := following(p)
	none := Resumed{Outcome: tested}
	f.Resumption = ResumptionFacts{Ticket13: none, Ticket12: none, ID12: none}
	for _, test := range []struct {
		server string
		state  State
	}{{"nginx", Tested}, {"PostgreSQL", NotTested}} {
		f.Server = test.server
		r := &Report{Facts: f}
		r.Judge(p, someDay)
		result := resultOf(t, r, "resume-none")
		if result.State != test.state ||
			result.State == NotTested && !strings.HasPrefix(result.Reason, "not applicable here: PostgreSQL") {
			t.Errorf("%s: %+v", test.server, result)
		}
		if found := slices.Contains(failing(f, p), "resume-none"); found != (test.state == Tested) {
			t.Errorf("%s: found %v", test.server, found)
		}
	}
}
