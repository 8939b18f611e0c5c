package confgen

import (
	"fmt"
	"regexp"
	"strconv"
)

// A Version is a release: major, minor, patch.
type Version struct{ Major, Minor, Patch int }

var versionPattern = regexp.MustCompile(`(\d{1,4})(?:\.(\d{1,5}))?(?:\.(\d{1,6}))?`)

// ParseVersion reads the first version in a text: "1.22.1", "v2.11.4", "15.18 (Debian)".
func ParseVersion(s string) (Version, error) {
	if len(s) > 1000 {
		s = s[:1000]
	}
	m := versionPattern.FindStringSubmatch(s)
	if m == nil {
		return Version{}, fmt.Errorf("%q is not a version such as 1.22.1", s)
	}
	var n [3]int
	for i := range n {
		n[i], _ = strconv.Atoi(m[i+1]) // an absent part is 0
	}
	return Version{n[0], n[1], n[2]}, nil
}

// Before reports whether v is older than w.
func (v Version) Before(w Version) bool {
	if v.Major != w.Major {
		return v.Major < w.Major
	}
	if v.Minor != w.Minor {
		return v.Minor < w.Minor
	}
	return v.Patch < w.Patch
}

// String returns the version as in 1.22.1.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// MarshalText returns String's text.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
