//go:build cgo || ossl_nocgo

package differential

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// script compares victims of a peer that plays back bytes.
func script(t *testing.T, role tlstest.Role, edits []func(*tls.Config), what [][]byte, end bool) *tlstest.Scripted {
	t.Helper()
	config := func() *tls.Config {
		if role == tlstest.ClientRole {
			return tlstest.ClientConfig(edits...)
		}
		return tlstest.ServerConfig(edits...)
	}
	want := tlstest.Script(tlstest.Std, role, config(), what, end)
	got := tlstest.Script(ossltest.UnderTest, role, config(), what, end)
	explain := func() string { return fmt.Sprintf("error: %v\ncrypto/tls's: %v", got.Err, want.Err) }
	same(t, role, "Hung", fmt.Sprint(want.Hung), fmt.Sprint(got.Hung), explain)
	if !want.Hung && !got.Hung {
		same(t, role, "Handshake", want.Handshake, got.Handshake, explain)
		same(t, role, "Again", want.Again, got.Again, explain)
		same(t, role, "Read", want.Read, got.Read, explain)
	}
	same(t, role, "Alerts", want.Alerts, got.Alerts, explain)
	return want
}

func record(typ byte, payload string) []byte {
	return tlstest.MakeRecord(typ, tls.VersionTLS12, []byte(payload))
}

func repeat(n int, b []byte) []byte { return bytes.Repeat(b, n) }

// garbage returns bytes that peers may send in place of a handshake.
var garbage = []struct {
	name string
	data []byte
}{
	{"nothing", nil},
	{"one byte", []byte{0x16}},
	{"half a header", []byte{0x16, 3, 3}},
	{"HTTP", []byte("GET / HTTP/1.1\r\nHost: server.test\r\n\r\n")},
	{"HTTP answer", []byte("HTTP/1.1 400 Bad Request\r\n\r\n")},
	{"SMTP", []byte("220 mail.test ESMTP\r\n")},
	{"SSH", []byte("SSH-2.0-OpenSSH_9.2\r\n")},
	{"zeros", make([]byte, 100)},
	{"ones", repeat(100, []byte{0xff})},
	{"SSL 2 hello", append([]byte{0x80, 0x2e, 1, 3, 1, 0, 0x15, 0, 0, 0, 0x10}, make([]byte, 37)...)},
	{"type 0", record(0, "hello")},
	{"type 19", record(19, "hello")},
	{"type 24, heartbeat", record(24, "\x01\x40\x00")},
	{"version 3.0", tlstest.MakeRecord(22, 0x0300, []byte{1, 0, 0, 1, 0})},
	{"version 2.0", tlstest.MakeRecord(22, 0x0200, []byte{1, 0, 0, 1, 0})},
	{"version 3.9", tlstest.MakeRecord(22, 0x0309, []byte{1, 0, 0, 1, 0})},
	{"version 16.0", tlstest.MakeRecord(22, 0x1000, []byte{1, 0, 0, 1, 0})},
	{"too long for a plaintext", record(22, string(append([]byte{1, 0, 0x48, 0}, make([]byte, 1<<14)...)))},
	{"too long for any record", record(22, string(make([]byte, 1<<14+2049)))},
	{"length 65535", []byte{22, 3, 3, 0xff, 0xff, 1, 0, 0, 0}},
	{"application data", record(23, "hello")},
	{"ChangeCipherSpec", record(20, "\x01")},
	{"wrong ChangeCipherSpec", record(20, "\x02")},
	{"empty handshake record", record(22, "")},
	{"many empty handshake records", repeat(20, record(22, ""))},
	{"empty application data", record(23, "")},
	{"much empty application data, CVE-2024-32650", repeat(1000, record(23, ""))},
	{"many ChangeCipherSpecs, CVE-2020-25648", repeat(1000, record(20, "\x01"))},
	{"many warnings, CVE-2016-8610", repeat(1000, record(21, "\x01\x5a"))},
	{"empty alert", record(21, "")},
	{"one-byte alert", record(21, "\x02")},
	{"message of an unknown type", record(22, "\x63\x00\x00\x01\x00")},
	{"empty ClientHello", record(22, "\x01\x00\x00\x00")},
	{"empty ServerHello", record(22, "\x02\x00\x00\x00")},
	{"Finished", record(22, "\x14\x00\x00\x0c"+"123456789012")},
	{"Certificate", record(22, "\x0b\x00\x00\x03\x00\x00\x00")},
	{"HelloRequest", record(22, "\x00\x00\x00\x00")},
	{"KeyUpdate", record(22, "\x18\x00\x00\x01\x00")},
	{"a message longer than allowed", record(22, "\x01\xff\xff\xff\x03\x03")},
}

// TestDifferentialGarbage sends garbage in place of the peer's first message.
func TestDifferentialGarbage(t *testing.T) {
	defer checkStale(t)
	for _, role := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
		for _, version := range append([]uint16{0}, tlstest.Versions...) {
			edits := opts()
			name := "any version"
			if version != 0 {
				edits, name = opts(tlstest.Only(version)), tlstest.VersionName(version)
			}
			for _, g := range garbage {
				t.Run(fmt.Sprintf("%s/%s/%s", role, name, g.name), func(t *testing.T) {
					if want := script(t, role, edits, [][]byte{g.data}, true); want.Err == nil || want.Hung {
						t.Errorf("crypto/tls: %v, hung: %v", want.Err, want.Hung)
					}
				})
			}
		}
	}
}

// TestDifferentialPlaintextHTTP checks the error for a client that speaks HTTP: it contains the
// transport, so that a server can answer, and the first bytes.
func TestDifferentialPlaintextHTTP(t *testing.T) {
	defer checkStale(t)
	for _, impl := range []tlstest.Impl{tlstest.Std, ossltest.UnderTest} {
		for _, portion := range []int{100, 1, 3} {
			t.Run(fmt.Sprintf("%s/%d bytes at a time", impl.Name(), portion), func(t *testing.T) {
				victim, peer := tlstest.NewPipe()
				defer peer.Close()
				defer victim.Close()
				tlstest.WithFault(peer, tlstest.Chunks(portion)).Write([]byte("GET / HTTP/1.1\r\n"))
				conn := impl.Server(victim, tlstest.ServerConfig())
				err := conn.Handshake()
				var header tls.RecordHeaderError
				if !errors.As(err, &header) {
					t.Fatalf("got %v", err)
				}
				if header.Conn != victim || string(header.RecordHeader[:]) != "GET /" {
					t.Errorf("the error has conn %v and header %q", header.Conn, header.RecordHeader)
				}
				// net/http answers on the transport (net/http.Server.serve).
				io.WriteString(header.Conn, "HTTP/1.0 400 Bad Request\r\n\r\n")
				conn.Close()
				got, err := io.ReadAll(peer)
				if string(got) != "HTTP/1.0 400 Bad Request\r\n\r\n" || err != nil {
					t.Errorf("the peer read %q, %v", got, err)
				}
			})
		}
	}
}

// swap exchanges records n and n+1, duplicate sends record n twice, drop omits it and stray puts a
// record before it.
func swap(n int) tlstest.Fault {
	var kept []byte
	return tlstest.Records(func(i int, record []byte) [][]byte {
		switch i {
		case n:
			kept = record
			return nil
		case n + 1:
			return [][]byte{record, kept}
		}
		return [][]byte{record}
	})
}

func duplicate(n int) tlstest.Fault {
	return tlstest.Records(func(i int, record []byte) [][]byte {
		if i == n {
			return [][]byte{record, record}
		}
		return [][]byte{record}
	})
}

func drop(n int) tlstest.Fault {
	return tlstest.Records(func(i int, record []byte) [][]byte {
		if i == n {
			return nil
		}
		return [][]byte{record}
	})
}

func stray(n int, what []byte) tlstest.Fault {
	return tlstest.Records(func(i int, record []byte) [][]byte {
		if i == n {
			return [][]byte{what, record}
		}
		return [][]byte{record}
	})
}

// join puts the payloads of records n and n+1 into one record, split cuts record n in two after a
// byte.
func join(n int) tlstest.Fault {
	var kept []byte
	return tlstest.Records(func(i int, record []byte) [][]byte {
		switch {
		case i == n:
			kept = record
			return nil
		case i == n+1 && record[0] == kept[0]:
			return [][]byte{tlstest.MakeRecord(kept[0], tls.VersionTLS12, append(kept[5:], record[5:]...))}
		case i == n+1:
			return [][]byte{kept, record}
		}
		return [][]byte{record}
	})
}

func split(n int) tlstest.Fault {
	return tlstest.Records(func(i int, record []byte) [][]byte {
		if i == n && len(record) > 6 {
			return [][]byte{tlstest.MakeRecord(record[0], tls.VersionTLS12, record[5:6]),
				tlstest.MakeRecord(record[0], tls.VersionTLS12, record[6:])}
		}
		return [][]byte{record}
	})
}

// TestDifferentialRecords disturbs the order and the boundaries of the records in a crypto/tls
// peer's handshake.
func TestDifferentialRecords(t *testing.T) {
	defer checkStale(t)
	for _, version := range tlstest.Versions {
		for _, victim := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
			// crypto/tls sends one record a message: in TLS 1.2 a server 7 with CertificateRequest
			// and a client 6, in TLS 1.3 a server 7 and a client 5, ChangeCipherSpecs included.
			for n := range 8 {
				for _, fault := range []struct {
					name string
					make func() tlstest.Fault
				}{
					{"swap", func() tlstest.Fault { return swap(n) }},
					{"duplicate", func() tlstest.Fault { return duplicate(n) }},
					{"drop", func() tlstest.Fault { return drop(n) }},
					{"join", func() tlstest.Fault { return join(n) }},
					{"split", func() tlstest.Fault { return split(n) }},
					{"stray ChangeCipherSpec", func() tlstest.Fault { return stray(n, record(20, "\x01")) }},
					{"stray application data", func() tlstest.Fault { return stray(n, record(23, "hello")) }},
					{"stray HelloRequest", func() tlstest.Fault { return stray(n, record(22, "\x00\x00\x00\x00")) }},
					{"stray warning", func() tlstest.Fault { return stray(n, record(21, "\x01\x5a")) }},
					{"empty record", func() tlstest.Fault { return stray(n, record(22, "")) }},
					{"oversized record", func() tlstest.Fault { return stray(n, record(22, string(make([]byte, 1<<14+1)))) }},
				} {
					t.Run(fmt.Sprintf("%s/%s/%s/%d", tlstest.VersionName(version), victim, fault.name, n), func(t *testing.T) {
						c := tlstest.Case{
							Client: tlstest.ClientWith(tlstest.Only(version), tlstest.Certificates(tlstest.ClientCert(tlstest.P256))),
							Server: tlstest.ServerWith(tlstest.Only(version), tlstest.AskClient(tls.RequireAndVerifyClientCert)),
						}
						differIn(t, withFault(c, victim, fault.make), against(victim)...)
					})
				}
			}
		}
	}
}

// TestDifferentialFlippedBits flips a bit in a crypto/tls peer's handshake, byte after byte. The
// handshake must fail, on both sides, if crypto/tls's fails. The alert depends on the byte.
func TestDifferentialFlippedBits(t *testing.T) {
	for _, version := range tlstest.Versions {
		for _, victim := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
			t.Run(tlstest.VersionName(version)+"/"+string(victim), func(t *testing.T) {
				t.Parallel()
				c := mutualCase(version)
				c.Talk = nil
				pairing := against(victim)[1]
				peer := tlstest.ServerRole
				if victim == tlstest.ServerRole {
					peer = tlstest.ClientRole
				}
				clean := tlstest.Run(pairing, c)
				mustPass(t, clean)
				records, _ := tlstest.SplitRecords(clean.Recording.Bytes(peer))
				clear := clean.Recording.Decipher(peer, clean.ServerLog)
				offset := 0
				for n, r := range records {
					if clear[n].Type == tlstest.TypeAlert { // close_notify, which comes too late to matter
						break
					}
					for i := range 5 + len(r.Payload) {
						harmless := i == 1 || i == 2 // a record's version may be ignored
						if step := offset + i; !harmless && (step%7 == 0 || i < 16) {
							flip := func() tlstest.Fault { return tlstest.FlipAt(step, 1<<(step%8)) }
							c.Shared = true
							o := tlstest.Run(pairing, withFault(c, victim, flip))
							if s := o.Of(victim); !o.Hung && s.Handshake == "ok" && s.Talk == "ok" {
								t.Errorf("a flipped bit in byte %d, byte %d of a record of type %d, went unnoticed", step, i, r.Type)
							}
						}
					}
					offset += 5 + len(r.Payload)
				}
			})
		}
	}
}
