package ossl

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/negotiate"
)

// A HostPolicy has the restrictions on TLS in the host's OpenSSL configuration. They are in
// openssl.cnf, or in a file that it includes, in the section that the module ssl_conf names
// system_default. Distributions put their crypto policies there. Contexts keep to it unless they
// are made with [WithoutHostPolicy]; docs/POLICY.md describes the effect of each command.
type HostPolicy struct {
	ConfigFile string   // the file that OpenSSL reads by default, whether or not it exists
	Commands   []string // such as "MinProtocol = TLSv1.3"; none means that the host has no policy

	MinVersion, MaxVersion uint16 // TLS 1.2 to TLS 1.3 unless the host restricts them
	SecurityLevel          int    // 2 unless the host has a higher one; see WithSecurityLevel

	// The allowed IDs among those that ossl knows; nil means that the host does not restrict them.
	CipherSuites           []uint16 // for TLS 1.2
	TLS13CipherSuites      []uint16
	Groups                 []tls.CurveID
	SignatureSchemes       []tls.SignatureScheme
	ClientSignatureSchemes []tls.SignatureScheme // for the signatures of clients
	NoSessionTickets       bool                  // servers send no tickets

	// Err is the reason why the policy can't be honoured, or another part of the configuration is not
	// in force, or nil. If it is set, Contexts can only be made without the policy, and none at all if
	// the text doesn't name WithoutHostPolicy.
	Err error
}

// hosts remembers the policy of the library that is loaded.
var hosts struct {
	mu    sync.Mutex // held while the policy is read
	known atomic.Pointer[negotiate.Host]
}

// theHost returns the policy of the library that is loaded. Once it could be read and can be
// honoured, it is remembered; else the next call tries again. Its errors are [*ConfigError]s.
func theHost() *negotiate.Host {
	if host := hosts.known.Load(); host != nil {
		return host
	}
	hosts.mu.Lock()
	defer hosts.mu.Unlock()
	if host := hosts.known.Load(); host != nil {
		return host
	}
	host := negotiate.ReadHost()
	host.Err, host.Dropped = configError(host.Err), configError(host.Dropped)
	if host.Err == nil && host.Dropped == nil {
		hosts.known.Store(host)
	}
	return host
}

// hostPolicy returns the policy to honour, or nil. fips is whether the Context is in FIPS mode. The
// library must be loaded.
func (o *options) hostPolicy(fips bool) (*negotiate.Host, error) {
	host := theHost()
	switch {
	case errors.Is(host.Err, libssl.ErrNoContext):
		return nil, host.Err
	case o.withoutHostPolicy:
		return nil, nil
	case host.Err != nil:
		return nil, host.Err
	case host.Dropped != nil && !fips:
		return nil, host.Dropped
	case host.IsEmpty():
		return nil, nil
	}
	return host, nil
}

// clone returns a copy that shares nothing.
func (p HostPolicy) clone() HostPolicy {
	p.Commands = slices.Clone(p.Commands)
	p.CipherSuites = slices.Clone(p.CipherSuites)
	p.TLS13CipherSuites = slices.Clone(p.TLS13CipherSuites)
	p.Groups = slices.Clone(p.Groups)
	p.SignatureSchemes = slices.Clone(p.SignatureSchemes)
	p.ClientSignatureSchemes = slices.Clone(p.ClientSignatureSchemes)
	return p
}

// policyWidth is the maximum number of bytes in a line of HostPolicy.String, unless a single word
// has more.
const policyWidth = 98

// subjectWidth is the width of the column of subjects.
const subjectWidth = 16

// String describes the policy in a few lines.
func (p HostPolicy) String() string {
	var t policyText
	t.words("policy", p.ConfigFile)
	if len(p.Commands) == 0 && p.Err == nil {
		if _, err := os.Stat(p.ConfigFile); errors.Is(err, fs.ErrNotExist) { // OpenSSL ignores that
			t.b.WriteString(" (no such file)")
		} else {
			t.b.WriteString(" (says nothing of TLS)")
		}
	}
	for _, command := range p.Commands {
		name, value, _ := strings.Cut(command, " = ")
		t.line("", append([]string{name + " = "}, strings.SplitAfter(value, ":")...))
	}
	if p.Err != nil {
		t.words("unusable", strings.Fields(p.Err.Error())...)
		return t.b.String()
	}
	versions := tls.VersionName(p.MinVersion)
	if p.MaxVersion != p.MinVersion {
		versions += " to " + tls.VersionName(p.MaxVersion)
	}
	t.words("versions", versions)
	t.words("security level", fmt.Sprint(p.SecurityLevel))
	t.list("ciphers", p.CipherSuites != nil, namesIn(p.CipherSuites, libssl.SuiteName))
	t.list("suites", p.TLS13CipherSuites != nil, namesIn(p.TLS13CipherSuites, libssl.SuiteName))
	t.list("groups", p.Groups != nil, namesIn(p.Groups, libssl.GroupName))
	t.list("signatures", p.SignatureSchemes != nil, namesIn(p.SignatureSchemes, libssl.SignatureName))
	t.list("by clients", p.ClientSignatureSchemes != nil, namesIn(p.ClientSignatureSchemes, libssl.SignatureName))
	if p.NoSessionTickets {
		t.words("tickets", "none")
	}
	return t.b.String()
}

// policyText is a list of lines that begin with their subject.
type policyText struct{ b strings.Builder }

// line writes parts, and continues in the next line if they don't fit.
func (t *policyText) line(subject string, parts []string) {
	line := fmt.Sprintf("%-*s", subjectWidth, subject)
	empty := true
	flush := func() {
		if t.b.Len() > 0 {
			t.b.WriteByte('\n')
		}
		t.b.WriteString(strings.TrimRight(line, " "))
	}
	for _, part := range parts {
		if !empty && len(line)+len(strings.TrimRight(part, " ")) > policyWidth {
			flush()
			line = fmt.Sprintf("%-*s", subjectWidth, "")
		}
		line += part
		empty = false
	}
	flush()
}

func (t *policyText) words(subject string, words ...string) {
	parts := make([]string, len(words))
	for i, word := range words {
		parts[i] = word + " "
	}
	t.line(subject, parts)
}

// list writes a list of the policy, if there is one.
func (t *policyText) list(subject string, stated bool, names []string) {
	switch {
	case len(names) > 0:
		t.words(subject, names...)
	case stated:
		t.words(subject, "none")
	}
}

func namesIn[ID any](ids []ID, name func(ID) string) (list []string) {
	for _, id := range ids {
		list = append(list, name(id))
	}
	return list
}
