package dbtls_test

import (
	"crypto/tls"
	"errors"
	"net"
	"net/smtp"
	"testing"

	"github.com/ossl-go/ossl/dbtls"
)

// TestSMTPClient checks that net/smtp takes the connection, sends EHLO again, and sends a password
// only with SMTPAuth.
func TestSMTPClient(t *testing.T) {
	for _, with := range []bool{true, false} {
		addr := serve(t, func(p *peer) {
			p.converse([]string{smtpGreeting, "EHLO [127.0.0.1]\r\n",
				"250-mx.test\r\n250-AUTH EVIL\r\n250 STARTTLS\r\n", "STARTTLS\r\n", smtpGo})
			p.secure(tls.VersionTLS13)
			p.expect("EHLO client.test\r\n")
			p.send("250-mx.test\r\n250 AUTH PLAIN\r\n")
			if with {
				p.expect("AUTH PLAIN AHVzZXIAcGFzc3dvcmQ=\r\n")
				p.send("235 welcome\r\n")
			} else {
				p.expect("QUIT\r\n")
				p.send("221 bye\r\n")
			}
			p.wait()
		})
		conn, err := newDialer(t, nil).DialSMTP(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		client, err := smtp.NewClient(conn, "mx.test")
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Hello("client.test"); err != nil {
			t.Fatal(err)
		}
		auth := smtp.PlainAuth("", "user", "password", "mx.test")
		if with {
			auth = dbtls.SMTPAuth(conn, auth)
		}
		if err := client.Auth(auth); (err == nil) != with {
			t.Errorf("SMTPAuth %v: %v", with, err)
		}
		client.Close()
	}
}

// SMTPAuth doesn't vouch for a connection without TLS, nor for another server.
func TestSMTPAuthRefuses(t *testing.T) {
	plain := smtp.PlainAuth("", "user", "password", "mx.test")
	server := &smtp.ServerInfo{Name: "mx.test"}
	if _, _, err := dbtls.SMTPAuth(new(net.TCPConn), plain).Start(server); !errors.As(err, new(*dbtls.Error)) {
		t.Error(err)
	}
	addr := serve(t, func(p *peer) {
		p.secure(tls.VersionTLS13)
		p.wait()
	})
	conn, err := newDialer(t, nil).DialTLS(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	server = &smtp.ServerInfo{Name: "evil.test"}
	if _, _, err := dbtls.SMTPAuth(conn, plain).Start(server); err == nil || server.TLS {
		t.Errorf("%v, %v", err, server)
	}
}
