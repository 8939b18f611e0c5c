package metrics

import (
	"crypto/tls"
	"slices"
	"strconv"
	"sync"
)

// Role returns "server" or "client".
func Role(server bool) string {
	if server {
		return "server"
	}
	return "client"
}

// Version returns a version of TLS without its name, such as "1.3".
func Version(v uint16) string {
	switch v {
	case tls.VersionTLS12:
		return "1.2"
	case tls.VersionTLS13:
		return "1.3"
	}
	return tls.VersionName(v)
}

// CipherSuite returns IANA's name of a cipher suite. It is [tls.CipherSuiteName], without the
// fourteen allocations of that.
func CipherSuite(id uint16) string {
	if name, ok := suiteNames()[id]; ok {
		return name
	}
	return tls.CipherSuiteName(id)
}

var suiteNames = sync.OnceValue(func() map[uint16]string {
	names := make(map[uint16]string)
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		names[s.ID] = s.Name
	}
	return names
})

// Curve returns IANA's name of a group, such as "secp256r1", or "" for 0, which stands for no key
// exchange.
func Curve(id tls.CurveID) string {
	switch id {
	case 0:
		return ""
	case tls.CurveP256:
		return "secp256r1"
	case tls.CurveP384:
		return "secp384r1"
	case tls.CurveP521:
		return "secp521r1"
	case 0x0202: // crypto/tls has no name for it
		return "MLKEM1024"
	case tls.X25519:
		return "x25519"
	}
	return id.String()
}

// Alert returns the name of an alert in RFC 8446, section 6, or RFC 5246, section 7.2, such as
// "bad_certificate". It is the number for an alert that has no name there, and "" for 0, which in an
// [ossl.Failure] stands for none.
func Alert(a tls.AlertError) string {
	if a == 0 {
		return ""
	}
	if name, ok := alertNames[a]; ok {
		return name
	}
	return strconv.Itoa(int(a))
}

var alertNames = map[tls.AlertError]string{
	10:  "unexpected_message",
	20:  "bad_record_mac",
	21:  "decryption_failed",
	22:  "record_overflow",
	30:  "decompression_failure",
	40:  "handshake_failure",
	42:  "bad_certificate",
	43:  "unsupported_certificate",
	44:  "certificate_revoked",
	45:  "certificate_expired",
	46:  "certificate_unknown",
	47:  "illegal_parameter",
	48:  "unknown_ca",
	49:  "access_denied",
	50:  "decode_error",
	51:  "decrypt_error",
	60:  "export_restriction",
	70:  "protocol_version",
	71:  "insufficient_security",
	80:  "internal_error",
	86:  "inappropriate_fallback",
	90:  "user_canceled",
	100: "no_renegotiation",
	109: "missing_extension",
	110: "unsupported_extension",
	111: "certificate_unobtainable",
	112: "unrecognized_name",
	113: "bad_certificate_status_response",
	114: "bad_certificate_hash_value",
	115: "unknown_psk_identity",
	116: "certificate_required",
	120: "no_application_protocol",
	121: "ech_required",
}
