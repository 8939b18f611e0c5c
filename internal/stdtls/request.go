package stdtls

import (
	"crypto/tls"
	"strings"

	"github.com/ossl-go/ossl/internal/wire"
)

// ParseCertificateRequest reads a CertificateRequest message: RFC 5246, section 7.4.4; RFC 8446,
// section 4.3.2. The results share memory with message. offered holds the signature algorithms in
// the message. In TLS 1.2 the info may have fewer of them: as in crypto/tls, the certificate types
// limit them too.
func ParseCertificateRequest(version uint16, message []byte) (
	info *tls.CertificateRequestInfo, offered []tls.SignatureScheme, ok bool) {
	info = &tls.CertificateRequestInfo{Version: version}
	r := wire.Reader{Rest: message}
	r.Bytes(4)
	if version >= tls.VersionTLS13 {
		r.Vector(1) // context
		extensions := r.List(2)
		if !r.Done() {
			return nil, nil, false
		}
		for len(extensions.Rest) > 0 {
			typ, body := extensions.Number(2), extensions.List(2)
			ok := !extensions.Failed
			switch typ {
			case 13: // signature_algorithms
				ok = schemes(body.List(2), &info.SignatureSchemes) && body.Done()
			case 47: // certificate_authorities
				ok = names(body.List(2), &info.AcceptableCAs) && body.Done()
			}
			if !ok {
				return nil, nil, false
			}
		}
		return info, info.SignatureSchemes, true
	}
	types := r.Vector(1)
	if !schemes(r.List(2), &offered) || !names(r.List(2), &info.AcceptableCAs) || !r.Done() {
		return nil, nil, false
	}
	for _, s := range offered {
		kind := byte(0)
		switch s {
		case tls.PKCS1WithSHA1, tls.PKCS1WithSHA256, tls.PKCS1WithSHA384, tls.PKCS1WithSHA512,
			tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512:
			kind = 1 // rsa_sign
		case tls.ECDSAWithSHA1, tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.ECDSAWithP521AndSHA512, tls.Ed25519:
			kind = 64 // ecdsa_sign
		}
		if kind != 0 && strings.IndexByte(string(types), kind) >= 0 {
			info.SignatureSchemes = append(info.SignatureSchemes, s)
		}
	}
	return info, offered, true
}

// schemes appends the signature algorithms in a list, and reports whether it is well-formed.
func schemes(list wire.Reader, to *[]tls.SignatureScheme) bool {
	for len(list.Rest) > 0 {
		*to = append(*to, tls.SignatureScheme(list.Number(2)))
	}
	return !list.Failed
}

// names does the same for names of authorities, which are not empty.
func names(list wire.Reader, to *[][]byte) bool {
	for len(list.Rest) > 0 {
		name := list.Vector(2)
		if len(name) == 0 {
			return false
		}
		*to = append(*to, name)
	}
	return !list.Failed
}
