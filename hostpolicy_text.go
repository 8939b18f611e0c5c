package ossl

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

// A HostPolicy is what the host's OpenSSL configuration says of TLS: the section of openssl.cnf, and of the files that it
// includes, that the module ssl_conf calls system_default. Distributions put their crypto policies there. Contexts stay within it
// unless they are made with [WithoutHostPolicy]; docs/POLICY.md says what becomes of each command.
type HostPolicy struct {
	ConfigFile string   // where OpenSSL reads its configuration by default, whether or not there is such a file
	Commands   []string // such as "MinProtocol = TLSv1.3"; none means that the host has no policy

	MinVersion, MaxVersion uint16 // TLS 1.2 to TLS 1.3 if the host doesn't say less
	SecurityLevel          int    // 2 if the host doesn't ask for more: [WithSecurityLevel]

	// What is allowed, as far as ossl knows it; nil means that the host doesn't say.
	CipherSuites           []uint16 // of TLS 1.2
	TLS13CipherSuites      []uint16
	Groups                 []tls.CurveID
	SignatureSchemes       []tls.SignatureScheme
	ClientSignatureSchemes []tls.SignatureScheme // with which clients sign
	NoSessionTickets       bool                  // servers send no tickets

	// Err says why the policy can't be honoured, so that Contexts can only be made without it; or it is nil.
	Err error
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

// policyWidth is the most bytes in a line of HostPolicy.String, unless a single word has more.
const policyWidth = 98

// String describes the policy in a few lines.
func (p HostPolicy) String() string {
	var t policyText
	t.words("policy", p.ConfigFile)
	if len(p.Commands) == 0 && p.Err == nil {
		t.b.WriteString(" (says nothing of TLS)")
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
	t.words("level", fmt.Sprint(p.SecurityLevel))
	t.list("ciphers", p.CipherSuites != nil, namesIn(p.CipherSuites, suiteNames12))
	t.list("suites", p.TLS13CipherSuites != nil, namesIn(p.TLS13CipherSuites, suiteNames13))
	t.list("groups", p.Groups != nil, namesIn(p.Groups, groupNames))
	t.list("signatures", p.SignatureSchemes != nil, namesIn(p.SignatureSchemes, signatureNames))
	t.list("by clients", p.ClientSignatureSchemes != nil, namesIn(p.ClientSignatureSchemes, signatureNames))
	if p.NoSessionTickets {
		t.words("tickets", "none")
	}
	return t.b.String()
}

// policyText is lines that begin with what they are about.
type policyText struct{ b strings.Builder }

// line writes parts, and goes on in the next line where they don't fit.
func (t *policyText) line(what string, parts []string) {
	line := fmt.Sprintf("%-12s", what)
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
			line = fmt.Sprintf("%-12s", "")
		}
		line += part
		empty = false
	}
	flush()
}

func (t *policyText) words(what string, words ...string) {
	parts := make([]string, len(words))
	for i, word := range words {
		parts[i] = word + " "
	}
	t.line(what, parts)
}

// list writes a list of the policy, if there is one.
func (t *policyText) list(what string, stated bool, names []string) {
	switch {
	case len(names) > 0:
		t.words(what, names...)
	case stated:
		t.words(what, "none")
	}
}

func namesIn[ID comparable](ids []ID, names map[ID]string) (list []string) {
	for _, id := range ids {
		list = append(list, names[id])
	}
	return list
}
