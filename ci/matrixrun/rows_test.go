//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestFindVersions checks that the trees with an OpenSSL are listed, and the programs' trees are
// not.
func TestFindVersions(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"new", "3.5", "1.1", "valkey", "servers-bookworm", "servers-sid"} {
		tree := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(tree, 0o755), os.WriteFile(filepath.Join(tree, "run"), nil, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "headers"), 0o755); err != nil { // without a program to run others
		t.Fatal(err)
	}
	versions, err := findVersions(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range versions {
		names = append(names, v.name)
	}
	if want := []string{"system", "1.1", "3.5", "new"}; !slices.Equal(names, want) {
		t.Errorf("%q, not %q", names, want)
	}
}
