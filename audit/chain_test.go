package audit

import (
	"crypto/x509"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/ossl-go/ossl/audit/internal/testcert"
	"github.com/ossl-go/ossl/policy"
)

// judgeChains returns the findings of the rules on certificates, by the policy fast-and-safe.
func judgeChains(t *testing.T, chains ...ChainFacts) map[string]Finding {
	t.Helper()
	p, err := policy.Get("fast-and-safe")
	if err != nil {
		t.Fatal(err)
	}
	facts := &Facts{Certificates: CertificateFacts{Outcome: Outcome{State: Tested}, Chains: chains}}
	found := map[string]Finding{}
	for _, rule := range certificateRules {
		findings, outcome := rule.check(&judgement{facts: facts, policy: p, at: time.Now()})
		if outcome.State == Failed {
			t.Errorf("%s failed: %s", rule.ID, outcome.Reason)
		}
		for _, f := range findings {
			if f.Severity.Rank() < 0 || f.Evidence == "" || f.Remedy == "" || f.Source == "" && rule.Source == "" {
				t.Errorf("%s: the finding lacks a part: %+v", rule.ID, f)
			}
			found[rule.ID] = f
		}
	}
	return found
}

func caseInput(c *testcert.Case) chainInput {
	return chainInput{der: c.Leaf.TLS(c.Sent...).Certificate, staple: c.Staple, name: "localhost", roots: c.Roots(), now: time.Now()}
}

func TestChains(t *testing.T) {
	for _, c := range testcert.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			facts := analyse(caseInput(&c))
			found := judgeChains(t, facts)
			var ids []string
			for id := range found {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			if !slices.Equal(ids, c.Rules) {
				text, _ := json.MarshalIndent(facts, "", " ")
				t.Errorf("findings %v, want %v\n%+v\n%s", ids, c.Rules, found, text)
			}
		})
	}
}

func TestChainFacts(t *testing.T) {
	cases := map[string]testcert.Case{}
	for _, c := range testcert.Cases() {
		cases[c.Name] = c
	}
	facts := func(name string) ChainFacts { c := cases[name]; return analyse(caseInput(&c)) }

	good := facts("good")
	if good.Key != "ECDSA secp256r1" || good.SCTs != 2 || !good.Trusted || good.Root || len(good.Path) != 2 {
		t.Errorf("good: %+v", good)
	}
	if want := len(good.DER[0]) + len(good.DER[1]); good.Bytes != want {
		t.Errorf("%d bytes, want %d", good.Bytes, want)
	}
	if c := good.Certificates[0]; c.SHA256 != cases["good"].Leaf.Hash() || !slices.Contains(c.Names, "127.0.0.1") ||
		c.Signature != "ECDSA-SHA256" {
		t.Errorf("leaf: %+v", c)
	}
	if f := facts("missing-intermediate"); f.Trusted || f.Missing != "CN=Test Intermediate" {
		t.Errorf("missing intermediate: %+v", f)
	}
	if f := facts("root-sent"); !f.Root || !f.Trusted || !slices.Equal(f.Needless, []int{2}) {
		t.Errorf("root sent: %+v", f)
	}
	if f := facts("wrong-order"); f.InOrder || !f.Trusted || !slices.Equal(f.Path, []int{0, 2, 1}) {
		t.Errorf("wrong order: %+v", f)
	}
	if f := facts("expired"); !f.Trusted {
		t.Errorf("an expired certificate of a trusted authority: %s", f.TrustError)
	}
	if f := facts("stapled"); !f.Stapled || f.StapleError != "" || len(f.OCSP) != 1 || f.StapleFrom == nil || f.StapleUntil == nil ||
		f.StapleUntil.Sub(*f.StapleFrom) < 72*time.Hour {
		t.Errorf("stapled: %+v", f)
	}
	if f := facts("must-staple"); !f.MustStaple {
		t.Errorf("must-staple: %+v", f)
	}
	if f := facts("rsa-1024"); f.Key != "RSA 1024" {
		t.Errorf("key %s", f.Key)
	}

	root := cases["root-sent"]
	found := judgeChains(t, facts("root-sent"))["chain-root"]
	if want := len(root.Root.Raw) + 3; found.Price.Bytes != want {
		t.Errorf("a price of %d bytes, want %d", found.Price.Bytes, want)
	}
}

// TestRevoked: each certificate of the path is looked up with its issuer, except a trust anchor. One that is
// revoked is a finding, and one of which nothing is known lets the rule fail.
func TestRevoked(t *testing.T) {
	p, err := policy.Get("fast-and-safe")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]testcert.Case{}
	for _, c := range testcert.Cases() {
		cases[c.Name] = c
	}
	const leaf, inter = "localhost", "Test Intermediate"
	for _, test := range []struct {
		name, chain      string
		revoked, unknown string // common names
		asked            []string
		severity         Severity
		state            State
	}{
		{"good", "good", "", "", []string{leaf, inter}, "", Tested},
		{"leaf", "good", leaf, "", []string{leaf, inter}, Critical, Tested},
		{"intermediate, and no list for the leaf", "good", inter, leaf, []string{leaf, inter}, Critical, Tested},
		{"no list", "good", "", inter, []string{leaf, inter}, "", Failed},
		{"root sent", "root-sent", "", "Test Root", []string{leaf, inter}, "", Tested},
		{"wrong order", "wrong-order", "", "", []string{leaf, "Second Intermediate", inter}, "", Tested},
		{"unknown issuer", "untrusted-root", "", "", []string{leaf}, "", Failed},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := cases[test.chain]
			in := caseInput(&c)
			var asked []string
			in.checkCRL = func(cert, issuer *x509.Certificate) (bool, string) {
				if err := cert.CheckSignatureFrom(issuer); err != nil {
					t.Error(err)
				}
				name := cert.Subject.CommonName
				asked = append(asked, name)
				switch name {
				case test.revoked:
					return true, "it was revoked"
				case test.unknown:
					return false, "no list"
				}
				return false, ""
			}
			r := &Report{Facts: Facts{Certificates: CertificateFacts{Outcome: Outcome{State: Tested}, CRLs: true,
				Chains: []ChainFacts{analyse(in)}}}}
			if !slices.Equal(asked, test.asked) {
				t.Errorf("asked for %q", asked)
			}
			r.Judge(p, time.Now())
			var severity Severity
			for _, f := range r.Findings {
				if f.Rule == "certificate-revoked" {
					severity = f.Severity
				}
			}
			if result := resultOf(t, r, "certificate-revoked"); severity != test.severity || result.State != test.state {
				t.Errorf("severity %q, %+v", severity, result)
			}
			r.Facts.Certificates.CRLs = false
			r.Judge(p, time.Now())
			if slices.ContainsFunc(r.Results, func(result Result) bool { return result.Rule == "certificate-revoked" }) {
				t.Error("the rule is judged without lists")
			}
		})
	}
}

// TestDelegatedStaple has responses that a responder signed in the name of the issuer.
func TestDelegatedStaple(t *testing.T) {
	root := testcert.Root(testcert.Template{CA: true})
	leaf := root.Issue(testcert.Template{OCSP: []string{"http://127.0.0.1:1"}})
	forOCSP := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageOCSPSigning} }
	now := time.Now()
	pool := x509.NewCertPool()
	pool.AddCert(root.Certificate)
	for _, test := range []struct {
		name, want string
		responder  *testcert.Cert
	}{
		{"good", "", root.Issue(testcert.Template{Name: "responder", Edit: forOCSP})},
		{"not for OCSP", "isn't for OCSP", root.Issue(testcert.Template{Name: "responder"})},
		{"expired", "isn't valid now", root.Issue(testcert.Template{Name: "responder", Edit: forOCSP,
			NotBefore: now.AddDate(0, 0, -9), NotAfter: now.AddDate(0, 0, -1)})},
		{"of another authority", "bad", testcert.Root(testcert.Template{CA: true, Name: "x"}).Issue(
			testcert.Template{Name: "responder", Edit: forOCSP})},
	} {
		staple := root.DelegatedStaple(leaf, test.responder, ocsp.Good, now.Add(-time.Hour), now.Add(time.Hour))
		facts := analyse(chainInput{der: [][]byte{leaf.Raw}, staple: staple, name: "localhost", roots: pool, now: now})
		if (facts.StapleError == "") != (test.want == "") || !strings.Contains(facts.StapleError, test.want) {
			t.Errorf("%s: %q", test.name, facts.StapleError)
		}
	}
	// A responder may work for several authorities, and serial numbers are unique for one only.
	other := testcert.Root(testcert.Template{CA: true, Name: "other"})
	staple := other.DelegatedStaple(leaf, root.Issue(testcert.Template{Name: "responder", Edit: forOCSP}), ocsp.Good,
		now.Add(-time.Hour), now.Add(time.Hour))
	facts := analyse(chainInput{der: [][]byte{leaf.Raw}, staple: staple, name: "localhost", roots: pool, now: now})
	if !strings.Contains(facts.StapleError, "another issuer's certificate") {
		t.Errorf("of another issuer's certificate: %q", facts.StapleError)
	}
}

// TestMalformedChains has chains of nothing, of 0 bytes, and of 16 MB.
func TestMalformedChains(t *testing.T) {
	c := testcert.Cases()[0]
	good := c.Leaf.TLS(c.Sent...).Certificate
	large := make([]byte, 1<<24-1)
	many := [][]byte{good[0]}
	for range 5000 {
		many = append(many, good[1])
	}
	for _, test := range []struct {
		name string
		der  [][]byte
		rule string
		want string // in the evidence
	}{
		{"nothing", nil, "certificate-untrusted", "no certificate"},
		{"0 bytes", [][]byte{{}}, "certificate-untrusted", "0 bytes"},
		{"16 MB", [][]byte{large}, "certificate-untrusted", "16777215 bytes"},
		{"garbage", [][]byte{[]byte("garbage")}, "certificate-untrusted", "malformed"},
		{"0 bytes after the leaf", [][]byte{good[0], {}, good[1]}, "chain-needless", "0 bytes"},
		{"16 MB after the leaf", [][]byte{good[0], good[1], large}, "chain-needless", "16777215 bytes"},
		{"5000 certificates", many, "chain-needless", "sent twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			facts := analyse(chainInput{der: test.der, name: "localhost", roots: c.Roots(), now: time.Now()})
			j := &judgement{policy: new(policy.Policy), at: time.Now(), facts: &Facts{
				Certificates: CertificateFacts{Outcome: Outcome{State: Tested}, Chains: []ChainFacts{facts}}}}
			for _, rule := range certificateRules {
				findings, outcome := rule.check(j)
				if rule.ID == test.rule && (outcome.State != Tested || len(findings) != 1 ||
					!strings.Contains(findings[0].Evidence, test.want)) {
					t.Errorf("%+v, %+v", findings, outcome)
				}
			}
		})
	}
}

func FuzzChain(f *testing.F) {
	for _, c := range testcert.Cases() {
		second := []byte{}
		if len(c.Sent) > 0 {
			second = c.Sent[0].Raw
		}
		f.Add(c.Leaf.Raw, second, c.Staple, testcert.SCTs(2))
	}
	root := testcert.Root(testcert.Template{CA: true})
	pool := x509.NewCertPool()
	pool.AddCert(root.Certificate)
	f.Fuzz(func(t *testing.T, leaf, second, staple, scts []byte) {
		facts := analyse(chainInput{der: [][]byte{leaf, second}, staple: staple, scts: scts, name: "localhost", roots: pool,
			now: time.Now()})
		if facts.Trusted {
			t.Fatal("trusted")
		}
		j := &judgement{policy: new(policy.Policy), at: time.Now(), facts: &Facts{
			Certificates: CertificateFacts{Outcome: Outcome{State: Tested}, Chains: []ChainFacts{facts}}}}
		for _, rule := range certificateRules {
			rule.check(j)
		}
	})
}

// A chain that can't be judged hides no finding about another one.
func TestFindingBesideAnotherChain(t *testing.T) {
	cases := map[string]testcert.Case{}
	for _, c := range testcert.Cases() {
		cases[c.Name] = c
	}
	for other, rules := range map[string][]string{
		"missing-intermediate": {"certificate-untrusted"},
		"sha-1":                {"certificate-untrusted"},
		"malformed":            {"certificate-untrusted", "certificate-expired"},
	} {
		for _, rule := range rules {
			bad := cases["self-signed"]
			if rule == "certificate-expired" {
				bad = cases["expired"]
			}
			chains := []ChainFacts{analyse(caseInput(&bad))}
			if c, ok := cases[other]; ok {
				chains = append(chains, analyse(caseInput(&c)))
			} else {
				chains = append(chains, analyse(chainInput{der: [][]byte{{1}}}))
			}
			for range 2 {
				slices.Reverse(chains)
				facts := &Facts{Certificates: CertificateFacts{Outcome: Outcome{State: Tested}, Chains: chains}}
				i := slices.IndexFunc(certificateRules, func(r Rule) bool { return r.ID == rule })
				findings, outcome := certificateRules[i].check(&judgement{facts: facts, policy: &policy.Policy{}, at: time.Now()})
				if len(findings) == 0 || outcome.State != Tested {
					t.Errorf("%s beside %s: %+v, %v", rule, other, outcome, findings)
				}
			}
		}
	}
}
