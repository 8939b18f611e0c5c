// Package status lets the user of a running process ask it for its use of OpenSSL: the library,
// counts of connections, and the reasons for which some were left to crypto/tls.
//
// The process listens on a socket without a file and without a port, an abstract Unix socket of
// Linux (unix(7)), whose name has the process's ID. It answers each connection of its own user or of
// root with one JSON object, and reads nothing. On other systems Start does nothing.
//
// A process that nobody asks pays one file descriptor, and one goroutine that waits in Accept, which
// takes some 3 KB and no thread. It has no timer, and counts nothing for this package. Programs that
// it executes don't inherit the descriptor. A copy of the process that C code makes by fork(2) does,
// and keeps the name in use, but nothing answers there.
//
// The package imports the standard library alone, and of that nothing that imports crypto/tls, since
// "ossl go" compiles it into the standard library.
package status

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Format is the version of [Report] as JSON. It grows if a key gets another meaning.
const Format = 1

// A Report describes a process. All counts began with the process.
type Report struct {
	Format  int    `json:"format"`
	Version string `json:"version"` // of ossl
	Mode    string `json:"mode"`    // "prefer", "require" or "off"

	Settings    []Setting     `json:"settings"` // all that differ from the defaults
	OpenSSL     OpenSSL       `json:"openssl"`
	Connections []Connections `json:"connections"`

	// The reasons for which connections were left to crypto/tls, or had to fail because the mode doesn't
	// allow that: the most frequent first, and at the end the sum of those that have no room.
	Left    []Reason `json:"left_to_crypto_tls"`
	Refused []Reason `json:"refused"`

	Contexts Contexts `json:"contexts"`
	Records  Records  `json:"records"`
	Asked    Asked    `json:"asked"` // set by this package
}

// A Setting is in force, or was refused.
type Setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`             // no secret: passwords and PINs in URIs are cut out
	Refused string `json:"refused,omitempty"` // the reason, or ""
}

// OpenSSL is the library in use.
type OpenSSL struct {
	Version string `json:"version"` // as OpenSSL prints it, or "" if it isn't loaded
	Path    string `json:"path"`
	FIPS    string `json:"fips"`              // the FIPS module in force, or ""
	Problem string `json:"problem,omitempty"` // the reason why it can't be used
}

// Connections count the connections of an engine in a role.
type Connections struct {
	Engine string `json:"engine"` // "ossl" or "crypto/tls"
	Role   string `json:"role"`   // "client", "server", or "QUIC" for both roles
	Count  uint64 `json:"count"`
}

// A Reason counts the connections that it applies to.
type Reason struct {
	Text  string `json:"text"`
	Count uint64 `json:"count"`
}

// Contexts count the configurations that were compiled.
type Contexts struct {
	Compiled uint64 `json:"compiled"`
	InUse    uint64 `json:"in_use"`
}

// Records count the connections on OpenSSL by the code that seals their records. Kernel is part of
// Direct.
type Records struct {
	Direct uint64 `json:"direct"`
	Libssl uint64 `json:"libssl"`
	Kernel uint64 `json:"kernel"`
}

// Asked counts what became of the process's socket.
type Asked struct {
	Answered uint64 `json:"answered"`
	Refused  uint64 `json:"refused"` // connections of other users
	Failed   uint64 `json:"failed"`  // a socket that couldn't be made, clients that didn't read the answer
}

// The bounds of a report, which keep its JSON below maxBytes: a character takes at most 6 bytes there.
const (
	maxReasons  = 32
	maxSettings = 24
	maxCounts   = 8
	maxText     = 256
	maxBytes    = 256 << 10
)

// bound returns the report without passwords, and with bounded lists and texts.
func (r Report) bound() Report {
	r.Format = Format
	r.Version, r.Mode = text(r.Version), text(r.Mode)
	r.OpenSSL = OpenSSL{text(r.OpenSSL.Version), text(r.OpenSSL.Path), text(r.OpenSSL.FIPS), text(r.OpenSSL.Problem)}
	settings := make([]Setting, 0, maxSettings)
	for _, s := range r.Settings[:min(len(r.Settings), maxSettings)] {
		settings = append(settings, Setting{text(s.Name), text(s.Value), text(s.Refused)})
	}
	r.Settings = settings
	counts := make([]Connections, 0, maxCounts)
	for _, c := range r.Connections[:min(len(r.Connections), maxCounts)] {
		counts = append(counts, Connections{text(c.Engine), text(c.Role), c.Count})
	}
	r.Connections = counts
	r.Left, r.Refused = boundReasons(r.Left), boundReasons(r.Refused)
	return r
}

// OtherReasons is the text of the last reason, if some have no room.
const OtherReasons = "other reasons"

func boundReasons(all []Reason) []Reason {
	all = slices.SortedFunc(slices.Values(all), func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Text, b.Text))
	})
	bounded, others := make([]Reason, 0, maxReasons+1), uint64(0)
	for _, reason := range all {
		if reason.Text == OtherReasons || len(bounded) == maxReasons {
			others += reason.Count
		} else {
			bounded = append(bounded, Reason{text(reason.Text), reason.Count})
		}
	}
	if others > 0 {
		bounded = append(bounded, Reason{OtherReasons, others})
	}
	return bounded
}

// text returns a text without passwords, and cuts it if it is long.
func text(s string) string {
	if s = withoutSecrets(s); len(s) <= maxText {
		return s
	}
	end := maxText
	for end > maxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// withoutSecrets cuts the passwords out of URIs: the value of pin-value (RFC 7512, section 2.3), and
// the part between a colon and the @ in front of a host (RFC 3986, section 3.2.1).
func withoutSecrets(s string) string {
	const pin, scheme = "pin-value=", "://"
	for at := 0; ; {
		i := strings.Index(s[at:], pin)
		if i < 0 {
			break
		}
		at += i + len(pin)
		s = s[:at] + "…" + s[at+until(s[at:], "&;"):]
	}
	for at := 0; ; {
		i := strings.Index(s[at:], scheme)
		if i < 0 {
			return s
		}
		at += i + len(scheme)
		authority := s[at : at+until(s[at:], "/?#")]
		end := strings.LastIndex(authority, "@")
		if colon := strings.Index(authority, ":"); colon >= 0 && colon < end {
			s = s[:at+colon+1] + "…" + s[at+end:]
		}
	}
}

// until returns the length of the part of s in front of a space, a quote, or one of ends.
func until(s, ends string) int {
	if i := strings.IndexAny(s, ends+" \t\n\"'"); i >= 0 {
		return i
	}
	return len(s)
}
