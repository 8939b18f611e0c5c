package policy

import (
	"crypto/tls"
	"strings"
)

// versionIDs are the versions that a policy can name.
var versionIDs = map[string]uint16{
	"TLS 1.3": tls.VersionTLS13,
	"TLS 1.2": tls.VersionTLS12,
	"TLS 1.1": tls.VersionTLS11,
	"TLS 1.0": tls.VersionTLS10,
}

// suites13 are all cipher suites of TLS 1.3: RFC 8446, appendix B.4. OpenSSL has all of them.
var suites13 = map[string]uint16{
	"TLS_AES_128_GCM_SHA256":       tls.TLS_AES_128_GCM_SHA256,
	"TLS_AES_256_GCM_SHA384":       tls.TLS_AES_256_GCM_SHA384,
	"TLS_CHACHA20_POLY1305_SHA256": tls.TLS_CHACHA20_POLY1305_SHA256,
	"TLS_AES_128_CCM_SHA256":       0x1304,
	"TLS_AES_128_CCM_8_SHA256":     0x1305,
}

// suites12 are the cipher suites of TLS 1.2 that a [tls.Config] can name.
var suites12 = func() map[string]uint16 {
	ids := map[string]uint16{}
	for _, list := range [][]*tls.CipherSuite{tls.CipherSuites(), tls.InsecureCipherSuites()} {
		for _, s := range list {
			if suites13[s.Name] == 0 && !strings.Contains(s.Name, "_RC4_") {
				ids[s.Name] = s.ID
			}
		}
	}
	return ids
}()

// otherSuites12 reports whether a name is that of a cipher suite of TLS 1.2 that a [tls.Config] can't
// name. The IANA's registry has these for each of the ciphers and key exchanges.
func otherSuites12(name string) bool {
	for _, exchange := range []string{"TLS_ECDHE_ECDSA_WITH_", "TLS_ECDHE_RSA_WITH_", "TLS_DHE_RSA_WITH_"} {
		cipher, ok := strings.CutPrefix(name, exchange)
		if !ok {
			continue
		}
		switch cipher {
		case "AES_128_CBC_SHA256", "AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256",
			"CAMELLIA_128_CBC_SHA256", "CAMELLIA_128_GCM_SHA256", "CAMELLIA_256_GCM_SHA384",
			"ARIA_128_CBC_SHA256", "ARIA_128_GCM_SHA256", "ARIA_256_CBC_SHA384", "ARIA_256_GCM_SHA384":
			return true
		case "AES_256_CBC_SHA256", "CAMELLIA_256_CBC_SHA256":
			return exchange == "TLS_DHE_RSA_WITH_"
		case "AES_256_CBC_SHA384", "CAMELLIA_256_CBC_SHA384":
			return exchange != "TLS_DHE_RSA_WITH_"
		case "AES_128_CCM", "AES_256_CCM", "AES_128_CCM_8", "AES_256_CCM_8":
			return exchange != "TLS_ECDHE_RSA_WITH_" // RFC 6655 and RFC 7251 have none
		}
	}
	return false
}

// groupIDs are the key exchange groups of the IANA's registry that a policy can name, and 0 for those
// that a [tls.Config] of ossl can't name.
var groupIDs = map[string]tls.CurveID{
	"X25519MLKEM768":     tls.X25519MLKEM768,
	"SecP256r1MLKEM768":  0x11eb,
	"SecP384r1MLKEM1024": 0x11ed,
	"MLKEM1024":          0x0202,
	"x25519":             tls.X25519,
	"secp256r1":          tls.CurveP256,
	"secp384r1":          tls.CurveP384,
	"secp521r1":          tls.CurveP521,
	"secp224r1":          0, "x448": 0, "MLKEM512": 0, "MLKEM768": 0,
	"brainpoolP256r1": 0, "brainpoolP384r1": 0, "brainpoolP512r1": 0,
	"brainpoolP256r1tls13": 0, "brainpoolP384r1tls13": 0, "brainpoolP512r1tls13": 0,
	"ffdhe2048": 0, "ffdhe3072": 0, "ffdhe4096": 0, "ffdhe6144": 0, "ffdhe8192": 0,
}

// signatureIDs are the signature schemes of the IANA's registry that a policy can name, and 0 for
// those that ossl can't use.
var signatureIDs = map[string]tls.SignatureScheme{
	"ecdsa_secp256r1_sha256": tls.ECDSAWithP256AndSHA256,
	"ecdsa_secp384r1_sha384": tls.ECDSAWithP384AndSHA384,
	"ecdsa_secp521r1_sha512": tls.ECDSAWithP521AndSHA512,
	"ecdsa_sha1":             tls.ECDSAWithSHA1,
	"ed25519":                tls.Ed25519,
	"rsa_pss_rsae_sha256":    tls.PSSWithSHA256,
	"rsa_pss_rsae_sha384":    tls.PSSWithSHA384,
	"rsa_pss_rsae_sha512":    tls.PSSWithSHA512,
	"rsa_pkcs1_sha256":       tls.PKCS1WithSHA256,
	"rsa_pkcs1_sha384":       tls.PKCS1WithSHA384,
	"rsa_pkcs1_sha512":       tls.PKCS1WithSHA512,
	"rsa_pkcs1_sha1":         tls.PKCS1WithSHA1,
	"mldsa44":                0x0904,
	"mldsa65":                0x0905,
	"mldsa87":                0x0906,
	"ed448":                  0,
	"rsa_pss_pss_sha256":     0, "rsa_pss_pss_sha384": 0, "rsa_pss_pss_sha512": 0,
	"ecdsa_brainpoolP256r1tls13_sha256": 0, "ecdsa_brainpoolP384r1tls13_sha384": 0, "ecdsa_brainpoolP512r1tls13_sha512": 0,
}

// curves are the curves that keys of ECDSA may have.
var curves = []string{"secp224r1", "secp256r1", "secp384r1", "secp521r1", "brainpoolP256r1", "brainpoolP384r1", "brainpoolP512r1"}

// hashes are the hash functions of certificates' signatures.
var hashes = []string{"SHA-1", "SHA-224", "SHA-256", "SHA-384", "SHA-512"}
