package tlstest

import (
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"time"
)

// List makes a list of revoked certificates, in DER. It is an hour old and in force for a day. The edit
// function, if any, changes the template last.
func (a *Authority) List(number int64, edit func(*x509.RevocationList), revoked ...*x509.Certificate) []byte {
	now := time.Now()
	t := &x509.RevocationList{
		Number:     big.NewInt(number),
		ThisUpdate: now.Add(-time.Hour).Truncate(time.Second),
		NextUpdate: now.Add(24 * time.Hour).Truncate(time.Second),
	}
	for _, cert := range revoked {
		t.RevokedCertificateEntries = append(t.RevokedCertificateEntries, x509.RevocationListEntry{
			SerialNumber: cert.SerialNumber, RevocationTime: now.Add(-2 * time.Hour), ReasonCode: 1, // keyCompromise
		})
	}
	if edit != nil {
		edit(t)
	}
	issuer := *a.Cert
	issuer.KeyUsage |= x509.KeyUsageCRLSign // else no list is made
	return must(x509.CreateRevocationList(rand.Reader, t, &issuer, a.Key))
}
