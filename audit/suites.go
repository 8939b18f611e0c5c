package audit

import (
	"slices"
	"strings"

	"github.com/ossl-go/ossl/audit/internal/hello"
)

// isECDSA reports whether a suite needs an ECDSA certificate.
func isECDSA(suite uint16) bool { return strings.Contains(hello.SuiteName(suite), "_ECDSA_") }

// isChaCha reports whether a suite is one with ChaCha20.
func isChaCha(suite uint16) bool { return suite == chacha13 || slices.Contains(chacha12, suite) }

// A weakClass is a kind of cipher suites that nobody should offer.
type weakClass struct {
	parts    []string // of the suites' names
	severity Severity
	why      string
	source   string
}

const rfc9325 = "RFC 9325, section 4.1"

// weakClasses are the kinds, the worst first. A suite belongs to the first that fits.
var weakClasses = []weakClass{
	{[]string{"_WITH_NULL_", "TLS_SHA256_SHA256", "TLS_SHA384_SHA384"}, Critical, "nothing is encrypted", rfc9325},
	{[]string{"_anon_"}, Critical, "the server isn't authenticated", rfc9325},
	{[]string{"_EXPORT", "_DES40_", "_40_", "EXPORT1024"}, Critical, "keys of 40 or 56 bits can be searched", rfc9325},
	{[]string{"_RC4_"}, High, "RC4's output is biased, and plaintext can be recovered", "RFC 7465"},
	{[]string{"_DES_CBC_", "_DES_64_"}, High, "keys of 56 bits can be searched", rfc9325},
	{[]string{"_RC2_", "_IDEA_", "_3DES_", "_DES_192_", "_28147_"}, Medium,
		"blocks of 64 bits repeat after some gigabytes (Sweet32)", rfc9325},
	{[]string{"_MD5"}, Medium, "MD5 protects the records", rfc9325},
}

// of returns the suites that are of the class.
func (c weakClass) of(suites []uint16) (all []uint16) {
	for _, s := range suites {
		if c.has(hello.SuiteName(s)) {
			all = append(all, s)
		}
	}
	return all
}

func (c weakClass) has(name string) bool {
	return slices.ContainsFunc(c.parts, func(part string) bool { return strings.Contains(name, part) })
}

// weakness returns the class of a suite, or nil if it is in none.
func weakness(name string) *weakClass {
	for i := range weakClasses {
		if weakClasses[i].has(name) {
			return &weakClasses[i]
		}
	}
	return nil
}
