package gofarm

import (
	"maps"
	"slices"
	"testing"
)

// TestKnown checks the Digest of the Go in use, if a version of this name is known.
func TestKnown(t *testing.T) {
	toolchain, err := Find(t.Context(), []string{"build"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(slices.Collect(maps.Values(known)), toolchain.Version) {
		t.Skipf("%s is not known, or has the crypto/tls of another version", toolchain.Version)
	}
	files, err := readGo(toolchain.Root)
	if err != nil {
		t.Fatal(err)
	}
	if digest := Digest(files); known[digest] != toolchain.Version {
		t.Errorf("the crypto/tls of %s has the digest %s", toolchain.Version, digest)
	}
}
