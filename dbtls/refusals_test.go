package dbtls_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/dbtls"
)

// errAny stands for any error, from a server that doesn't follow the protocol.
var errAny = errors.New("any error")

// TestRefusals connects to servers without TLS, to broken servers, and to servers with an attacker
// in between. The first turn comes unasked, each other one after the client has sent something.
func TestRefusals(t *testing.T) {
	ldapCutOff, ldapAnother := ldapResponse(1, 0, "")[:9], ldapResponse(2, 0, "")
	for _, test := range []struct {
		protocol, name string
		turns          []string
		want           error
	}{
		{"PostgreSQL", "no TLS", []string{"", "N"}, dbtls.ErrNoTLS},
		{"PostgreSQL", "an error", []string{"", "E\x00\x00\x00\x0aSFATAL\x00"}, errAny},
		{"PostgreSQL", "another protocol", []string{"", "HTTP/1.1 400 Bad Request\r\n"}, errAny},
		{"PostgreSQL", "injected data", []string{"", "SE\x00\x00\x00\x0aSFATAL\x00"}, dbtls.ErrPlaintext},
		{"PostgreSQL", "an answer before the request", []string{"SS"}, dbtls.ErrPlaintext},
		{"PostgreSQL", "an end", []string{"", ""}, io.ErrUnexpectedEOF},

		{"NATS", "no TLS", []string{`INFO {"server_id":"A","tls_required":false}` + "\r\n"}, dbtls.ErrNoTLS},
		{"NATS", "an error", []string{"-ERR 'Authorization Violation'\r\n"}, errAny},
		{"NATS", "another protocol", []string{"220 mx.test ESMTP\r\n"}, errAny},
		{"NATS", "no JSON", []string{"INFO x\r\n"}, errAny},
		{"NATS", "JSON of another kind", []string{"INFO [1]\r\n"}, errAny},
		{"NATS", "a long line", []string{"INFO {\"x\":\"" + strings.Repeat("x", 20_000)}, errAny},
		{"NATS", "injected data", []string{natsInfo + "MSG x 1 5\r\nhello\r\n"}, dbtls.ErrPlaintext},
		{"NATS", "an end", []string{"INFO {"}, io.ErrUnexpectedEOF},

		{"SMTP", "no TLS", []string{smtpGreeting, "250-mx\r\n250 HELP\r\n"}, dbtls.ErrNoTLS},
		{"SMTP", "STARTTLS as a name", []string{smtpGreeting, "250-STARTTLS\r\n250 HELP\r\n"}, dbtls.ErrNoTLS},
		{"SMTP", "busy", []string{"421 too many connections\r\n"}, errAny},
		{"SMTP", "no EHLO", []string{smtpGreeting, "502 unknown command\r\n"}, errAny},
		{"SMTP", "a refusal", []string{smtpGreeting, smtpOffer, "454 TLS not available\r\n"}, errAny},
		{"SMTP", "another protocol", []string{"HTTP/1.1 400 Bad Request\r\n"}, errAny},
		{"SMTP", "a long line", []string{"220 " + strings.Repeat("x", 20_000)}, errAny},
		{"SMTP", "an endless reply", []string{smtpGreeting, strings.Repeat("250-x\r\n", 20_000)}, errAny},
		{"SMTP", "different codes in a reply", []string{"220-mx\r\n250 mx\r\n"}, errAny},
		{"SMTP", "injected data", []string{smtpGreeting, smtpOffer, smtpGo + "250 injected\r\n"}, dbtls.ErrPlaintext},
		{"SMTP", "an end", []string{smtpGreeting, "250-mx\r\n"}, io.ErrUnexpectedEOF},

		{"LDAP", "no TLS", []string{"", ldapResponse(1, 2, "unsupported extended operation")}, dbtls.ErrNoTLS},
		{"LDAP", "unavailable", []string{"", ldapResponse(1, 52, "no certificate")}, errAny},
		{"LDAP", "a notice of disconnection", []string{"", ldapResponse(0, 52, "bye")}, errAny},
		{"LDAP", "an answer to another request", []string{"", ldapAnother}, errAny},
		{"LDAP", "another protocol", []string{"", "HTTP/1.1 400 Bad Request\r\n"}, errAny},
		{"LDAP", "a large length", []string{"", "\x30\x84\x7f\xff\xff\xff"}, errAny},
		{"LDAP", "an indefinite length", []string{"", "\x30\x80\x02\x01\x01"}, errAny},
		{"LDAP", "a length of five bytes", []string{"", "\x30\x85\x00\x00\x00\x00\x0c"}, errAny},
		{"LDAP", "no result", []string{"", "\x30\x05\x02\x01\x01\x78\x00"}, errAny},
		{"LDAP", "injected data", []string{"", ldapResponse(1, 0, "") + ldapResponse(2, 0, "")}, dbtls.ErrPlaintext},
		{"LDAP", "an end", []string{"", ldapCutOff}, io.ErrUnexpectedEOF},

		{"MySQL", "no TLS", []string{mysqlGreeting(0xf7ff)}, dbtls.ErrNoTLS},
		{"MySQL", "old", []string{mysqlGreeting(0xfdff)}, errAny},
		{"MySQL", "too many connections", []string{mysqlBlocked}, errAny},
		{"MySQL", "a short error", []string{mysqlPacket(0, "\xff")}, errAny},
		{"MySQL", "another version", []string{mysqlPacket(0, "\x09old\x00")}, errAny},
		{"MySQL", "a short greeting", []string{mysqlPacket(0, "\x0a8.0.36\x00\x01\x00\x00\x00")}, errAny},
		{"MySQL", "a version without an end", []string{mysqlPacket(0, "\x0a8.0.36")}, errAny},
		{"MySQL", "a packet with a wrong number", []string{mysqlPacket(1, mysqlGreeting(0xffff)[4:])}, errAny},
		{"MySQL", "an empty packet", []string{mysqlPacket(0, "")}, errAny},
		{"MySQL", "a long packet", []string{"\xff\xff\xff\x00"}, errAny},
		{"MySQL", "another protocol", []string{"220 mx.test ESMTP\r\n"}, errAny},
		{"MySQL", "injected data", []string{mysqlGreeting(0xffff) + mysqlPacket(2, "\x00")}, dbtls.ErrPlaintext},
		{"MySQL", "an end", []string{mysqlGreeting(0xffff)[:20]}, io.ErrUnexpectedEOF},
	} {
		t.Run(test.protocol+"/"+test.name, func(t *testing.T) {
			dial := (*dbtls.Dialer).DialMySQL
			for _, protocol := range protocols {
				if protocol.name == test.protocol {
					dial = protocol.dial
				}
			}
			addr := serve(t, func(p *peer) {
				for i, turn := range test.turns {
					if i > 0 {
						if _, err := p.conn.Read(make([]byte, 100)); err != nil {
							t.Errorf("server: %v", err)
						}
					}
					_, _ = io.WriteString(p.conn, turn) // the client may have closed the connection in it
				}
				if test.want != io.ErrUnexpectedEOF {
					p.wait()
				}
			})
			conn, err := dial(newDialer(t, nil), t.Context(), "tcp", addr)
			var failure *dbtls.Error
			if conn != nil || !errors.As(err, &failure) || failure.Protocol != test.protocol || failure.Step == "" {
				t.Fatalf("%v, %v", conn, err)
			}
			if test.want != errAny && !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if test.want == errAny && (errors.Is(err, dbtls.ErrNoTLS) || errors.Is(err, dbtls.ErrPlaintext) ||
				errors.Is(err, io.ErrUnexpectedEOF)) {
				t.Errorf("unexpected kind of error: %v", err)
			}
		})
	}
}

// Data that comes after the client has looked for it meets the handshake, which fails too.
func TestLateInjection(t *testing.T) {
	addr := serve(t, func(p *peer) {
		p.expect("\x00\x00\x00\x08\x04\xd2\x16\x2f")
		p.send("S")
		p.expect("\x16\x03\x01") // the ClientHello
		p.send("Z\x00\x00\x00\x05IZ\x00\x00\x00\x05I")
		p.wait()
	})
	conn, err := newDialer(t, nil).DialPostgres(t.Context(), "tcp", addr)
	if failure := new(dbtls.Error); conn != nil || !errors.As(err, &failure) || failure.Step != "TLS handshake" {
		t.Errorf("%v, %v", conn, err)
	}
}
