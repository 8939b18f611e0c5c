package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/policy"
)

func TestGet(t *testing.T) {
	names := policy.Names()
	for _, want := range []string{
		"fast-and-safe", "bsi-tr-02102-2-2026-01", "mozilla-modern-6.0", "mozilla-intermediate-6.0", "mozilla-modern-5.7",
		"mozilla-intermediate-5.7", "ncsc-nl-2025-05", "fips-140-3",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("no policy %s in %v", want, names)
		}
	}
	if names[0] != policy.Default {
		t.Errorf("the first policy is %s", names[0])
	}
	seen := map[string]string{}
	for i, p := range policy.All() {
		if p.Name != names[i] {
			t.Errorf("the policy in %s.json is named %s", names[i], p.Name)
		}
		for _, name := range append([]string{p.Name}, p.Aliases...) {
			if seen[name] != "" {
				t.Errorf("%s stands for %s and %s", name, seen[name], p.Name)
			}
			seen[name] = p.Name
			got, err := policy.Get(name)
			if err != nil || got.Name != p.Name {
				t.Errorf("Get(%q) = %v, %v, want %s", name, got, err, p.Name)
			}
		}
	}
	if p, err := policy.Get(""); err != nil || p.Name != policy.Default {
		t.Errorf("Get(\"\") = %v, %v", p, err)
	}
	if _, err := policy.Get("Modern"); err == nil || !strings.Contains(err.Error(), "mozilla-modern-6.0") {
		t.Errorf("the error of an unknown name doesn't list the names: %v", err)
	}
}

// TestGetCopies: a caller that changes a policy doesn't change another caller's.
func TestGetCopies(t *testing.T) {
	a, _ := policy.Get("bsi")
	a.Versions[0].Name, a.Versions[1].Until.Time, a.Sources["bsi-2"] = "SSL 3", a.Date.Time, policy.Source{}
	b, _ := policy.Get("bsi")
	if b.Versions[0].Name != "TLS 1.3" || b.Versions[1].Until.String() != "2031-12-31" || b.Sources["bsi-2"].Title == "" {
		t.Errorf("the second policy is %+v", b.Versions)
	}
}

// TestFiles: a file has the name of its policy, and nothing is lost when it is decoded and encoded.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("data/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.Parse(b)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if filepath.Base(file) != p.Name+".json" {
			t.Errorf("%s has the policy %s", file, p.Name)
		}
		encoded, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := policy.Parse(encoded)
		if err != nil {
			t.Errorf("%s, encoded: %v", file, err)
			continue
		}
		if d := policy.Diff(p, again); len(d) > 0 {
			t.Errorf("%s: encoding changes %v", file, d)
		}
		used := string(b)
		for key := range p.Sources {
			if !strings.Contains(used, `"source": "`+key) {
				t.Errorf("%s: nothing refers to the source %s", file, key)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	b, err := os.ReadFile("data/bsi-tr-02102-2-2026-01.json")
	if err != nil {
		t.Fatal(err)
	}
	good := string(b)
	for name, c := range map[string]struct{ old, new, want string }{
		"line break":           {`"summary": "`, `"summary": "a\nb`, "can't be printed"},
		"control of terminals": {`"title": "`, `"title": "\u001b[2J`, "can't be printed"},
		"unknown field":        {`"summary":`, `"sumary": "x", "summary":`, `unknown field "sumary"`},
		"unknown nested field": {`"no_uri": {}`, `"no_uri": {"valu": "fine"}`, `unknown field "valu"`},
		"field in upper case":  {`"summary":`, `"Summary":`, `unknown field "Summary"`},
		"field twice":          {`"summary":`, `"summary": "x", "summary":`, "twice"},
		"nested field twice":   {`"no_uri": {}`, `"no_uri": {"note": "a", "note": "b"}`, "twice"},
		"trailing data":        {"  }\n}\n", "  }\n}\n{}", "follows"},
		"unknown version":      {`{"name": "TLS 1.2"`, `{"name": "TLS 1.4"`, "versions.TLS 1.4: unknown name"},
		"unknown suite":        {`"TLS_AES_128_CCM_SHA256"`, `"TLS_AES_192_CCM_SHA256"`, "unknown name"},
		"suite of another version": {`"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"`, `"TLS_AES_128_GCM_SHA256"`,
			"suites12.TLS_AES_128_GCM_SHA256: unknown name"},
		"unknown group":               {`"secp521r1", "level"`, `"secp522r1", "level"`, "unknown name"},
		"unknown signature":           {`"ecdsa_secp521r1_sha512"`, `"ecdsa_secp521r1_sha1024"`, "unknown name"},
		"name twice":                  {`"name": "secp384r1"`, `"name": "secp256r1"`, "twice"},
		"unknown level":               {`"level": "recommended"`, `"level": "recomended"`, "unknown level"},
		"unknown source":              {`"source": "bsi-2 3.2"`, `"source": "bsi-3 3.2"`, "bsi-3"},
		"no source":                   {`"source": "bsi-2 3.2"`, `"source": ""`, "no source"},
		"no such day":                 {`"2029-12-31"`, `"2029-02-29"`, "is not a date"},
		"not a date":                  {`"2029-12-31"`, `"2029"`, "is not a date"},
		"date null":                   {`"date": "2026-01-27"`, `"date": ""`, "is not a date"},
		"until before":                {`"2029-12-31"`, `"2019-12-31"`, "before the policy's date"},
		"unknown key":                 {`"type": "RSA"`, `"type": "DSA"`, "keys.DSA"},
		"RSA without bits":            {`"bits": 3000, `, ``, "keys.RSA"},
		"a condition that is unknown": {`"needs": "encrypt-then-mac"`, `"needs": "luck"`, `needs "luck"`},
		"a condition on another suite": {`"bsi-2 table 3", "until": "2029-12-31"`,
			`"bsi-2 table 3", "needs": "encrypt-then-mac", "until": "2029-12-31"`, "can't"},
		"unknown curve":         {`"brainpoolP512r1"]`, `"brainpoolP1024r1"]`, "unknown curve"},
		"unknown setting":       {`"early": {"value": "no"`, `"early": {"value": "never"`, "resumption.early"},
		"limit out of range":    {`"lifetime": {}, `, ``, ""},
		"a string for a number": {`"bits": 3000`, `"bits": "3000"`, "bits"},
		"level without a value": {`"missing": {}`, `"missing": {"level": "required"}`, "without a value"},
		"no JSON":               {`{`, `[`, ""},
		"bad name":              {`"name": "bsi-tr-02102-2-2026-01"`, `"name": "BSI TR"`, "name"},
	} {
		if name == "limit out of range" {
			c.old, c.new, c.want = `"hsts": {}`, `"hsts": {"value": -1, "source": "bsi-2"}`, "sockets.hsts"
		}
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(good, c.old, c.new, 1)
			if bad == good {
				t.Fatalf("the file has no %s", c.old)
			}
			_, err := policy.Parse([]byte(bad))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	for _, text := range []string{"", "null", "{}", "[]", "{", `{"name"`, "\xff", `{"name":"a"}`} {
		if p, err := policy.Parse([]byte(text)); err == nil {
			t.Errorf("Parse(%q) = %+v", text, p)
		}
	}
}

// smallPolicy has each kind of value once. Whole policies are too long for a fuzzer, which shortens
// every input that it keeps.
const smallPolicy = `{"name":"a","title":"t","date":"2026-01-01","summary":"s","aliases":["b"],"sources":{"d":{"title":"t"}},
"versions":[{"name":"TLS 1.3","level":"required","source":"d 1","until":"2030-01-01"}],
"suites12":[{"name":"TLS_DHE_RSA_WITH_AES_128_CBC_SHA256","source":"d","needs":"encrypt-then-mac"}],
"groups":[{"name":"x25519","source":"d"}],"signatures":[{"name":"ed25519","source":"d"}],
"keys":[{"type":"ECDSA","curves":["secp256r1"],"source":"d"},{"type":"RSA","bits":2048,"source":"d"}],
"order":{"value":"any","source":"d"},"chain":{"lifetime":{"value":90,"source":"d"}},"fips":true}`

func FuzzParse(f *testing.F) {
	if _, err := policy.Parse([]byte(smallPolicy)); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(smallPolicy))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := policy.Parse(b)
		if err != nil {
			return
		}
		encoded, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policy.Parse(encoded); err != nil {
			t.Errorf("%s: %v", encoded, err)
		}
	})
}
