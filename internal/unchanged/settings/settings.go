// Package settings decodes the settings of a program that "ossl go" has built: those for which
// [crypto/tls.Config] has no field. They come from a file that the environment variable OSSL_SETTINGS
// names, or were given at the build; the format is the same.
package settings

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ossl-go/ossl/policy"
	"github.com/ossl-go/ossl/tlsnames"
)

// A File is the content of a file of settings. Each key is optional, except format.
type File struct {
	Format  int      `json:"format"`  // 1
	Locked  bool     `json:"locked"`  // the environment can't replace these settings, which were given at the build
	FIPS    bool     `json:"fips"`    // all connections are in FIPS mode
	Keys    []string `json:"keys"`    // URIs of private keys
	KeyLog  string   `json:"key_log"` // the file to which the keys of connections are written
	Servers Role     `json:"servers"`
	Clients Role     `json:"clients"`
}

// A Role has the settings of a process's servers or clients.
type Role struct {
	Policy            string    `json:"policy"`              // a name or an alias of package policy
	SecurityLevel     *int      `json:"security_level"`      // 0 to 5
	HostPolicy        string    `json:"host_policy"`         // "follow" or "ignore"
	TLS13CipherSuites []string  `json:"tls13_cipher_suites"` // IANA's names, the most preferred first
	RecordPath        string    `json:"record_path"`         // "auto", "libssl" or "direct"
	Truncation        string    `json:"truncation"`          // "eof" or "error"
	KernelTLS         bool      `json:"kernel_tls"`
	Sessions          *Sessions `json:"sessions"`         // of servers
	TicketKeys        []string  `json:"ticket_keys"`      // of servers: files, of which the first one's key seals
	SessionLifetime   string    `json:"session_lifetime"` // of servers: "12h"
}

// Sessions are a server's that clients resume by their IDs.
type Sessions struct {
	ID    int    `json:"id"`    // the maximum number of sessions in memory
	TLS13 string `json:"tls13"` // "ticket", the default, or "id": how TLS 1.3 sessions are resumed
}

// The values of keys that have few.
const (
	Follow, Ignore = "follow", "ignore" // host_policy
	EOF, Fail      = "eof", "error"     // truncation
	Ticket, ID     = "ticket", "id"     // sessions.tls13
)

// The names of roles in keys.
const (
	Servers = "servers"
	Clients = "clients"
)

// Role returns the settings of a role.
func (f *File) Role(name string) *Role {
	if name == Clients {
		return &f.Clients
	}
	return &f.Servers
}

// Suites returns the numbers of TLS13CipherSuites.
func (r *Role) Suites() (ids []uint16) {
	for _, name := range r.TLS13CipherSuites {
		id, _ := tlsnames.CipherSuites.ID(name)
		ids = append(ids, id)
	}
	return ids
}

// Lifetime returns SessionLifetime, or 0 if it is not set.
func (r *Role) Lifetime() time.Duration {
	d, _ := time.ParseDuration(r.SessionLifetime) // check has accepted it
	return d
}

// Strict returns the first key of the role that asks for more than crypto/tls does, or "": then crypto/tls
// can't be given the role's connections.
func (r *Role) Strict() string {
	const defaultLevel = 2
	switch {
	case r.Policy != "":
		return "policy"
	case r.SecurityLevel != nil && *r.SecurityLevel >= defaultLevel:
		return "security_level"
	case r.TLS13CipherSuites != nil:
		return "tls13_cipher_suites"
	case r.Truncation == Fail:
		return "truncation"
	}
	return ""
}

// An Error is the reason why a setting, or all of them, can't be honoured.
type Error struct {
	Source string // where the settings are from
	Key    string // as "servers.kernel_tls", or "" for the file as a whole
	Reason string
}

func (e *Error) Error() string {
	s := "ossl: "
	if e.Source != "" {
		s += e.Source + ": "
	}
	if e.Key != "" {
		s += e.Key + ": "
	}
	return s + e.Reason
}

func refuse(key, format string, args ...any) error {
	return &Error{Key: key, Reason: fmt.Sprintf(format, args...)}
}

// The bounds of lists and numbers.
const (
	maxKeys       = 64
	maxTicketKeys = 32
	maxSessions   = 10_000_000
	maxLifetime   = 7 * 24 * time.Hour // RFC 8446, section 4.6.1
)

// check returns an error for the first value that is wrong, or contradicts another one.
func (f *File) check() error {
	if f.Format != 1 {
		return refuse("format", `is %d. This version of ossl reads the format 1: "format": 1`, f.Format)
	}
	if f.Keys != nil && (len(f.Keys) == 0 || len(f.Keys) > maxKeys) {
		return refuse("keys", "has %d URIs, not 1 to %d", len(f.Keys), maxKeys)
	}
	for i, uri := range f.Keys {
		if err := checkURI(uri); err != nil {
			return refuse(fmt.Sprintf("keys[%d]", i), "%v", err)
		}
	}
	if f.KeyLog != "" && !filepath.IsAbs(f.KeyLog) {
		return refuse("key_log", notAbsolute)
	}
	for _, name := range []string{Servers, Clients} {
		if err := f.Role(name).check(name); err != nil {
			return err
		}
	}
	if f.FIPS {
		return f.CheckFIPS("by the key fips")
	}
	return nil
}

const notAbsolute = "the path isn't absolute: a program can be started in any folder"

// checkURI returns an error for a URI that can't be a key's, or has a secret in it.
func checkURI(uri string) error {
	scheme, rest, ok := strings.Cut(uri, ":")
	switch {
	case filepath.IsAbs(uri):
		return nil
	case !ok || len(scheme) < 2 || rest == "":
		return fmt.Errorf(`%q is neither an absolute path nor a URI such as "pkcs11:token=web;object=tls"`, uri)
	case strings.Contains(strings.ToLower(uri), "pin-value"):
		return fmt.Errorf("the URI has a PIN in it, which all readers of the settings would learn: " +
			"name a file with the PIN by pin-source, as in ?pin-source=file:/etc/app/pin")
	}
	return nil
}

// check returns an error for the first value of a role that is wrong.
func (r *Role) check(role string) error {
	key := func(name string) string { return role + "." + name }
	oneOf := func(name, value string, allowed ...string) error {
		if value == "" || slices.Contains(allowed, value) {
			return nil
		}
		return refuse(key(name), "%q is not %s", value, strings.Join(allowed, " or "))
	}
	for _, err := range []error{
		oneOf("host_policy", r.HostPolicy, Follow, Ignore),
		oneOf("record_path", r.RecordPath, "auto", "libssl", "direct"),
		oneOf("truncation", r.Truncation, EOF, Fail),
	} {
		if err != nil {
			return err
		}
	}
	if l := r.SecurityLevel; l != nil && (*l < 0 || *l > 5) {
		return refuse(key("security_level"), "%d is not between 0 and 5", *l)
	}
	if r.KernelTLS && r.RecordPath == "libssl" {
		return refuse(key("kernel_tls"), "record_path leaves the records with libssl")
	}
	if err := r.checkSuites(key("tls13_cipher_suites")); err != nil {
		return err
	}
	if role == Clients {
		return r.checkClient()
	}
	return r.checkServer()
}

func (r *Role) checkSuites(key string) error {
	if r.TLS13CipherSuites != nil && len(r.TLS13CipherSuites) == 0 {
		return refuse(key, "names no suite")
	}
	for i, id := range r.Suites() {
		switch name := r.TLS13CipherSuites[i]; {
		case id>>8 != 0x13:
			return refuse(key, "%q is not a TLS 1.3 cipher suite, such as TLS_AES_128_GCM_SHA256", name)
		case slices.Contains(r.TLS13CipherSuites[:i], name):
			return refuse(key, "%s is there twice", name)
		}
	}
	return nil
}

// checkClient refuses the keys that are for servers.
func (r *Role) checkClient() error {
	for name, set := range map[string]bool{"sessions": r.Sessions != nil, "ticket_keys": r.TicketKeys != nil,
		"session_lifetime": r.SessionLifetime != ""} {
		if set {
			return refuse("clients."+name, "only servers have it")
		}
	}
	return r.checkPolicy("clients.")
}

func (r *Role) checkServer() error {
	if s := r.Sessions; s != nil {
		if s.ID < 1 || s.ID > maxSessions {
			return refuse("servers.sessions.id", "%d is not the number of sessions to keep, 1 to %d", s.ID, maxSessions)
		}
		if s.TLS13 != "" && s.TLS13 != Ticket && s.TLS13 != ID {
			return refuse("servers.sessions.tls13", "%q is not ticket or id", s.TLS13)
		}
	}
	if r.TicketKeys != nil && (len(r.TicketKeys) == 0 || len(r.TicketKeys) > maxTicketKeys) {
		return refuse("servers.ticket_keys", "has %d files, not 1 to %d", len(r.TicketKeys), maxTicketKeys)
	}
	for i, name := range r.TicketKeys {
		if !filepath.IsAbs(name) {
			return refuse(fmt.Sprintf("servers.ticket_keys[%d]", i), notAbsolute)
		}
	}
	if r.SessionLifetime != "" {
		d, err := time.ParseDuration(r.SessionLifetime)
		if err != nil || d < time.Second || d > maxLifetime {
			return refuse("servers.session_lifetime", "%q is not a time from 1s to %v, such as 12h", r.SessionLifetime, maxLifetime)
		}
	}
	return r.checkPolicy("servers.")
}

// checkPolicy returns an error for an unknown policy, and for keys that the policy decides on.
func (r *Role) checkPolicy(prefix string) error {
	if r.Policy == "" {
		return nil
	}
	if _, err := policy.Get(r.Policy); err != nil {
		return refuse(prefix+"policy", "%s", strings.TrimPrefix(err.Error(), "policy: "))
	}
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"tls13_cipher_suites", r.TLS13CipherSuites != nil},
		{"kernel_tls", r.KernelTLS},
		{"sessions", r.Sessions != nil},
		{"session_lifetime", r.SessionLifetime != ""},
	} {
		if k.set {
			return refuse(prefix+k.name, "the policy %s decides that: leave one of them out", r.Policy)
		}
	}
	return nil
}

// CheckFIPS returns an error for the first setting that FIPS mode can't honour. why is the reason for
// FIPS mode.
func (f *File) CheckFIPS(why string) error {
	const mode = "FIPS mode is required (%s), "
	switch {
	case f.KeyLog != "":
		return refuse("key_log", mode+"in which keys don't leave the module", why)
	case f.Keys != nil:
		return refuse("keys", mode+"and the provider of a key by URI would sign outside of the module", why)
	}
	for _, name := range []string{Servers, Clients} {
		r := f.Role(name)
		switch {
		case r.KernelTLS:
			return refuse(name+".kernel_tls", mode+"and the kernel's cryptography is not the module's", why)
		case r.SecurityLevel != nil && *r.SecurityLevel < 2:
			return refuse(name+".security_level", mode+"which requires 112 bits of security, the level 2", why)
		}
	}
	return nil
}

// CheckBuilt returns an error for a setting that can't be given at the build.
func (f *File) CheckBuilt() error {
	if f.KeyLog != "" {
		return refuse("key_log", "can't be given at the build, since every user of the program would write its keys: name the file "+
			"by OSSL_KEYLOG, or in the file that OSSL_SETTINGS names")
	}
	return nil
}
