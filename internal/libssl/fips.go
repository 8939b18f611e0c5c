package libssl

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// A FIPSFailure is the reason why FIPS mode is not available, by fips.h's numbers.
type FIPSFailure int

// The failures.
const (
	fipsReady FIPSFailure = iota
	FIPSNotInLibrary
	FIPSModuleFailed
	FIPSNoBase
	FIPSLeaks
	FIPSNotConfigured
	FIPSAnother
	FIPSConfigFault // Err is a *ConfigFault
)

// A FIPSError is the error if FIPS mode is not available.
type FIPSError struct {
	Failure FIPSFailure
	File    string // the module, unless it is unknown or Text has it
	Text    string // OpenSSL's text, or ""
	Err     error  // the cause, or nil
}

// Unwrap returns the cause.
func (e *FIPSError) Unwrap() error { return e.Err }

func (e *FIPSError) Error() string {
	s := map[FIPSFailure]string{
		FIPSNotInLibrary:  "this OpenSSL is not in FIPS mode",
		FIPSModuleFailed:  "the FIPS module can't be used",
		FIPSNotConfigured: "the FIPS module can't be used",
		FIPSNoBase:        "the base provider can't be loaded",
		FIPSAnother:       "the provider is not the FIPS module that it is named for",
		FIPSLeaks:         "some algorithms do not come from the FIPS module",
	}[e.Failure]
	if e.File != "" && (e.Failure == FIPSModuleFailed || e.Failure == FIPSNotConfigured) {
		s += ": " + e.File
		if !exists(e.File) {
			return s + ": no such file"
		}
	}
	if e.Failure == FIPSConfigFault {
		return e.File + ": " + e.Err.Error()
	}
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// NoModule reports whether there is no module, rather than one that can't be used.
func (e *FIPSError) NoModule() bool {
	if e.Failure != FIPSModuleFailed && e.Failure != FIPSNotConfigured {
		return e.Failure == FIPSNotInLibrary
	}
	_, err := os.Stat(e.File)
	return e.File != "" && errors.Is(err, fs.ErrNotExist)
}

// FIPSModule describes the module that FIPS mode uses, as the module reports it.
type FIPSModule struct {
	Name, Version, Build, Path, Provider, Library string

	Running bool // it has passed its self-tests, and none has failed since
}

// VerifyQuery holds the parameters of [Roots.Verify].
type VerifyQuery struct {
	Time          time.Time
	OfServer      bool
	SecurityLevel int
	Host          string // the name that the leaf must be valid for, or ""
	IP            []byte // the address, or nil
}

// A VerifyError is an X509_V_ERR.
type VerifyError struct {
	Code  int // -1 if verification was not possible at all
	Depth int // of the certificate at fault; 0 is the leaf
	Text  string
}

func (e *VerifyError) Error() string { return e.Text }

// The codes that correspond to errors of crypto/x509: openssl/x509_vfy.h.
const (
	VerifyNoIssuer          = 2  // X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT
	VerifySignature         = 7  // X509_V_ERR_CERT_SIGNATURE_FAILURE
	VerifyNotYetValid       = 9  // X509_V_ERR_CERT_NOT_YET_VALID
	VerifyExpired           = 10 // X509_V_ERR_CERT_HAS_EXPIRED
	VerifySelfSigned        = 18 // X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT
	VerifySelfSignedChain   = 19 // X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN
	VerifyNoLocalIssuer     = 20 // X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY
	VerifyNoLeafSignature   = 21 // X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE
	VerifyInvalidCA         = 24 // X509_V_ERR_INVALID_CA, before 3.0
	VerifyPathLength        = 25 // X509_V_ERR_PATH_LENGTH_EXCEEDED
	VerifyPurpose           = 26 // X509_V_ERR_INVALID_PURPOSE
	VerifyUntrusted         = 27 // X509_V_ERR_CERT_UNTRUSTED
	VerifyRejected          = 28 // X509_V_ERR_CERT_REJECTED
	VerifyKeyUsageNoSign    = 32 // X509_V_ERR_KEYUSAGE_NO_CERTSIGN
	VerifyCriticalExtension = 34 // X509_V_ERR_UNHANDLED_CRITICAL_EXTENSION
	VerifyPermitted         = 47 // X509_V_ERR_PERMITTED_VIOLATION
	VerifyExcluded          = 48 // X509_V_ERR_EXCLUDED_VIOLATION
	VerifyHostname          = 62 // X509_V_ERR_HOSTNAME_MISMATCH
	VerifyIP                = 64 // X509_V_ERR_IP_ADDRESS_MISMATCH
	VerifyLeafKeyTooSmall   = 66 // X509_V_ERR_EE_KEY_TOO_SMALL
	VerifyCAKeyTooSmall     = 67 // X509_V_ERR_CA_KEY_TOO_SMALL
	VerifyCAHashTooWeak     = 68 // X509_V_ERR_CA_MD_TOO_WEAK
	VerifyInvalidCA3        = 79 // X509_V_ERR_INVALID_CA, since 3.0
)
