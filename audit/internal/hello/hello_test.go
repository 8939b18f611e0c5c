package hello_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/audit/internal/testcert"
	"github.com/ossl-go/ossl/audit/internal/wire"
)

// ask sends a ClientHello to crypto/tls, and returns the hello that its server saw, and the
// server's answer.
func ask(t *testing.T, config *tls.Config, h *hello.ClientHello, stop hello.Stop) (*tls.ClientHelloInfo, *hello.Reply) {
	t.Helper()
	client, server := net.Pipe()
	defer client.Close()
	config.Certificates = []tls.Certificate{testcert.Root(testcert.Template{}).TLS()}
	seen := make(chan *tls.ClientHelloInfo, 1)
	config.GetConfigForClient = func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		seen <- info
		return nil, nil
	}
	go func() {
		defer close(seen)
		tls.Server(server, config).Handshake()
		server.Close()
	}()
	packet, err := h.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	client.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := client.Write(packet); err != nil {
		t.Fatal(err)
	}
	reply, err := hello.Read(client, stop)
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
	return <-seen, reply
}

func full() *hello.ClientHello {
	return &hello.ClientHello{
		Suites: []uint16{0x1302, 0x1301, 0xc02b}, ServerName: "example.org",
		Groups: []uint16{0x001d, 0x0017}, Points: []byte{0}, Signatures: []uint16{0x0403, 0x0804},
		ALPN: []string{"h2", "http/1.1"}, Versions: []uint16{hello.TLS13, hello.TLS12},
		KeyShares: []hello.KeyShare{}, PSKModes: []byte{1}, StatusRequest: true, ExtendedMaster: true,
		EncryptThenMAC: true, Renegotiation: true, Ticket: []byte{}, CompressCertificate: []uint16{1, 2},
	}
}

func TestHelloRetryRequest(t *testing.T) {
	info, reply := ask(t, &tls.Config{NextProtos: []string{"h2"}}, full(), hello.AtDone)
	if info == nil || info.ServerName != "example.org" || !reflect.DeepEqual(info.SupportedProtos, []string{"h2", "http/1.1"}) ||
		!reflect.DeepEqual(info.CipherSuites, full().Suites) || !reflect.DeepEqual(info.SupportedVersions, full().Versions) {
		t.Errorf("the server saw %+v", info)
	}
	h := reply.ServerHello
	if h == nil || !h.Retry || h.Version != hello.TLS13 || h.LegacyVersion != hello.TLS12 || h.Group != 0x001d || h.PSK != -1 {
		t.Fatalf("got %+v", h)
	}
	if _, has := h.Extension(43); !has {
		t.Error("no supported_versions")
	}
}

func TestFlight12(t *testing.T) {
	h := full()
	h.Versions = []uint16{hello.TLS12}
	_, reply := ask(t, &tls.Config{NextProtos: []string{"h2"}, ClientAuth: tls.RequestClientCert}, h, hello.AtDone)
	k := reply.KeyExchange
	if reply.ServerHello.Version != hello.TLS12 || reply.ServerHello.ALPN != "h2" || len(reply.Certificates) != 1 || !reply.Done ||
		!reply.CertificateRequest || k == nil || k.Group != 0x001d || !k.Signed || k.Signature != 0x0403 || len(k.Public) != 32 {
		t.Fatalf("got %+v, %+v", reply, k)
	}
	_, reply = ask(t, &tls.Config{}, h, hello.AtServerHello)
	if reply.ServerHello == nil || reply.Certificates != nil || reply.Done {
		t.Fatalf("read beyond the ServerHello: %+v", reply)
	}
}

func TestRefusal(t *testing.T) {
	h := full()
	h.Suites = []uint16{0x0005}
	_, reply := ask(t, &tls.Config{MinVersion: tls.VersionTLS12}, h, hello.AtDone)
	if reply.Alert == nil || reply.Alert.String() != "handshake_failure" || reply.ServerHello != nil {
		t.Fatalf("got %+v", reply)
	}
}

// flight returns the messages of a TLS 1.2 flight.
func flight(t testing.TB) (messages [][]byte) {
	message := func(typ byte, body ...byte) {
		messages = append(messages, append([]byte{typ, 0, byte(len(body) >> 8), byte(len(body))}, body...))
	}
	serverHello := append([]byte{3, 3}, make([]byte, 32)...)
	message(2, append(serverHello, 0, 0xc0, 0x2f, 0, 0, 9, 0xff, 1, 0, 1, 0, 0, 23, 0, 0)...)
	message(11, append([]byte{0, 1, 47, 0, 1, 44}, bytes.Repeat([]byte{0x30}, 300)...)...)
	message(22, 1, 0, 0, 2, 5, 6)
	message(12, 3, 0, 23, 2, 4, 9, 8, 4, 0, 3, 1, 2, 3)
	message(14)
	return messages
}

func TestRecords(t *testing.T) {
	messages := flight(t)
	whole := bytes.Join(messages, nil)
	check := func(t *testing.T, r io.Reader) {
		t.Helper()
		reply, err := hello.Read(r, hello.AtDone)
		if err != nil {
			t.Fatal(err)
		}
		k := reply.KeyExchange
		if !bytes.Equal(reply.Raw, whole) || !reply.Done || len(reply.Certificates) != 1 || len(reply.Certificates[0]) != 300 ||
			!bytes.Equal(reply.Status, []byte{5, 6}) || k.Group != 23 || !bytes.Equal(k.Public, []byte{4, 9}) || k.Signature != 0x0804 ||
			!bytes.Equal(k.SignatureBytes, []byte{1, 2, 3}) || !bytes.Equal(k.Params, []byte{3, 0, 23, 2, 4, 9}) {
			t.Fatalf("got %+v, %+v", reply, k)
		}
	}
	t.Run("one record", func(t *testing.T) { check(t, bytes.NewReader(hello.Records(22, 0x303, whole))) })
	t.Run("a record a message", func(t *testing.T) {
		var b []byte
		for _, m := range messages {
			b = append(b, hello.Records(22, 0x303, m)...)
		}
		check(t, bytes.NewReader(b))
	})
	t.Run("a record a byte", func(t *testing.T) {
		var b []byte
		for i := range whole {
			b = append(b, hello.Records(22, 0x303, whole[i:i+1])...)
		}
		check(t, bytes.NewReader(b))
	})
	t.Run("a byte a read", func(t *testing.T) {
		check(t, iotest.OneByteReader(bytes.NewReader(hello.Records(22, 0x303, whole))))
	})
}

func TestPartOfAReply(t *testing.T) {
	whole := hello.Records(22, 0x303, bytes.Join(flight(t), nil))
	for n := range whole {
		lost := errors.New("lost")
		reply, err := hello.Read(io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(lost)), hello.AtDone)
		if !errors.Is(err, lost) || reply.Done || reply.Bytes != n {
			t.Fatalf("after %d bytes: %+v, %v", n, reply, err)
		}
	}
}

func TestAlerts(t *testing.T) {
	serverHello := hello.Records(22, 0x303, flight(t)[0])
	alert := func(level, code byte) []byte { return []byte{21, 3, 3, 0, 2, level, code} }
	for _, test := range []struct {
		name     string
		data     []byte
		alert    string
		warnings int
		ok       bool
	}{
		{"refused", alert(2, 70), "protocol_version", 0, true},
		{"in two records", []byte{21, 3, 0, 0, 1, 2, 21, 3, 0, 0, 1, 40}, "handshake_failure", 0, true},
		{"after ServerHello", append(bytes.Clone(serverHello), alert(2, 80)...), "internal_error", 0, true},
		{"a warning, and the end", alert(1, 40), "handshake_failure", 1, true},
		{"unrecognized_name, and the end", alert(1, 112), "", 1, false},
		{"a warning of close_notify", alert(1, 0), "close_notify", 0, true},
		{"level 7", alert(7, 0), "", 0, false},
		{"17 warnings", bytes.Repeat(alert(1, 112), 17), "", 16, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			reply, err := hello.Read(bytes.NewReader(test.data), hello.AtDone)
			got := ""
			if reply.Alert != nil {
				got = reply.Alert.String()
			}
			if got != test.alert || len(reply.Warnings) != test.warnings || (err == nil) != test.ok {
				t.Errorf("got %q, %v, %v", got, reply.Warnings, err)
			}
		})
	}
	reply, err := hello.Read(bytes.NewReader(append(alert(1, 112), serverHello...)), hello.AtServerHello)
	if err != nil || reply.ServerHello == nil || len(reply.Warnings) != 1 {
		t.Errorf("after a warning: %+v, %v", reply, err)
	}
}

func TestResumption12(t *testing.T) {
	ticket := []byte{4, 0, 0, 6, 0, 0, 0, 0, 0, 0}
	data := hello.Records(22, 0x303, append(flight(t)[0], ticket...))
	reply, err := hello.Read(bytes.NewReader(append(data, 20, 3, 3, 0, 1, 1)), hello.AtDone)
	if err != nil || reply.ServerHello == nil || reply.Done {
		t.Errorf("got %+v, %v", reply, err)
	}
}

func TestBrokenReplies(t *testing.T) {
	messages := flight(t)
	twice := hello.Records(22, 0x303, append(bytes.Clone(messages[0]), messages[0]...))
	disordered := hello.Records(22, 0x303, bytes.Join([][]byte{messages[0], messages[3], messages[1]}, nil))
	for name, data := range map[string][]byte{
		"HTTP":                []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"SSH":                 []byte("SSH-2.0-OpenSSH_9.2p1\r\n"),
		"zeros":               make([]byte, 4096),
		"an empty record":     {22, 3, 3, 0, 0},
		"a large record":      {22, 3, 3, 0x40, 1},
		"application data":    {23, 3, 3, 0, 1, 0},
		"a large message":     {22, 3, 3, 0, 4, 2, 0xff, 0xff, 0xff},
		"no ServerHello":      hello.Records(22, 0x303, messages[1]),
		"twice":               twice,
		"disordered":          disordered,
		"CCS first":           {20, 3, 3, 0, 1, 1},
		"an alert inside":     {22, 3, 3, 0, 1, 2, 21, 3, 3, 0, 2, 2, 40},
		"a short ServerHello": {22, 3, 3, 0, 6, 2, 0, 0, 2, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := hello.Read(bytes.NewReader(data), hello.AtDone)
			var syntax *hello.SyntaxError
			if !errors.As(err, &syntax) || reply.Alert != nil || len(syntax.Data) > 64 {
				t.Errorf("got %v", err)
			}
			if name == "HTTP" && !strings.Contains(err.Error(), "HTTP") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// An endless repeats data for ever.
type endless struct{ data, rest []byte }

func (e *endless) Read(b []byte) (int, error) {
	if len(e.rest) == 0 {
		e.rest = e.data
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestEndlessReplies(t *testing.T) {
	certificate := append([]byte{11, 0x0f, 0xff, 0xff}, make([]byte, 1<<14)...)
	for name, data := range map[string][]byte{
		"HelloRequests": {22, 3, 3, 0, 4, 0, 0, 0, 0},
		"certificate":   hello.Records(22, 0x303, certificate),
	} {
		t.Run(name, func(t *testing.T) {
			first := bytes.NewReader(hello.Records(22, 0x303, flight(t)[0]))
			reply, err := hello.Read(io.MultiReader(first, &endless{data: data}), hello.AtDone)
			if !errors.As(err, new(*hello.SyntaxError)) || reply.Bytes > hello.MaxReply || reply.ServerHello == nil {
				t.Errorf("after %d bytes: %v", reply.Bytes, err)
			}
		})
	}
}

func TestSSL2(t *testing.T) {
	random := bytes.Repeat([]byte{7}, 16)
	packet, err := hello.MarshalSSL2([]uint32{0x010080, 0x0700c0}, random)
	want := append([]byte{0x80, 31, 1, 0, 2, 0, 6, 0, 0, 0, 16, 1, 0, 0x80, 7, 0, 0xc0}, random...)
	if err != nil || !bytes.Equal(packet, want) {
		t.Errorf("%x, %v", packet, err)
	}
	if _, err := hello.MarshalSSL2(nil, random[:3]); err == nil {
		t.Error("a challenge of 3 bytes")
	}
	answer := []byte{0x80, 18, 4, 0, 1, 0, 2, 0, 2, 0, 3, 0, 2, 8, 8, 7, 0, 0xc0, 1, 1}
	reply, err := hello.Read(bytes.NewReader(answer), hello.AtDone)
	if err != nil || reply.SSL2 == nil || !reflect.DeepEqual(reply.SSL2.Suites, []uint32{0x0700c0}) ||
		len(reply.SSL2.Certificate) != 2 {
		t.Errorf("got %+v, %v", reply, err)
	}
	reply, err = hello.Read(bytes.NewReader([]byte{0x80, 3, 0, 0, 1}), hello.AtDone)
	if err != nil || reply.SSL2Error != 1 {
		t.Errorf("got %+v, %v", reply, err)
	}
	for n := range answer {
		if _, err := hello.Read(bytes.NewReader(answer[:n]), hello.AtDone); err == nil {
			t.Errorf("%d bytes are no error", n)
		}
	}
}

func TestFiniteFields(t *testing.T) {
	body := []byte{0, 3, 0, 0x1f, 0xff, 0, 1, 2, 0, 1, 5, 0, 2, 1, 1}
	k, err := hello.ParseKeyExchange(body, hello.TLS10, 0x0033)
	if err != nil || k.Bits != 13 || !k.Signed || k.Signature != 0 || k.Generator[0] != 2 {
		t.Errorf("got %+v, %v", k, err)
	}
	if _, err := hello.ParseKeyExchange(body, hello.TLS12, 0x0033); err == nil {
		t.Error("a truncated signature is no error")
	}
	k, err = hello.ParseKeyExchange(body[:len(body)-4], hello.TLS12, 0x0034) // DH_anon
	if err != nil || k.Bits != 13 || k.Signed {
		t.Errorf("got %+v, %v", k, err)
	}
}

func TestOrderAndPadding(t *testing.T) {
	h := full()
	h.Order = []uint16{0x1a1a, 43, 65281, 0}
	h.Extra = []hello.Extension{{Type: 0x2a2a, Data: []byte{0}}}
	h.PSK = []byte{1, 2}
	h.Pad = 700
	m, err := h.Message()
	if err != nil || len(m) != 700 {
		t.Fatalf("%d bytes, %v", len(m), err)
	}
	types := extensionTypes(t, m)
	if !reflect.DeepEqual(types[:4], []uint16{0x1a1a, 43, 65281, 0}) ||
		!reflect.DeepEqual(types[len(types)-3:], []uint16{0x2a2a, 21, 41}) {
		t.Errorf("the order is %v", types)
	}
	h.Pad = 100
	if m, err = h.Message(); err != nil || len(m) <= 100 {
		t.Fatalf("%d bytes, %v", len(m), err)
	}
	for _, typ := range extensionTypes(t, m) {
		if typ == 21 {
			t.Error("padding in a message that is long enough")
		}
	}
	bare := &hello.ClientHello{Version: hello.SSL3, Suites: []uint16{5}}
	if m, err = bare.Message(); err != nil || len(m) != 4+2+32+1+4+2 {
		t.Errorf("SSL 3 without extensions: %d bytes, %v", len(m), err)
	}
}

// extensionTypes returns the types of a ClientHello's extensions.
func extensionTypes(t *testing.T, m []byte) (types []uint16) {
	t.Helper()
	b := m[4+2+32:]
	b = b[1+int(b[0]):]
	b = b[2+int(b[0])<<8+int(b[1]):]
	b = b[1+int(b[0]):]
	if int(b[0])<<8+int(b[1]) != len(b)-2 {
		t.Fatal("the length of the extensions is wrong")
	}
	for b = b[2:]; len(b) >= 4; b = b[4+int(b[2])<<8+int(b[3]):] {
		types = append(types, uint16(b[0])<<8|uint16(b[1]))
	}
	return types
}

func TestTooLong(t *testing.T) {
	for name, h := range map[string]*hello.ClientHello{
		"session ID": {SessionID: make([]byte, 256)},
		"suites":     {Suites: make([]uint16, 40000)},
		"versions":   {Versions: make([]uint16, 200)},
		"extensions": {Ticket: make([]byte, 65534)},
		"random":     {Random: make([]byte, 31)},
	} {
		if _, err := h.Marshal(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	large := &hello.ClientHello{Ticket: make([]byte, 40000)}
	b, err := large.Marshal()
	if err != nil || len(b) != 3*5+4+2+32+1+2+2+2+4+40000 || b[5+1<<14] != 22 {
		t.Errorf("a message of three records: %d bytes, %v", len(b), err)
	}
}

func TestNames(t *testing.T) {
	for _, id := range tls.CipherSuites() {
		if v, ok := hello.Suite(id.Name); !ok || v != id.ID || hello.SuiteName(id.ID) != id.Name {
			t.Errorf("%s is %#x, not %#x", id.Name, v, id.ID)
		}
	}
	for _, id := range []tls.CurveID{tls.X25519, tls.X25519MLKEM768} {
		if !strings.EqualFold(hello.GroupName(uint16(id)), id.String()) {
			t.Errorf("%v is %s", id, hello.GroupName(uint16(id)))
		}
	}
	if v, ok := hello.Group("X25519"); !ok || v != 0x1d {
		t.Errorf("X25519 is %#x", v)
	}
	if v, ok := hello.Suite("0xcafe"); !ok || v != 0xcafe || hello.SuiteName(v) != "0xcafe" {
		t.Errorf("0xcafe is %#x", v)
	}
	for _, name := range []string{"", "0x12345", "NULL", "0xzz"} {
		if v, ok := hello.Suite(name); ok {
			t.Errorf("%q is %#x", name, v)
		}
	}
	if n := len(hello.Suites()); n < 360 {
		t.Errorf("%d suites", n)
	}
	for name, want := range map[string]hello.Exchange{
		"TLS_AES_128_GCM_SHA256": hello.AnyExchange, "TLS_RSA_WITH_AES_128_CBC_SHA": hello.RSAExchange,
		"TLS_RSA_EXPORT_WITH_RC4_40_MD5": hello.ExportRSA, "TLS_DHE_RSA_EXPORT_WITH_DES40_CBC_SHA": hello.DHE,
		"TLS_ECDH_anon_WITH_NULL_SHA": hello.ECDHE, "TLS_ECDH_RSA_WITH_NULL_SHA": hello.StaticDH,
		"TLS_DH_RSA_WITH_DES_CBC_SHA": hello.StaticDH, "TLS_ECDHE_PSK_WITH_NULL_SHA": hello.PSKExchange,
		"TLS_FALLBACK_SCSV": hello.UnknownExchange, "TLS_KRB5_WITH_DES_CBC_SHA": hello.OtherExchange, "0xcafe": hello.UnknownExchange,
	} {
		v, _ := hello.Suite(name)
		if x, _ := hello.SuiteExchange(v); x != want {
			t.Errorf("%s: %d, not %d", name, x, want)
		}
	}
	if !hello.IsGREASE(0xdada) || hello.IsGREASE(0xdaea) || hello.IsGREASE(0x1301) {
		t.Error("IsGREASE")
	}
}

// FuzzRead looks for panics, for replies that cost more than the limit, and for messages that
// change if they are cut into other records.
func FuzzRead(f *testing.F) {
	f.Add(hello.Records(22, 0x303, bytes.Join(flight(f), nil)), byte(1))
	f.Add([]byte{0x80, 18, 4, 0, 1, 0, 2, 0, 2, 0, 3, 0, 2, 8, 8, 7, 0, 0xc0, 1, 1}, byte(1))
	f.Add([]byte{21, 3, 3, 0, 2, 2, 40}, byte(0))
	f.Fuzz(func(t *testing.T, data []byte, stop byte) {
		at := hello.Stop(stop % 2)
		reply, err := hello.Read(bytes.NewReader(data), at)
		if reply == nil || reply.Bytes > len(data) {
			t.Fatalf("%+v, %v", reply, err)
		}
		if err != nil || reply.Alert != nil || reply.SSL2 != nil || reply.SSL2Error != 0 || !(reply.Done || at == hello.AtServerHello) {
			return
		}
		var again []byte
		for i := range reply.Raw {
			again = append(again, hello.Records(22, 0x301, reply.Raw[i:i+1])...)
		}
		if len(again) > hello.MaxReply {
			return
		}
		second, err := hello.Read(bytes.NewReader(again), at)
		if err != nil {
			t.Fatal(err)
		}
		reply.Bytes, second.Bytes, reply.Warnings = 0, 0, nil
		if !reflect.DeepEqual(reply, second) {
			t.Fatalf("%+v\nin other records\n%+v", reply, second)
		}
	})
}

// FuzzServerHello looks for panics.
func FuzzServerHello(f *testing.F) {
	f.Add(flight(f)[0][4:], flight(f)[3][4:], uint16(0xc02f))
	f.Fuzz(func(t *testing.T, body, exchange []byte, suite uint16) {
		if h, err := hello.ParseServerHello(body); err == nil && len(h.Random) != 32 {
			t.Fatalf("%+v", h)
		}
		if k, err := hello.ParseKeyExchange(exchange, hello.TLS12, suite); err == nil && !bytes.HasPrefix(exchange, k.Params) {
			t.Fatalf("%+v", k)
		}
	})
}

// FuzzClientHello compares a ClientHello with the values that crypto/tls reads from it.
func FuzzClientHello(f *testing.F) {
	f.Add([]byte{0x13, 1, 0xc0, 0x2b}, []byte{0, 29}, []byte{4, 3}, "example.org", "h2", 600)
	f.Fuzz(func(t *testing.T, suites, groups, schemes []byte, name, protocol string, pad int) {
		h := &hello.ClientHello{Suites: append(u16s(suites), 0x1301), ServerName: name, Groups: u16s(groups), Signatures: u16s(schemes),
			ALPN: []string{protocol}, Versions: []uint16{hello.TLS13}, Pad: pad % 2000}
		packet, err := h.Marshal()
		if err != nil {
			return
		}
		var info *tls.ClientHelloInfo
		tls.Server(oneWay{bytes.NewReader(packet)}, &tls.Config{GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) {
			info = i
			return nil, errors.New("seen")
		}}).Handshake()
		if info == nil {
			if protocol == "" || name == "" || strings.HasSuffix(name, ".") || len(h.Groups) == 0 || len(h.Signatures) == 0 {
				return // crypto/tls refuses empty lists
			}
			t.Fatalf("crypto/tls can't read %x", packet)
		}
		if !reflect.DeepEqual(info.CipherSuites, h.Suites) || info.ServerName != name || info.SupportedProtos[0] != protocol ||
			len(info.SupportedCurves) != len(h.Groups) || len(info.SignatureSchemes) != len(h.Signatures) {
			t.Fatalf("%+v became %+v", h, info)
		}
	})
}

func u16s(b []byte) (v []uint16) {
	for ; len(b) >= 2; b = b[2:] {
		v = append(v, uint16(b[0])<<8|uint16(b[1]))
	}
	return v
}

// A oneWay is a connection of which only the reading end works.
type oneWay struct{ io.Reader }

func (oneWay) Write(b []byte) (int, error)      { return len(b), nil }
func (oneWay) Close() error                     { return nil }
func (oneWay) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (oneWay) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (oneWay) SetDeadline(time.Time) error      { return nil }
func (oneWay) SetReadDeadline(time.Time) error  { return nil }
func (oneWay) SetWriteDeadline(time.Time) error { return nil }

func TestParseClientHello(t *testing.T) {
	h := full()
	h.Order = []uint16{0x3a3a, 43, 0}
	h.Extra = []hello.Extension{{Type: 65037, Data: []byte{1, 2}}}
	h.KeyShares = []hello.KeyShare{{Group: 29, Data: []byte{1}}, {Group: 23, Data: []byte{2, 3}}}
	h.PSK = []byte{9}
	h.Pad = 600
	m, err := h.Message()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := hello.ParseClientHello(m)
	if err != nil {
		t.Fatal(err)
	}
	again, err := parsed.Message()
	if err != nil || !bytes.Equal(again, m) {
		t.Errorf("%x\nbecame\n%x, %v", m, again, err)
	}
	if parsed.ServerName != "example.org" || !reflect.DeepEqual(parsed.KeyShares, h.KeyShares) || len(parsed.Extra) != 2 {
		t.Errorf("%+v", parsed)
	}
	for n := range m {
		if _, err := hello.ParseClientHello(m[:n]); err == nil {
			t.Fatalf("%d of %d bytes are no error", n, len(m))
		}
	}
}

// FuzzParseClientHello looks for hellos that change if they are read and written.
func FuzzParseClientHello(f *testing.F) {
	m, err := full().Message()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(m)
	f.Add(append([]byte{1, 0, 0, 41, 0, 0}, make([]byte, 39)...)) // of version 0
	f.Fuzz(func(t *testing.T, m []byte) {
		h, err := hello.ParseClientHello(m)
		if err != nil {
			return
		}
		again, err := h.Message()
		if err != nil {
			t.Fatal(err)
		}
		// An empty list of extensions, and bytes after the message, are left out.
		if !bytes.HasPrefix(m, again) && !(len(h.Order) == 0 && h.PSK == nil && bytes.Equal(m[4:len(again)], again[4:])) {
			t.Fatalf("%x\nbecame\n%x", m, again)
		}
	})
}

// TestReadExtensions reads lists with all that is checked: each must be whole, and no extension may
// come twice.
func TestReadExtensions(t *testing.T) {
	list := func(n int) []byte {
		b := []byte{byte(4 * n >> 8), byte(4 * n)}
		for i := range n {
			b = append(b, 0, byte(i), 0, 0)
		}
		return b
	}
	for name, test := range map[string]struct {
		list []byte
		want int // -1 for an error
	}{
		"none":           {list(0), 0},
		"64":             {list(64), 64},
		"65":             {list(65), -1},
		"twice":          {[]byte{0, 8, 0, 1, 0, 0, 0, 1, 0, 0}, -1},
		"half a length":  {nil, -1},
		"a long list":    {[]byte{0, 6, 0, 1, 0, 0}, -1},
		"half a type":    {[]byte{0, 5, 0, 1, 0, 0, 0}, -1},
		"a long element": {[]byte{0, 4, 0, 1, 0, 1}, -1},
	} {
		r := wire.Reader{Rest: append(test.list, 9)}
		all, err := hello.ReadExtensions(&r)
		if test.want < 0 && !errors.As(err, new(*hello.SyntaxError)) || test.want >= 0 && (err != nil || len(all) != test.want) {
			t.Errorf("%s: %v, %v", name, all, err)
		}
		if err == nil && (r.Failed || len(r.Rest) != 1) {
			t.Errorf("%s: %+v is left", name, r)
		}
	}
}

// TestEmptyCookie: a HelloRetryRequest's cookie is not empty (RFC 8446, section 4.2.2).
func TestEmptyCookie(t *testing.T) {
	random := sha256.Sum256([]byte("HelloRetryRequest"))
	body := append(append([]byte{3, 3}, random[:]...), 0, 0x13, 1, 0)
	versions := []byte{0, 43, 0, 2, 3, 4}
	for _, test := range []struct {
		cookie []byte
		ok     bool
	}{{[]byte{0, 44, 0, 3, 0, 1, 7}, true}, {[]byte{0, 44, 0, 2, 0, 0}, false}} {
		extensions := append(append([]byte{}, versions...), test.cookie...)
		h, err := hello.ParseServerHello(append(append(bytes.Clone(body), 0, byte(len(extensions))), extensions...))
		if (err == nil) != test.ok || test.ok && !bytes.Equal(h.Cookie, []byte{7}) {
			t.Errorf("%x: %+v, %v", test.cookie, h, err)
		}
	}
}
