package hello

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ossl-go/ossl/tlsnames"
)

func nameOf(r *tlsnames.Registry, id uint16) string {
	if name := r.Name(id); name != "" {
		return name
	}
	return fmt.Sprintf("0x%04x", id)
}

// valueOf returns the number of a name, in any case, or of a number such as 0xcca8.
func valueOf(r *tlsnames.Registry, name string) (id uint16, ok bool) {
	if id, ok = r.ID(name); ok || !strings.HasPrefix(name, "0x") {
		return id, ok
	}
	v, err := strconv.ParseUint(name[2:], 16, 16)
	return uint16(v), err == nil
}

// SuiteName returns the IANA name of a cipher suite, or its number as in "0xcc13".
func SuiteName(suite uint16) string { return nameOf(tlsnames.CipherSuites, suite) }

// Suite returns the cipher suite with the IANA name.
func Suite(name string) (uint16, bool) { return valueOf(tlsnames.CipherSuites, name) }

// Suites returns all cipher suites that have a name, in the order of their numbers within each
// document.
func Suites() (all []uint16) {
	for e := range tlsnames.CipherSuites.All() {
		all = append(all, e.ID)
	}
	return all
}

// ssl2Names are the ciphers of SSL 2.
var ssl2Names = map[uint32]string{
	0x010080: "SSL_CK_RC4_128_WITH_MD5",
	0x020080: "SSL_CK_RC4_128_EXPORT40_WITH_MD5",
	0x030080: "SSL_CK_RC2_128_CBC_WITH_MD5",
	0x040080: "SSL_CK_RC2_128_CBC_EXPORT40_WITH_MD5",
	0x050080: "SSL_CK_IDEA_128_CBC_WITH_MD5",
	0x060040: "SSL_CK_DES_64_CBC_WITH_MD5",
	0x0700c0: "SSL_CK_DES_192_EDE3_CBC_WITH_MD5",
	0x080080: "SSL_CK_RC4_64_WITH_MD5",
}

// SSL2Name returns the name of a cipher of SSL 2.
func SSL2Name(cipher uint32) string {
	if name := ssl2Names[cipher]; name != "" {
		return name
	}
	return fmt.Sprintf("0x%06x", cipher)
}

// SSL2Ciphers are all ciphers of SSL 2.
var SSL2Ciphers = slices.Sorted(maps.Keys(ssl2Names))

// GroupName returns the IANA name of a key exchange group.
func GroupName(group uint16) string { return nameOf(tlsnames.Groups, group) }

// Group returns the group with the IANA name.
func Group(name string) (uint16, bool) { return valueOf(tlsnames.Groups, name) }

// SchemeName returns the IANA name of a signature scheme.
func SchemeName(scheme uint16) string { return nameOf(tlsnames.SignatureSchemes, scheme) }

// Scheme returns the signature scheme with the IANA name.
func Scheme(name string) (uint16, bool) { return valueOf(tlsnames.SignatureSchemes, name) }

// AlertName returns the name of an alert.
func AlertName(code uint8) string {
	if name := tlsnames.Alerts.Name(uint16(code)); name != "" {
		return name
	}
	return fmt.Sprintf("alert %d", code)
}

// String returns the alert's name.
func (a *Alert) String() string {
	if a.Silent {
		return "connection closed without an alert"
	}
	return AlertName(a.Code)
}

// ExtensionName returns the IANA name of an extension.
func ExtensionName(typ uint16) string { return nameOf(tlsnames.Extensions, typ) }

// ExtensionType returns the type of the extension with the IANA name.
func ExtensionType(name string) (uint16, bool) { return valueOf(tlsnames.Extensions, name) }

// VersionName returns the name of a version: "TLS 1.3".
func VersionName(version uint16) string { return nameOf(tlsnames.Versions, version) }

// Version returns the version with the name.
func Version(name string) (uint16, bool) { return tlsnames.Versions.ID(name) }

// IsGREASE reports whether a value is one that clients offer to find servers that refuse unknown
// values (RFC 8701).
func IsGREASE(v uint16) bool { return v&0x0f0f == 0x0a0a && v>>8 == v&0xff }

// An Exchange is the key exchange of a cipher suite.
type Exchange int

// The key exchanges.
const (
	UnknownExchange Exchange = iota
	AnyExchange              // TLS 1.3: the suite doesn't determine it
	RSAExchange              // the client encrypts the secret: no forward secrecy
	ExportRSA                // RSA with a temporary key of 512 or 1024 bits
	StaticDH                 // the certificate's Diffie-Hellman key, finite-field or elliptic
	DHE                      // finite-field Diffie-Hellman
	ECDHE                    // elliptic-curve Diffie-Hellman
	PSKExchange              // a pre-shared key, perhaps with one of the others
	OtherExchange            // Kerberos, SRP, GOST, EC J-PAKE
)

// SuiteExchange returns the key exchange of a cipher suite, and reports whether the server signs
// its part of it.
func SuiteExchange(suite uint16) (x Exchange, signed bool) {
	name := tlsnames.CipherSuites.Name(suite)
	kind, _, old := strings.Cut(name, "_WITH_")
	kind = strings.TrimPrefix(strings.TrimPrefix(kind, "TLS_"), "SSL_")
	switch {
	case name == "" || strings.HasSuffix(name, "_SCSV"):
		return UnknownExchange, false
	case !old:
		return AnyExchange, true
	case strings.Contains(kind, "PSK"):
		return PSKExchange, false
	case kind == "RSA" || kind == "RSA_FIPS":
		return RSAExchange, false
	case strings.HasPrefix(kind, "RSA_EXPORT"):
		return ExportRSA, true
	case strings.HasPrefix(kind, "ECDHE_") && kind != "ECDHE_PSK":
		return ECDHE, true
	case kind == "ECDH_anon":
		return ECDHE, false
	case strings.HasPrefix(kind, "DHE_"):
		return DHE, true
	case strings.HasPrefix(kind, "DH_anon"):
		return DHE, false
	case strings.HasPrefix(kind, "DH_") || strings.HasPrefix(kind, "ECDH_"):
		return StaticDH, false
	}
	return OtherExchange, false
}
