package dbtls

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/smtp"
)

// DialSMTP connects to an SMTP server, submission (port 587) or relay (port 25), with STARTTLS (RFC
// 3207). Servers of submissions (port 465) need [Dialer.DialTLS].
//
// The connection begins with a greeting, as [smtp.NewClient] expects. It is the Dialer's: after
// STARTTLS, servers send none, and the client must forget the one before.
func (d *Dialer) DialSMTP(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.dial(ctx, network, addr, "SMTP", func(_ context.Context, p *prelude) (net.Conn, error) {
		if err := p.startSMTP(); err != nil {
			return nil, err
		}
		return newReplayConn(p.conn, []byte(greeting)), nil
	})
}

const greeting = "220 ready, with TLS\r\n"

func (p *prelude) startSMTP() error {
	p.step = "greeting"
	if _, err := p.reply("220", ""); err != nil {
		return err
	}
	p.step = "EHLO"
	if err := p.send([]byte("EHLO " + addressLiteral(p.raw.LocalAddr()) + "\r\n")); err != nil {
		return err
	}
	offered, err := p.reply("250", "STARTTLS")
	switch {
	case err != nil:
		return err
	case !offered:
		return ErrNoTLS
	}
	p.step = "STARTTLS"
	if err := p.send([]byte("STARTTLS\r\n")); err != nil {
		return err
	}
	_, err = p.reply("220", "")
	return err
}

// addressLiteral names the client by its address (RFC 5321, section 4.1.3): the server gets the name
// that the client chooses after the handshake.
func addressLiteral(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	switch {
	case !ok:
		return "localhost"
	case tcp.IP.To4() != nil:
		return "[" + tcp.IP.String() + "]"
	}
	return "[IPv6:" + tcp.IP.String() + "]"
}

// reply reads a reply of one or several lines, which must have the code. It reports whether one of
// the lines after the first is keyword.
func (p *prelude) reply(code, keyword string) (found bool, err error) {
	for first := true; ; first = false {
		line, err := p.line()
		if err != nil {
			return false, err
		}
		switch {
		case len(line) < 3 || len(line) > 3 && line[3] != ' ' && line[3] != '-':
			return false, fmt.Errorf("the server sent %s, not a reply", quote(line))
		case string(line[:3]) != code:
			return false, fmt.Errorf("the server answered %s", quote(line))
		}
		found = found || !first && len(line) > 4 && bytes.EqualFold(line[4:], []byte(keyword))
		if len(line) == 3 || line[3] == ' ' {
			return found, nil
		}
	}
}

// SMTPAuth returns auth for a client on conn, which a [Dialer] has returned. [smtp.PlainAuth] sends
// passwords only if net/smtp reports that the connection has TLS, and net/smtp recognizes only
// crypto/tls's TLS. If conn has no TLS, authentication fails.
func SMTPAuth(conn net.Conn, auth smtp.Auth) smtp.Auth { return &smtpAuth{auth, conn} }

type smtpAuth struct {
	smtp.Auth
	conn net.Conn
}

func (a *smtpAuth) Start(server *smtp.ServerInfo) (string, []byte, error) {
	conn, ok := TLSConn(a.conn)
	if !ok || !conn.ConnectionState().HandshakeComplete {
		return "", nil, &Error{"SMTP", "AUTH", errors.New("the connection has no TLS")}
	}
	secure := *server
	secure.TLS = true
	return a.Auth.Start(&secure)
}
