//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestDifferentialNothingShared compares the failures of client and server that have nothing in
// common.
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
			{"signature algorithms/none that fits",
				tlstest.EditExtension(tlstest.ExtSignatureAlgorithms, set(tlstest.List16(0x0807, 0x0601)))},
			{"signature algorithms/unknown ones", tlstest.EditExtension(tlstest.ExtSignatureAlgorithms, set(tlstest.List16(0xfefe)))},
			{"signature algorithms/empty", tlstest.EditExtension(tlstest.ExtSignatureAlgorithms, set(tlstest.List16()))},
			{"signature algorithms/truncated", tlstest.EditExtension(tlstest.ExtSignatureAlgorithms, set([]byte{0, 4, 8, 4}))},
			{"signature algorithms/removed", tlstest.EditExtension(tlstest.ExtSignatureAlgorithms, remove)},
			{"groups/unknown ones", tlstest.EditExtension(tlstest.ExtSupportedGroups, set(tlstest.List16(0xfefe)))},
			{"groups/empty", tlstest.EditExtension(tlstest.ExtSupportedGroups, set(tlstest.List16()))},
			{"groups/removed", tlstest.EditExtension(tlstest.ExtSupportedGroups, remove)},
			{"groups/truncated", tlstest.EditExtension(tlstest.ExtSupportedGroups, set([]byte{0, 9, 0, 29}))},
			{"key share/removed", tlstest.EditExtension(tlstest.ExtKeyShare, remove)},
			{"key share/short", tlstest.EditExtension(tlstest.ExtKeyShare, set([]byte{0, 5, 0, 29, 0, 1, 7}))},
			{"key share/truncated", tlstest.EditExtension(tlstest.ExtKeyShare, set([]byte{0, 36, 0, 29, 0, 32, 7}))},
			{"versions/unknown ones", tlstest.EditExtension(tlstest.ExtSupportedVersions, set([]byte{2, 0x7f, 0x7f}))},
			{"versions/odd", tlstest.EditExtension(tlstest.ExtSupportedVersions, set([]byte{3, 3, 4, 3}))},
			{"versions/removed", tlstest.EditExtension(tlstest.ExtSupportedVersions, remove)},
			{"server name/garbage", tlstest.EditExtension(tlstest.ExtServerName, set([]byte{0, 1, 2}))},
			{"server name/empty", tlstest.EditExtension(tlstest.ExtServerName, set([]byte{}))},
			{"server name/a dot", tlstest.EditExtension(tlstest.ExtServerName, set([]byte{0, 4, 0, 0, 1, '.'}))},
			{"server name/two trailing dots", tlstest.EditExtension(tlstest.ExtServerName, set([]byte{0, 6, 0, 0, 3, 'a', '.', '.'}))},
			{"point formats/none", tlstest.EditExtension(tlstest.ExtPointFormats, set([]byte{0}))},
			{"point formats/empty", tlstest.EditExtension(tlstest.ExtPointFormats, set([]byte{}))},
			{"point formats/truncated", tlstest.EditExtension(tlstest.ExtPointFormats, set([]byte{2, 0}))},
			{"point formats/trailing bytes", tlstest.EditExtension(tlstest.ExtPointFormats, set([]byte{1, 0, 0}))},
			{"point formats/uncompressed last", tlstest.EditExtension(tlstest.ExtPointFormats, set([]byte{3, 1, 2, 0}))},
			{"point formats/only deprecated ones", tlstest.EditExtension(tlstest.ExtPointFormats, set([]byte{2, 1, 2}))},
			{"point formats/only an unknown one", tlstest.EditExtension(tlstest.ExtPointFormats, set([]byte{1, 9}))},
			{"ALPN/empty list", tlstest.EditExtension(tlstest.ExtALPN, set([]byte{0, 0}))},
			{"ALPN/empty name", tlstest.EditExtension(tlstest.ExtALPN, set([]byte{0, 1, 0}))},
			{"no extensions", tlstest.EditExtensions(func(uint16, []byte) []byte { return nil })},
			{"no suite known", tlstest.EditHello(func(f, e []byte) ([]byte, []byte) {
				n := int(binary.BigEndian.Uint16(f[35+int(f[34]):]))
				for i := range n {
					f[37+int(f[34])+i] = 0x5a
				}
				return f, e
			})},
			{"compression only", tlstest.EditHello(func(f, e []byte) ([]byte, []byte) { f[len(f)-1] = 1; return f, e })},
			{"an extension twice", tlstest.EditHello(func(f, e []byte) ([]byte, []byte) {
				return f, append(append([]byte(nil), e...), 0, 23, 0, 0, 0, 23, 0, 0)
			})},
			{"SSL 3 asked for", tlstest.EditHello(func(f, e []byte) ([]byte, []byte) {
				f[0], f[1] = 3, 0
				return f, nil
			})},
			{"TLS 1.1 asked for", tlstest.EditHello(func(f, e []byte) ([]byte, []byte) {
				f[0], f[1] = 3, 2
				return f, nil
			})},
			{"fallback", tlstest.EditHello(func(f, e []byte) ([]byte, []byte) {
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
				// Only servers are under test: clients' ClientHellos differ, and all servers must
				// get the same one.
				mustFail(t, differIn(t, c, against(tlstest.ServerRole)...))
			})
		}
	}
}

// TestDifferentialDowngrade removes TLS 1.3 from a ClientHello in transit. The server's random then
// shows that the server supports it (RFC 8446, section 4.1.3), and the client refuses the
// ServerHello.
func TestDifferentialDowngrade(t *testing.T) {
	o := differ(t, tlstest.Case{
		ClientFault: tlstest.EditExtension(tlstest.ExtSupportedVersions, func([]byte) []byte { return nil }),
		ServerFault: func() tlstest.Fault { return tlstest.HangAfterRecords(1) },
	})
	if o.Hung || o.Client.Alerts != "2/47" { // illegal_parameter
		t.Errorf("crypto/tls's client: %v", o.Client.HandshakeErr)
	}
}

// TestDifferentialManyProtocols makes a client offer more protocols than anybody needs.
func TestDifferentialManyProtocols(t *testing.T) {
	defer checkStale(t)
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf("protocol-%03d", i))
	}
	expect(t, true, tlstest.Case{Client: tlstest.ClientWith(tlstest.Protocols(many...)),
		Server: tlstest.ServerWith(tlstest.Protocols(many[199], many[100]))})
}
