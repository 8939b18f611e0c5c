package confgen

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/policy"
)

// A mutation is an alteration of a configuration, and the rule that has to notice it.
type mutation struct {
	setting string
	alter   func(string) string
	rules   string // one of them, and no other
}

// mutations alter one directive each. They leave out what can't be seen from outside: sendfile, packets,
// compression, which Debian's OpenSSL doesn't have, and signature schemes, of which it allows good ones
// only.
var mutations = []mutation{
	{"versions", without13, "version-missing tls13-missing"},
	{"order", negate, "suite-order"},
	{"order", func(s string) string { return strings.Replace(s, "ServerP", "-ServerP", 1) }, "suite-order"},
	{"order", func(s string) string { return strings.Replace(s, "SessionT", "-SessionT", 1) }, "resume-tls12-ticket"},
	{"early", func(s string) string { return strings.Replace(s, "off", "on", 1) }, "early-data-on"},
	{"resumption.lifetime", func(s string) string { return strings.Replace(s, "600", "86400", 1) }, "resume-lifetime"},
	{"groups", first, "group-missing group-postquantum group-retry"},
	{"groups", last, "group-missing group-retry"},
	{"suites12", last, "suite-missing"},
	{"suites12", reverse, "suite-order"},
	{"suites12", insertCBC, "suite-not-in-policy suite-weak"},
	{"suites13", last, "suite-missing"},
	{"suites13", reverse, "suite-order"},
	{"resumption.tickets", negate, "resume-tls12-ticket"},
	{"resumption.id", none, "resume-tls12-id"},
	{"alpn", noH2, "alpn-h2"},
}

// without13 leaves TLS 1.2, which the policy allows, as it does TLS 1.3 by itself.
func without13(s string) string {
	switch {
	case strings.HasPrefix(s, "ssl-min-ver"):
		return s + " ssl-max-ver TLSv1.2"
	case s == "'TLSv1.3'":
		return "'TLSv1.2'"
	}
	return strings.NewReplacer(" +TLSv1.3", "", " TLSv1.3", "").Replace(s)
}

// list returns the parts of a list, and a function that joins them again.
func list(s string) (parts []string, join func(...string) string) {
	quote, separator := "", ":"
	if strings.HasPrefix(s, "'") {
		quote = "'"
	}
	if !strings.Contains(s, ":") { // Caddy's
		separator = " "
	}
	return strings.Split(strings.Trim(s, "'"), separator), func(parts ...string) string {
		return quote + strings.Join(parts, separator) + quote
	}
}

func first(s string) string {
	p, join := list(s)
	if len(p) == 1 {
		return s
	}
	return join(p[1:]...)
}

func last(s string) string {
	p, join := list(s)
	return join(p[0])
}

func reverse(s string) string {
	p, join := list(s)
	slices.Reverse(p)
	return join(p...)
}

// insertCBC adds a suite that no policy wants.
func insertCBC(s string) string {
	p, join := list(s)
	if strings.HasPrefix(s, "TLS_") {
		return join(append(p, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA")...)
	}
	return join(append(p, "ECDHE-ECDSA-AES128-SHA")...)
}

// noH2 turns HTTP/2 off: without the directive, some servers have it too.
func noH2(s string) string {
	return strings.NewReplacer("h2,", "", "h2 ", "", "h2proto=enable", "h2proto=disable", "on", "off").Replace(s)
}

func negate(s string) string {
	if s == "on" {
		return "off"
	}
	return s
}

func none(s string) string {
	switch {
	case strings.HasPrefix(s, "shmcb"):
		return "none"
	case strings.HasPrefix(s, "shared"):
		return "off"
	case s == "40000":
		return "0"
	}
	return strings.Replace(s, "enable", "disable", 1)
}

// TestServersMutated alters the directives of each server's configuration, one at a time: the audit
// has to name the rule, and nothing else may change.
func TestServersMutated(t *testing.T) {
	tried, named := 0, 0
	var missed []string
	for _, s := range tree(t) {
		for _, name := range []string{"fast-and-safe"} { // it asks for all that is altered
			p, err := policy.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			c, _, roots, err := start(t, s, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			before, _ := auditOf(t, c, roots)
			for i, d := range c.Directives {
				for j, m := range mutations {
					if m.setting != d.Setting || m.alter(d.Value) == d.Value {
						continue
					}
					if !slices.ContainsFunc(strings.Fields(m.rules), func(rule string) bool { return !expected(c, rule) }) {
						continue // the server can't follow the policy there
					}
					label := fmt.Sprintf("%s-%s/%s/%s/%d", s.Kind, s.Version, name, d.Name, j)
					c, _, roots, err := start(t, s, p, func(c *Config) {
						c.Directives[i].Value = m.alter(d.Value)
					})
					tried++
					if err != nil {
						missed = append(missed, label+": doesn't start: "+err.Error())
						continue
					}
					after, _ := auditOf(t, c, roots)
					var fresh []string
					for rule, f := range after {
						if b, ok := before[rule]; !ok || b.Severity != f.Severity {
							fresh = append(fresh, rule)
						}
					}
					slices.Sort(fresh)
					if len(fresh) > 0 && !slices.ContainsFunc(fresh, func(r string) bool {
						return !slices.Contains(strings.Fields(m.rules),
							r)
					}) {
						named++
						continue
					}
					missed = append(missed, fmt.Sprintf("%s: %v, not %s", label, fresh, m.rules))
				}
			}
		}
	}
	t.Logf("%d of %d mutations were named", named, tried)
	for _, m := range missed {
		t.Log(m)
	}
	if named*100 < tried*95 {
		t.Errorf("fewer than 95 %%")
	}
}
