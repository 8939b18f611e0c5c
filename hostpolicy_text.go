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
const policyWidth = 86

// String describes the policy in a few lines.
func (p HostPolicy) String() string {
	var b strings.Builder
	line := func(what string, words []string) {
		at, empty := 0, true
		for _, word := range words {
			if !empty && at+1+len(word) > policyWidth {
				b.WriteByte('\n')
				empty = true
			}
			if empty {
				at, _ = fmt.Fprintf(&b, "%-12s%s", what, word)
				what, empty = "", false
				continue
			}
			n, _ := fmt.Fprintf(&b, " %s", word)
			at += n
		}
		b.WriteByte('\n')
	}
	file := p.ConfigFile
	if len(p.Commands) == 0 && p.Err == nil {
		file += " (says nothing of TLS)"
	}
	line("file", []string{file})
	for _, c := range p.Commands {
		line("says", strings.Fields(c))
	}
	if p.Err != nil {
		line("unusable", strings.Fields(p.Err.Error()))
		return strings.TrimSuffix(b.String(), "\n")
	}
	versions := []string{tls.VersionName(p.MinVersion)}
	if p.MaxVersion != p.MinVersion {
		versions = append(versions, "to", tls.VersionName(p.MaxVersion))
	}
	line("versions", versions)
	line("level", []string{fmt.Sprint(p.SecurityLevel)})
	list(line, "ciphers", p.CipherSuites, suiteNames12)
	list(line, "suites", p.TLS13CipherSuites, suiteNames13)
	list(line, "groups", p.Groups, groupNames)
	list(line, "signatures", p.SignatureSchemes, signatureNames)
	list(line, "clients'", p.ClientSignatureSchemes, signatureNames)
	if p.NoSessionTickets {
		line("tickets", []string{"none"})
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// list writes a list of the policy, if there is one.
func list[ID comparable](line func(string, []string), what string, ids []ID, names map[ID]string) {
	if ids == nil {
		return
	}
	words := []string{"none"}
	for i, id := range ids {
		if i == 0 {
			words = nil
		}
		words = append(words, names[id])
	}
	line(what, words)
}
