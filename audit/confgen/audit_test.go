package confgen_test

import (
	"crypto/x509"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/audit"
	. "github.com/ossl-go/ossl/audit/confgen"
	"github.com/ossl-go/ossl/policy"
)

// auditOf audits a server, and returns the findings by rule.
func auditOf(t *testing.T, c *Config, roots *x509.CertPool) (map[string]audit.Finding, *audit.Report) {
	t.Helper()
	findings, report, err := tryAudit(t, c, roots)
	if err != nil {
		t.Fatal(err)
	}
	return findings, report
}

// tryAudit is auditOf for a server that may have no TLS.
func tryAudit(t *testing.T, c *Config, roots *x509.CertPool) (map[string]audit.Finding, *audit.Report, error) {
	target := audit.Target{Host: "127.0.0.1", Port: uint16(c.Layout.Port), Protocol: "https"}
	if c.Server.Kind == "postgresql" {
		target.Protocol = "postgres"
	}
	options := audit.Options{Policy: c.Policy, ServerName: "localhost", Roots: roots, NoDNS: true, NoTiming: true}
	if c.Server.Kind == "go" { // its answers name no product
		options.Server = "go"
	}
	report, err := audit.Check(t.Context(), target, options)
	if err != nil {
		return nil, nil, err
	}
	findings := map[string]audit.Finding{}
	for _, f := range report.Findings {
		findings[f.Rule] = f
	}
	return findings, report, nil
}

// TestServersAudit audits each server with its configuration by the same policy: each passes "ossl check --policy",
// which fails at findings of the severity medium.
func TestServersAudit(t *testing.T) {
	for _, s := range tree(t) {
		for _, name := range policy.Names() {
			p, err := policy.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(s.Kind+"-"+s.Version.String()+"-"+s.OpenSSL.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				c, _, roots, err := start(t, s, p, nil)
				if err != nil {
					t.Fatal(err)
				}
				findings, report := auditOf(t, c, roots)
				for rule, f := range findings {
					if !expected(c, rule) && f.Severity != audit.Info {
						t.Errorf("%s: %s: %s", rule, f.Title, f.Evidence)
					} else if f.Severity.Rank() >= audit.Medium.Rank() && !outdated(c, rule) {
						t.Errorf("%s is %s: %s (%s) %s", rule, f.Severity, f.Title, f.Evidence, f.Remedy)
					}
				}
				for _, r := range report.Results {
					if r.State == audit.Failed {
						t.Errorf("%s failed: %s", r.Rule, r.Reason)
					}
				}
			})
		}
	}
}

// TestGoAudit is TestServersAudit for the generated Go program on crypto/tls. It needs no installed server.
func TestGoAudit(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles programs: only without -short")
	}
	program, err := Find("go")
	if err != nil {
		t.Skip(err)
	}
	s, err := Ask(t.Context(), "go", program)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range policy.Names() {
		t.Run(name, func(t *testing.T) {
			p, err := policy.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			c, _, roots, err := start(t, s, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			findings, report := auditOf(t, c, roots)
			for rule, f := range findings {
				if f.Severity.Rank() >= audit.Medium.Rank() {
					t.Errorf("%s is %s: %s (%s) %s", rule, f.Severity, f.Title, f.Evidence, f.Remedy)
				}
			}
			for _, r := range report.Results {
				if r.State == audit.Failed {
					t.Errorf("%s failed: %s", r.Rule, r.Reason)
				}
			}
		})
	}
}

// outdated reports whether a server breaks a rule that only a newer release can follow. FIPS 140-3 needs the
// extended master secret, which Caddy supports if it was built with Go 1.21 or later.
func outdated(c *Config, rule string) bool {
	return rule == "ems-missing" && c.Policy.FIPS && c.Server.Kind == "caddy" && c.Server.Go.Before(Version{1, 21, 0})
}

// expected reports whether an unmet setting of the configuration explains why the server breaks the rule.
func expected(c *Config, rule string) bool {
	return slices.ContainsFunc(c.Unmet, func(r Unmet) bool {
		return slices.Contains(strings.Fields(breaks[r.Setting]), rule)
	})
}

// breaks are the rules that a server may break if it can't follow a part of a policy.
var breaks = map[string]string{
	"groups":              "group-missing group-not-in-policy group-postquantum group-retry",
	"suites13":            "suite-missing suite-not-in-policy suite-order",
	"suites12":            "suite-missing",
	"order":               "suite-order",
	"ems":                 "ems-missing",
	"signatures":          "signature-weak",
	"resumption":          "resume-none resume-tls13 resume-tls12-id resume-tls12-ticket",
	"resumption.id":       "resume-tls12-id",
	"resumption.lifetime": "resume-lifetime",
	"resumption.rotation": "ticket-rotation",
	"stapling":            "staple-missing",
}
