//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRunsIn checks which rows have a package's tests.
func TestRunsIn(t *testing.T) {
	var (
		system, oldest = version{name: "system"}, version{name: "1.1"}
		middle, musl   = version{name: "3.5"}, version{name: "musl", musl: true}
		arm            = version{name: "arm64", emulated: true}
		libssl         = modes[1]

		core      = binary{pkg: rootPackage}
		compares  = binary{pkg: rootPackage + "/internal/tests/differential"}
		withoutC  = binary{pkg: rootPackage + "/internal/crl", goOnly: true}
		adapter   = binary{pkg: rootPackage + "/grpctls", adapter: true}
		ofNoModes = binary{pkg: rootPackage + "/handover"}
	)
	for _, test := range []struct {
		b           binary
		p           planned
		cgo, purego bool
	}{
		{core, planned{version: system}, true, true}, {core, planned{version: arm}, true, true},
		{core, planned{version: system, mode: libssl}, true, true},
		{compares, planned{version: system}, true, true}, {compares, planned{version: oldest}, true, false},
		{compares, planned{version: musl}, false, false}, {compares, planned{version: arm}, false, false},
		{withoutC, planned{version: middle}, true, false}, {withoutC, planned{version: arm}, false, false},
		{adapter, planned{version: middle}, true, true}, {adapter, planned{version: oldest}, true, false},
		{adapter, planned{version: system}, false, false},
		{ofNoModes, planned{version: oldest}, true, false}, {ofNoModes, planned{version: arm}, false, false},
		{ofNoModes, planned{version: system, mode: libssl}, false, false},
	} {
		if cgo, purego := test.b.runsIn(test.p, false), test.b.runsIn(test.p, true); cgo != test.cgo || purego != test.purego {
			t.Errorf("%s, %s: got %t, and %t without cgo", test.p.name(), test.b.pkg, cgo, purego)
		}
	}
}

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
