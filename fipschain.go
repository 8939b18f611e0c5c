package ossl

import (
	"crypto/x509"
	"slices"
	"strings"
)

// What crypto/x509 refuses of a chain and libcrypto accepts. None of it is cryptography: in FIPS mode it is looked at here, after
// libcrypto has verified the chain.

// fipsChainAlgorithms are the signatures that certificates may have, FIPS 180-4's hashes of 128 bits of security and more.
var fipsChainAlgorithms = []x509.SignatureAlgorithm{
	x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA,
	x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS,
	x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512,
	x509.PureEd25519,
}

// checkModuleChain refuses a chain, leaf first, that crypto/x509 would refuse for this usage, or whose keys and signatures are
// not allowed in FIPS mode.
func checkModuleChain(chain []*x509.Certificate, usage x509.ExtKeyUsage) error {
	for i, cert := range chain {
		invalid := func(reason x509.InvalidReason, detail string) error {
			return x509.CertificateInvalidError{Cert: cert, Reason: reason, Detail: detail}
		}
		anchor := i == len(chain)-1
		switch {
		case len(cert.UnhandledCriticalExtensions) > 0:
			return x509.UnhandledCriticalExtension{}
		case !fipsKey(cert.PublicKey):
			return invalid(x509.NoValidChains, errFIPSKey)
		case !anchor && !slices.Contains(fipsChainAlgorithms, cert.SignatureAlgorithm):
			return invalid(x509.NoValidChains, "a signature by "+cert.SignatureAlgorithm.String()+" is not allowed in FIPS mode")
		case !hasUsage(cert, usage):
			return invalid(x509.IncompatibleUsage, "")
		case i > 0 && !mayIssue(cert):
			return x509.UnknownAuthorityError{Cert: chain[i-1]}
		case i > 0 && excludesBelow(cert, chain[0]):
			return invalid(x509.CANotAuthorizedForThisName, "a wildcard covers an excluded name")
		}
	}
	return nil
}

// checkPolicyConstraints refuses certificates that have policy constraints and no policies: no chain with a policy leads through
// them, and libcrypto leaks memory for each that it looks at (policy_cache_new, in all versions so far).
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

// hasUsage reports whether a certificate is for an extended key usage: for any if it names none, as in crypto/x509.
func hasUsage(cert *x509.Certificate, usage x509.ExtKeyUsage) bool {
	if len(cert.ExtKeyUsage) == 0 && len(cert.UnknownExtKeyUsage) == 0 {
		return true
	}
	return slices.Contains(cert.ExtKeyUsage, usage) || slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny)
}

// mayIssue is crypto/x509's rule for who signs certificates.
func mayIssue(cert *x509.Certificate) bool {
	if cert.Version == 3 && !cert.BasicConstraintsValid || cert.BasicConstraintsValid && !cert.IsCA {
		return false
	}
	return cert.KeyUsage == 0 || cert.KeyUsage&x509.KeyUsageCertSign != 0
}

// excludesBelow reports whether a leaf has a wildcard for names of which an issuer excludes some: libcrypto compares the wildcard
// as if it were a name.
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
