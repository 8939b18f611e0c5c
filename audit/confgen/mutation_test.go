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

// mutations alter one directive each.
var mutations = []mutation{
	{"groups", first, "group-missing group-postquantum"},
	{"groups", last, "group-missing group-retry"},
	{"suites12", last, "suite-missing"},
	{"suites12", reverse, "suite-order"},
	{"suites12", func(s string) string { return insert(s, "ECDHE-ECDSA-AES128-SHA") }, "suite-not-in-policy suite-weak"},
	{"suites13", last, "suite-missing"},
	{"suites13", reverse, "suite-order"},
	{"resumption.tickets", negate, "resume-tls12-ticket"},
	{"resumption.id", none, "resume-tls12-id"},
	{"alpn", noH2, "alpn-h2"},
}

func list(s string) (parts []string, quote string) {
	if strings.HasPrefix(s, "'") {
		quote = "'"
	}
	return strings.Split(strings.Trim(s, "'"), ":"), quote
}

func first(s string) string {
	p, q := list(s)
	if len(p) == 1 {
		return s
	}
	return q + strings.Join(p[1:], ":") + q
}

func last(s string) string {
	p, q := list(s)
	return q + p[0] + q
}

func reverse(s string) string {
	p, q := list(s)
	slices.Reverse(p)
	return q + strings.Join(p, ":") + q
}

func insert(s, name string) string {
	p, q := list(s)
	return q + strings.Join(append(p, name), ":") + q
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
		if s.OpenSSL.Before(Version{3, 5, 0}) || s.Kind == "caddy" {
			continue
		}
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
