package policy

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Policy describes how a TLS server must be configured, and why. Policies are dated and frozen: a
// document's new edition is a new Policy.
type Policy struct {
	Name    string            `json:"name"`              // as on the command line: "mozilla-intermediate-6.0"
	Title   string            `json:"title"`             // the document's title
	Date    Date              `json:"date"`              // of the document's edition
	Summary string            `json:"summary"`           // one sentence: for whom the policy is
	Aliases []string          `json:"aliases,omitempty"` // shorter names: "mozilla-intermediate"
	Sources map[string]Source `json:"sources"`           // the documents that Value.Source and the like refer to

	Versions   []Value `json:"versions"`   // "TLS 1.3", "TLS 1.2"; the most preferred first
	Suites13   []Value `json:"suites13"`   // TLS 1.3 cipher suites by their IANA names, the most preferred first
	Suites12   []Value `json:"suites12"`   // TLS 1.2 cipher suites by their IANA names, the most preferred first
	Order      Setting `json:"order"`      // whose order of cipher suites decides: "server", "client" or "any"
	Groups     []Value `json:"groups"`     // key exchange groups by their IANA names: "X25519MLKEM768"
	Signatures []Value `json:"signatures"` // signature schemes by their IANA names: "ecdsa_secp256r1_sha256"
	Keys       []Key   `json:"keys"`       // the keys that certificates may have, the most preferred first

	Chain      Chain      `json:"chain"`
	Stapling   Stapling   `json:"stapling"`
	Resumption Resumption `json:"resumption"`
	Records    Records    `json:"records"`
	Sockets    Sockets    `json:"sockets"`

	// FIPS reports whether connections must use a FIPS module.
	FIPS bool `json:"fips,omitempty"`
}

// A Source is a document.
type Source struct {
	Title string `json:"title"`
	URL   string `json:"url,omitempty"`
}

// A Value is one thing that a policy allows.
type Value struct {
	Name   string `json:"name"`
	Level  Level  `json:"level,omitempty"` // Allowed if empty
	Source string `json:"source"`          // a key of Policy.Sources, and the section: "bsi-2 3.3.1"
	Until  *Date  `json:"until,omitempty"` // the last day on which the policy allows the value
	// Needs is a condition: [EncryptThenMAC], or "" if there is none.
	Needs string `json:"needs,omitempty"`
	Note  string `json:"note,omitempty"`
}

// EncryptThenMAC as Value.Needs allows a cipher suite only in connections with encrypt-then-MAC,
// RFC 7366.
const EncryptThenMAC = "encrypt-then-mac"

// A Level is how much a policy wants a value.
type Level string

// The levels.
const (
	Allowed     Level = ""            // a server may have it
	Recommended Level = "recommended" // a server should have it
	Required    Level = "required"    // a server without it doesn't follow the policy
	PhaseOut    Level = "phase-out"   // a server may have it, and should not any more
)

// A Setting is one setting and its source. A Setting with an empty Value leaves the choice open.
type Setting struct {
	Value  string `json:"value,omitempty"`
	Level  Level  `json:"level,omitempty"`
	Source string `json:"source,omitempty"`
	Until  *Date  `json:"until,omitempty"`
	Note   string `json:"note,omitempty"`
}

// A Limit is a number and its source. A Limit of 0 doesn't limit anything.
type Limit struct {
	Value  int    `json:"value,omitempty"`
	Level  Level  `json:"level,omitempty"`
	Source string `json:"source,omitempty"`
	Until  *Date  `json:"until,omitempty"`
	Note   string `json:"note,omitempty"`
}

// A Key is a kind of key that a server's certificate may have.
type Key struct {
	Type   string   `json:"type"`             // "ECDSA", "RSA", "Ed25519", "ML-DSA"
	Curves []string `json:"curves,omitempty"` // for ECDSA, by their IANA names: "secp256r1"
	Bits   int      `json:"bits,omitempty"`   // for RSA: the least size
	Level  Level    `json:"level,omitempty"`
	Source string   `json:"source"`
	Until  *Date    `json:"until,omitempty"`
	Note   string   `json:"note,omitempty"`
}

// Chain is about certificates and the chain that a server sends.
type Chain struct {
	Lifetime    Limit   `json:"lifetime"`    // days from a leaf's NotBefore to its NotAfter, at most
	Recommended Limit   `json:"recommended"` // the lifetime in days that the policy recommends
	Hashes      []Value `json:"hashes"`      // hash functions of the signatures on certificates: "SHA-256"
	Shortest    Setting `json:"shortest"`    // "yes": no root, and no certificate that no path needs
}

// Stapling is whether a server must send an OCSP response, in each of the states that its
// certificate and the server can be in: "finding", "fine", or "" if the policy has no rule.
type Stapling struct {
	NoURI   Setting `json:"no_uri"`  // the certificate names no OCSP responder, so nothing can be stapled
	Stapled Setting `json:"stapled"` // the server staples a response
	Missing Setting `json:"missing"` // the certificate names a responder, and the server staples nothing
}

// Resumption is about sessions.
type Resumption struct {
	TLS13    Setting `json:"tls13"`    // "yes" or "no": TLS 1.3 tickets
	ID       Setting `json:"id"`       // "yes" or "no": TLS 1.2 by session ID, from the server's cache
	Tickets  Setting `json:"tickets"`  // "yes" or "no": TLS 1.2 by ticket
	Lifetime Limit   `json:"lifetime"` // seconds for which a session can be resumed, at most
	Rotation Limit   `json:"rotation"` // seconds for which one key encrypts tickets, at most
	Early    Setting `json:"early"`    // "yes" or "no": early data (0-RTT)
}

// Records is about the record layer.
type Records struct {
	BufferSize  Limit   `json:"buffer_size"` // bytes that a server collects before it seals a record
	Kernel      Setting `json:"kernel"`      // "yes" or "no": kernel TLS
	Compression Setting `json:"compression"` // "no"
}

// Sockets is about TCP, and the HTTP server above TLS.
type Sockets struct {
	SendFile      Setting `json:"sendfile"`       // "yes": sendfile(2)
	SendFileChunk Limit   `json:"sendfile_chunk"` // bytes a call
	NoPush        Setting `json:"nopush"`         // "yes": TCP_NOPUSH or TCP_CORK
	NoDelay       Setting `json:"nodelay"`        // "yes": TCP_NODELAY
	HSTS          Limit   `json:"hsts"`           // seconds, at least
}

// A Date is a day, in UTC. Its JSON is "2031-12-31".
type Date struct{ time.Time }

// UnmarshalJSON implements [json.Unmarshaler].
func (d *Date) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return fmt.Errorf("policy: %q is not a date such as 2031-12-31", s)
	}
	d.Time = t
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (d Date) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

func (d *Date) clone() *Date {
	if d == nil {
		return nil
	}
	c := *d
	return &c
}

// String returns the date as in 2031-12-31.
func (d Date) String() string { return d.Format(time.DateOnly) }

// Passed reports whether the date is before the day of t. A nil Date never passes.
func (d *Date) Passed(t time.Time) bool {
	return d != nil && t.UTC().Truncate(24*time.Hour).After(d.Time)
}
