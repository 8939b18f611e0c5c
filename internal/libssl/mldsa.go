package libssl

import (
	"bytes"
	"crypto/tls"
)

// The signature algorithms of ML-DSA, for TLS 1.3 only: draft-ietf-tls-mldsa. OpenSSL has them from
// 3.5 on. crypto/tls has them, by these names, from Go 1.27 on.
const (
	MLDSA44 tls.SignatureScheme = 0x0904
	MLDSA65 tls.SignatureScheme = 0x0905
	MLDSA87 tls.SignatureScheme = 0x0906
)

// IsMLDSA reports whether a signature algorithm is an ML-DSA algorithm.
func IsMLDSA(scheme tls.SignatureScheme) bool { return MLDSAName(scheme) != "" }

// MLDSAName returns the name of ML-DSA's parameter set in FIPS 204, or "" if scheme is another
// algorithm.
func MLDSAName(scheme tls.SignatureScheme) string {
	switch scheme {
	case MLDSA44:
		return "ML-DSA-44"
	case MLDSA65:
		return "ML-DSA-65"
	case MLDSA87:
		return "ML-DSA-87"
	}
	return ""
}

// mldsaIdentifiers are the DER forms of the algorithm identifiers of keys and signatures: RFC 9881,
// section 2.
var mldsaIdentifiers = map[tls.SignatureScheme][]byte{
	MLDSA44: []byte("\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x03\x11"),
	MLDSA65: []byte("\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x03\x12"),
	MLDSA87: []byte("\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x03\x13"),
}

// MLDSAInfo returns the algorithm of the ML-DSA key in a DER SubjectPublicKeyInfo, or 0 if it has
// another key. crypto/x509 parses ML-DSA keys from Go 1.27 on only.
func MLDSAInfo(info []byte) tls.SignatureScheme { return mldsaAfter(info, nil) }

// MLDSAPrivateInfo is MLDSAInfo for a DER PrivateKeyInfo: RFC 5958, section 2.
func MLDSAPrivateInfo(info []byte) tls.SignatureScheme {
	if scheme := mldsaAfter(info, []byte{2, 1, 0}); scheme != 0 { // version 1
		return scheme
	}
	return mldsaAfter(info, []byte{2, 1, 1})
}

// mldsaAfter returns the algorithm whose identifier follows first in a SEQUENCE, or 0.
func mldsaAfter(sequence, first []byte) tls.SignatureScheme {
	if len(sequence) < 2 || sequence[0] != 0x30 {
		return 0
	}
	header := 2
	if sequence[1] > 0x80 { // the length has more bytes
		header += int(sequence[1] & 0x7f)
	}
	if header > len(sequence) {
		return 0
	}
	body, ok := bytes.CutPrefix(sequence[header:], first)
	if !ok {
		return 0
	}
	for scheme, identifier := range mldsaIdentifiers {
		if bytes.HasPrefix(body, identifier) {
			return scheme
		}
	}
	return 0
}
