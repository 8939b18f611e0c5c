package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/policy"
)

// goodProtocols are the facts of a server that follows fast-and-safe.
func goodProtocols() ProtocolFacts {
	tested := Outcome{State: Tested}
	f := ProtocolFacts{Outcome: tested, Versions: map[string]VersionFacts{}}
	for _, v := range versionOrder {
		f.Versions[v] = VersionFacts{Outcome: tested}
	}
	f.Versions["TLS 1.3"] = VersionFacts{Outcome: tested, Offered: true, Retry: true, Order: orderServer, GroupOrder: orderServer,
		Suites: []string{"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"},
		Groups: []string{"X25519MLKEM768", "x25519", "secp256r1", "secp384r1"}}
	f.Versions["TLS 1.2"] = VersionFacts{Outcome: tested, Offered: true, Order: orderServer,
		Suites: []string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
			"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
		Groups: []string{"x25519", "secp256r1"}, Signatures: []string{"ecdsa_secp256r1_sha256"}}
	return f
}

// judged returns the findings of the rules of protocols, as "rule severity", and the rules that
// failed.
func judged(t *testing.T, name string, f ProtocolFacts, at time.Time) (findings, failed []string) {
	t.Helper()
	p, err := policy.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	r := &Report{Facts: Facts{Protocols: f}}
	r.Judge(p, at)
	mine := func(id string) bool {
		return slices.ContainsFunc(protocolRules, func(r Rule) bool { return r.ID == id })
	}
	for _, finding := range r.Findings {
		if mine(finding.Rule) {
			findings = append(findings, finding.Rule+" "+string(finding.Severity))
			if finding.Evidence == "" || finding.Remedy == "" || finding.Source == "" || strings.Contains(finding.Evidence, "%!") {
				t.Errorf("%+v", finding)
			}
		}
	}
	for _, result := range r.Results {
		if mine(result.Rule) && result.State == Failed {
			failed = append(failed, result.Rule)
		}
	}
	slices.Sort(findings)
	return findings, failed
}

var someDay = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// TestSuiteMissingOfLongList: the audit doesn't name all suites of a long list, so that none is known to
// be missing.
func TestSuiteMissingOfLongList(t *testing.T) {
	f := goodProtocols()
	v := f.Versions["TLS 1.2"]
	v.Suites, v.Partial = v.Suites[:1], fmt.Sprintf(partialBound, maxSuites)
	f.Versions["TLS 1.2"] = v
	p, err := policy.Get("fast-and-safe")
	if err != nil {
		t.Fatal(err)
	}
	r := &Report{Facts: Facts{Protocols: f}}
	r.Judge(p, someDay)
	if result := resultOf(t, r, "suite-missing"); result.State != NotTested || result.Reason != "TLS 1.2: "+v.Partial {
		t.Errorf("%+v", result)
	}
	if result := resultOf(t, r, "suite-weak"); result.State != Tested {
		t.Errorf("%+v", result)
	}
}

func TestProtocolRules(t *testing.T) {
	edit := func(version string, change func(*VersionFacts)) func(*ProtocolFacts) {
		return func(f *ProtocolFacts) {
			v := f.Versions[version]
			change(&v)
			f.Versions[version] = v
		}
	}
	offer := func(version string, suites ...string) func(*ProtocolFacts) {
		return edit(version, func(v *VersionFacts) { v.Offered, v.Suites = true, suites })
	}
	add := func(suites ...string) func(*ProtocolFacts) {
		return edit("TLS 1.2", func(v *VersionFacts) { v.Suites = append(v.Suites, suites...) })
	}
	groups := func(groups ...string) func(*ProtocolFacts) {
		return edit("TLS 1.3", func(v *VersionFacts) { v.Groups = groups })
	}
	for _, test := range []struct {
		name string
		edit func(*ProtocolFacts)
		want string
	}{
		{"good", func(*ProtocolFacts) {}, ""},
		{"SSL 2", offer("SSL 2", "SSL_CK_RC4_128_WITH_MD5"), "version-old critical"},
		{"SSL 3", offer("SSL 3", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"), "version-old high"},
		{"TLS 1.0", offer("TLS 1.0"), "version-old medium"},
		{"no TLS 1.3", edit("TLS 1.3", func(v *VersionFacts) { *v = VersionFacts{Outcome: v.Outcome} }),
			"tls13-missing medium, version-missing medium"},
		{"RC4", add("TLS_RSA_WITH_RC4_128_SHA"), "suite-weak high"},
		{"export", add("TLS_RSA_EXPORT_WITH_RC4_40_MD5"), "suite-weak critical"},
		{"3DES", add("TLS_ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA"), "suite-weak medium"},
		{"anonymous", add("TLS_ECDH_anon_WITH_AES_128_CBC_SHA"), "suite-weak critical"},
		{"NULL", add("TLS_RSA_WITH_NULL_SHA256"), "suite-weak critical"},
		{"RSA key exchange", add("TLS_RSA_WITH_AES_128_GCM_SHA256"), "suite-not-in-policy medium"},
		{"CBC", add("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"), "suite-not-in-policy medium"},
		{"a suite less", edit("TLS 1.3", func(v *VersionFacts) { v.Suites = v.Suites[:1] }), "suite-missing info"},
		{"client's order", edit("TLS 1.3", func(v *VersionFacts) { v.Order = orderClient }), "suite-order low"},
		{"ChaCha20 for those who prefer it", edit("TLS 1.3", func(v *VersionFacts) { v.Order = orderChaCha }), ""},
		{"wrong order", edit("TLS 1.3", func(v *VersionFacts) { slices.Reverse(v.Suites) }), "suite-order low"},
		{"P-256 only", groups("secp256r1"), "group-missing info, group-postquantum low, group-retry medium"},
		{"no post-quantum", groups("x25519", "secp256r1"), "group-postquantum low"},
		{"P-521", groups("X25519MLKEM768", "x25519", "secp256r1", "secp521r1"), "group-not-in-policy medium"},
		{"ffdhe", groups("X25519MLKEM768", "x25519", "secp256r1", "ffdhe2048"), "group-not-in-policy medium"},
		{"P-192", edit("TLS 1.2", func(v *VersionFacts) { v.Groups = append(v.Groups, "secp192r1") }), "group-weak medium"},
		{"DHE 1024", edit("TLS 1.2", func(v *VersionFacts) { v.PrimeBits = 1024 }), "group-weak high"},
		{"DHE 512", edit("TLS 1.2", func(v *VersionFacts) { v.PrimeBits = 512 }), "group-weak critical"},
		{"DHE 2048", edit("TLS 1.2", func(v *VersionFacts) { v.PrimeBits = 2048 }), ""},
		{"SHA-1", edit("TLS 1.2", func(v *VersionFacts) { v.Signatures = append(v.Signatures, "rsa_pkcs1_sha1") }),
			"signature-weak medium"},
		{"client's order in both versions", func(f *ProtocolFacts) {
			for _, version := range []string{"TLS 1.3", "TLS 1.2"} {
				edit(version, func(v *VersionFacts) { v.Order = orderClient })(f)
			}
		}, "suite-order low"},
		{"SHA-1 with two keys", edit("TLS 1.2", func(v *VersionFacts) {
			v.Signatures = append(v.Signatures, "rsa_pkcs1_sha1", "ecdsa_sha1")
		}), "signature-weak medium"},
		{"large hellos are dropped", func(f *ProtocolFacts) {
			f.LargeHello = HelloSize{Outcome: Outcome{State: Tested}, Bytes: 1600, Small: 300}
		}, "hello-large high"},
		{"a lie", func(f *ProtocolFacts) { f.Lies = []string{"it lied"} }, "protocol-lies medium"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := goodProtocols()
			test.edit(&f)
			findings, failed := judged(t, "fast-and-safe", f, someDay)
			if got := strings.Join(findings, ", "); got != test.want || failed != nil {
				t.Errorf("got %q, failed %v", got, failed)
			}
		})
	}
}

// TestProtocolRulesFail shows that unknown facts don't pass.
func TestProtocolRulesFail(t *testing.T) {
	f := goodProtocols()
	for v := range f.Versions {
		f.Versions[v] = VersionFacts{Outcome: Outcome{Failed, "lost"}}
	}
	f.LargeHello = HelloSize{Outcome: Outcome{Failed, "lost"}}
	findings, failed := judged(t, "fast-and-safe", f, someDay)
	if findings != nil || len(failed) != len(protocolRules) {
		t.Errorf("findings %v, failed %v", findings, failed)
	}
	f = goodProtocols()
	v := f.Versions["TLS 1.2"]
	v.Partial = "lost"
	f.Versions["TLS 1.2"] = v
	_, failed = judged(t, "fast-and-safe", f, someDay)
	if !slices.Contains(failed, "suite-weak") || slices.Contains(failed, "group-retry") {
		t.Errorf("failed %v", failed)
	}
}

// TestSourceOf shows that a document is named once, with its sections.
func TestSourceOf(t *testing.T) {
	p := &policy.Policy{Sources: map[string]policy.Source{"a": {Title: "Document A"}, "b": {Title: "Document B"}}}
	for _, test := range []struct {
		sources []string
		want    string
	}{
		{[]string{"a"}, "Document A"},
		{[]string{"a 1", "b 2.1; a 3", "a 1"}, "Document A (1, 3); Document B (2.1)"},
		{[]string{"c 1"}, "c (1)"},
	} {
		if got := sourceOf(p, test.sources...); got != test.want {
			t.Errorf("%q: %q", test.sources, got)
		}
	}
}

// TestProtocolRulesUntil judges as on a day after the BSI's limit for elliptic curves by
// themselves.
func TestProtocolRulesUntil(t *testing.T) {
	f := goodProtocols()
	for _, version := range []string{"TLS 1.3", "TLS 1.2"} {
		v := f.Versions[version]
		v.Groups = []string{"secp256r1", "secp384r1"}
		f.Versions[version] = v
	}
	before, _ := judged(t, "bsi-tr-02102-2-2026-01", f, someDay)
	after, _ := judged(t, "bsi-tr-02102-2-2026-01", f, time.Date(2032, 1, 1, 0, 0, 0, 0, time.UTC))
	if slices.Contains(before, "group-not-in-policy medium") || !slices.Contains(after, "group-not-in-policy medium") {
		t.Errorf("before %v, after %v", before, after)
	}
}

// TestEncryptThenMAC judges a server with a suite that the policy allows with encrypt-then-MAC only.
func TestEncryptThenMAC(t *testing.T) {
	p, err := policy.Get("bsi-tr-02102-2-2026-01")
	if err != nil {
		t.Fatal(err)
	}
	const suite = "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256"
	if v := value(p.Suites12, suite); v == nil || v.Needs != policy.EncryptThenMAC {
		t.Fatalf("the policy has %+v", v)
	}
	tested := Outcome{State: Tested}
	for _, test := range []struct {
		name  string
		suite string
		etm   Switch
		state State
		found bool
	}{
		{"with it", suite, Switch{tested, true}, Tested, false},
		{"without it", suite, Switch{tested, false}, Tested, true},
		{"lost", suite, Switch{Outcome: Outcome{Failed, "lost"}}, Failed, false},
		{"not looked at", suite, Switch{}, Failed, false},
		{"no such suite", "TLS_ECDHE_ECDSA_WITH_AES_256_CCM", Switch{tested, false}, Tested, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := goodProtocols()
			v := f.Versions["TLS 1.2"]
			v.Suites = []string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", test.suite}
			f.Versions["TLS 1.2"] = v
			v = f.Versions["TLS 1.3"]
			v.Suites = []string{"TLS_AES_256_GCM_SHA384"}
			f.Versions["TLS 1.3"] = v
			r := &Report{Facts: Facts{Protocols: f, Options: OptionFacts{EncryptThenMAC: test.etm}}}
			r.Judge(p, someDay)
			var found bool
			for _, finding := range r.Findings {
				if finding.Rule == "suite-not-in-policy" {
					found = true
					if !strings.Contains(finding.Evidence, suite) || strings.Contains(finding.Evidence, "GCM") ||
						!strings.Contains(finding.Source, "TR-02102-2") {
						t.Errorf("%+v", finding)
					}
				}
			}
			i := slices.IndexFunc(r.Results, func(r Result) bool { return r.Rule == "suite-not-in-policy" })
			if found != test.found || r.Results[i].State != test.state {
				t.Errorf("found %v, result %+v", found, r.Results[i])
			}
		})
	}
}
