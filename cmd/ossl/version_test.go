package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestVersionKeys: "version --json" writes the keys in testdata/version.keys, with their types. If
// a key is removed or changes its type, programs break.
func TestVersionKeys(t *testing.T) {
	golden, err := os.ReadFile("testdata/version.keys")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(strings.ReplaceAll(string(golden), ": ", ":"))
	got := keysOf("", reflect.TypeFor[versionResult]())
	if !slices.Equal(got, want) {
		t.Errorf("the keys are\n%s\nand testdata/version.keys has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var out, errs bytes.Buffer
	run(context.Background(), []string{"version", "--json"}, &out, &errs)
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	var result versionResult
	if err := d.Decode(&result); err != nil {
		t.Fatalf("%v; %s", err, &errs)
	}
	if result.Go == "" || result.Library.Path == "" || result.Library.Problems == nil || result.Library.KernelTLS == nil {
		t.Errorf("%+v", result)
	}
}

// keysOf returns the keys of a type, each with its path and its type.
func keysOf(prefix string, typ reflect.Type) (keys []string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported():
		case f.Type.Kind() == reflect.Struct:
			keys = append(keys, keysOf(prefix+name+".", f.Type)...)
		default:
			keys = append(keys, prefix+name+":"+f.Type.String())
		}
	}
	return keys
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"one two three", []string{"one two", "three"}},
		{"a   b", []string{"a   b"}},
		{"averyverylongword x", []string{"averyverylongword", "x"}},
		{"x averyverylongword", []string{"x", "averyverylongword"}},
		{"one\n\ttwo", []string{"one", "\ttwo"}},
		{"exactly10c next", []string{"exactly10c", "next"}},
		{"  a averyverylongword b", []string{"  a", "averyverylongword", "b"}},
		{"äöüäöüäö üä", []string{"äöüäöüäö", "üä"}},
	} {
		if got := wrap(c.text, 10); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
	for _, line := range wrap(strings.Repeat("words \xff and bytes ", 50), textWidth) {
		if utf8.RuneCountInString(line) > textWidth {
			t.Errorf("too long: %q", line)
		}
	}
}
