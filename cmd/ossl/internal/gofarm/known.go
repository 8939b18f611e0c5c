package gofarm

import (
	"maps"
	"slices"
	"strings"
)

// known has the versions of Go with which CI runs the standard library's tests on ossl, by the Digest of
// their crypto/tls. Versions with the same crypto/tls are one: the first that had it.
var known = map[string]string{
	"9bbfc18a5df065d656cd87c344112a3c": "go1.26.8",
	"e82ab181105749ec04297c52d2c36a26": "go1.27.4",
}

// knownVersions lists them.
func knownVersions() string {
	return strings.Join(slices.Sorted(maps.Values(known)), " or ")
}
