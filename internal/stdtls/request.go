package stdtls

import (
	"crypto/tls"
	"strings"
)

// ParseCertificateRequest reads a CertificateRequest message: RFC 5246, section 7.4.4; RFC 8446,
// section 4.3.2. The results share memory with message. offered holds the signature algorithms in
// the message. In TLS 1.2 the info may have fewer of them: as in crypto/tls, the certificate types
// limit them too.
func ParseCertificateRequest(version uint16, message []byte) (
	info *tls.CertificateRequestInfo, offered []tls.SignatureScheme, ok bool) {
	info = &tls.CertificateRequestInfo{Version: version}
	p := parser(message)
	if !p.skip(4) {
		return nil, nil, false
	}
	if version >= tls.VersionTLS13 {
		var context, extensions parser
		if !p.vector8(&context) || !p.vector16(&extensions) || len(p) > 0 {
			return nil, nil, false
		}
		for len(extensions) > 0 {
			var typ uint16
			var body parser
			if !extensions.uint16(&typ) || !extensions.vector16(&body) {
				return nil, nil, false
			}
			switch typ {
			case 13: // signature_algorithms
				var list parser
				if !body.vector16(&list) || len(body) > 0 || !list.schemes(&info.SignatureSchemes) {
					return nil, nil, false
				}
			case 47: // certificate_authorities
				var list parser
				if !body.vector16(&list) || len(body) > 0 || !list.names(&info.AcceptableCAs) {
					return nil, nil, false
				}
			}
		}
		return info, info.SignatureSchemes, true
	}
	var types, schemes, names parser
	if !p.vector8(&types) || !p.vector16(&schemes) || !p.vector16(&names) || len(p) > 0 {
		return nil, nil, false
	}
	if !schemes.schemes(&offered) || !names.names(&info.AcceptableCAs) {
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

// A parser reads TLS's presentation language (RFC 8446, section 3) from the front of a byte string.
// Its methods report whether there were enough bytes.
type parser []byte

func (p *parser) skip(n int) bool {
	if len(*p) < n {
		return false
	}
	*p = (*p)[n:]
	return true
}

func (p *parser) uint16(v *uint16) bool {
	if len(*p) < 2 {
		return false
	}
	*v = uint16((*p)[0])<<8 | uint16((*p)[1])
	*p = (*p)[2:]
	return true
}

func (p *parser) take(n int, v *parser) bool {
	if len(*p) < n {
		return false
	}
	*v, *p = (*p)[:n:n], (*p)[n:]
	return true
}

func (p *parser) vector8(v *parser) bool {
	if len(*p) < 1 {
		return false
	}
	n := int((*p)[0])
	*p = (*p)[1:]
	return p.take(n, v)
}

func (p *parser) vector16(v *parser) bool {
	var n uint16
	return p.uint16(&n) && p.take(int(n), v)
}

func (p *parser) schemes(list *[]tls.SignatureScheme) bool {
	for len(*p) > 0 {
		var v uint16
		if !p.uint16(&v) {
			return false
		}
		*list = append(*list, tls.SignatureScheme(v))
	}
	return true
}

func (p *parser) names(list *[][]byte) bool {
	for len(*p) > 0 {
		var name parser
		if !p.vector16(&name) || len(name) == 0 {
			return false
		}
		*list = append(*list, name)
	}
	return true
}
