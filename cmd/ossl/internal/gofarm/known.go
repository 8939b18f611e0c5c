package gofarm

import (
	"maps"
	"slices"
	"strings"
)

// known has the versions of Go with which CI runs the standard library's tests on ossl, by the Digest of
// their crypto/tls. Versions with the same crypto/tls are one: the first that had it.
var known = map[string]string{}

// knownVersions lists them.
func knownVersions() string {
	return strings.Join(slices.Sorted(maps.Values(known)), ", ")
}
