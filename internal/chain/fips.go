package chain

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/fips140"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/internal/libssl"
)

const keyNotAllowed = "a key is not allowed in FIPS mode"

// KeyAllowed reports whether FIPS mode allows a certificate's key. The rule is the same as in
// crypto/tls's FIPS mode. FIPS mode must be set up.
func KeyAllowed(public any) bool {
	return keyAllowed(public, func(scheme tls.SignatureScheme) bool { return libssl.HasSignature(scheme, true) })
}

// keyAllowed is KeyAllowed for a module that has these signature algorithms.
func keyAllowed(public any, has func(tls.SignatureScheme) bool) bool {
	switch k := public.(type) {
	case *rsa.PublicKey:
		return k.N.BitLen() >= 2048
	case *ecdsa.PublicKey:
		return k.Curve == elliptic.P256() || k.Curve == elliptic.P384() || k.Curve == elliptic.P521()
	case ed25519.PublicKey:
		return has(tls.Ed25519)
	}
	scheme := libssl.MLDSAKey(public)
	return scheme != 0 && has(scheme)
}

// goAllows returns the chains whose keys crypto/tls allows in Go's own FIPS mode (GODEBUG=fips140=on),
// which may be on while OpenSSL's is not.
func goAllows(chains [][]*x509.Certificate) ([][]*x509.Certificate, error) {
	if !fips140.Enabled() {
		return chains, nil
	}
	goHas := func(tls.SignatureScheme) bool { return true }
	forbidden := func(c *x509.Certificate) bool { return !keyAllowed(c.PublicKey, goHas) }
	var allowed [][]*x509.Certificate
	for _, chain := range chains {
		if !slices.ContainsFunc(chain, forbidden) {
			allowed = append(allowed, chain)
		}
	}
	if allowed == nil {
		return nil, errors.New("tls: no FIPS compatible certificate chains found")
	}
	return allowed, nil
}

// fipsChainAlgorithms are the signatures that certificates may have: those with a hash of FIPS
// 180-4 that has 128 bits of security or more, besides ML-DSA.
var fipsChainAlgorithms = []x509.SignatureAlgorithm{
	x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA,
	x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS,
	x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512,
	x509.PureEd25519,
}

// fipsSigned reports whether FIPS mode allows an algorithm for the signatures of certificates.
func fipsSigned(algorithm x509.SignatureAlgorithm) bool {
	if scheme := mldsaSignature(algorithm); scheme != 0 {
		return libssl.HasSignature(scheme, true)
	}
	return slices.Contains(fipsChainAlgorithms, algorithm)
}

// checkModuleChain refuses a chain, leaf first, that crypto/x509 would refuse for this usage, or
// that has a key or a signature that FIPS mode doesn't allow.
func checkModuleChain(chain []*x509.Certificate, usage x509.ExtKeyUsage) error {
	for i, cert := range chain {
		invalid := func(reason x509.InvalidReason, detail string) error {
			return x509.CertificateInvalidError{Cert: cert, Reason: reason, Detail: detail}
		}
		anchor := i == len(chain)-1
		switch {
		case len(cert.UnhandledCriticalExtensions) > 0:
			return x509.UnhandledCriticalExtension{}
		case !KeyAllowed(cert.PublicKey):
			return invalid(x509.NoValidChains, keyNotAllowed)
		case !anchor && !fipsSigned(cert.SignatureAlgorithm):
			return invalid(x509.NoValidChains, "a signature by "+cert.SignatureAlgorithm.String()+" is not allowed in FIPS mode")
		case !hasUsage(cert, usage):
			return invalid(x509.IncompatibleUsage, "")
		case i > 0 && !mayIssue(cert):
			return x509.UnknownAuthorityError{Cert: chain[i-1]}
		case i > 0 && excludesBelow(cert, chain[0]):
			return invalid(x509.CANotAuthorizedForThisName, "a wildcard covers an excluded name")
		}
	}
	return checkIssuers(chain)
}

// checkPolicyConstraints refuses certificates that have policy constraints and no policies. No
// chain with a policy leads through them, and libcrypto leaks memory for each that it checks
// (policy_cache_new, in all versions so far).
func checkPolicyConstraints(certs []*x509.Certificate) error {
	for _, cert := range certs {
		constrained := cert.RequireExplicitPolicy > 0 || cert.RequireExplicitPolicyZero || cert.InhibitPolicyMapping > 0 ||
			cert.InhibitPolicyMappingZero
		if constrained && len(cert.Policies) == 0 {
			return x509.CertificateInvalidError{Cert: cert, Reason: x509.NoValidChains, Detail: "policy constraints without a policy"}
		}
	}
	return nil
}

// hasUsage reports whether a certificate is for an extended key usage. A certificate that names
// none is for all, as in crypto/x509.
func hasUsage(cert *x509.Certificate, usage x509.ExtKeyUsage) bool {
	if len(cert.ExtKeyUsage) == 0 && len(cert.UnknownExtKeyUsage) == 0 {
		return true
	}
	return slices.Contains(cert.ExtKeyUsage, usage) || slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny)
}

// mayIssue reports whether crypto/x509 accepts a certificate as an issuer.
func mayIssue(cert *x509.Certificate) bool {
	if cert.Version == 3 && !cert.BasicConstraintsValid || cert.BasicConstraintsValid && !cert.IsCA {
		return false
	}
	return cert.KeyUsage == 0 || cert.KeyUsage&x509.KeyUsageCertSign != 0
}

// excludesBelow reports whether a leaf has a wildcard that covers a name which an issuer excludes.
// libcrypto compares the wildcard as if it were a name.
func excludesBelow(issuer, leaf *x509.Certificate) bool {
	for _, name := range leaf.DNSNames {
		base, wildcard := strings.CutPrefix(strings.ToLower(name), "*.")
		if !wildcard {
			continue
		}
		for _, excluded := range issuer.ExcludedDNSDomains {
			excluded = strings.TrimPrefix(strings.ToLower(excluded), ".")
			if excluded == base || strings.HasSuffix(excluded, "."+base) {
				return true
			}
		}
	}
	return false
}
