//go:build cgo || ossl_nocgo

package errortexts

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// A mistake is a handshake that fails, and the side that reports it.
type mistake struct {
	name           string
	client, server []func(*tls.Config)
	fault          func() tlstest.Fault // of the other side, or nil
}

func opts(edits ...func(*tls.Config)) []func(*tls.Config) { return edits }

func set(body []byte) func([]byte) []byte { return func([]byte) []byte { return body } }

var (
	v12, v13 = tlstest.Only(tls.VersionTLS12), tlstest.Only(tls.VersionTLS13)

	ecdsaSuite    = tlstest.Suites(tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)
	ecdsaSuite256 = tlstest.Suites(tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384)

	mutual = tlstest.AskClient(tls.RequireAndVerifyClientCert)
)

func old(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }

func rsaCert(c *tls.Config) { c.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.RSA2048)} }

// noCertificate makes GetCertificate return no certificate.
func noCertificate(c *tls.Config) {
	c.Certificates = nil
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }
}

func specimen(name string, r tlstest.Role) tls.Certificate {
	return tlstest.SpecimenNamed(name).Cert(r)
}

func sends(name string) func(*tls.Config) {
	return tlstest.SendCertificate(specimen(name, tlstest.ClientRole))
}

func serves(name string) func(*tls.Config) {
	return tlstest.Certificates(specimen(name, tlstest.ServerRole))
}

func wrongName(c *tls.Config) { c.ServerName = "wrong.test" }

func says(text string) func() tlstest.Fault {
	return func() tlstest.Fault { return tlstest.Insert(0, []byte(text)) }
}

func cutAfter(n int) func() tlstest.Fault {
	return func() tlstest.Fault { return tlstest.CutAfter(n) }
}

// editServerHello changes a ServerHello, without its message header.
func editServerHello(edit func(m []byte)) func() tlstest.Fault {
	return func() tlstest.Fault {
		return tlstest.Records(func(i int, record []byte) [][]byte {
			if i == 0 {
				edit(record[5+4:])
			}
			return [][]byte{record}
		})
	}
}

// editSuites replaces the suites of a ClientHello.
func editSuites(edit func(ids []byte) []byte) func() tlstest.Fault {
	return tlstest.EditHello(func(fixed, extensions []byte) ([]byte, []byte) {
		at := 35 + int(fixed[34])
		n := int(binary.BigEndian.Uint16(fixed[at:]))
		ids := edit(append([]byte(nil), fixed[at+2:at+2+n]...))
		out := binary.BigEndian.AppendUint16(append([]byte(nil), fixed[:at]...), uint16(len(ids)))
		out = append(out, ids...)
		return append(out, fixed[at+2+n:]...), extensions
	})
}

// serverMistakes are the mistakes that a server reports.
var serverMistakes = []mistake{
	{"the client has only older versions", opts(old), nil, nil},
	{"the client has only older versions, and says so without an extension", nil, nil,
		tlstest.EditHello(func(f, e []byte) ([]byte, []byte) { f[0], f[1] = 3, 1; return f, nil })},
	{"the server has only TLS 1.3, the client only TLS 1.2", opts(v12), opts(v13), nil},
	{"the server has only TLS 1.2, the client only TLS 1.3", opts(v13), opts(v12), nil},
	{"no shared suite in TLS 1.2", opts(v12, ecdsaSuite), opts(v12, ecdsaSuite256), nil},
	{"no shared suite for the kind of certificate in TLS 1.2", opts(v12, ecdsaSuite), opts(v12, rsaCert), nil},
	{"no shared suite in TLS 1.3", opts(v13), opts(v13), editSuites(func([]byte) []byte { return []byte{0x5a, 0x5a} })},
	{"no shared group in TLS 1.2", opts(v12, tlstest.Curves(tls.CurveP521)), opts(v12, rsaCert, tlstest.Curves(tls.CurveP256)), nil},
	{"no shared group in TLS 1.3", opts(v13, tlstest.Curves(tls.CurveP521)), opts(v13, tlstest.Curves(tls.CurveP256)), nil},
	{"no signature algorithm for the certificate in TLS 1.2", opts(v12), opts(v12),
		tlstest.EditExtension(tlstest.ExtSignatureAlgorithms, set(tlstest.List16(0x0807, 0x0601)))},
	{"no signature algorithm for the certificate in TLS 1.3", opts(v13), opts(v13),
		tlstest.EditExtension(tlstest.ExtSignatureAlgorithms, set(tlstest.List16(0x0807, 0x0601)))},
	{"no signature algorithms at all in TLS 1.2", opts(v12), opts(v12),
		tlstest.EditExtension(tlstest.ExtSignatureAlgorithms, set(nil))},
	{"no signature algorithms at all in TLS 1.3", opts(v13), opts(v13),
		tlstest.EditExtension(tlstest.ExtSignatureAlgorithms, set(nil))},
	{"no groups at all in TLS 1.3", opts(v13), opts(v13), tlstest.EditExtension(tlstest.ExtSupportedGroups, set(nil))},
	{"no shared ALPN protocol", opts(tlstest.Protocols("h2", "http/1.1")), opts(tlstest.Protocols("other")), nil},
	{"a client that insists on compression", opts(v12), opts(v12),
		tlstest.EditHello(func(f, e []byte) ([]byte, []byte) { f[len(f)-1] = 1; return f, e })},
	{"a client that falls back to TLS 1.2 (RFC 7507)", opts(v12), nil,
		editSuites(func(ids []byte) []byte { return append(ids, 0x56, 0x00) })},
	{"renegotiation in the first ClientHello", opts(v12), opts(v12), tlstest.EditExtension(0xff01, set([]byte{2, 1, 1}))},
	{"a malformed ClientHello", opts(v12), opts(v12),
		tlstest.EditExtension(tlstest.ExtSignatureAlgorithms, set([]byte{0, 4, 8, 4}))},
	{"a ClientHello that is too long", nil, nil, says("\x16\x03\x01\x00\x04\x01\x02\x00\x00")},
	{"HTTP at the TLS port", nil, nil, says("GET / HTTP/1.1\r\n\r\n")},
	{"another protocol at the TLS port", nil, nil, says("SSH-2.0-OpenSSH_9.9\r\n")},
	{"an SSLv2 client", nil, nil, says("\x80\x2e\x01\x00\x02")},
	{"the client has no certificate", nil, opts(mutual), nil},
	{"the client's certificate has expired", opts(sends("expired")), opts(mutual), nil},
	{"the client's certificate is of an unknown authority", opts(sends("unknown CA")), opts(mutual), nil},
	{"the client's certificate is for servers", opts(sends("wrong usage")), opts(mutual), nil},
	{"the client's certificate is malformed", opts(sends("garbage for a leaf")), opts(mutual), nil},
	{"the client's key is another certificate's", opts(sends("key that doesn't match")), opts(mutual), nil},
	{"the client refuses the server's certificate", opts(wrongName), nil, nil},
	{"the client hangs up at once", nil, nil, cutAfter(0)},
	{"the client hangs up in its ClientHello", nil, nil, cutAfter(20)},
	{"the server has no certificate for the client", nil, opts(noCertificate), nil},
}

// downgraded has its fault on the client's own side.
const downgraded = "the versions in the ClientHello are changed on the way"

// clientMistakes are the mistakes that a client reports.
var clientMistakes = []mistake{
	{"the server has only older versions", nil, opts(old), nil},
	{"the server chooses an old version", nil, opts(v12), editServerHello(func(m []byte) { m[0], m[1] = 3, 1 })},
	{"the server chooses a suite that was not offered", nil, opts(v12),
		editServerHello(func(m []byte) { m[35+int(m[34])], m[36+int(m[34])] = 0x00, 0x2f })},
	{"the server chooses an unknown suite", nil, nil,
		editServerHello(func(m []byte) { m[35+int(m[34])], m[36+int(m[34])] = 0x5a, 0x5a })},
	{downgraded, nil, nil, nil},
	{"the server chooses compression", opts(v12), opts(v12), editServerHello(func(m []byte) { m[37+int(m[34])] = 1 })},
	{"the server speaks HTTP", nil, nil, says("HTTP/1.1 400 Bad Request\r\n\r\n")},
	{"the server finds no shared suite", opts(v12, ecdsaSuite), opts(v12, rsaCert), nil},
	{"the server finds no shared ALPN protocol", opts(tlstest.Protocols("h2")), opts(tlstest.Protocols("other")), nil},
	{"the server requires a certificate, TLS 1.2", opts(v12), opts(v12, mutual), nil},
	{"the server requires a certificate, TLS 1.3", opts(v13), opts(v13, mutual), nil},
	{"the server has no certificate for the name", nil, opts(noCertificate), nil},
	{"the server's certificate is for another name", opts(wrongName), nil, nil},
	{"the server's certificate has expired", nil, opts(serves("expired")), nil},
	{"the server's certificate is of an unknown authority", nil, opts(serves("unknown CA")), nil},
	{"the server's certificate is malformed", nil, opts(serves("garbage for a leaf")), nil},
	{"the server's key is another certificate's", nil, opts(serves("key that doesn't match")), nil},
	{"no server name", opts(func(c *tls.Config) { c.ServerName = "" }), nil, nil},
	{"the server hangs up", nil, nil, cutAfter(0)},
}

// errorOf runs a mistake on a pairing and returns the error of a side, of its handshake or of the
// first data: in TLS 1.3 a server's refusal of a certificate comes after the client's handshake.
func errorOf(m *mistake, side tlstest.Role, impl tlstest.Impl) (*tlstest.Outcome, error) {
	c := tlstest.Case{Client: tlstest.ClientWith(m.client...), Server: tlstest.ServerWith(m.server...)}
	p := tlstest.Pairing{Client: tlstest.Std, Server: tlstest.Std}
	if side == tlstest.ServerRole {
		c.ClientFault, p.Server = m.fault, impl
	} else {
		c.ServerFault, p.Client = m.fault, impl
	}
	if m.name == downgraded {
		c.ClientFault = tlstest.EditExtension(tlstest.ExtSupportedVersions, set(nil))
	}
	o := tlstest.Run(p, c)
	if err := o.Of(side).HandshakeErr; err != nil {
		return o, err
	}
	return o, o.Of(side).TalkErr
}

// TestHandshakes compares the errors of failed handshakes with crypto/tls's errors, and both with
// docs/ERRORS.md.
func TestHandshakes(t *testing.T) {
	for side, mistakes := range map[tlstest.Role][]mistake{tlstest.ServerRole: serverMistakes, tlstest.ClientRole: clientMistakes} {
		for _, m := range mistakes {
			t.Run(m.name, func(t *testing.T) {
				r := rowOf(t, m.name)
				_, theirs := errorOf(&m, side, tlstest.Std)
				o, ours := errorOf(&m, side, ossltest.UnderTest)
				if theirs == nil || o.Hung {
					t.Fatalf("crypto/tls: %v; hung: %v", theirs, o.Hung)
				}
				if !matches(r[0], theirs.Error()) {
					t.Errorf("crypto/tls's error is\n\t%v\nand docs/ERRORS.md has\n\t%s", theirs, r[0])
				}
				if r[1] == "the same" {
					r[1] = r[0]
					if stripTime(ours) != stripTime(theirs) {
						t.Errorf("the error is\n\t%v\nand crypto/tls's is\n\t%v", ours, theirs)
					}
				}
				checkText(t, r[1], ours)
				if want, got := tlstest.Class(theirs), tlstest.Class(ours); want != got && strings.HasPrefix(want+got, "other") {
					t.Errorf("errors.As finds %s, and in crypto/tls's error %s", got, want)
				}
				checkAlert(t, ours, o.Of(side).Alerts)
			})
		}
	}
}

// TestPausingServers: a server that chooses its certificate, or its configuration, for each client
// has the same errors.
func TestPausingServers(t *testing.T) {
	choosers := map[string]func(*tls.Config){
		"GetCertificate": func(c *tls.Config) {
			if len(c.Certificates) == 1 {
				cert := c.Certificates[0]
				c.Certificates = nil
				c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
			}
		},
		"GetConfigForClient": func(c *tls.Config) {
			chosen := c.Clone()
			c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
		},
	}
	for name, choose := range choosers {
		for _, m := range serverMistakes {
			t.Run(name+"/"+m.name, func(t *testing.T) {
				_, want := errorOf(&m, tlstest.ServerRole, ossltest.UnderTest)
				pausing := m
				pausing.server = append(opts(m.server...), choose)
				_, got := errorOf(&pausing, tlstest.ServerRole, ossltest.UnderTest)
				if stripTime(got) != stripTime(want) {
					t.Errorf("the error is\n\t%v\nand without the callback it is\n\t%v", got, want)
				}
			})
		}
	}
}

// stripTime returns an error's text without the times at the end of x509's.
func stripTime(err error) string {
	text, _, _ := strings.Cut(fmt.Sprint(err), ": current time")
	return text
}

// checkAlert: if an alert was sent for a libssl error, errors.As finds it.
func checkAlert(t *testing.T, err error, alerts string) {
	t.Helper()
	var e *ossl.LibraryError
	if !errors.As(err, &e) || !strings.HasPrefix(alerts, "2/") {
		return
	}
	var alert tls.AlertError
	if !errors.As(err, &alert) || fmt.Sprintf("2/%d", alert) != alerts {
		t.Errorf("sent the alert %s, and errors.As finds %d", alerts, alert)
	}
	if e.Reason == "" || len(e.Codes) == 0 {
		t.Errorf("the LibraryError has %q and the codes %x", e.Reason, e.Codes)
	}
}

// TestLegacyRenegotiation: OpenSSL 3.0 and later refuse a server that crypto/tls connects to.
func TestLegacyRenegotiation(t *testing.T) {
	if !ossltest.AtLeast("3.0") {
		t.Skipf("OpenSSL %s connects", ossltest.Version())
	}
	m := mistake{"the server has no secure renegotiation", opts(v12), opts(v12), editServerHello(func(m []byte) {
		// renegotiation_info becomes an extension that crypto/tls does not know.
		for i := range m[:len(m)-4] {
			if m[i] == 0xff && m[i+1] == 1 && m[i+2] == 0 && m[i+3] == 1 && m[i+4] == 0 {
				m[i], m[i+1] = 0xfa, 0xfa
			}
		}
	})}
	_, ours := errorOf(&m, tlstest.ClientRole, ossltest.UnderTest)
	checkText(t, rowOf(t, m.name)[1], ours)
}

// TestLimits: a client that offers very much, and control characters, doesn't fill the log with
// them.
func TestLimits(t *testing.T) {
	many := make([]byte, 0, 1<<13)
	for range 1 << 12 {
		many = append(many, 0x5a, 0x5a)
	}
	var names []byte
	for range 60 {
		name := "\x1b[31m\n" + strings.Repeat("\xff", 200)
		names = append(append(names, byte(len(name))), name...)
	}
	names = append(binary.BigEndian.AppendUint16(nil, uint16(len(names))), names...)
	for _, m := range []mistake{
		{"suites", opts(v13), opts(v13), editSuites(func([]byte) []byte { return many })},
		{"signature algorithms", opts(v13), opts(v13),
			tlstest.EditExtension(tlstest.ExtSignatureAlgorithms, set(tlstest.Sized16(many)))},
		{"versions", nil, nil, tlstest.EditExtension(tlstest.ExtSupportedVersions, set(append([]byte{254}, many[:254]...)))},
		{"protocols", opts(tlstest.Protocols("a")), opts(tlstest.Protocols("b")), tlstest.EditExtension(tlstest.ExtALPN, set(names))},
	} {
		t.Run(m.name, func(t *testing.T) {
			_, err := errorOf(&m, tlstest.ServerRole, ossltest.UnderTest)
			if err == nil {
				t.Fatal("no error")
			}
			if problem := badText(err.Error()); problem != "" || !strings.Contains(err.Error(), " more") {
				t.Errorf("%s: %v", problem, err)
			}
		})
	}
}
