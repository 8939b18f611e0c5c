//go:build cgo

package differential

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestDifferentialNothingShared compares how both ends give up when they have nothing in common.
func TestDifferentialNothingShared(t *testing.T) {
	defer checkStale(t)
	v12, v13 := tlstest.Only(tls.VersionTLS12), tlstest.Only(tls.VersionTLS13)
	ecSuite, rsaSuite := tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
	rsaCert := tlstest.Certificates(tlstest.ServerCert(tlstest.RSA2048))
	for _, test := range []struct {
		name           string
		client, server []func(*tls.Config)
	}{
		{"version/client 1.2, server 1.3", opts(v12), opts(v13)},
		{"version/client 1.3, server 1.2", opts(v13), opts(v12)},
		{"suite/other key", opts(v12, tlstest.Suites(ecSuite)), opts(v12, rsaCert)},
		{"suite/other lists", opts(v12, tlstest.Suites(ecSuite)),
			opts(v12, tlstest.Suites(tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384))},
		{"suite/RSA list, ECDSA certificate", opts(v12, tlstest.Suites(rsaSuite)), opts(v12)},
		{"group/TLS 1.2", opts(v12, tlstest.Curves(tls.CurveP521)), opts(v12, rsaCert, tlstest.Curves(tls.X25519))},
		{"group/TLS 1.3", opts(v13, tlstest.Curves(tls.CurveP521)), opts(v13, tlstest.Curves(tls.X25519))},
		{"ALPN/TLS 1.2", opts(v12, tlstest.Protocols("h2", "http/1.1")), opts(v12, tlstest.Protocols("other"))},
		{"ALPN/TLS 1.3", opts(v13, tlstest.Protocols("h2", "http/1.1")), opts(v13, tlstest.Protocols("other"))},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect(t, false, tlstest.Case{Client: tlstest.ClientWith(test.client...), Server: tlstest.ServerWith(test.server...)})
		})
	}
}

// TestDifferentialALPN compares the choice of a protocol.
func TestDifferentialALPN(t *testing.T) {
	defer checkStale(t)
	for _, version := range tlstest.Versions {
		for _, test := range []struct {
			name           string
			client, server []string
		}{
			{"server's order", []string{"a", "b", "c"}, []string{"c", "b"}},
			{"only the client", []string{"a"}, nil},
			{"only the server", nil, []string{"a"}},
			// crypto/tls lets HTTP/1.1 clients talk to HTTP/2 servers that don't name http/1.1
			// (go.dev/issue/46310).
			{"h2 server, http/1.1 client", []string{"http/1.1"}, []string{"h2"}},
			{"h2 server, http/1.1 and another", []string{"http/1.1", "x"}, []string{"h2"}},
			{"a long name", []string{string(make([]byte, 255))}, []string{string(make([]byte, 255))}},
		} {
			t.Run(tlstest.VersionName(version)+"/"+test.name, func(t *testing.T) {
				differ(t, tlstest.Case{
					Client: tlstest.ClientWith(tlstest.Only(version), tlstest.Protocols(test.client...)),
					Server: tlstest.ServerWith(tlstest.Only(version), tlstest.Protocols(test.server...)),
				})
			})
		}
	}
}

// Numbers of extensions (RFC 8446, section 4.2).
const (
	extServerName          = 0
	extSupportedGroups     = 10
	extSignatureAlgorithms = 13
	extALPN                = 16
	extSupportedVersions   = 43
	extKeyShare            = 51
)

// editExtension returns a fault that changes the body of one extension of a ClientHello in its
// first record; a nil result removes the extension.
func editExtension(id uint16, edit func(body []byte) []byte) func() tlstest.Fault {
	return editExtensions(func(i uint16, body []byte) []byte {
		if i == id {
			return edit(body)
		}
		return body
	})
}

func editExtensions(edit func(id uint16, body []byte) []byte) func() tlstest.Fault {
	return editHello(func(fixed, extensions []byte) ([]byte, []byte) {
		var out []byte
		for len(extensions) >= 4 {
			i, n := binary.BigEndian.Uint16(extensions), int(binary.BigEndian.Uint16(extensions[2:]))
			if body := edit(i, extensions[4:4+n:4+n]); body != nil {
				out = binary.BigEndian.AppendUint16(out, i)
				out = binary.BigEndian.AppendUint16(out, uint16(len(body)))
				out = append(out, body...)
			}
			extensions = extensions[4+n:]
		}
		return fixed, out
	})
}

// editHello returns a fault that changes a ClientHello: the part before the extensions (without the
// message's header), and the extensions.
func editHello(edit func(fixed, extensions []byte) ([]byte, []byte)) func() tlstest.Fault {
	return func() tlstest.Fault {
		return tlstest.Records(func(i int, record []byte) [][]byte {
			if i != 0 {
				return [][]byte{record}
			}
			m := record[5+4:]
			at := 2 + 32
			at += 1 + int(m[at])                           // session id
			at += 2 + int(binary.BigEndian.Uint16(m[at:])) // suites
			at += 1 + int(m[at])                           // compression methods
			fixed, extensions := edit(m[:at:at], m[at+2:])
			body := append([]byte(nil), fixed...)
			body = binary.BigEndian.AppendUint16(body, uint16(len(extensions)))
			body = append(body, extensions...)
			n := len(body)
			body = append([]byte{tlstest.MsgClientHello, byte(n >> 16), byte(n >> 8), byte(n)}, body...)
			return [][]byte{tlstest.MakeRecord(tlstest.TypeHandshake, tls.VersionTLS10, body)}
		})
	}
}

// list16 is a list of 16-bit numbers with its length in front.
func list16(ids ...uint16) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(2*len(ids)))
	for _, id := range ids {
		b = binary.BigEndian.AppendUint16(b, id)
	}
	return b
}

// TestDifferentialHello compares a server's answers to unusual and wrong ClientHellos.
func TestDifferentialHello(t *testing.T) {
	defer checkStale(t)
	set := func(body []byte) func([]byte) []byte { return func([]byte) []byte { return body } }
	remove := set(nil)
	for _, version := range tlstest.Versions {
		for _, test := range []struct {
			name  string
			fault func() tlstest.Fault
		}{
			{"signature algorithms/none that fits", editExtension(extSignatureAlgorithms, set(list16(0x0807, 0x0601)))},
			{"signature algorithms/unknown ones", editExtension(extSignatureAlgorithms, set(list16(0xfefe)))},
			{"signature algorithms/empty", editExtension(extSignatureAlgorithms, set(list16()))},
			{"signature algorithms/truncated", editExtension(extSignatureAlgorithms, set([]byte{0, 4, 8, 4}))},
			{"signature algorithms/removed", editExtension(extSignatureAlgorithms, remove)},
			{"groups/unknown ones", editExtension(extSupportedGroups, set(list16(0xfefe)))},
			{"groups/empty", editExtension(extSupportedGroups, set(list16()))},
			{"groups/removed", editExtension(extSupportedGroups, remove)},
			{"groups/truncated", editExtension(extSupportedGroups, set([]byte{0, 9, 0, 29}))},
			{"key share/removed", editExtension(extKeyShare, remove)},
			{"key share/short", editExtension(extKeyShare, set([]byte{0, 5, 0, 29, 0, 1, 7}))},
			{"key share/truncated", editExtension(extKeyShare, set([]byte{0, 36, 0, 29, 0, 32, 7}))},
			{"versions/unknown ones", editExtension(extSupportedVersions, set([]byte{2, 0x7f, 0x7f}))},
			{"versions/odd", editExtension(extSupportedVersions, set([]byte{3, 3, 4, 3}))},
			{"versions/removed", editExtension(extSupportedVersions, remove)},
			{"server name/garbage", editExtension(extServerName, set([]byte{0, 1, 2}))},
			{"server name/empty", editExtension(extServerName, set([]byte{}))},
			{"server name/trailing dot", editExtension(extServerName, set([]byte{0, 5, 0, 0, 2, 'a', '.'}))},
			{"ALPN/empty list", editExtension(extALPN, set([]byte{0, 0}))},
			{"ALPN/empty name", editExtension(extALPN, set([]byte{0, 1, 0}))},
			{"no extensions", editExtensions(func(uint16, []byte) []byte { return nil })},
			{"no suite known", editHello(func(f, e []byte) ([]byte, []byte) {
				n := int(binary.BigEndian.Uint16(f[35+int(f[34]):]))
				for i := range n {
					f[37+int(f[34])+i] = 0x5a
				}
				return f, e
			})},
			{"compression only", editHello(func(f, e []byte) ([]byte, []byte) { f[len(f)-1] = 1; return f, e })},
			{"an extension twice", editHello(func(f, e []byte) ([]byte, []byte) {
				return f, append(append([]byte(nil), e...), 0, 23, 0, 0, 0, 23, 0, 0)
			})},
			{"SSL 3 asked for", editHello(func(f, e []byte) ([]byte, []byte) {
				f[0], f[1] = 3, 0
				return f, nil
			})},
			{"TLS 1.1 asked for", editHello(func(f, e []byte) ([]byte, []byte) {
				f[0], f[1] = 3, 2
				return f, nil
			})},
			{"fallback", editHello(func(f, e []byte) ([]byte, []byte) {
				at := 35 + int(f[34])
				f[at+2], f[at+3] = 0x56, 0x00 // TLS_FALLBACK_SCSV (RFC 7507)
				return f, e
			})},
		} {
			if version == tls.VersionTLS12 && strings.HasPrefix(test.name, "key share") {
				continue // no such extension in this version
			}
			t.Run(tlstest.VersionName(version)+"/"+test.name, func(t *testing.T) {
				c := tlstest.Case{
					Client:      tlstest.ClientWith(tlstest.Only(version), tlstest.Protocols("a")),
					Server:      tlstest.ServerWith(tlstest.Protocols("a")),
					ClientFault: test.fault,
				}
				// A server under test only: clients' ClientHellos differ, and it is the same one
				// that has to be judged.
				mustFail(t, differIn(t, c, against(tlstest.ServerRole)...))
			})
		}
	}
}

// TestDifferentialManyProtocols has a client offer more protocols than anybody needs.
func TestDifferentialManyProtocols(t *testing.T) {
	defer checkStale(t)
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf("protocol-%03d", i))
	}
	expect(t, true, tlstest.Case{Client: tlstest.ClientWith(tlstest.Protocols(many...)),
		Server: tlstest.ServerWith(tlstest.Protocols(many[199], many[100]))})
}
