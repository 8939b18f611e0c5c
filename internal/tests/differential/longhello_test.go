//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// longProtocols returns names that take n bytes of a ClientHello.
func longProtocols(n int) (list []string) {
	for n > 0 {
		size := min(n, 256)
		if n-size == 1 { // a name has a byte
			size--
		}
		list = append(list, strings.Repeat("x", size-1))
		n -= size
	}
	return list
}

// splitHello splits a client's first record into many: the first byte of the hello, its header's
// other three, and so on.
func splitHello(i int, rec []byte) [][]byte {
	if i > 0 {
		return [][]byte{rec}
	}
	var parts [][]byte
	for body := rec[5:]; len(body) > 0; {
		n := min(len(body), 1+3*len(parts)*1000)
		parts = append(parts, tlstest.MakeRecord(tlstest.TypeHandshake, tls.VersionTLS10, body[:n]))
		body = body[n:]
	}
	return parts
}

// TestDifferentialLongHello sends every kind of server ClientHellos around crypto/tls's limit of
// 65536 bytes, and some that announce more bytes than they contain.
func TestDifferentialLongHello(t *testing.T) {
	defer checkStale(t)
	kinds := map[string]func(*tls.Config){
		"one certificate":  func(*tls.Config) {},
		"two certificates": func(c *tls.Config) { c.Certificates = append(c.Certificates, tlstest.ServerCert(tlstest.RSA2048)) },
		"tickets":          func(c *tls.Config) { c.SessionTicketsDisabled = false },
		"GetCertificate": func(c *tls.Config) {
			cert := c.Certificates[0]
			c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
		},
		"GetConfigForClient": func(c *tls.Config) {
			chosen := c.Clone()
			c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
		},
	}
	hello := func(version uint16, names int) []byte { // without the header
		o := tlstest.Run(pairings()[0], tlstest.Case{Client: tlstest.ClientWith(tlstest.Only(version),
			tlstest.Protocols(longProtocols(names)...))})
		records, _ := tlstest.SplitRecords(o.Recording.Bytes(tlstest.ClientRole))
		message := tlstest.Messages(records)[0]
		return message[4:]
	}
	for _, version := range tlstest.Versions {
		const names = 65000
		base := len(hello(version, names)) - names
		for kind, edit := range kinds {
			for _, length := range []int{16384, 65535, 65536, 65537, 65540} {
				for _, split := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%d/split=%v", tlstest.VersionName(version), kind, length, split), func(t *testing.T) {
						c := tlstest.Case{
							Client: tlstest.ClientWith(tlstest.Only(version), tlstest.Protocols(longProtocols(length-base)...)),
							Server: tlstest.ServerWith(tlstest.Only(version), edit),
						}
						if split {
							c.ClientFault = func() tlstest.Fault { return tlstest.Records(splitHello) }
						}
						o := differIn(t, c, against(tlstest.ServerRole)...)
						if length <= 65536 {
							mustPass(t, o)
						} else {
							mustFail(t, o)
						}
					})
				}
			}
			// A second one after a HelloRetryRequest would have to differ from the first.
			for _, announced := range []int{65536, 65537, 131397, 1<<24 - 1} {
				t.Run(fmt.Sprintf("%s/%s/announces %d", tlstest.VersionName(version), kind, announced), func(t *testing.T) {
					header := string([]byte{1, byte(announced >> 16), byte(announced >> 8), byte(announced)})
					script(t, tlstest.ServerRole, opts(tlstest.Only(version), edit), [][]byte{record(22, header+"\x03\x03"+maxRecord[:1000])},
						true)
				})
			}
		}
	}
}
