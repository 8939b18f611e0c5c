package audit

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// A scripted connection answers each thing that the client sends with the next answer. The first
// answer comes unasked.
type scripted struct {
	answers []string
	pending []byte
	sent    []string
}

func newScripted(answers ...string) *scripted {
	return &scripted{answers: answers[1:], pending: []byte(answers[0])}
}

func (s *scripted) Read(b []byte) (int, error) {
	if len(s.pending) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.pending)
	s.pending = s.pending[n:]
	return n, nil
}

func (s *scripted) Write(b []byte) (int, error) {
	s.sent = append(s.sent, string(b))
	if len(s.answers) > 0 {
		s.pending = append(s.pending, s.answers[0]...)
		s.answers = s.answers[1:]
	}
	return len(b), nil
}

func (s *scripted) Close() error                     { return nil }
func (s *scripted) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }
func (s *scripted) RemoteAddr() net.Addr             { return s.LocalAddr() }
func (s *scripted) SetDeadline(time.Time) error      { return nil }
func (s *scripted) SetReadDeadline(time.Time) error  { return nil }
func (s *scripted) SetWriteDeadline(time.Time) error { return nil }

const (
	mysqlGreeting = "\x0a8.0.36\x00\x01\x00\x00\x00abcdefgh\x00\xff\xff\x2d\x02\x00"
	mysqlNoTLS    = "\x0a5.7.1\x00\x01\x00\x00\x00abcdefgh\x00\xff\xf7\x2d\x02\x00"
	xmppOpening   = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' " +
		"xmlns:stream='http://etherx.jabber.org/streams' id='1' version='1.0'>"
	xmppFeatures = "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls></stream:features>"
)

func mysqlPacket(body string) string { return string([]byte{byte(len(body)), 0, 0, 0}) + body }

func TestStartTLS(t *testing.T) {
	for _, test := range []struct {
		name, protocol string
		answers        []string
		sent           []string // the first bytes of each
	}{
		{"tls", "tls", []string{"untouched"}, nil},
		{"direct PostgreSQL", "postgres-direct", []string{"untouched"}, nil},
		{"SMTP", "smtp", []string{"220-mx ESMTP\r\n220 ready\r\n",
			"250-mx\r\n250-PIPELINING\r\n250-starttls\r\n250 8BITMIME\r\n", "220 go\r\n"},
			[]string{"EHLO [192.0.2.1]\r\n", "STARTTLS\r\n"}},
		{"SMTP with bare codes", "smtp", []string{"220\r\n", "250-mx\r\n250 STARTTLS\r\n", "220\n"}, []string{"EHLO", "STARTTLS\r\n"}},
		{"IMAP", "imap", []string{"* OK [CAPABILITY IMAP4rev1] ready\r\n", "* NOTICE x\r\na ok begin\r\n"}, []string{"a STARTTLS\r\n"}},
		{"POP3", "pop3", []string{"+OK ready <1@x>\r\n", "+OK begin\r\n"}, []string{"STLS\r\n"}},
		{"LDAP of OpenLDAP", "ldap", []string{"", "\x30\x0c\x02\x01\x01\x78\x07\x0a\x01\x00\x04\x00\x04\x00"}, []string{"\x30\x1d"}},
		{"LDAP with long lengths", "ldap", []string{"",
			"\x30\x84\x00\x00\x00\x28\x02\x01\x01\x78\x84\x00\x00\x00\x1f\x0a\x01\x00\x04\x00\x04\x00\x8a\x16" + "1.3.6.1.4.1.1466.20037"},
			[]string{"\x30\x1d"}},
		{"PostgreSQL", "postgres", []string{"", "S"}, []string{"\x00\x00\x00\x08\x04\xd2\x16\x2f"}},
		{"MySQL", "mysql", []string{mysqlPacket(mysqlGreeting)}, []string{"\x20\x00\x00\x01\x00\x8a"}},
		{"XMPP", "xmpp", []string{"", xmppOpening + xmppFeatures, "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"},
			[]string{"<?xml version='1.0'?><stream:stream to='im&amp;.example'", "<starttls "}},
		{"XMPP between servers", "xmpp-server", []string{"", xmppOpening + xmppFeatures,
			"<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'></proceed>"},
			[]string{"<?xml version='1.0'?>", "<starttls "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn := newScripted(test.answers...)
			if err := startTLS(conn, test.protocol, "im&.example", ""); err != nil {
				t.Fatal(err)
			}
			if len(conn.sent) != len(test.sent) {
				t.Fatalf("sent %q", conn.sent)
			}
			for i, want := range test.sent {
				if !strings.HasPrefix(conn.sent[i], want) {
					t.Errorf("sent %q, want %q", conn.sent[i], want)
				}
			}
		})
	}
}

// TestStartTLSRefused has servers that will refuse every connection (permanent), and servers that may
// take the next one.
func TestStartTLSRefused(t *testing.T) {
	for _, test := range []struct {
		name, protocol string
		answers        []string
		permanent      bool
	}{
		{"unknown protocol", "gopher", []string{""}, true},
		{"SMTP without STARTTLS", "smtp", []string{"220 mx\r\n", "250-mx\r\n250 HELP\r\n"}, true},
		{"SMTP refuses", "smtp", []string{"220 mx\r\n", "250-mx\r\n250 STARTTLS\r\n", "502 no\r\n"}, true},
		{"SMTP is busy", "smtp", []string{"421 too many connections\r\n"}, false},
		{"SMTP can't now", "smtp", []string{"220 mx\r\n", "250-mx\r\n250 STARTTLS\r\n", "454 TLS not available\r\n"}, false},
		{"SMTP ends", "smtp", []string{"220 mx\r\n", "250-mx\r\n"}, false},
		{"SMTP that isn't", "smtp", []string{"HTTP/1.1 400 Bad Request\r\n"}, true},
		{"SMTP without end", "smtp", []string{"220 mx\r\n", strings.Repeat("250-x\r\n", 20000)}, true},
		{"SMTP with a long line", "smtp", []string{strings.Repeat("2", 100000)}, true},
		{"SMTP with more", "smtp", []string{"220 mx\r\n", "250-mx\r\n250 STARTTLS\r\n", "220 go\r\n250 injected\r\n"}, true},
		{"IMAP says bye", "imap", []string{"* BYE busy\r\n"}, false},
		{"IMAP refuses", "imap", []string{"* OK\r\n", "a BAD unknown\r\n"}, true},
		{"IMAP that isn't", "imap", []string{"220 mx\r\n"}, true},
		{"POP3 refuses", "pop3", []string{"+OK\r\n", "-ERR unknown\r\n"}, true},
		{"LDAP refuses", "ldap", []string{"", "\x30\x0e\x02\x01\x01\x78\x09\x0a\x01\x02\x04\x00\x04\x02no"}, true},
		{"LDAP is busy", "ldap", []string{"", "\x30\x0e\x02\x01\x01\x78\x09\x0a\x01\x33\x04\x00\x04\x02no"}, false},
		{"LDAP with a large length", "ldap", []string{"", "\x30\x84\x7f\xff\xff\xff"}, true},
		{"LDAP with an endless length", "ldap", []string{"", "\x30\x80"}, true},
		{"LDAP cut off", "ldap", []string{"", "\x30\x0c\x02\x01"}, false},
		{"PostgreSQL without TLS", "postgres", []string{"", "N"}, true},
		{"PostgreSQL with an error", "postgres", []string{"", "E\x00\x00\x00\x08abcd"}, true},
		{"PostgreSQL that isn't", "postgres", []string{"", "H"}, true},
		{"PostgreSQL with more", "postgres", []string{"", "SE"}, true},
		{"PostgreSQL ends", "postgres", []string{"", ""}, false},
		{"MySQL without TLS", "mysql", []string{mysqlPacket(mysqlNoTLS)}, true},
		{"MySQL blocks", "mysql", []string{mysqlPacket("\xff\x6a\x04Host is blocked")}, false},
		{"MySQL that isn't", "mysql", []string{"220 mx ready\r\n"}, true},
		{"MySQL with a short greeting", "mysql", []string{mysqlPacket("\x0a8\x00abc")}, true},
		{"XMPP without STARTTLS", "xmpp", []string{"", xmppOpening + "<stream:features><bind/></stream:features>"}, true},
		{"XMPP refuses", "xmpp", []string{"", xmppOpening + xmppFeatures, "<failure/></stream:stream>"}, true},
		{"XMPP with an error", "xmpp", []string{"", xmppOpening + "<stream:error><host-unknown/></stream:error>"}, true},
		{"XMPP closes", "xmpp", []string{"", xmppOpening + "</stream:stream>"}, true},
		{"XMPP ends", "xmpp", []string{"", xmppOpening + "<stream:fea"}, false},
		{"XMPP that isn't", "xmpp", []string{"", "HTTP/1.1 400 <<>>\r\n"}, true},
		{"XMPP without end", "xmpp", []string{"", xmppOpening + strings.Repeat("<a>", 40000)}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := startTLS(newScripted(test.answers...), test.protocol, "im.example", "")
			if err == nil {
				t.Fatal("no error")
			}
			if permanent := errors.As(err, new(*startTLSError)); permanent != test.permanent {
				t.Errorf("permanent %v: %v", permanent, err)
			}
			if len(err.Error()) > 400 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func FuzzStartTLS(f *testing.F) {
	protocols := []string{"smtp", "imap", "pop3", "ldap", "postgres", "mysql", "xmpp", "xmpp-server"}
	f.Add(byte(0), []byte("220 mx\r\n250-mx\r\n250 STARTTLS\r\n220 go\r\n"))
	f.Add(byte(1), []byte("* OK\r\na OK\r\n"))
	f.Add(byte(2), []byte("+OK\r\n+OK\r\n"))
	f.Add(byte(3), []byte("\x30\x84\x00\x00\x00\x0c\x02\x01\x01\x78\x07\x0a\x01\x00\x04\x00\x04\x00"))
	f.Add(byte(4), []byte("S"))
	f.Add(byte(5), []byte(mysqlPacket(mysqlGreeting)))
	f.Add(byte(6), []byte(xmppOpening+xmppFeatures+"<proceed/>"))
	f.Fuzz(func(t *testing.T, protocol byte, data []byte) {
		conn := &scripted{pending: bytes.Clone(data)}
		err := startTLS(conn, protocols[int(protocol)%len(protocols)], "im.example", "")
		if err == nil && len(conn.pending) > 0 && len(data)-len(conn.pending) > startTLSBytes {
			t.Fatalf("read %d bytes", len(data)-len(conn.pending))
		}
	})
}
