package chain

import (
	"crypto/x509"
	"errors"

	"github.com/ossl-go/ossl/internal/libssl"
)

// VerifyList verifies the signature of a revocation list by the FIPS module. ok reports whether it is
// right, and FIPS mode allows the key and the algorithm; with an error this is not known.
func VerifyList(issuer *x509.Certificate, algorithm x509.SignatureAlgorithm, signed, signature []byte) (ok bool, err error) {
	how := verification{key: issuer.PublicKeyAlgorithm} // of messages: Ed25519 and ML-DSA
	if known, ok := verifications[algorithm]; ok {
		how = known
	} else if how.key == x509.RSA || how.key == x509.ECDSA {
		return false, nil
	}
	if !fipsSigned(algorithm) || !KeyAllowed(issuer.PublicKey) || issuer.PublicKeyAlgorithm != how.key {
		return false, nil
	}
	ok, err = libssl.FIPSVerify(issuer.Raw, how.hash, how.pss, signed, signature)
	if err == nil && !ok && issuer.CheckSignature(algorithm, signed, signature) == nil {
		// OpenSSL 3.5 reports a failure of ECDSA, for want of memory, as a wrong signature, which the list would remember.
		return false, errors.New("the FIPS module refuses a signature that is right")
	}
	return ok, err
}

// A verification is the way in which the module verifies signatures of an algorithm.
type verification struct {
	key  x509.PublicKeyAlgorithm
	hash string // OpenSSL's name; "" if the algorithm signs messages
	pss  bool
}

var verifications = map[x509.SignatureAlgorithm]verification{
	x509.SHA256WithRSA:    {x509.RSA, "SHA256", false},
	x509.SHA384WithRSA:    {x509.RSA, "SHA384", false},
	x509.SHA512WithRSA:    {x509.RSA, "SHA512", false},
	x509.SHA256WithRSAPSS: {x509.RSA, "SHA256", true},
	x509.SHA384WithRSAPSS: {x509.RSA, "SHA384", true},
	x509.SHA512WithRSAPSS: {x509.RSA, "SHA512", true},
	x509.ECDSAWithSHA256:  {x509.ECDSA, "SHA256", false},
	x509.ECDSAWithSHA384:  {x509.ECDSA, "SHA384", false},
	x509.ECDSAWithSHA512:  {x509.ECDSA, "SHA512", false},
}
