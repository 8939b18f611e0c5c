package chain

import (
	"crypto/x509"
	"errors"
	"strings"

	"github.com/ossl-go/ossl/internal/libssl"
)

// VerifyList verifies the signature of a revocation list by the FIPS module. ok reports whether it is
// right, and FIPS mode allows the key and the algorithm; with an error this is not known.
func VerifyList(issuer *x509.Certificate, algorithm x509.SignatureAlgorithm, signed, signature []byte) (ok bool, err error) {
	if !fipsSigned(algorithm) || !KeyAllowed(issuer.PublicKey) || !keyFits(issuer.PublicKeyAlgorithm, algorithm) {
		return false, nil
	}
	hash := ""
	for _, name := range []string{"SHA256", "SHA384", "SHA512"} {
		if strings.Contains(strings.ReplaceAll(algorithm.String(), "-", ""), name) {
			hash = name
		}
	}
	pss := algorithm == x509.SHA256WithRSAPSS || algorithm == x509.SHA384WithRSAPSS || algorithm == x509.SHA512WithRSAPSS
	ok, err = libssl.FIPSVerify(issuer.Raw, hash, pss, signed, signature)
	if err == nil && !ok && issuer.CheckSignature(algorithm, signed, signature) == nil {
		// OpenSSL 3.5 reports a failure of ECDSA, for want of memory, as a wrong signature, which the list would remember.
		return false, errors.New("the FIPS module refuses a signature that is right")
	}
	return ok, err
}

// keyFits reports whether keys of a kind make signatures of an algorithm. An algorithm whose name
// has no hash signs messages: Ed25519 and ML-DSA.
func keyFits(key x509.PublicKeyAlgorithm, algorithm x509.SignatureAlgorithm) bool {
	switch algorithm {
	case x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA, x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS,
		x509.SHA512WithRSAPSS:
		return key == x509.RSA
	case x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512:
		return key == x509.ECDSA
	}
	return key != x509.RSA && key != x509.ECDSA
}
