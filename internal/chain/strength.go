package chain

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
)

// levelBits are the bits of security that the levels of OpenSSL require:
// SSL_CTX_set_security_level(3).
var levelBits = [...]int{0, 80, 112, 128, 192, 256}

// strongChains returns the verified chains that a security level admits. As in OpenSSL's own
// verification, every key counts, and every signature except that of the trust anchor:
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
		if bits := keyBits(cert.PublicKey); bits < levelBits[level] {
			return fmt.Errorf("ossl: key of certificate %d of the chain has %d bits of security, and security level %d asks for %d",
				i, bits, level, levelBits[level])
		}
		if bits := signatureBits(cert.SignatureAlgorithm); i < len(chain)-1 && bits < levelBits[level] {
			return fmt.Errorf("ossl: signature of certificate %d of the chain has %d bits of security, and security level %d asks for %d",
				i, bits, level, levelBits[level])
		}
	}
	return nil
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
	return 0
}

// signatureBits returns the bits of security of a signature: those of its hash, which is the part
// that a forger attacks.
func signatureBits(algorithm x509.SignatureAlgorithm) int {
	switch algorithm {
	case x509.SHA256WithRSA, x509.SHA256WithRSAPSS, x509.ECDSAWithSHA256, x509.PureEd25519:
		return 128
	case x509.SHA384WithRSA, x509.SHA384WithRSAPSS, x509.ECDSAWithSHA384:
		return 192
	case x509.SHA512WithRSA, x509.SHA512WithRSAPSS, x509.ECDSAWithSHA512:
		return 256
	}
	return 0
}
