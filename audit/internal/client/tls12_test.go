package client

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/audit/internal/testcert"
	"github.com/ossl-go/ossl/audit/internal/wire"
)

// certificates12 returns certificates of both kinds of keys that TLS 1.2 has suites for.
func certificates12() (ec, rs *testcert.Cert) {
	return testcert.Root(testcert.Template{}), testcert.Root(testcert.Template{Key: testcert.Key("RSA 2048", "")})
}

// offer12 returns a ClientHello for one suite.
func offer12(version, suite uint16) *hello.ClientHello {
	h := Default("localhost", hello.TLS12)
	h.Version, h.Suites = version, []uint16{suite}
	return h
}

func echo12(t *testing.T, conn *Conn) {
	t.Helper()
	for _, text := range []string{"ping", strings.Repeat("x", 40000)} {
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(text))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
			t.Fatalf("echo of %d bytes: %v", len(text), err)
		}
	}
}

func TestSuites12(t *testing.T) {
	ec, rs := certificates12()
	var ids []uint16
	for _, s := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		ids = append(ids, s.ID)
	}
	address := EchoServer(t, &tls.Config{Certificates: []tls.Certificate{ec.TLS(), rs.TLS()}, MinVersion: tls.VersionTLS10,
		MaxVersion: tls.VersionTLS12, CipherSuites: ids})
	tried := 0
	for _, version := range []uint16{hello.TLS10, hello.TLS11, hello.TLS12} {
		for _, suite := range suites12 {
			name := tls.CipherSuiteName(suite.id)
			if strings.HasPrefix(name, "0x") || suite.since > version {
				continue
			}
			tried++
			t.Run(fmt.Sprintf("%s/%s", tls.VersionName(version), name), func(t *testing.T) {
				conn, err := Handshake12(Connect(t, address), &Config{Hello: offer12(version, suite.id)})
				if err != nil {
					t.Fatal(err)
				}
				if s := conn.State; s.Version != version || s.Suite != suite.id || s.Resumed || !s.ExtendedMaster || !s.SecureRenegotiation {
					t.Errorf("state %+v", s)
				}
				if version == hello.TLS12 && suite.exchange == exchangeECDHE && (conn.State.Unverified != nil || conn.State.Signature == 0) {
					t.Errorf("signature: %v", conn.State.Unverified)
				}
				echo12(t, conn)
				session := conn.Sessions()
				if len(session) != 1 || session[0].Ticket == nil {
					t.Fatal("no ticket")
				}
				again, err := Handshake12(Connect(t, address), &Config{Hello: offer12(version, suite.id), Session: session[0]})
				if err != nil || !again.State.Resumed {
					t.Fatalf("resumed: %v, %v", again.State.Resumed, err)
				}
				echo12(t, again)
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if tried < 20 {
		t.Errorf("only %d suites tried", tried)
	}
}

func TestRefused12(t *testing.T) {
	ec, _ := certificates12()
	address := EchoServer(t, &tls.Config{Certificates: []tls.Certificate{ec.TLS()}, MinVersion: tls.VersionTLS13})
	_, err := Handshake12(Connect(t, address), &Config{ServerName: "localhost"})
	var alert *AlertError
	if !errors.As(err, &alert) || alert.Code != 70 {
		t.Errorf("got %v", err)
	}
}

func TestRenegotiation12(t *testing.T) {
	ec, _ := certificates12()
	t.Run("crypto/tls", func(t *testing.T) {
		address := EchoServer(t, &tls.Config{Certificates: []tls.Certificate{ec.TLS()}, MaxVersion: tls.VersionTLS12})
		conn, err := Handshake12(Connect(t, address), &Config{ServerName: "localhost"})
		if err != nil {
			t.Fatal(err)
		}
		if on, err := conn.Renegotiate(); on || err != nil {
			t.Errorf("got %v, %v", on, err)
		}
	})
	for _, flag := range []string{"-client_renegotiation", "-no_renegotiation"} {
		t.Run(flag, func(t *testing.T) {
			address, _ := OpenSSL(t, ec, "-rev", "-tls1_2", flag)
			conn, err := Handshake12(Connect(t, address), &Config{ServerName: "localhost"})
			if err != nil {
				t.Fatal(err)
			}
			if on, err := conn.Renegotiate(); on != (flag == "-client_renegotiation") || err != nil {
				t.Errorf("got %v, %v", on, err)
			}
		})
	}
}

// TestInteropOpenSSL12 has the suites, the options and the IDs that crypto/tls doesn't have.
func TestInteropOpenSSL12(t *testing.T) {
	ec, rs := certificates12()
	tests := []struct {
		suites []uint16
		key    *testcert.Cert
		flags  []string
		etm    bool
	}{
		{[]uint16{0xc024, 0xc009, 0xcca9, 0xc02c}, ec, nil, false},
		{[]uint16{0xc00a, 0xc023}, ec, nil, true},
		{[]uint16{0x009e, 0x009f, 0xccaa, 0x0033, 0x006b, 0xc028, 0x003d}, rs, nil, false},
		{[]uint16{0x0039, 0x0035, 0xc014}, rs, []string{"-no_ticket"}, true},
		{[]uint16{0xc030}, rs, []string{"-no_ticket", "-Verify", "0", "-verify_quiet"}, false},
	}
	for i, test := range tests {
		address, _ := OpenSSL(t, test.key, append([]string{"-rev", "-tls1_2", "-cipher", "ALL:@SECLEVEL=0"}, test.flags...)...)
		for _, suite := range test.suites {
			t.Run(fmt.Sprintf("%d/0x%04x", i, suite), func(t *testing.T) {
				offer := offer12(0, suite)
				offer.EncryptThenMAC = test.etm
				offer.ExtendedMaster = i%2 == 0
				if len(test.flags) > 2 {
					if _, err := Handshake12(Connect(t, address), &Config{Hello: offer}); !errors.As(err, new(*AlertError)) {
						t.Errorf("without a certificate: %v", err)
					}
					return
				}
				var session *Session
				for _, resumed := range []bool{false, true} {
					conn, err := Handshake12(Connect(t, address), &Config{Hello: offer, Session: session})
					if err != nil {
						t.Fatal(err)
					}
					if conn.State.Resumed != resumed ||
						conn.State.EncryptThenMAC != test.etm || conn.State.ExtendedMaster != offer.ExtendedMaster {
						t.Errorf("resumed %v, state %+v", resumed, conn.State)
					}
					if _, err := conn.Write([]byte("abc\n")); err != nil {
						t.Fatal(err)
					}
					got := make([]byte, 4)
					if _, err := io.ReadFull(conn, got); err != nil || string(got) != "cba\n" {
						t.Fatalf("got %q, %v", got, err)
					}
					session = conn.Sessions()[0]
					if (session.Ticket == nil) != (test.flags != nil) {
						t.Errorf("ticket of %d bytes", len(session.Ticket))
					}
					conn.Close()
				}
			})
		}
	}
}

// TestInteropReplay replays early data to openssl s_server with and without its protection.
func TestInteropReplay(t *testing.T) {
	ec, _ := certificates12()
	for _, flag := range []string{"-anti_replay", "-no_anti_replay"} {
		t.Run(flag, func(t *testing.T) {
			address, _ := OpenSSL(t, ec, "-tls1_3", "-early_data", flag)
			first, err := Handshake13(Connect(t, address), &Config{ServerName: "localhost"})
			if err != nil {
				t.Fatal(err)
			}
			sessions, err := first.ReadSessions(1)
			if err != nil || len(sessions) == 0 {
				t.Fatalf("no session: %v", err)
			}
			first.Close()
			original, err := Handshake13(Connect(t, address), &Config{ServerName: "localhost", Session: sessions[0],
				Early: []byte("once\n")})
			if err != nil || !original.State.EarlyAccepted {
				t.Fatalf("early data: %v", err)
			}
			original.Close()
			for range 2 {
				replay, err := original.Replay(Connect(t, address))
				if err != nil || replay.State.EarlyAccepted != (flag == "-no_anti_replay") {
					t.Errorf("accepted %v, %v", replay.State.EarlyAccepted, err)
				}
				replay.Close()
			}
			if _, err := original.Write([]byte("x")); err == nil {
				t.Error("the original connection is open")
			}
			plain := new(Conn)
			if _, err := plain.Replay(nil); err == nil {
				t.Error("replayed a connection without a first flight")
			}
		})
	}
}

// TestHostile12 has servers that lie: none may stop the client's process, or make it wait for ever.
func TestHostile12(t *testing.T) {
	record := func(typ byte, data []byte) []byte { return wire.AppendVector([]byte{typ, 3, 3}, 2, data) }
	message := func(typ byte, body []byte) []byte { return wire.AppendVector([]byte{typ}, 3, body) }
	serverHello := func(version, suite uint16, compression byte) []byte {
		body := wire.Append(nil, 2, int(version))
		body = append(body, make([]byte, 32)...)
		body = append(body, 0)
		body = append(wire.Append(body, 2, int(suite)), compression)
		return record(recordHandshake, message(typeServerHello12, append(body, 0, 0)))
	}
	good := serverHello(0x0303, 0xc02b, 0)
	none := message(typeCertificate12, []byte{0, 0, 0})
	none = none[:len(none):len(none)]
	answers := map[string][]byte{
		"nothing":            nil,
		"no TLS":             []byte("HTTP/1.0 400 Bad Request\r\n\r\n"),
		"wrong version":      serverHello(0x0304, 0xc02b, 0),
		"suite not offered":  serverHello(0x0303, 0x0005, 0),
		"compression":        serverHello(0x0303, 0xc02b, 1),
		"no certificate":     append(bytes.Clone(good), record(recordHandshake, message(typeHelloDone12, nil))...),
		"empty certificates": append(bytes.Clone(good), record(recordHandshake, append(none, message(typeHelloDone12, nil)...))...),
		"malformed list": append(bytes.Clone(good), record(recordHandshake, message(typeCertificate12, []byte{0, 0, 3, 0, 0, 9}))...,
		),
		"certificates twice":     append(bytes.Clone(good), record(recordHandshake, append(none, none...))...),
		"resumes what wasn't":    append(bytes.Clone(good), record(recordChange, []byte{1})...),
		"16 MB message":          append(bytes.Clone(good), record(recordHandshake, []byte{typeCertificate12, 0xff, 0xff, 0xff})...),
		"large record":           {recordHandshake, 3, 3, 0xff, 0xff},
		"empty records":          append(bytes.Clone(good), bytes.Repeat([]byte{recordHandshake, 3, 3, 0, 0}, 1000)...),
		"endless warnings":       bytes.Repeat(record(recordAlert, []byte{1, 112}), hello.MaxReply/6),
		"endless Hello requests": bytes.Repeat(record(recordHandshake, message(0, nil)), hello.MaxReply/8),
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			client, server := net.Pipe()
			defer client.Close()
			client.SetDeadline(time.Now().Add(20 * time.Second))
			go func() {
				defer server.Close()
				io.ReadFull(server, make([]byte, 5))
				go io.Copy(io.Discard, server)
				server.Write(answer)
			}()
			if _, err := Handshake12(client, &Config{ServerName: "localhost"}); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzHandshake12(f *testing.F) {
	f.Add([]byte{22, 3, 3, 0, 4, 2, 0, 0, 0})
	f.Add(append([]byte{22, 3, 3, 0, 44, 2, 0, 0, 40, 3, 3}, make([]byte, 38)...))
	f.Fuzz(func(t *testing.T, answer []byte) {
		Handshake12(&scripted{answer: bytes.NewReader(answer)}, &Config{ServerName: "localhost"})
	})
}

// A scripted connection returns one answer, and drops all that is written.
type scripted struct {
	net.Conn
	answer *bytes.Reader
}

func (s *scripted) Read(b []byte) (int, error)  { return s.answer.Read(b) }
func (s *scripted) Write(b []byte) (int, error) { return len(b), nil }
