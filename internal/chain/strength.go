package chain

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/ossl-go/ossl/internal/libssl"
)

// levelBits are the bits of security that OpenSSL's levels require: SSL_CTX_set_security_level(3).
var levelBits = [...]int{0, 80, 112, 128, 192, 256}

// strongChains returns the verified chains that a security level admits. As in OpenSSL's own
// verification, every key counts, and every signature except the trust anchor's:
// X509_VERIFY_PARAM_set_auth_level(3).
func strongChains(chains [][]*x509.Certificate, level int) ([][]*x509.Certificate, error) {
	if level <= 0 {
		return chains, nil
	}
	var strong [][]*x509.Certificate
	var weak error
	for _, chain := range chains {
		if err := weakness(chain, level); err != nil {
			weak = err
			continue
		}
		strong = append(strong, chain)
	}
	if strong == nil {
		return nil, weak
	}
	return strong, nil
}

// weakness returns an error if a security level does not admit a chain.
func weakness(chain []*x509.Certificate, level int) error {
	for i, cert := range chain {
		what := weakKey(cert, level)
		if what == "" && i < len(chain)-1 {
			what = weakSignature(cert, level)
		}
		if what != "" {
			return fmt.Errorf("certificate %d of the chain: %s", i, what)
		}
	}
	return nil
}

// OwnWeakness describes why a security level does not admit a chain of one's own, or returns "". As
// in libssl, every key counts, and every signature except self-signed certificates' signatures:
// SSL_CTX_set_security_level(3).
func OwnWeakness(ders [][]byte, level int) string {
	for i, der := range ders {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return ""
		}
		what := weakKey(cert, level)
		if what == "" && !bytes.Equal(cert.RawSubject, cert.RawIssuer) {
			what = weakSignature(cert, level)
		}
		switch {
		case what != "" && i > 0:
			return fmt.Sprintf("certificate %d of the chain: %s", i, what)
		case what != "":
			return what
		}
	}
	return ""
}

// weakKey describes why a security level does not admit a certificate's key, or returns "".
func weakKey(cert *x509.Certificate, level int) string {
	if level <= 0 || keyBits(cert.PublicKey) >= levelBits[level] {
		return ""
	}
	required := fmt.Sprintf("security level %d requires", level)
	switch key := cert.PublicKey.(type) {
	case *rsa.PublicKey:
		bits := map[int]int{80: 1024, 112: 2048, 128: 3072, 192: 7680, 256: 15360}[levelBits[level]]
		return fmt.Sprintf("the RSA key has %d bits, and %s %d", key.N.BitLen(), required, bits)
	case *ecdsa.PublicKey:
		return fmt.Sprintf("the ECDSA key has %d bits, and %s %d", key.Curve.Params().BitSize, required, 2*levelBits[level])
	}
	return fmt.Sprintf("the %v key has %d bits of security, and %s %d", cert.PublicKeyAlgorithm, keyBits(cert.PublicKey), required,
		levelBits[level])
}

// weakSignature is weakKey for the signature of a certificate.
func weakSignature(cert *x509.Certificate, level int) string {
	if level <= 0 || signatureBits(cert.SignatureAlgorithm) >= levelBits[level] {
		return ""
	}
	return fmt.Sprintf("it is signed with %v, and security level %d requires %d bits of security", cert.SignatureAlgorithm, level,
		levelBits[level])
}

// keyBits returns the bits of security of a public key: NIST SP 800-57, part 1, table 2.
func keyBits(key any) int {
	switch key := key.(type) {
	case *rsa.PublicKey:
		for _, size := range []struct{ modulus, bits int }{{15360, 256}, {7680, 192}, {3072, 128}, {2048, 112}, {1024, 80}} {
			if key.N.BitLen() >= size.modulus {
				return size.bits
			}
		}
	case *ecdsa.PublicKey:
		return min(key.Curve.Params().BitSize/2, 256)
	case ed25519.PublicKey:
		return 128
	}
	return mldsaBits(libssl.MLDSAKey(key))
}

// mldsaBits returns the bits of security of ML-DSA, as OpenSSL counts them: the security strength
// categories 2, 3 and 5 of FIPS 204, table 1. It returns 0 for other algorithms.
func mldsaBits(scheme tls.SignatureScheme) int {
	switch scheme {
	case libssl.MLDSA44:
		return 128
	case libssl.MLDSA65:
		return 192
	case libssl.MLDSA87:
		return 256
	}
	return 0
}

// signatureBits returns the bits of security of a signature: its hash's bits, because a forger
// attacks the hash.
func signatureBits(algorithm x509.SignatureAlgorithm) int {
	switch algorithm {
	case x509.SHA256WithRSA, x509.SHA256WithRSAPSS, x509.ECDSAWithSHA256, x509.PureEd25519:
		return 128
	case x509.SHA384WithRSA, x509.SHA384WithRSAPSS, x509.ECDSAWithSHA384:
		return 192
	case x509.SHA512WithRSA, x509.SHA512WithRSAPSS, x509.ECDSAWithSHA512:
		return 256
	}
	return mldsaBits(mldsaSignature(algorithm))
}
