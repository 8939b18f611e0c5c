package main

import (
	"cmp"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// tomlKeys returns the keys of a struct's fields, without the keys in its tables.
func tomlKeys(t reflect.Type) (keys []string) {
	for _, f := range reflect.VisibleFields(t) {
		if key := f.Tag.Get("toml"); key != "" && key != "-" && f.Type.Kind() != reflect.Struct {
			keys = append(keys, key)
		}
	}
	return keys
}

// TestSettings: each key of the configuration file is a flag's name too, and docs/SERVE.md mentions it.
func TestSettings(t *testing.T) {
	var keys []string
	for _, settings := range []any{terminator.Config{}, terminator.Site{}, terminator.Pair{}, terminator.Limits{}} {
		keys = append(keys, tomlKeys(reflect.TypeOf(settings))...)
	}
	keys = append(keys, "to")
	if len(keys) < 70 {
		t.Errorf("only %d keys: %q", len(keys), keys)
	}
	var flags []string
	note := func(f *pflag.Flag) { flags = append(flags, f.Name) }
	serveCommand().Flags().VisitAll(note)
	proxyCommand().Flags().VisitAll(note)
	flagOf := map[string]string{"ticket-keys": "ticket-key", "names": "acme", "root": "list"} // FOLDER is no flag
	text, err := os.ReadFile("../../docs/SERVE.md")
	if err != nil {
		t.Fatal(err)
	}
	words := regexp.MustCompile(`[a-z0-9]+(-[a-z0-9]+)*`).FindAllString(string(text), -1)
	known := slices.Clone(alwaysFlags)
	for _, key := range keys {
		flag := cmp.Or(flagOf[key], key)
		known = append(known, flag)
		if !slices.Contains(flags, flag) {
			t.Errorf("the key %q has no flag", key)
		}
		if !slices.Contains(words, key) {
			t.Errorf("docs/SERVE.md lacks the key %q", key)
		}
	}
	for _, flag := range flags {
		if !slices.Contains(known, flag) {
			t.Errorf("the flag --%s has no key", flag)
		}
	}
}
