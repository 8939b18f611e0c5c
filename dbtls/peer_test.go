package dbtls_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/dbtls"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// The dialogues of sound servers.
const (
	smtpGreeting = "220-mx.test\r\n220 ready\r\n"
	smtpOffer    = "250-mx.test\r\n250-PIPELINING\r\n250-starttls\r\n250 8BITMIME\r\n"
	smtpGo       = "220 go ahead\r\n"

	natsInfo = `INFO {"server_id":"A","version":"2.10.0","nonce":"x","tls_required":true,` +
		`"connect_urls":["evil.test:4222"],"WS_connect_urlſ":["evil.test:80"],"max_payload":1048576} ` + "\r\n"
	natsReplayed = `INFO {"max_payload":1048576,"nonce":"x","server_id":"A","tls_required":true,"version":"2.10.0"}` + "\r\n"

	mysqlBlocked = "\x14\x00\x00\x00\xff\x10\x04Too many connections"
)

func mysqlPacket(number byte, body string) string {
	return string([]byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), number}) + body
}

func mysqlGreeting(capabilities uint16) string {
	return mysqlPacket(0, "\x0a10.11.4-MariaDB\x00\x07\x00\x00\x00abcdefgh\x00"+
		string(binary.LittleEndian.AppendUint16(nil, capabilities))+
		"\x2d\x02\x00\xff\x81\x15\x00\x00\x00\x00\x00\x00\x0f\x00\x00\x00ijklmnopqrst\x00mysql_native_password\x00")
}

// ldapResponse is an ExtendedResponse with a result code and a diagnostic message.
func ldapResponse(number, code byte, diagnosis string) string {
	result := "\x0a\x01" + string([]byte{code}) + "\x04\x00\x04" + string([]byte{byte(len(diagnosis))}) + diagnosis
	message := "\x02\x01" + string([]byte{number}) + "\x78" + string([]byte{byte(len(result))}) + result
	return "\x30" + string([]byte{byte(len(message))}) + message
}

// identity returns a certificate for 127.0.0.1 and db.test, which tlstest's authority has issued.
var identity = sync.OnceValue(func() tls.Certificate {
	return tlstest.New(tlstest.Options{Names: []string{"db.test", "127.0.0.1"}})
})

// newDialer returns a Dialer that trusts the identity. edit changes the configuration.
func newDialer(t *testing.T, edit func(*tls.Config)) *dbtls.Dialer {
	t.Helper()
	config := &tls.Config{RootCAs: tlstest.CA().Pool()}
	if edit != nil {
		edit(config)
	}
	ctx, err := ossl.NewContext(config)
	if err != nil {
		t.Fatal(err)
	}
	return &dbtls.Dialer{Context: ctx}
}

// A peer is a server for one connection.
type peer struct {
	t    *testing.T
	conn net.Conn
}

// serve runs script for one connection, and returns its address. The test waits for the script,
// which must be over when the client has closed the connection.
func serve(t *testing.T, script func(*peer)) string {
	t.Helper()
	return serveOn(t, "tcp", "127.0.0.1:0", script)
}

// serveOn is serve with an address of a network of package net.
func serveOn(t *testing.T, network, address string, script func(*peer)) string {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		script(&peer{t, conn})
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return listener.Addr().String()
}

func (p *peer) send(s string) {
	if _, err := io.WriteString(p.conn, s); err != nil {
		p.t.Errorf("server: %v", err)
	}
}

// expect reads as many bytes as want has, which must be equal.
func (p *peer) expect(want string) {
	got := make([]byte, len(want))
	if n, err := io.ReadFull(p.conn, got); err != nil || string(got) != want {
		p.t.Errorf("server: received %q, %v; want %q", got[:n], err, want)
	}
}

// wait waits until the client closes the connection.
func (p *peer) wait() { _, _ = io.Copy(io.Discard, p.conn) }

// secure runs the handshake, and goes on over TLS.
func (p *peer) secure(version uint16, protocols ...string) {
	conn := tls.Server(p.conn, &tls.Config{
		Certificates: []tls.Certificate{identity()}, MinVersion: version, MaxVersion: version, NextProtos: protocols,
	})
	if err := conn.Handshake(); err != nil {
		p.t.Errorf("server: %v", err)
	}
	p.conn = conn
}

// A protocol is a method of the Dialer, and the dialogue that it has with a sound server: what each
// sends in turn, the server first.
type protocol struct {
	name     string
	dial     func(*dbtls.Dialer, context.Context, string, string) (net.Conn, error)
	dialogue []string
	replayed string // the first bytes that the client reads
}

var protocols = []protocol{
	{"TLS", (*dbtls.Dialer).DialTLS, nil, ""},
	{"PostgreSQL", (*dbtls.Dialer).DialPostgres, []string{"", "\x00\x00\x00\x08\x04\xd2\x16\x2f", "S"}, ""},
	{"NATS", (*dbtls.Dialer).DialNATS, []string{natsInfo}, natsReplayed},
	{"SMTP", (*dbtls.Dialer).DialSMTP, []string{smtpGreeting, "EHLO [127.0.0.1]\r\n", smtpOffer, "STARTTLS\r\n", smtpGo},
		"220 ready, with TLS\r\n"},
	{"LDAP", (*dbtls.Dialer).DialLDAP, []string{"", "\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037",
		ldapResponse(1, 0, "")}, ""},
}

func (p *peer) converse(dialogue []string) {
	for i, turn := range dialogue {
		if i%2 == 0 {
			p.send(turn)
		} else {
			p.expect(turn)
		}
	}
}
