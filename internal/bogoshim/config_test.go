package main

import (
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// groups are the reasons for leaving out a test. Each reason in the files begins with a group's
// name.
var groups = map[string]string{
	"API":                      "ossl could, but there is no way to ask for it, as in crypto/tls",
	"TLS below 1.2":            "versions that ossl refuses",
	"crypto/tls does the same": "meant to be so",
	"libssl":                   "what libssl does in a handshake",
	"not in ossl":              "a protocol or extension that ossl, or OpenSSL, doesn't have",
	"ossl":                     "meant to be so, and differs from crypto/tls",
	"session IDs":              "what needs a session cache: run apart",
	"runner":                   "the test needs what the shim can't have",
	"signer":                   "what can't be done with a crypto.Signer",
	"unprotected alert":        "what libssl does in a handshake, seen often",
}

func TestConfigs(t *testing.T) {
	names, err := filepath.Glob("config*.json")
	if err != nil || len(names) < 2 {
		t.Fatalf("found %q, %v", names, err)
	}
	base, err := readConfig("config.json")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, name := range names {
		config, err := readConfig(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, reasons := range []map[string]string{config.DisabledTests, config.Unimplemented} {
			for pattern, reason := range reasons {
				used[group(reason)] = true
				_, why, _ := strings.Cut(reason, ": ")
				if groups[group(reason)] == "" || len(why) < 3 {
					t.Errorf("%s: %q: reason %q is not of the form \"group: why\" with a group that is known", name, pattern, reason)
				}
				if _, err := path.Match(pattern, "X"); err != nil {
					t.Errorf("%s: %q: %v", name, pattern, err)
				}
				if strings.Trim(pattern, "*") == "" {
					t.Errorf("%s: %q leaves out everything", name, pattern)
				}
			}
		}
		for _, texts := range config.ErrorMap {
			for _, text := range texts {
				if len(text) < 5 {
					t.Errorf("%s: %q is in too many errors to tell one", name, text)
				}
			}
		}
		if name == "config.json" {
			continue
		}
		for pattern := range config.DisabledTests {
			if base.DisabledTests[pattern] != "" {
				t.Errorf("%s: %q is in config.json already", name, pattern)
			}
		}
	}
	for name := range groups {
		if !used[name] {
			t.Errorf("no reason is of the group %q", name)
		}
	}
}

func TestReadConfigRefuses(t *testing.T) {
	for name, data := range map[string]string{
		"a pattern twice": `{"DisabledTests": {"A": "x: why", "A": "y: why"}}`,
		"a field twice":   `{"AllCurves": [1], "AllCurves": [2]}`,
		"unknown field":   `{"DisabledTest": {}}`,
		"no JSON":         `{"DisabledTests": {`,
	} {
		file := filepath.Join(t.TempDir(), "config.json")
		if err := appendLine(file, data); err != nil {
			t.Fatal(err)
		}
		if _, err := readConfig(file); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestLoadConfigMerges(t *testing.T) {
	base, err := loadConfig(".")
	if err != nil {
		t.Fatal(err)
	}
	before := []int{}
	for _, test := range []struct{ version, names string }{
		{"1.1.1", "before-3.0 before-3.5"}, {"3.0.2", "before-3.5"}, {"3.4.9", "before-3.5"}, {"3.5.1", "from-3.5"},
		{"3.6.0", "from-3.5 from-3.6"}, {"3.10.0", "from-3.5 from-3.6"},
		{"4.0.3", "from-3.5 from-3.6 from-4.0"}, {"10.0.0", "from-3.5 from-3.6 from-4.0"},
	} {
		names, err := configNames(".", test.version)
		if err != nil || strings.Join(names, " ") != test.names {
			t.Errorf("%s: %q, %v", test.version, names, err)
		}
		own, err := loadConfig(".", names...)
		if err != nil {
			t.Fatal(err)
		}
		if len(own.DisabledTests) <= len(base.DisabledTests) || len(own.AllCurves) < len(before) {
			t.Errorf("%s: its files add nothing: %d of %d patterns, curves %v", test.version, len(own.DisabledTests),
				len(base.DisabledTests), own.AllCurves)
		}
		before = own.AllCurves
	}
	if _, err := configNames(".", "unknown"); err == nil {
		t.Error("no error for a version without numbers")
	}
}
