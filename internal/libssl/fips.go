package libssl

import "time"

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
)

// A FIPSError is the error if FIPS mode is not available.
type FIPSError struct {
	Failure FIPSFailure
	Text    string // OpenSSL's text, or ""
}

func (e *FIPSError) Error() string {
	s := map[FIPSFailure]string{
		FIPSNotInLibrary:  "this OpenSSL is not in FIPS mode",
		FIPSModuleFailed:  "the FIPS module can't be used",
		FIPSNotConfigured: "the FIPS module can't be used",
		FIPSNoBase:        "the base provider can't be loaded",
		FIPSLeaks:         "some algorithms do not come from the FIPS module",
	}[e.Failure]
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// FIPSModule describes the module that FIPS mode uses, as the module reports it.
type FIPSModule struct {
	Name, Version, Build, Path string
	Running                    bool // it has passed its self-tests, and none has failed since
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
	VerifyNoIssuer          = 2
	VerifySignature         = 7
	VerifyNotYetValid       = 9
	VerifyExpired           = 10
	VerifySelfSigned        = 18
	VerifySelfSignedChain   = 19
	VerifyNoLocalIssuer     = 20
	VerifyNoLeafSignature   = 21
	VerifyInvalidCA         = 24 // 79 since 3.0
	VerifyPathLength        = 25
	VerifyPurpose           = 26
	VerifyUntrusted         = 27
	VerifyRejected          = 28
	VerifyKeyUsageNoSign    = 32
	VerifyCriticalExtension = 34
	VerifyPermitted         = 47
	VerifyExcluded          = 48
	VerifyHostname          = 62
	VerifyIP                = 64
	VerifyLeafKeyTooSmall   = 66
	VerifyCAKeyTooSmall     = 67
	VerifyCAHashTooWeak     = 68
	VerifyInvalidCA3        = 79
)
