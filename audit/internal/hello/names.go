package hello

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:embed names.txt
var namesText string

// registries are the tables of names.txt.
type registries struct {
	names  map[string]map[uint32]string
	values map[string]map[string]uint32
	suites []uint16
}

var names = sync.OnceValue(func() *registries {
	r := &registries{names: map[string]map[uint32]string{}, values: map[string]map[string]uint32{}}
	registry := ""
	for line := range strings.Lines(namesText) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			registry = strings.Trim(line, "[]")
			r.names[registry], r.values[registry] = map[uint32]string{}, map[string]uint32{}
			continue
		}
		number, name, _ := strings.Cut(line, " ")
		v, err := strconv.ParseUint(number, 0, 24)
		if err != nil {
			panic("hello: names.txt: " + line)
		}
		r.names[registry][uint32(v)] = name
		r.values[registry][strings.ToLower(name)] = uint32(v)
		if registry == "suite" {
			r.suites = append(r.suites, uint16(v))
		}
	}
	return r
})

func nameOf(registry string, v uint32, format string) string {
	if s, ok := names().names[registry][v]; ok {
		return s
	}
	return fmt.Sprintf(format, v)
}

// valueOf returns the number of a name, or of a number such as 0xcca8. Case is ignored: registries
// and libraries write "x25519" and "X25519".
func valueOf(registry, name string, bits int) (uint32, bool) {
	if v, ok := names().values[registry][strings.ToLower(name)]; ok {
		return v, true
	}
	if !strings.HasPrefix(name, "0x") {
		return 0, false
	}
	v, err := strconv.ParseUint(name[2:], 16, bits)
	return uint32(v), err == nil
}

// SuiteName returns the IANA name of a cipher suite, or its number as in "0xcc13".
func SuiteName(suite uint16) string { return nameOf("suite", uint32(suite), "0x%04x") }

// Suite returns the cipher suite with the IANA name.
func Suite(name string) (uint16, bool) {
	v, ok := valueOf("suite", name, 16)
	return uint16(v), ok
}

// Suites returns all cipher suites that have a name, in the order of their numbers within each
// document.
func Suites() []uint16 { return append([]uint16(nil), names().suites...) }

// SSL2Name returns the name of a cipher of SSL 2.
func SSL2Name(cipher uint32) string { return nameOf("ssl2", cipher, "0x%06x") }

// SSL2Ciphers are all ciphers of SSL 2.
var SSL2Ciphers = []uint32{0x010080, 0x020080, 0x030080, 0x040080, 0x050080, 0x060040, 0x0700c0, 0x080080}

// GroupName returns the IANA name of a key exchange group.
func GroupName(group uint16) string { return nameOf("group", uint32(group), "0x%04x") }

// Group returns the group with the IANA name.
func Group(name string) (uint16, bool) {
	v, ok := valueOf("group", name, 16)
	return uint16(v), ok
}

// SchemeName returns the IANA name of a signature scheme.
func SchemeName(scheme uint16) string { return nameOf("scheme", uint32(scheme), "0x%04x") }

// Scheme returns the signature scheme with the IANA name.
func Scheme(name string) (uint16, bool) {
	v, ok := valueOf("scheme", name, 16)
	return uint16(v), ok
}

// AlertName returns the name of an alert.
func AlertName(code uint8) string { return nameOf("alert", uint32(code), "alert %d") }

// String returns the alert's name.
func (a *Alert) String() string { return AlertName(a.Code) }

// ExtensionName returns the IANA name of an extension.
func ExtensionName(typ uint16) string { return nameOf("extension", uint32(typ), "0x%04x") }

// ExtensionType returns the type of the extension with the IANA name.
func ExtensionType(name string) (uint16, bool) {
	v, ok := valueOf("extension", name, 16)
	return uint16(v), ok
}

// versionNames are the versions, the oldest first.
var versionNames = []struct {
	version uint16
	name    string
}{{SSL2, "SSL 2"}, {SSL3, "SSL 3"}, {TLS10, "TLS 1.0"}, {TLS11, "TLS 1.1"}, {TLS12, "TLS 1.2"}, {TLS13, "TLS 1.3"}}

// VersionName returns the name of a version: "TLS 1.3".
func VersionName(version uint16) string {
	for _, v := range versionNames {
		if v.version == version {
			return v.name
		}
	}
	return fmt.Sprintf("0x%04x", version)
}

// Version returns the version with the name.
func Version(name string) (uint16, bool) {
	for _, v := range versionNames {
		if v.name == name {
			return v.version, true
		}
	}
	return 0, false
}

// IsGREASE reports whether a value is one that clients offer to find servers that refuse unknown
// values (RFC 8701).
func IsGREASE(v uint16) bool { return v&0x0f0f == 0x0a0a && v>>8 == v&0xff }

// An Exchange is the key exchange of a cipher suite.
type Exchange int

// The key exchanges.
const (
	UnknownExchange Exchange = iota
	AnyExchange              // of TLS 1.3: the suite doesn't say
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
	name, known := names().names["suite"][uint32(suite)]
	kind, _, old := strings.Cut(name, "_WITH_")
	kind = strings.TrimPrefix(strings.TrimPrefix(kind, "TLS_"), "SSL_")
	switch {
	case !known || strings.HasSuffix(name, "_SCSV"):
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
