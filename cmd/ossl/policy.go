package main

import (
	"crypto/tls"

	"github.com/ossl-go/ossl"
)

// A policy is the host's OpenSSL configuration for TLS. A list that is null is not restricted.
type policy struct {
	ConfigFile       string   `json:"config_file"`
	Commands         []string `json:"commands"`
	MinVersion       string   `json:"min_version"`
	MaxVersion       string   `json:"max_version"`
	SecurityLevel    int      `json:"security_level"`
	Ciphers          []string `json:"cipher_suites"`
	Suites           []string `json:"tls13_cipher_suites"`
	Groups           []string `json:"groups"`
	Signatures       []string `json:"signature_schemes"`
	ClientSignatures []string `json:"client_signature_schemes"`
	NoTickets        bool     `json:"no_session_tickets"`
	Unusable         string   `json:"unusable,omitempty"`

	text string
}

func policyOf(p ossl.HostPolicy) policy {
	out := policy{
		ConfigFile:       p.ConfigFile,
		Commands:         append([]string{}, p.Commands...),
		MinVersion:       tls.VersionName(p.MinVersion),
		MaxVersion:       tls.VersionName(p.MaxVersion),
		SecurityLevel:    p.SecurityLevel,
		Ciphers:          namesOf(p.CipherSuites, tls.CipherSuiteName),
		Suites:           namesOf(p.TLS13CipherSuites, tls.CipherSuiteName),
		Groups:           namesOf(p.Groups, tls.CurveID.String),
		Signatures:       namesOf(p.SignatureSchemes, tls.SignatureScheme.String),
		ClientSignatures: namesOf(p.ClientSignatureSchemes, tls.SignatureScheme.String),
		NoTickets:        p.NoSessionTickets,
		text:             p.String(),
	}
	if p.Err != nil {
		out.Unusable = p.Err.Error()
	}
	return out
}

// namesOf returns the names of a list's elements, or nil if the list is nil.
func namesOf[T any](list []T, name func(T) string) []string {
	if list == nil {
		return nil
	}
	names := []string{}
	for _, v := range list {
		names = append(names, name(v))
	}
	return names
}
