package audit

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/policy"
)

// judgeExtra returns the findings of the extra rules for facts, each as "rule: evidence".
func judgeExtra(facts Facts) (found []string, outcomes map[string]Outcome) {
	r := &Report{Facts: facts}
	r.Judge(new(policy.Policy), someDay)
	outcomes = map[string]Outcome{}
	for _, result := range r.Results {
		if slices.ContainsFunc(extraRules, func(rule Rule) bool { return rule.ID == result.Rule }) {
			outcomes[result.Rule] = Outcome{result.State, result.Reason}
		}
	}
	for _, f := range r.Findings {
		if _, ok := outcomes[f.Rule]; ok {
			found = append(found, f.Rule+": "+f.Evidence)
		}
	}
	slices.Sort(found)
	return found, outcomes
}

func TestExtraRules(t *testing.T) {
	tested := Outcome{State: Tested}
	sound := map[string]string{"Content-Security-Policy": "default-src 'self'; Frame-Ancestors 'none'",
		"X-Content-Type-Options": "NoSniff", "Referrer-Policy": "no-referrer"}
	facts := func(edit func(*Facts)) Facts {
		f := Facts{Extra: &ExtraFacts{Status: 200, Headers: sound}}
		f.HTTP.Outcome, f.DNS.Outcome, f.Certificates.Outcome = tested, tested, tested
		f.DNS.CAA = []string{`0 issue "ca.example"`}
		f.Certificates.Chains = []ChainFacts{{Key: "RSA 2048", Trusted: true, SCTs: 2}}
		edit(&f)
		return f
	}
	for name, c := range map[string]struct {
		edit func(*Facts)
		want string // of the findings, separated by |
	}{
		"sound":           {func(*Facts) {}, ""},
		"no CAA":          {func(f *Facts) { f.DNS.CAA = nil }, "caa-missing: Neither"},
		"one timestamp":   {func(f *Facts) { f.Certificates.Chains[0].SCTs = 1 }, "sct-missing: The RSA 2048 certificate has 1."},
		"not trusted":     {func(f *Facts) { f.Certificates.Chains[0] = ChainFacts{} }, ""},
		"own roots":       {func(f *Facts) { f.Certificates.Chains[0].SCTs = 0; f.Extra.OwnRoots = true }, ""},
		"a redirection":   {func(f *Facts) { f.Extra.Status, f.Extra.Headers = 301, nil }, ""},
		"DNS that failed": {func(f *Facts) { f.DNS.CAA, f.DNS.Outcome = nil, Outcome{Failed, "timeout"} }, ""},
		"no headers":      {func(f *Facts) { f.Extra.Headers = nil }, "GET / lacks Content-Security-Policy, X-Content-Type"},
		"frames by the header": {func(f *Facts) {
			f.Extra.Headers = map[string]string{"X-Frame-Options": "DENY"}
		}, "nosniff, Referrer-Policy."},
	} {
		found, outcomes := judgeExtra(facts(c.edit))
		if got := strings.Join(found, "|"); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if len(outcomes) != len(extraRules) {
			t.Errorf("%s: %d outcomes", name, len(outcomes))
		}
	}
	if found, outcomes := judgeExtra(facts(func(f *Facts) { f.Extra, f.DNS.CAA = nil, nil })); len(found)+len(outcomes) > 0 {
		t.Errorf("without being asked: %q, %v", found, outcomes)
	}
}

// TestExtra: an audit keeps the headers if it is asked for them.
func TestExtra(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Set-Cookie", "secret=1")
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	target, err := ParseTarget(address.Host)
	if err != nil {
		t.Fatal(err)
	}
	for _, extra := range []bool{false, true} {
		report, err := Check(t.Context(), target, Options{Extra: extra, NoDNS: true, NoTiming: true, NoClients: true})
		if err != nil {
			t.Fatal(err)
		}
		f := report.Facts.Extra
		if (f != nil) != extra {
			t.Fatalf("%v: %+v", extra, f)
		}
		if extra && (f.Status != 200 || len(f.Headers) != 1 || f.Headers["Referrer-Policy"] != "no-referrer") {
			t.Errorf("%v: %+v", extra, f)
		}
	}
}
