//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"slices"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// extensionTypes lists the extensions of a message from an offset on, which is where their length
// stands.
func extensionTypes(t *testing.T, b []byte) (types []int) {
	t.Helper()
	if len(b) < 2 || int(b[0])<<8|int(b[1]) != len(b)-2 {
		t.Fatalf("no list of extensions: %x", b)
	}
	for b = b[2:]; len(b) >= 4; {
		types = append(types, int(b[0])<<8|int(b[1]))
		b = b[min(len(b), 4+(int(b[2])<<8|int(b[3]))):]
	}
	return types
}

// TestNoUnwantedExtensions: neither side offers to take certificates in a CompressedCertificate
// (RFC 8879, CVE-2025-66199), as libssl from 3.2 on does by itself. An empty one would get past
// VerifyPeerCertificate. Nor does it offer heartbeats (CVE-2014-0160), raw public keys
// (CVE-2024-12797), early data or NPN (CVE-2024-5535).
func TestNoUnwantedExtensions(t *testing.T) {
	const clientHello, certificateRequest = 1, 13
	unwanted := []int{27, 15, 19, 20, 42, 13172}
	o := tlstest.Run(tlstest.Pairing{Client: ossltest.UnderTest, Server: ossltest.UnderTest}, tlstest.Case{
		Client: tlstest.ClientWith(tlstest.Protocols("h2")),
		Server: tlstest.ServerWith(tlstest.Only(tls.VersionTLS13), tlstest.AskClient(tls.RequestClientCert)),
	})
	mustPass(t, o)
	seen := 0
	for _, role := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
		for _, m := range tlstest.Messages(o.Recording.Decipher(role, o.ClientLog)) {
			var list []byte
			switch body := m[4:]; m[0] {
			case clientHello:
				at := 34 + 1 + int(body[34])
				at += 2 + int(body[at])<<8 + int(body[at+1])
				list = body[at+1+int(body[at]):]
			case certificateRequest:
				list = body[1+int(body[0]):]
			default:
				continue
			}
			seen++
			for _, id := range extensionTypes(t, list) {
				if slices.Contains(unwanted, id) {
					t.Errorf("a message of type %d has the extension %d", m[0], id)
				}
			}
		}
	}
	if seen < 2 {
		t.Errorf("%d messages were looked at", seen)
	}
}
