package ossl

import "crypto/tls"

// The names that OpenSSL's configuration strings use for what crypto/tls numbers.

// suiteNames12 are the TLS 1.2 suites of crypto/tls: SSL_CTX_set_cipher_list(3), openssl-ciphers(1).
// RC4 and the export ciphers are in no supported OpenSSL.
var suiteNames12 = map[uint16]string{
	tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA:                 "DES-CBC3-SHA",
	tls.TLS_RSA_WITH_AES_128_CBC_SHA:                  "AES128-SHA",
	tls.TLS_RSA_WITH_AES_256_CBC_SHA:                  "AES256-SHA",
	tls.TLS_RSA_WITH_AES_128_CBC_SHA256:               "AES128-SHA256",
	tls.TLS_RSA_WITH_AES_128_GCM_SHA256:               "AES128-GCM-SHA256",
	tls.TLS_RSA_WITH_AES_256_GCM_SHA384:               "AES256-GCM-SHA384",
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA:          "ECDHE-ECDSA-AES128-SHA",
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA:          "ECDHE-ECDSA-AES256-SHA",
	tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA:           "ECDHE-RSA-DES-CBC3-SHA",
	tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA:            "ECDHE-RSA-AES128-SHA",
	tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA:            "ECDHE-RSA-AES256-SHA",
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256:       "ECDHE-ECDSA-AES128-SHA256",
	tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256:         "ECDHE-RSA-AES128-SHA256",
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256:         "ECDHE-RSA-AES128-GCM-SHA256",
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:       "ECDHE-ECDSA-AES128-GCM-SHA256",
	tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384:         "ECDHE-RSA-AES256-GCM-SHA384",
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384:       "ECDHE-ECDSA-AES256-GCM-SHA384",
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256:   "ECDHE-RSA-CHACHA20-POLY1305",
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-ECDSA-CHACHA20-POLY1305",
}

// suiteNames13 are the TLS 1.3 suites: SSL_CTX_set_ciphersuites(3). The CCM suites are OpenSSL's alone.
var suiteNames13 = map[uint16]string{
	tls.TLS_AES_128_GCM_SHA256:       "TLS_AES_128_GCM_SHA256",
	tls.TLS_AES_256_GCM_SHA384:       "TLS_AES_256_GCM_SHA384",
	tls.TLS_CHACHA20_POLY1305_SHA256: "TLS_CHACHA20_POLY1305_SHA256",
	0x1304:                           "TLS_AES_128_CCM_SHA256",
	0x1305:                           "TLS_AES_128_CCM_8_SHA256",
}

// groupNames are the key exchange groups: SSL_CTX_set1_groups_list(3).
var groupNames = map[tls.CurveID]string{
	tls.X25519:         "X25519",
	tls.CurveP256:      "P-256",
	tls.CurveP384:      "P-384",
	tls.CurveP521:      "P-521",
	tls.X25519MLKEM768: "X25519MLKEM768",
	0x11eb:             "SecP256r1MLKEM768",
	0x11ed:             "SecP384r1MLKEM1024",
}

// isHybrid reports whether a group is one of the post-quantum hybrids.
func isHybrid(id tls.CurveID) bool { return id > 0x1000 }

// signatureNames are the signature algorithms: SSL_CTX_set1_sigalgs_list(3).
var signatureNames = map[tls.SignatureScheme]string{
	tls.PSSWithSHA256:          "rsa_pss_rsae_sha256",
	tls.PSSWithSHA384:          "rsa_pss_rsae_sha384",
	tls.PSSWithSHA512:          "rsa_pss_rsae_sha512",
	tls.PKCS1WithSHA256:        "RSA+SHA256",
	tls.PKCS1WithSHA384:        "RSA+SHA384",
	tls.PKCS1WithSHA512:        "RSA+SHA512",
	tls.PKCS1WithSHA1:          "RSA+SHA1",
	tls.ECDSAWithP256AndSHA256: "ECDSA+SHA256",
	tls.ECDSAWithP384AndSHA384: "ECDSA+SHA384",
	tls.ECDSAWithP521AndSHA512: "ECDSA+SHA512",
	tls.ECDSAWithSHA1:          "ECDSA+SHA1",
	tls.Ed25519:                "ed25519",
}

// namesOf joins the names of ids with colons, and returns the ids that have none.
func namesOf[ID comparable](ids []ID, names map[ID]string) (list string, unknown []ID) {
	for _, id := range ids {
		name, ok := names[id]
		if !ok {
			unknown = append(unknown, id)
			continue
		}
		if list != "" {
			list += ":"
		}
		list += name
	}
	return list, unknown
}
