//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// events as test2json writes them, cut to the fields that are read.
const events = `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Output":"left out: TestX|TestY/.*: they are for another mode\n"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"run","Package":"p","Test":"TestB/sub"}
{"Action":"output","Package":"p","Test":"TestB/sub","Output":"    b_test.go:3: noise\n"}
{"Action":"output","Package":"p","Test":"TestB/sub","Output":"    b_test.go:7: needs OpenSSL 3.2,\n"}
{"Action":"output","Package":"p","Test":"TestB/sub","Output":"        for the group\n"}
{"Action":"output","Package":"p","Test":"TestB/sub","Output":"    --- SKIP: TestB/sub (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestB/sub"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"run","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:9: wrong\n"}
{"Action":"fail","Package":"p","Test":"TestC"}
{"Action":"run","Package":"p","Test":"TestD"}
{"Action":"output","Package":"p","Output":"SIGSEGV\n"}
{"Action":"fail","Package":"p"}
`

func TestRead(t *testing.T) {
	r := &row{name: "3.5", ran: map[string]bool{}}
	var failures bytes.Buffer
	if err := r.read(strings.NewReader(events), &failures); err != nil {
		t.Fatal(err)
	}
	if r.passed != 2 || r.failed != 2 || len(r.skips) != 1 {
		t.Errorf("%d passed, %d failed, %d skipped; want 2, 2 (one wrong, one cut off), 1", r.passed, r.failed, len(r.skips))
	}
	if want := (skip{"p.TestB/sub", "needs OpenSSL 3.2, for the group"}); len(r.skips) == 1 && r.skips[0] != want {
		t.Errorf("skip %q; want %q", r.skips[0], want)
	}
	if want := []string{"TestX|TestY/.*: they are for another mode"}; !slices.Equal(r.leftOut, want) {
		t.Errorf("left out %q; want %q", r.leftOut, want)
	}
	var table bytes.Buffer
	if _ = report(&table, []*row{r}, false, false); !strings.Contains(table.String(), "left out of 3.5") ||
		!strings.Contains(table.String(), "TestX|TestY") {
		t.Errorf("the table does not say what was left out:\n%s", &table)
	}
	for _, want := range []string{"3.5: FAIL p.TestC\n        c_test.go:9: wrong", "p.TestD: did not end", "SIGSEGV"} {
		if !strings.Contains(failures.String(), want) {
			t.Errorf("what is shown of failures lacks %q:\n%s", want, &failures)
		}
	}
	if err := r.read(strings.NewReader("ok  p\n"), &failures); err == nil {
		t.Error("text that is no event was read without an error")
	}
}

func TestExplained(t *testing.T) {
	tests := []struct {
		reason string
		want   bool
	}{
		{"OpenSSL 1.1.1 has no providers", true},
		{"OpenSSL 1.1.1w: no X25519MLKEM768", true},
		{"needs OpenSSL 3.2", true},
		{"needs 3.5", true},
		{"3.0.22 has no ML-KEM; 3.5 has", true},
		{"go1.25.0 has no such group", true},
		{"gnutls-cli not found in PATH", true},
		{"OSSL_RECORDS=libssl: nothing is taken over", true},
		{"OSSL_FIPS=require: there is nothing outside of FIPS mode", true},
		{"node is not installed", true},
		{"no network namespace can be made, as only root can, outside of most containers: unshare: operation not permitted", true},
		{"cc, or what CC names, is not installed", true},
		{"redis-server is not installed: ci/redis installs it", true},
		{"takes long: ci/redis runs it, with -failures", true},
		{"takes long: ci/nothing runs it", false},
		{`exec: "curl": executable file not found in $PATH`, true},
		{"", false},
		{"flaky", false},
		{"not supported by this library", false},
		{"slow: 13.5 s", false},
		{"the C library, such as musl, can't tell what is in use on its heap", true},
		{"testing.Short", false},
		{"takes long: ci/redis runs it, with -failures", true},
		{"takes long", false},
	}
	for _, test := range tests {
		if got := explained(test.reason); got != test.want {
			t.Errorf("explained(%q) = %t", test.reason, got)
		}
	}
}

// TestSteps: .ci/run must call each script in steps.
func TestSteps(t *testing.T) {
	run, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range steps {
		if !regexp.MustCompile(`(?m)^\s*\[` + name + `\]=ci/` + name + `$`).Match(run) {
			t.Errorf(".ci/run has no step ci/%s", name)
		}
	}
}

func TestReportFails(t *testing.T) {
	tests := []struct {
		name string
		row  row
		ci   bool
		want bool
	}{
		{"all passed", row{passed: 3}, true, false},
		{"nothing ran", row{}, false, true},
		{"a failure", row{passed: 3, failed: 1}, false, true},
		{"a skip with a version", row{passed: 3, skips: []skip{{"T", "needs OpenSSL 3.2"}}}, true, false},
		{"a skip without, in CI", row{passed: 3, skips: []skip{{"T", "later"}}}, true, true},
		{"a skip in every version", row{passed: 3, skips: []skip{{"S", "needs OpenSSL 3.9"}}}, true, true},
		{"a skip in every version, for Go's", row{passed: 3, skips: []skip{{"S", "crypto/tls of go1.25.0 has none"}}}, true, false},
		{"a skip in every version, for a tool", row{passed: 3, skips: []skip{{"S", "curl not found"}}}, true, false},
		{"a skip in every version, for a step", row{passed: 3, skips: []skip{{"S", "ci/redis runs it"}}}, true, false},
		{"a skip without, elsewhere", row{passed: 3, skips: []skip{{"T", "later"}}}, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// Each row skips a test that the other row runs, unless the other skips it too.
			if !slices.ContainsFunc(test.row.skips, func(s skip) bool { return s.test == "S" }) {
				test.row.ran = map[string]bool{"S": true}
			}
			first := row{name: "1.1", ran: map[string]bool{"T": true}, passed: 1, skips: []skip{{"S", "OpenSSL 1.1.1 has none"}}}
			var out bytes.Buffer
			if err := report(&out, []*row{&first, &test.row}, true, test.ci); (err != nil) != test.want {
				t.Errorf("error %v, want one: %t\n%s", err, test.want, &out)
			}
		})
	}
}

// TestSkippedByAll checks that tests which a row has run, or which run elsewhere, are not returned.
func TestSkippedByAll(t *testing.T) {
	rows := []*row{
		{ran: map[string]bool{"a.TestOne": true, "b.TestTwo": true}, skips: []skip{
			{"a.TestThree/x/y", "needs OpenSSL 3.0"}, {"a.TestThree/z", "needs OpenSSL 3.0"}, {"b.TestFour", "needs OpenSSL 3.5"},
			{"b.TestFive/part", "needs OpenSSL 3.0"}, {"b.TestSix", "curl not found"},
		}},
		{ran: map[string]bool{"b.TestFour": true}, skips: []skip{{"a.TestOne", "1.1.1 has none"}, {"b.TestFive/part", "4.0 has none"}}},
	}
	if got := skippedByAll(rows); !slices.Equal(got, []string{"TestFive", "TestThree"}) {
		t.Errorf("%q", got)
	}
}

func TestChoose(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"new/run", "3.5/run", "3.5/fips.cnf", "3.0.2-source/run", "3.2.1-source/run", "4.0.3-source/run", "arm64/usr", "headers/3.5",
		"valkey/run",
	} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	versions, err := findVersions(dir)
	if err != nil {
		t.Fatal(err)
	}
	for only, want := range map[string]string{
		"": "system,system libssl,system not slim,system shards,3.0.2-source,3.5,3.5 not slim,3.5 shards," +
			"3.5 FIPS,3.5 FIPS require,3.5 FIPS libssl,3.5 all FIPS,arm64",
		"3.5":          "3.5,3.5 libssl,3.5 sessions,3.5 not slim,3.5 shards,3.5 FIPS,3.5 FIPS require,3.5 FIPS libssl,3.5 all FIPS",
		"arm64,system": "arm64,system,system libssl,system sessions,system not slim,system shards",
		"3.5 FIPS":     "3.5 FIPS",
		"3.2.1-source": "3.2.1-source,3.2.1-source libssl,3.2.1-source sessions",
		"3.6":          "",
		"system FIPS":  "",
	} {
		plan, err := choose(rowsOf(versions), only, false)
		var names []string
		for _, p := range plan {
			names = append(names, p.name())
		}
		if got := strings.Join(names, ","); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %s, %v; want %s", only, got, err, want)
		}
	}
	all, err := choose(rowsOf(versions), "", true)
	if err != nil || !slices.ContainsFunc(all, func(p planned) bool { return p.name() == "3.2.1-source" }) {
		t.Errorf("with others: got %v, %v; want 3.2.1-source among them", all, err)
	}
}

func TestIsRelease(t *testing.T) {
	for _, test := range []struct {
		version, number string
		want            bool
	}{
		{"3.5.7", "3.5", true}, {"3.50.1", "3.5", false}, {"3.0.2", "3.0.2", true}, {"3.0.22", "3.0.2", false},
		{"1.1.1f", "1.1.1f", true}, {"1.1.1w", "1.1", true}, {"1.1.1w", "1.1.1f", false},
	} {
		if got := isRelease(test.version, test.number); got != test.want {
			t.Errorf("%s of %s: got %t", test.version, test.number, got)
		}
	}
}
