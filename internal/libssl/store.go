package libssl

import "crypto"

// Loaded holds the results of loading a URI.
type Loaded struct {
	Key      *Key     // the first private key, nil if there is none
	Keys     int      // the number of private keys, not counting copies of the first one
	Objects  int      // the number of objects of all types that were read
	Certs    [][]byte // DER
	Folder   bool     // the URI names a folder
	Unserved bool     // no active provider supports the URI's scheme
	Asked    bool     // a passphrase or PIN was requested
}

// IsOwnProvider reports whether a provider is part of OpenSSL, so that its keys are in the
// process's memory and sign without delay.
func IsOwnProvider(name string) bool {
	switch name {
	case "", "default", "base", "fips", "legacy", "null":
		return true
	}
	return false
}

// HashName returns OpenSSL's name of a hash function, "" for one that must not be used in
// signatures.
func HashName(h crypto.Hash) string {
	switch h {
	case crypto.SHA1:
		return "SHA1"
	case crypto.SHA224:
		return "SHA224"
	case crypto.SHA256:
		return "SHA256"
	case crypto.SHA384:
		return "SHA384"
	case crypto.SHA512:
		return "SHA512"
	}
	return ""
}

// The algorithms of [Key.Sign].
const (
	SignRSAPKCS1 = signRSAPKCS1
	SignRSAPSS   = signRSAPSS
	SignECDSA    = signECDSA
	SignEd25519  = signEd25519
	SignMLDSA    = signMLDSA
)
