//go:build cgo || ossl_nocgo

package differential

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/asn1"
	"encoding/hex"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestDifferentialUnknownKey sends a certificate with a key that libcrypto knows but crypto/tls
// doesn't: that is a fault of the certificate.
func TestDifferentialUnknownKey(t *testing.T) {
	defer checkStale(t)
	for _, key := range []struct{ name, spki string }{
		{"SM2", "3059301306072a8648ce3d020106082a811ccf5501822d" +
			"0342000455ec69e642879694e185276f2823d90b0b02398e0b5aa7a9ce40e75b9f1c611c" +
			"c14eb31e8c330d4be67e7d9abd1797c4a9c304cdbf410c39f80e84ff38dd2e10"},
		// p = 23, g = 5, q = 11, and the key 8
		{"X9.42 DH", "301c301406072a8648ce3e0201300902011702010502010b030400020108"},
	} {
		if ossltest.InFIPS && key.name != "SM2" {
			continue // refused in other words
		}
		with := func(cert tls.Certificate) tls.Certificate { return withKey(t, cert, key.spki) }
		for _, version := range tlstest.Versions {
			t.Run(tlstest.VersionName(version)+"/server/"+key.name, func(t *testing.T) {
				mustFail(t, differIn(t, tlstest.Case{
					Client: tlstest.ClientWith(tlstest.Only(version)),
					Server: tlstest.ServerWith(tlstest.Only(version), tlstest.Certificates(with(tlstest.ServerCert(tlstest.P256)))),
				}, against(tlstest.ClientRole)...))
			})
			t.Run(tlstest.VersionName(version)+"/client/"+key.name, func(t *testing.T) {
				mustFail(t, differIn(t, tlstest.Case{
					Client: tlstest.ClientWith(tlstest.Only(version), tlstest.SendCertificate(with(tlstest.ClientCert(tlstest.P256)))),
					Server: tlstest.ServerWith(tlstest.Only(version), tlstest.AskClient(tls.RequireAnyClientCert)),
				}, against(tlstest.ServerRole)...))
			})
		}
	}
}

// withKey returns a certificate, signed by CA, with this SubjectPublicKeyInfo in the place of its own.
func withKey(t *testing.T, cert tls.Certificate, spki string) tls.Certificate {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var outer, tbs []asn1.RawValue
	_, err := asn1.Unmarshal(cert.Certificate[0], &outer)
	check(err)
	_, err = asn1.Unmarshal(outer[0].FullBytes, &tbs)
	check(err)
	tbs[6].FullBytes, err = hex.DecodeString(spki)
	check(err)
	outer[0].FullBytes, err = asn1.Marshal(tbs)
	check(err)
	sum := sha256.Sum256(outer[0].FullBytes)
	signature, err := tlstest.CA().Key.Sign(rand.Reader, sum[:], crypto.SHA256)
	check(err)
	outer[2].FullBytes, err = asn1.Marshal(asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)})
	check(err)
	der, err := asn1.Marshal(outer)
	check(err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: cert.PrivateKey}
}
