package negotiate

import (
	"crypto/tls"
	"fmt"
	"slices"

	"github.com/ossl-go/ossl/internal/libssl"
)

// The IDs that crypto/tls allows in its FIPS mode.
var (
	fipsSuites = []uint16{
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256,
		tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256,
		tls.TLS_AES_128_GCM_SHA256,
		tls.TLS_AES_256_GCM_SHA384,
	}
	fipsGroups = []tls.CurveID{
		tls.X25519MLKEM768,
		tls.SecP256r1MLKEM768,
		tls.SecP384r1MLKEM1024,
		libssl.MLKEM1024,
		tls.CurveP256,
		tls.CurveP384,
		tls.CurveP521,
	}
	fipsSignatures = []tls.SignatureScheme{
		tls.PSSWithSHA256,
		tls.ECDSAWithP256AndSHA256,
		tls.Ed25519,
		tls.PSSWithSHA384,
		tls.PSSWithSHA512,
		tls.PKCS1WithSHA256,
		tls.PKCS1WithSHA384,
		tls.PKCS1WithSHA512,
		tls.ECDSAWithP384AndSHA384,
		tls.ECDSAWithP521AndSHA512,
		libssl.MLDSA44,
		libssl.MLDSA65,
		libssl.MLDSA87,
	}
)

func fipsSuite(id uint16) bool { return slices.Contains(fipsSuites, id) }

// fipsGroup reports whether a group is approved. The module may lack it: see [Library].
func fipsGroup(id tls.CurveID) bool { return slices.Contains(fipsGroups, id) }

// FIPSSignature reports whether a signature algorithm is approved for FIPS mode and in the module.
// FIPS mode must be set up.
func FIPSSignature(scheme tls.SignatureScheme) bool {
	return slices.Contains(fipsSignatures, scheme) && libssl.HasSignature(scheme, true)
}

// FIPS is the filter of FIPS mode, which must be set up: it leaves the IDs that crypto/tls allows
// in its own FIPS mode, less those that the module lacks.
type FIPS struct{}

// narrow narrows all parts at once: FIPS mode's refusals don't depend on the other filters.
func (FIPS) narrow(o *Offer, p part) error {
	if p != versions {
		return nil
	}
	asked := o.asked
	if id, ok := firstOutside(o.namedSuites(), fipsSuite); ok {
		return refuseFIPS("CipherSuites", tls.CipherSuiteName(id), "leave it out, or CipherSuites nil")
	}
	if id, ok := firstOutside(asked.TLS13CipherSuites, fipsSuite); ok {
		return refuseFIPS("WithTLS13CipherSuites", tls.CipherSuiteName(id),
			"use TLS_AES_128_GCM_SHA256 and TLS_AES_256_GCM_SHA384")
	}
	if id, ok := firstOutside(o.namedGroups(), fipsGroup); ok {
		return refuseFIPS("CurvePreferences", id.String(), "use CurveP256, CurveP384 or CurveP521, or leave CurvePreferences nil")
	}
	if scheme, ok := firstOutside(asked.SignatureSchemes, FIPSSignature); ok {
		return refuseFIPS("WithSignatureAlgorithms", scheme.String(),
			"use PSS, PKCS #1 or ECDSA with SHA-256, SHA-384 or SHA-512")
	}
	o.CipherSuites = Keep(o.CipherSuites, fipsSuite)
	o.TLS13CipherSuites = Keep(o.TLS13CipherSuites, fipsSuite)
	o.Groups = Keep(o.Groups, fipsGroup)
	o.SignatureSchemes = Keep(o.SignatureSchemes, FIPSSignature)
	if err := o.dropVersions(refuseAsked); err != nil {
		return err
	}
	return o.checkGroups(refuseAsked)
}

func refuseFIPS(field, name, instead string) *Refusal {
	return &Refusal{Field: field, Reason: fmt.Sprintf("%s is not approved for FIPS mode, or not in the module; %s", name, instead)}
}
