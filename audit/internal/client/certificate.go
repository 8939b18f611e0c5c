package client

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"slices"
)

// ParseCertificate parses a certificate, also one that crypto/x509 refuses and other clients take:
// with a negative serial number, for example, with malformed extensions, or with a key on a curve
// that Go doesn't have. The error is crypto/x509's; the certificate is nil if it can't be parsed at
// all. Its signature can be verified like any certificate's, but it lacks the extensions that
// crypto/x509 refuses. It has no PublicKey if that is of an unknown kind.
func ParseCertificate(der []byte) (*x509.Certificate, error) {
	c, strict := x509.ParseCertificate(der)
	if strict == nil {
		return c, nil
	}
	var whole wireCertificate
	if _, err := asn1.Unmarshal(der, &whole); err != nil {
		return nil, strict
	}
	c = whole.mended()
	if c == nil {
		return nil, strict
	}
	// The bytes that the server sent are verified and compared.
	c.Raw, c.RawTBSCertificate, c.RawSubjectPublicKeyInfo = der, whole.TBS.Raw, whole.TBS.Key.FullBytes
	c.SerialNumber = whole.TBS.Serial
	return c, strict
}

// A wireCertificate is a Certificate of RFC 5280, section 4.1.
type wireCertificate struct {
	TBS struct {
		Raw        asn1.RawContent
		Version    int `asn1:"optional,explicit,default:0,tag:0"`
		Serial     *big.Int
		Algorithm  asn1.RawValue
		Issuer     asn1.RawValue
		Validity   asn1.RawValue
		Subject    asn1.RawValue
		Key        asn1.RawValue
		IssuerID   asn1.BitString   `asn1:"optional,tag:1"`
		SubjectID  asn1.BitString   `asn1:"optional,tag:2"`
		Extensions []pkix.Extension `asn1:"omitempty,optional,explicit,tag:3"`
	}
	Algorithm asn1.RawValue
	Signature asn1.BitString
}

// unknownKey is a SubjectPublicKeyInfo of a kind that crypto/x509 doesn't know, and so leaves alone.
var unknownKey = []byte{0x30, 9, 0x30, 4, 6, 2, 0x2a, 0x03, 3, 1, 0}

// maxExtensions bounds the extensions that are tried one by one, which takes as much time as parsing as
// many certificates. Authorities issue certificates with about ten.
const maxExtensions = 100

// mended returns the certificate with as much as crypto/x509 takes, or nil if that is too little.
func (w wireCertificate) mended() *x509.Certificate {
	w.TBS.Raw, w.TBS.Version, w.TBS.Serial = nil, 2, big.NewInt(1)
	w.TBS.IssuerID, w.TBS.SubjectID = asn1.BitString{}, asn1.BitString{}
	extensions := w.TBS.Extensions
	parse := func(extensions ...pkix.Extension) *x509.Certificate {
		w.TBS.Extensions = extensions
		der, err := asn1.Marshal(w)
		if err != nil {
			return nil
		}
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil
		}
		return c
	}
	if parse() == nil {
		w.TBS.Key = asn1.RawValue{FullBytes: unknownKey}
	}
	if c := parse(extensions...); c != nil {
		return c
	}
	if len(extensions) > maxExtensions {
		return parse()
	}
	var sound []pkix.Extension
	for _, e := range extensions {
		repeated := slices.ContainsFunc(sound, func(s pkix.Extension) bool { return s.Id.Equal(e.Id) })
		if !repeated && parse(e) != nil {
			sound = append(sound, e)
		}
	}
	return parse(sound...)
}
