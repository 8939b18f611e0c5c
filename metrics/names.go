package metrics

import (
	"crypto/tls"
	"strconv"

	"github.com/ossl-go/ossl/tlsnames"
)

// Role returns "server" or "client".
func Role(server bool) string {
	if server {
		return "server"
	}
	return "client"
}

// Version returns a TLS version without its name, such as "1.3".
func Version(v uint16) string {
	switch v {
	case tls.VersionTLS12:
		return "1.2"
	case tls.VersionTLS13:
		return "1.3"
	}
	return tls.VersionName(v)
}

// CipherSuite returns IANA's name of a cipher suite.
func CipherSuite(id uint16) string {
	if name := tlsnames.CipherSuites.Name(id); name != "" {
		return name
	}
	return tls.CipherSuiteName(id)
}

// Curve returns IANA's name of a group, such as "secp256r1", or "" for 0, which stands for no key
// exchange.
func Curve(id tls.CurveID) string {
	if name := tlsnames.Groups.Name(uint16(id)); name != "" || id == 0 {
		return name
	}
	return id.String()
}

// Alert returns the name of an alert in RFC 8446, section 6, or RFC 5246, section 7.2, such as
// "bad_certificate". It is the number for an alert that has no name there, and "" for 0, which in an
// [ossl.Failure] stands for none.
func Alert(a tls.AlertError) string {
	switch name := tlsnames.Alerts.Name(uint16(a)); {
	case a == 0:
		return ""
	case name == "", a == 41, a == 52, a == 117: // of SSL 3, DTLS 1.3 and RFC 9261: crypto/tls has no text
		return strconv.Itoa(int(a))
	default:
		return name
	}
}
