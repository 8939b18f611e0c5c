// Package names has the IDs of the names that a policy can have in its lists.
package names

import (
	"crypto/tls"
	"regexp"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/tlsnames"
)

// entry returns the entry with a name, in which case matters, or an empty one.
func entry(r *tlsnames.Registry, name string) tlsnames.Entry {
	id, _ := r.ID(name)
	if e, _ := r.Lookup(id); e.Name == name {
		return e
	}
	return tlsnames.Entry{}
}

// Version returns the TLS version that a policy names, or 0.
func Version(name string) uint16 {
	if id := entry(tlsnames.Versions, name).ID; id >= tls.VersionTLS10 {
		return id
	}
	return 0
}

// Suite13 returns a TLS 1.3 cipher suite, or 0. OpenSSL has all of them: RFC 8446, appendix B.4.
func Suite13(name string) uint16 {
	if id := entry(tlsnames.CipherSuites, name).ID; id>>8 == 0x13 {
		return id
	}
	return 0
}

// Suite12 returns a TLS 1.2 cipher suite that a [tls.Config] can name, or 0. OpenSSL has no RC4.
func Suite12(name string) uint16 {
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if s.Name == name && Suite13(name) == 0 && !strings.Contains(name, "_RC4_") {
			return s.ID
		}
	}
	return 0
}

var forwardSecret = regexp.MustCompile(`^TLS_(ECDHE_ECDSA|ECDHE_RSA|DHE_RSA)_WITH_.*(_SHA256|_SHA384|_CCM|_CCM_8)$`)

// OtherSuite12 reports whether a name belongs to a TLS 1.2 cipher suite that a policy can name and
// a [tls.Config] can't.
func OtherSuite12(name string) bool {
	return forwardSecret.MatchString(name) && !strings.Contains(name, "_OLD_") && entry(tlsnames.CipherSuites, name).Name != ""
}

// Known reports whether a policy can name a group or a signature scheme.
func Known(r *tlsnames.Registry) func(name string) bool {
	return func(name string) bool { return entry(r, name).OpenSSL != "" }
}

// Usable returns a group or a signature scheme that ossl can use, or 0.
func Usable[ID ~uint16](r *tlsnames.Registry) func(name string) ID {
	return func(name string) ID {
		if e := entry(r, name); e.Go != "" {
			return ID(e.ID)
		}
		return 0
	}
}
