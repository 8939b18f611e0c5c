package policy

import (
	"crypto/tls"
	"regexp"
	"strings"

	"github.com/ossl-go/ossl/internal/libssl"
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

// version returns the version of TLS that a policy names, or 0.
func version(name string) uint16 {
	if id := entry(tlsnames.Versions, name).ID; id >= tls.VersionTLS10 {
		return id
	}
	return 0
}

// suite returns a cipher suite that ossl can use, or 0.
func suite(name string, tls13 bool) uint16 {
	if id := entry(tlsnames.CipherSuites, name).ID; libssl.IsTLS13Suite(id) == tls13 && libssl.SuiteName(id) != "" {
		return id
	}
	return 0
}

func suite13(name string) uint16 { return suite(name, true) }
func suite12(name string) uint16 { return suite(name, false) }

var forwardSecret = regexp.MustCompile(`^TLS_(ECDHE_ECDSA|ECDHE_RSA|DHE_RSA)_WITH_.*(_SHA256|_SHA384|_CCM|_CCM_8)$`)

// otherSuite12 reports whether a name is that of a cipher suite of TLS 1.2 that a policy can name and
// a [tls.Config] can't.
func otherSuite12(name string) bool {
	return forwardSecret.MatchString(name) && !strings.Contains(name, "_OLD_") && entry(tlsnames.CipherSuites, name).Name != ""
}

// known reports whether a policy can name a group or a signature scheme.
func known(r *tlsnames.Registry) func(name string) bool {
	return func(name string) bool { return entry(r, name).OpenSSL != "" }
}

// usable returns a group or a signature scheme that ossl can use, or 0.
func usable[ID ~uint16](r *tlsnames.Registry) func(name string) ID {
	return func(name string) ID {
		if e := entry(r, name); e.Go != "" {
			return ID(e.ID)
		}
		return 0
	}
}

// curves are the curves that keys of ECDSA may have.
var curves = []string{"secp224r1", "secp256r1", "secp384r1", "secp521r1", "brainpoolP256r1", "brainpoolP384r1", "brainpoolP512r1"}

// hashes are the hash functions of certificates' signatures.
var hashes = []string{"SHA-1", "SHA-224", "SHA-256", "SHA-384", "SHA-512"}
