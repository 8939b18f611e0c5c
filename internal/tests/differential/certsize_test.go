//go:build cgo || ossl_nocgo

package differential

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"sync"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// maxCertificateMessage is crypto/tls's limit, maxHandshakeCertificateMsg.
const maxCertificateMessage = 262144

// TestDifferentialCertificateSize sends Certificate messages around crypto/tls's limit: of a few
// large certificates, and of many small ones.
func TestDifferentialCertificateSize(t *testing.T) {
	defer checkStale(t)
	for _, version := range tlstest.Versions {
		for _, role := range []tlstest.Role{tlstest.ServerRole, tlstest.ClientRole} {
			for _, shape := range []string{"few", "many"} {
				for name, size := range map[string]int{
					"100 KB": 100 << 10, "over 100 KB": 100<<10 + 1, "limit": maxCertificateMessage, "over": maxCertificateMessage + 1,
				} {
					if size < maxCertificateMessage && (shape == "many" || testing.Short()) {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%s/%s", tlstest.VersionName(version), role, shape, name), func(t *testing.T) {
						cert := certificateOf(t, version, role, shape, size)
						c := tlstest.Case{Client: tlstest.ClientWith(tlstest.Only(version)),
							Server: tlstest.ServerWith(tlstest.Only(version), tlstest.Certificates(cert))}
						if role == tlstest.ClientRole {
							c.Client = tlstest.ClientWith(tlstest.Only(version), tlstest.SendCertificate(cert))
							c.Server = tlstest.ServerWith(tlstest.Only(version), tlstest.AskClient(tls.RequireAndVerifyClientCert))
						}
						expect(t, size <= maxCertificateMessage, c)
					})
				}
			}
		}
	}
}

// certificateOf returns a certificate with a chain that makes a Certificate message of this size,
// without its header.
func certificateOf(t *testing.T, version uint16, role tlstest.Role, shape string, size int) tls.Certificate {
	t.Helper()
	cert := tlstest.ServerCert(tlstest.P256)
	if role == tlstest.ClientRole {
		cert = tlstest.ClientCert(tlstest.P256)
	}
	each, left := 3, size-3
	if version == tls.VersionTLS13 {
		each, left = 5, size-4
	}
	chain := append([][]byte(nil), cert.Certificate[0])
	left -= each + len(chain[0])
	one := filler(t, 0)
	if shape == "few" {
		one = filler(t, 50_000)
	}
	for left > each+len(one)+3000 {
		chain = append(chain, one)
		left -= each + len(one)
	}
	const some = 1000 // so large that its DER lengths take as many bytes as in the filler returned
	last := filler(t, some+left-each-len(filler(t, some)))
	if left -= each + len(last); left != 0 {
		t.Fatalf("%d bytes are missing", left)
	}
	cert.Certificate = append(chain, last)
	return cert
}

var fillers sync.Map // what filler has made: the same ones fill many chains, and an RSA signature costs much

// filler returns a certificate with n bytes more than it needs. The key is of a kind whose
// signatures are all of one length.
func filler(t *testing.T, n int) []byte {
	t.Helper()
	if made, ok := fillers.Load(n); ok {
		return made.([]byte)
	}
	made := tlstest.New(tlstest.Options{SelfSigned: true, Kind: tlstest.RSA2048, Edit: func(c *x509.Certificate) {
		c.SerialNumber.SetInt64(1)
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 999, 1}, Value: bytes.Repeat([]byte{5}, n)}}
	}}).Certificate[0]
	fillers.Store(n, made)
	return made
}
