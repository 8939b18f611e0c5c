//go:build cgo || ossl_nocgo

package trace_test

import (
	"bytes"
	"crypto/tls"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/internal/trace"
)

func handshake(typ uint8, body ...[]byte) libssl.Message {
	b := bytes.Join(body, nil)
	head := []byte{typ, byte(len(b) >> 16), byte(len(b) >> 8), byte(len(b))}
	return libssl.Message{ContentType: tlstest.TypeHandshake, Data: append(head, b...)}
}

// TestMessages checks the lines for messages that the handshakes of other tests don't have.
func TestMessages(t *testing.T) {
	random := make([]byte, 32)
	for _, c := range []struct {
		name    string
		message libssl.Message
		want    []string
	}{
		{"alert", libssl.Message{ContentType: tlstest.TypeAlert, Data: []byte{2, 40}},
			[]string{"<- Alert: fatal, handshake failure (40)"}},
		{"warning", libssl.Message{Sent: true, ContentType: tlstest.TypeAlert, Data: []byte{1, 0}},
			[]string{"-> Alert: warning, close notify (0)"}},
		{"malformed alert", libssl.Message{ContentType: tlstest.TypeAlert, Data: []byte{2}}, []string{"<- Alert, malformed"}},
		{"another record", libssl.Message{ContentType: 99, Data: []byte{2}}, []string{"<- record of type 99, 1 bytes"}},
		{"no message", libssl.Message{ContentType: tlstest.TypeHandshake, Data: []byte{2}},
			[]string{"<- handshake message, malformed"}},
		{"unknown message", handshake(99, []byte{1}), []string{"<- handshake message 99, 1 bytes"}},
		{"short hello", handshake(1, []byte{3, 3, 0}), []string{"<- ClientHello, 3 bytes", "    malformed"}},
		{"grease and unknown numbers", handshake(1, []byte{3, 3}, random, []byte{0}, tlstest.List16(0x3a3a, 0x9999),
			[]byte{1, 0}, tlstest.Sized16([]byte{0x4a, 0x4a, 0, 0})),
			[]string{"    cipher suites              GREASE 0x9999", "    compression methods        none", "    GREASE"}},
		{"control characters", handshake(1, []byte{3, 3}, random, []byte{0, 0, 0, 0},
			tlstest.Sized16([]byte{0, 0, 0, 7, 0, 5, 0, 0, 2, 27, '['})), []string{`    server_name                "\x1b["`}},
		{"bad extension", handshake(1, []byte{3, 3}, random, []byte{0, 0, 0, 0}, tlstest.Sized16([]byte{0, 10, 0, 3, 0, 9, 1})),
			[]string{"    supported_groups           3 bytes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := trace.Printer{}
			got := p.Message(c.message)
			for _, want := range c.want {
				if !strings.Contains(got, want+"\n") {
					t.Errorf("%q is missing in:\n%s", want, got)
				}
			}
		})
	}
}

// FuzzMessage checks that no message causes a panic, much output, or control characters.
func FuzzMessage(f *testing.F) {
	f.Add(uint16(tls.VersionTLS12), tlstest.OneTicket)
	f.Add(uint16(tls.VersionTLS13), handshake(11, []byte{0, 0, 0, 0}).Data)
	version13 := []byte{0, 0x13, 1, 0, 0, 6, 0, 43, 0, 2, 3, 4} // the end of a ServerHello
	f.Add(uint16(tls.VersionTLS13), handshake(2, []byte{3, 3}, make([]byte, 32), version13).Data)
	f.Fuzz(func(t *testing.T, version uint16, data []byte) {
		p := trace.Printer{}
		hello := handshake(2, []byte{byte(version >> 8), byte(version)}, make([]byte, 32), []byte{0, 0x13, 1, 0})
		p.Message(hello) // which sets the version
		for _, typ := range []uint8{tlstest.TypeHandshake, tlstest.TypeAlert, tlstest.TypeChangeCipherSpec} {
			got := p.Message(libssl.Message{ContentType: typ, Data: data})
			if !utf8.ValidString(got) || !strings.HasSuffix(got, "\n") || len(got) > 1<<18 {
				t.Errorf("%d bytes: %q", len(got), got[:min(len(got), 1000)])
			}
			if i := strings.IndexFunc(got, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f }); i >= 0 {
				t.Errorf("a control character at %d of %q", i, got)
			}
		}
	})
}
