package libssl

import (
	"slices"
	"syscall"
)

// An Error is the content of OpenSSL's error queue after a failed operation.
type Error struct {
	Op      string
	Setting string   // the setting that was refused, for contexts
	Codes   []uint64 // packed, oldest first
}

func (e *Error) Error() string {
	s := e.Op
	if e.Setting != "" {
		s += ": " + e.Setting
	}
	if reason := e.Reason(); reason != "" {
		s += ": " + reason
	}
	return s
}

// Reason returns the words for the first code that has any: the system's, or OpenSSL's. If memory was
// short, it returns that, since the other codes are consequences.
func (e *Error) Reason() string {
	if e.NoMemory() {
		return "out of memory"
	}
	for _, code := range e.Codes {
		if kind, number := errorKind(code); kind == errorSystem {
			return syscall.Errno(number).Error()
		}
		if reason := Reason(code); reason != "" {
			return reason
		}
	}
	return ""
}

// The kinds of errors that Go distinguishes, as shim.h numbers them.
const (
	errorOther = iota
	errorSystem
	errorVersion
	errorLength
	errorNoScheme
	errorSSL
	errorASN1
	errorMemory
)

func (e *Error) is(kind int) bool {
	return slices.ContainsFunc(e.Codes, func(code uint64) bool {
		k, _ := errorKind(code)
		return k == kind
	})
}

// NoMemory reports whether memory was short. The other codes then give no information about the
// peer or the configuration.
func (e *Error) NoMemory() bool { return e.is(errorMemory) }

// VersionRefused reports whether libssl refused the version in a record's header.
func (e *Error) VersionRefused() bool { return e.is(errorVersion) }

// LengthRefused reports whether libssl refused the length in a record's header.
func (e *Error) LengthRefused() bool { return e.is(errorLength) }

// A Failure is a cause of a handshake's failure for which crypto/tls has a text.
type Failure int

// The failures. Those of suites, versions and compression are different for clients and servers: a
// server finds nothing that it shares with the client, a client doesn't accept the server's choice.
const (
	FailureOther Failure = iota
	FailureVersion
	FailureSuite
	FailureGroup       // the server finds no shared group
	FailureSignature   // the server finds no shared signature algorithm
	FailureProtocol    // of ALPN: likewise
	FailureCompression // not only the null method
	FailureFallback    // the client has signalled a fallback: RFC 7507; the server a downgrade: RFC 8446, section 4.1.3
	FailureRenegotiation
	FailureNoSecureRenegotiation // the server doesn't support RFC 5746
	FailureBadSignature          // the peer's
)

// libssl's reasons.
const (
	reasonNoSuitableKeyShare  = 101 // SSL_R_NO_SUITABLE_KEY_SHARE
	reasonNoSuitableSignature = 118 // SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM
	reasonBadSignature        = 123 // SSL_R_BAD_SIGNATURE
	reasonNoNullCompression   = 187 // SSL_R_NO_COMPRESSION_SPECIFIED
	reasonNoCiphers           = 161 // SSL_R_LIBRARY_HAS_NO_CIPHERS
	reasonNoSharedCipher      = 193 // SSL_R_NO_SHARED_CIPHER
	reasonNoProtocol          = 235 // SSL_R_NO_APPLICATION_PROTOCOL
	reasonUnknownCipher       = 248 // SSL_R_UNKNOWN_CIPHER_RETURNED
	reasonUnknownCompression  = 257 // SSL_R_UNSUPPORTED_COMPRESSION_ALGORITHM
	reasonUnsupportedProtocol = 258 // SSL_R_UNSUPPORTED_PROTOCOL
	reasonWrongCipher         = 261 // SSL_R_WRONG_CIPHER_RETURNED
	reasonWrongVersion        = 266 // SSL_R_WRONG_SSL_VERSION
	reasonNoSuitableGroups    = 295 // SSL_R_NO_SUITABLE_GROUPS, since 3.0
	reasonRenegotiation       = 337 // SSL_R_RENEGOTIATION_MISMATCH
	reasonLegacyRenegotiation = 338 // SSL_R_UNSAFE_LEGACY_RENEGOTIATION_DISABLED
	reasonBadCompression      = 341 // SSL_R_INVALID_COMPRESSION_ALGORITHM
	reasonNoCompression13     = 342 // SSL_R_REQUIRED_COMPRESSION_ALGORITHM_MISSING
	reasonCompression         = 343 // SSL_R_COMPRESSION_DISABLED
	reasonFallback            = 373 // SSL_R_INAPPROPRIATE_FALLBACK
	reasonNoSharedSignature   = 376 // SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS
)

var failures = map[int]Failure{
	reasonNoSuitableKeyShare:  FailureGroup,
	reasonNoSuitableSignature: FailureSignature,
	reasonBadSignature:        FailureBadSignature,
	reasonNoNullCompression:   FailureCompression,
	reasonNoSharedCipher:      FailureSuite,
	reasonNoProtocol:          FailureProtocol,
	reasonUnknownCipher:       FailureSuite,
	reasonUnknownCompression:  FailureCompression,
	reasonUnsupportedProtocol: FailureVersion,
	reasonWrongCipher:         FailureSuite,
	reasonWrongVersion:        FailureVersion,
	reasonNoSuitableGroups:    FailureGroup,
	reasonRenegotiation:       FailureRenegotiation,
	reasonLegacyRenegotiation: FailureNoSecureRenegotiation,
	reasonBadCompression:      FailureCompression,
	reasonNoCompression13:     FailureCompression,
	reasonCompression:         FailureCompression,
	reasonFallback:            FailureFallback,
	reasonNoSharedSignature:   FailureSignature,
}

// Failure returns the cause of a handshake's failure.
func (e *Error) Failure() Failure {
	for _, code := range e.Codes {
		if kind, reason := errorKind(code); kind == errorSSL && failures[reason] != FailureOther {
			return failures[reason]
		}
	}
	return FailureOther
}

// hasReason reports whether e has the libssl reason want.
func (e *Error) hasReason(want int) bool {
	return slices.ContainsFunc(e.Codes, func(code uint64) bool {
		kind, reason := errorKind(code)
		return kind == errorSSL && reason == want
	})
}

// EncodingRefused reports whether libcrypto refused an encoding in ASN.1, such as a certificate.
func (e *Error) EncodingRefused() bool { return e.is(errorASN1) }

// Errno returns ENOMEM if memory was short, otherwise the first error of the operating system, or 0
// if there is none.
func (e *Error) Errno() syscall.Errno {
	if e.NoMemory() {
		return syscall.ENOMEM
	}
	for _, code := range e.Codes {
		if kind, number := errorKind(code); kind == errorSystem {
			return syscall.Errno(number)
		}
	}
	return 0
}

// WithoutFileLookup returns e without the errors of OSSL_STORE_open(3)'s search for a file and for
// a scheme of the URI's name, which comes before it asks the provider.
func (e *Error) WithoutFileLookup() *Error {
	codes := slices.DeleteFunc(slices.Clone(e.Codes), func(code uint64) bool {
		kind, _ := errorKind(code)
		return kind == errorSystem || kind == errorNoScheme
	})
	return &Error{Op: e.Op, Setting: e.Setting, Codes: codes}
}
