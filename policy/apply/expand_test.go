package apply

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/policy"
)

var update = flag.Bool("update", false, "write the snapshots in testdata")

// fakeHost is an OpenSSL before 3.5, or one that has everything.
type fakeHost struct{ old bool }

func (h fakeHost) lacks(is bool) error {
	if h.old && is {
		return errors.New("not in this OpenSSL")
	}
	return nil
}

func (h fakeHost) group(id tls.CurveID) error {
	return h.lacks(slices.Index(groupOrder, id) < slices.Index(groupOrder, tls.X25519))
}
func (h fakeHost) signature(id tls.SignatureScheme) error { return h.lacks(id>>8 == 9) }
func (h fakeHost) suite13(uint16) error                   { return nil }
func (h fakeHost) suite12(uint16) error                   { return nil }

// TestExpansions compares the expansion of each policy with testdata/NAME.txt. `go test -update`
// writes the files; a change of one changes how users' servers behave.
func TestExpansions(t *testing.T) {
	for _, p := range policy.All() {
		t.Run(p.Name, func(t *testing.T) {
			got := "On OpenSSL 3.5 and later:\n" + snapshot(t, p, fakeHost{}) +
				"\nOn earlier OpenSSL:\n" + snapshot(t, p, fakeHost{old: true}) +
				"\nOn 2032-01-01, with OpenSSL 3.5 or later:\n" +
				snapshot(t, p.At(time.Date(2032, 1, 1, 0, 0, 0, 0, time.UTC)), fakeHost{})
			file := filepath.Join("testdata", p.Name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the expansion is\n%s\nand not that of %s:\n%s", got, file, want)
			}
		})
	}
}

// snapshot returns an expansion as text.
func snapshot(t *testing.T, p *policy.Policy, h host) string {
	t.Helper()
	e, err := expand(p, h, false)
	if err != nil {
		return "  error: " + err.Error() + "\n"
	}
	var b strings.Builder
	line := func(name string, value any) { fmt.Fprintf(&b, "  %-12s%v\n", name, value) }
	line("versions", tls.VersionName(e.min)+" to "+tls.VersionName(e.max))
	for _, id := range e.suites13 {
		line("TLS 1.3", tls.CipherSuiteName(id))
	}
	for _, id := range e.suites12 {
		line("TLS 1.2", tls.CipherSuiteName(id))
	}
	line("ordered", e.ordered)
	line("groups", e.groups)
	for _, id := range e.signatures { // not String: Go 1.26 has no names for ML-DSA
		line("signature", fmt.Sprintf("%#04x", uint16(id)))
	}
	line("tickets", !e.noTickets)
	line("cache", e.cache)
	line("lifetime", e.lifetime)
	line("rotation", e.rotation)
	line("kernel", e.kernel)
	line("FIPS", e.fips)
	for _, u := range e.unmet {
		line("unmet", u)
	}
	config, options := e.build()
	if config.MinVersion != e.min || config.MaxVersion != e.max || !slices.Equal(config.CipherSuites, e.suites12) ||
		!slices.Equal(config.CurvePreferences, e.groups) || config.SessionTicketsDisabled != e.noTickets {
		t.Errorf("the configuration is not that of the expansion: %+v", config)
	}
	want := 1
	for _, has := range []bool{e.ordered, e.suites13 != nil, e.cache, e.cache && !e.noTickets, e.lifetime != 0, e.rotation != 0,
		e.kernel, e.fips} {
		if has {
			want++
		}
	}
	if len(options) != want {
		t.Errorf("%d options, want %d", len(options), want)
	}
	return b.String()
}

// TestExpandNothingIgnored: each line of a policy has a part in the expansion, a place among the
// unmet, or the reason below. A field that is added to Policy without a thought of expand fails here.
func TestExpandNothingIgnored(t *testing.T) {
	settled := map[string]string{ // field and value, and the setting that decides on it
		"records.compression no": "ossl never compresses", "resumption.early no": "ossl has no early data",
		"records.kernel no": "the default", "sockets.nodelay yes": "package net sets it",
		"stapling.no_uri fine": "nothing to do", "stapling.stapled fine": "allowed, and nothing to do",
		"order any": "any order will do", "order server": "WithCipherSuiteOrder", "sockets.sendfile no": "the default",
	}
	inConfig := []string{"versions", "suites13", "suites12", "groups", "signatures", "fips", "resumption.tls13", "resumption.id",
		"resumption.tickets", "resumption.lifetime", "resumption.rotation"}
	ofServers := []string{"order", "sockets.hsts"}
	for _, p := range policy.All() {
		for _, client := range []bool{false, true} {
			e, err := expand(p, fakeHost{}, client)
			if err != nil {
				t.Errorf("%s: %v", p.Name, err)
				continue
			}
			for _, l := range p.Lines() {
				if slices.Contains(inConfig, l.Field) || l.Level == policy.PhaseOut || l.Value == "" && l.Name == "" ||
					settled[l.Field+" "+l.Value] != "" || client && slices.Contains(ofServers, l.Field) {
					continue
				}
				if !slices.ContainsFunc(e.unmet, func(r Unmet) bool { return r.Field == l.Field && r.Name == l.Name }) {
					t.Errorf("%s: %s %s %s is neither expressed nor unmet (client: %v)", p.Name, l.Field, l.Name, l.Value, client)
				}
			}
		}
	}
}

// TestClientCache: a client keeps sessions if the policy wants a kind of resumption and forbids none.
func TestClientCache(t *testing.T) {
	for _, c := range []struct {
		tls13, id, tickets string
		cache              bool
		unmet              int
	}{{"yes", "yes", "yes", true, 0}, {"yes", "", "", true, 0}, {"", "", "", false, 0}, {"no", "no", "no", false, 0},
		{"yes", "no", "", false, 1}, {"yes", "yes", "no", false, 2}} {
		p, err := policy.Get(policy.Default)
		if err != nil {
			t.Fatal(err)
		}
		r := &p.Resumption
		r.TLS13.Value, r.ID.Value, r.Tickets.Value = c.tls13, c.id, c.tickets
		e, err := expand(p, fakeHost{}, true)
		if err != nil {
			t.Fatal(err)
		}
		unmet := 0
		for _, u := range e.unmet {
			if strings.HasPrefix(u.Field, "resumption.") {
				unmet++
			}
		}
		config, options := e.build()
		if (config.ClientSessionCache != nil) != c.cache || unmet != c.unmet {
			t.Errorf("%+v: cache %v, %d unmet", c, config.ClientSessionCache != nil, unmet)
		}
		if len(options) != 2 { // signature algorithms and the suites of TLS 1.3; none is a server's
			t.Errorf("%+v: %d options", c, len(options))
		}
	}
}

func TestExpandRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*policy.Policy)
		want string
	}{
		"old versions only": {func(p *policy.Policy) { p.Versions = []policy.Value{{Name: "TLS 1.0"}} }, "versions: none is left"},
		"an old version, needed": {func(p *policy.Policy) {
			p.Versions = append(p.Versions, policy.Value{Name: "TLS 1.1", Level: policy.Required})
		}, "ossl refuses TLS 1.1"},
		"no known group": {func(p *policy.Policy) { p.Groups = []policy.Value{{Name: "x448"}} }, "groups: none is left"},
		"a group, needed": {func(p *policy.Policy) {
			p.Groups[0] = policy.Value{Name: "x448", Level: policy.Required}
		}, "requires x448"},
		"no suites of TLS 1.3": {func(p *policy.Policy) { p.Suites13 = nil }, "suites13: none is left"},
		"no suites of TLS 1.2": {func(p *policy.Policy) { p.Suites12 = nil }, "suites12: none is left"},
		"no signatures":        {func(p *policy.Policy) { p.Signatures = []policy.Value{{Name: "ed448"}} }, "signatures: none is left"},
		"phased out only": {func(p *policy.Policy) {
			for i := range p.Groups {
				p.Groups[i].Level = policy.PhaseOut
			}
		}, "groups: none is left"},
		"compression":     {func(p *policy.Policy) { p.Records.Compression.Value = "yes" }, "records.compression"},
		"early data":      {func(p *policy.Policy) { p.Resumption.Early.Value = "yes" }, "resumption.early"},
		"1.2 without 1.3": {func(p *policy.Policy) { p.Resumption.TLS13.Value = "no" }, "TLS 1.2 without TLS 1.3"},
		"1.3 without tickets and cache": {func(p *policy.Policy) { p.Resumption.Tickets.Value, p.Resumption.ID.Value = "no", "no" },
			"without tickets and without a cache"},
		"kernel TLS in FIPS mode": {func(p *policy.Policy) { p.FIPS, p.Records.Kernel.Value = true, "yes" }, "records.kernel"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := policy.Get(policy.Default)
			if err != nil {
				t.Fatal(err)
			}
			c.edit(p)
			if _, err := expand(p, fakeHost{}, false); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestExpandResumption(t *testing.T) {
	for _, c := range []struct {
		tls13, id, tickets string
		rotation           int
		noTickets, cache   bool
		wantRotation       time.Duration
	}{
		{"", "", "", 0, false, false, 0},
		{"yes", "yes", "yes", 3600, false, true, time.Hour},
		{"yes", "", "no", 3600, true, true, 0},
		{"no", "no", "no", 0, true, false, 0},
		{"no", "", "", 0, true, false, 0},
		{"yes", "no", "yes", 7 * 86400, false, false, 0},
	} {
		e := &expansion{min: tls.VersionTLS12, max: tls.VersionTLS13}
		r := &policy.Resumption{TLS13: policy.Setting{Value: c.tls13}, ID: policy.Setting{Value: c.id},
			Tickets: policy.Setting{Value: c.tickets}, Rotation: policy.Limit{Value: c.rotation}}
		if err := e.setResumption(r); err != nil || e.noTickets != c.noTickets || e.cache != c.cache || e.rotation != c.wantRotation {
			t.Errorf("%+v: noTickets %v, cache %v, rotation %v, %v", c, e.noTickets, e.cache, e.rotation, err)
		}
	}
}
