package zoo_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/audit"
	"github.com/ossl-go/ossl/audit/internal/zoo"
)

// TestVerdicts audits every server that needs no other program. Audits that wait run in parallel
// with the others.
func TestVerdicts(t *testing.T) {
	type audited struct {
		result zoo.Result
		err    error
	}
	check := func(server *zoo.Server) (a audited) {
		running, err := server.Start()
		if err != nil {
			return audited{err: err}
		}
		a.result = running.Check(t.Context())
		a.err = running.Close()
		return a
	}
	waiting := map[string]chan audited{}
	for _, server := range zoo.Local() {
		if server.Slow {
			c := make(chan audited, 1)
			waiting[server.Name] = c
			go func() { c <- check(server) }()
		}
	}
	for _, server := range zoo.Local() {
		t.Run(server.Name, func(t *testing.T) {
			var a audited
			if server.Slow {
				a = <-waiting[server.Name]
			} else {
				a = check(server)
			}
			if zoo.Unavailable(a.err) {
				t.Skip(a.err)
			}
			if err := errors.Join(a.err, a.result.Err); err != nil {
				t.Error(err)
			}
			for _, v := range a.result.Missing {
				t.Errorf("%s is not found: %s", v.Rule, v.Why)
			}
			for _, f := range a.result.Extra {
				t.Errorf("%s is found: %s (%s)", f.Rule, f.Evidence, f.Severity)
			}
			for _, r := range a.result.Untried {
				t.Errorf("%s failed to be tested: %s", r.Rule, r.Reason)
			}
			for _, r := range a.result.Report.Results {
				if strings.Contains(r.Reason, "client: ") || strings.Contains(r.Reason, "hello: ") {
					t.Errorf("%s names a package of this program: %s", r.Rule, r.Reason)
				}
			}
			if len(a.result.Claimed) > 0 {
				t.Errorf("can't have been tested: %q", a.result.Claimed)
			}
		})
	}
}

// TestRules verifies that the expected verdicts are of rules that exist, and that names are unique.
func TestRules(t *testing.T) {
	var rules []string
	for _, rule := range audit.Rules() {
		rules = append(rules, rule.ID)
	}
	seen := map[string]bool{}
	for _, server := range zoo.Local() {
		if seen[server.Name] || strings.ContainsAny(server.Name, " /") {
			t.Errorf("the name %q is taken or has a space", server.Name)
		}
		seen[server.Name] = true
		for _, v := range server.Expect {
			if !slices.Contains(rules, v.Rule) {
				t.Errorf("%s: no rule is named %q", server.Name, v.Rule)
			}
		}
		for _, rule := range server.Failed {
			if !slices.Contains(rules, rule) {
				t.Errorf("%s: no rule is named %q", server.Name, rule)
			}
		}
	}
	if len(seen) < 30 {
		t.Error(fmt.Sprint(len(seen), " servers"))
	}
}
