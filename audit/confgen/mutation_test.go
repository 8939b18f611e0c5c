package confgen_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ossl-go/ossl/audit"
	. "github.com/ossl-go/ossl/audit/confgen"
	"github.com/ossl-go/ossl/policy"
)

// A mutation is an alteration of a configuration, and the rule that has to notice it.
type mutation struct {
	setting string
	alter   func(string) string
	rules   string // the audit reports one, and no other rule
}

// Each of the mutations alters one directive. No mutation alters a directive that a client can't see,
// such as sendfile; nor compression, which Debian's OpenSSL lacks; nor signature schemes, since that
// OpenSSL allows only good ones.
var mutations = []mutation{
	{"versions", without13, "version-missing tls13-missing"},
	{"order", negate, "suite-order"},
	{"order", func(s string) string { return strings.Replace(s, "ServerP", "-ServerP", 1) }, "suite-order"},
	{"order", func(s string) string { return strings.Replace(s, "SessionT", "-SessionT", 1) }, "resume-tls12-ticket"},
	{"early", func(s string) string { return strings.Replace(s, "off", "on", 1) }, "early-data-on"},
	{"resumption.lifetime", func(s string) string { return strings.Replace(s, "600", "86400", 1) }, "resume-lifetime"},
	{"groups", first, "group-missing group-postquantum group-retry"},
	{"groups", last, "group-missing group-retry client-refused"},
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

// dropped has, for each setting, the rules that may notice that its directive is missing. No rule
// notices it if the policy wants the server's default.
var dropped = map[string]string{
	"versions":            "version-old version-missing tls13-missing",
	"order":               "suite-order resume-tls12-ticket",
	"early":               "early-data-on",
	"groups":              "group-missing group-not-in-policy group-postquantum group-retry group-weak",
	"suites12":            "suite-missing suite-not-in-policy suite-weak suite-order",
	"suites13":            "suite-missing suite-not-in-policy suite-order",
	"resumption.lifetime": "resume-lifetime",
	"resumption.tickets":  "resume-tls12-ticket resume-tls13 resume-none",
	"resumption.id":       "resume-tls12-id resume-tls13 resume-none",
	"alpn":                "alpn-h2",
}

// A tally counts mutations.
type tally struct {
	mu           sync.Mutex
	tried, named int
	invisible    int // dropped directives that repeat a default, or without which there is no server with TLS
	missed       []string
}

func (y *tally) count(label, miss string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.tried++
	if miss == "" {
		y.named++
	} else {
		y.missed = append(y.missed, label+": "+miss)
	}
}

// TestServersMutated alters the directives of each server's configuration, one at a time, and drops
// them: the audit has to name the rule, and nothing else may change.
func TestServersMutated(t *testing.T) {
	var y tally
	t.Run("servers", func(t *testing.T) {
		for _, s := range tree(t) {
			t.Run(fmt.Sprintf("%s-%s", s.Kind, s.Version), func(t *testing.T) {
				t.Parallel() // they wait most of the time
				y.mutate(t, s)
			})
		}
	})
	t.Logf("%d of %d mutations were named; %d dropped directives repeat a default, or there is no TLS without them",
		y.named, y.tried, y.invisible)
	for _, m := range y.missed {
		t.Log(m)
	}
	if y.named*100 < y.tried*95 {
		t.Errorf("fewer than 95 %%")
	}
}

func (y *tally) mutate(t *testing.T, s Server) {
	p, err := policy.Get("fast-and-safe") // it asks for all that is altered
	if err != nil {
		t.Fatal(err)
	}
	audited := func(change func(*Config)) (*Config, map[string]audit.Finding, error) {
		c, process, roots, err := start(t, s, p, change)
		if err != nil {
			return c, nil, err
		}
		defer process.Stop() // hundreds of them would slow one another down
		findings, _, err := tryAudit(t, c, roots)
		return c, findings, err
	}
	c, before, err := audited(nil)
	if err != nil {
		t.Fatal(err)
	}
	// fresh returns the rules that are broken by a change, and were not before.
	fresh := func(change func(*Config)) (rules []string, err error) {
		_, after, err := audited(change)
		for rule, f := range after {
			if b, ok := before[rule]; !ok || b.Severity != f.Severity {
				rules = append(rules, rule)
			}
		}
		slices.Sort(rules)
		return rules, err
	}
	within := func(rules []string, allowed string) bool {
		return !slices.ContainsFunc(rules, func(r string) bool { return !slices.Contains(strings.Fields(allowed), r) })
	}
	for i, d := range c.Directives {
		label := fmt.Sprintf("%s-%s/%s", s.Kind, s.Version, d.Name)
		for j, m := range mutations {
			if m.setting != d.Setting || m.alter(d.Value) == d.Value {
				continue
			}
			if !slices.ContainsFunc(strings.Fields(m.rules), func(rule string) bool { return !expected(c, rule) }) {
				continue // the server can't follow the policy there
			}
			rules, err := fresh(func(c *Config) { c.Directives[i].Value = m.alter(d.Value) })
			miss := ""
			switch {
			case err != nil:
				miss = "doesn't start: " + err.Error()
			case len(rules) == 0 || !within(rules, m.rules):
				miss = fmt.Sprintf("%v, not %s", rules, m.rules)
			}
			y.count(fmt.Sprintf("%s/%d", label, j), miss)
		}
		if allowed, ok := dropped[d.Setting]; ok {
			rules, err := fresh(func(c *Config) { c.Directives = slices.Delete(c.Directives, i, i+1) })
			switch {
			case err != nil || len(rules) == 0:
				y.mu.Lock()
				y.invisible++
				y.mu.Unlock()
			case !within(rules, allowed):
				y.count(label+" dropped", fmt.Sprintf("%v, not only %s", rules, allowed))
			default:
				y.count(label+" dropped", "")
			}
		}
	}
}
