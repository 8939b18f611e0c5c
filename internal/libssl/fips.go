package libssl

import "time"

// A FIPSFailure is what was in the way of FIPS mode, as fips.h numbers it.
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

// A FIPSError says why FIPS mode can't be had.
type FIPSError struct {
	Failure FIPSFailure
	Text    string // OpenSSL's words, or ""
}

func (e *FIPSError) Error() string {
	s := map[FIPSFailure]string{
		FIPSNotInLibrary:  "this OpenSSL is not in FIPS mode",
		FIPSModuleFailed:  "the FIPS module can't be used",
		FIPSNotConfigured: "the FIPS module can't be used",
		FIPSNoBase:        "the base provider can't be loaded",
		FIPSLeaks:         "algorithms come from elsewhere than the FIPS module",
	}[e.Failure]
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// FIPSModule describes the module that FIPS mode uses, in its own words.
type FIPSModule struct {
	Name, Version, Build, Path string
	Running                    bool // it has passed its tests, and no later one has failed
}

// VerifyQuery is what [Roots.Verify] is to look for.
type VerifyQuery struct {
	Time          time.Time
	OfServer      bool
	SecurityLevel int
	Host          string // the name that the leaf must have, or ""
	IP            []byte // the address, or nil
}

// A VerifyError is an X509_V_ERR.
type VerifyError struct {
	Code  int // -1 if nothing could be verified at all
	Depth int // of the certificate at fault; 0 is the leaf
	Text  string
}

func (e *VerifyError) Error() string { return e.Text }

// The codes that crypto/x509 has errors of its own for: openssl/x509_vfy.h.
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
