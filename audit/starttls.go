package audit

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
)

// startTLS speaks a protocol until TLS begins.
func (r *run) startTLS(conn net.Conn, protocol string) error {
	return startTLS(conn, protocol, orElse(r.options.ServerName, r.target.Host), r.injected)
}

// StartTLS speaks a target's protocol on a new connection to it until TLS begins; with HTTPS, that
// is at once. It names serverName to the server if the protocol has room for it, or the target's
// host if serverName is empty. It reads no byte of a TLS record.
func StartTLS(conn net.Conn, target Target, serverName string) error {
	return startTLS(conn, target.Protocol, orElse(serverName, target.Host), "")
}

// greets reports whether the server speaks first in a protocol. It may take its time: postscreen of
// Postfix waits 6 seconds before it sends the end of its greeting, to find clients that don't wait.
func greets(protocol string) bool {
	return slices.Contains([]string{"smtp", "imap", "pop3", "mysql"}, protocol)
}

// greeted is called when the server has sent its greeting.
func (d *dialogue) greeted() error {
	if c, ok := d.conn.(*countedConn); ok {
		return c.greeted()
	}
	return nil
}

// A startTLSError reports that the server refuses StartTLS. Another connection wouldn't change that.
type startTLSError struct{ protocol, message string }

func (e *startTLSError) Error() string { return "StartTLS of " + e.protocol + ": " + e.message }

// startTLSBytes bounds the bytes that a server may send before TLS begins.
const startTLSBytes = 64 << 10

// startTLS asks a server to begin TLS. It appends injected to its last command, in the same segment,
// which is empty except in the test of command injection.
func startTLS(conn net.Conn, protocol, name, injected string) error {
	d := dialogue{
		protocol: protocol,
		conn:     conn,
		in:       bufio.NewReader(&bounded{conn, startTLSBytes}),
		name:     name,
		injected: injected,
	}
	var err error
	switch protocol {
	case "tls", "https", "postgres-direct":
		return nil
	case "smtp":
		err = d.smtp()
	case "imap":
		err = d.imap()
	case "pop3":
		err = d.pop3()
	case "ldap":
		err = d.ldap()
	case "postgres":
		err = d.postgres()
	case "mysql":
		err = d.mysql()
	case "xmpp":
		err = d.xmpp("jabber:client")
	case "xmpp-server":
		err = d.xmpp("jabber:server")
	default:
		return &startTLSError{protocol, "the protocol is unknown"}
	}
	if err == nil && d.in.Buffered() > 0 {
		// A client that kept these bytes would take them for a part of the encrypted session.
		err = d.refused("the server sent %d bytes after its consent, before TLS began", d.in.Buffered())
	}
	return err
}

// A dialogue is the part of a connection before TLS.
type dialogue struct {
	protocol string
	conn     net.Conn
	in       *bufio.Reader
	name     string
	injected string
}

// bounded is io.LimitedReader with an error of its own at the end.
type bounded struct {
	r io.Reader
	n int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.n == 0 {
		return 0, &startTLSError{"the server", fmt.Sprintf("it sent more than %d bytes before TLS", startTLSBytes)}
	}
	n, err := b.r.Read(p[:min(len(p), b.n)])
	b.n -= n
	return n, err
}

func (d *dialogue) refused(format string, args ...any) error {
	return &startTLSError{d.protocol, fmt.Sprintf(format, args...)}
}

func (d *dialogue) send(s string) error {
	_, err := d.conn.Write([]byte(s))
	return err
}

// line reads a line, without its end.
func (d *dialogue) line() (string, error) {
	line, err := d.in.ReadString('\n')
	if err != nil {
		return "", unexpected(err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// unexpected returns the error for an end of the connection before TLS.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// quote returns the first bytes of a server's answer.
func quote(s string) string {
	if len(s) > 80 {
		return fmt.Sprintf("%q…", s[:80])
	}
	return fmt.Sprintf("%q", s)
}

// smtp is RFC 3207.
func (d *dialogue) smtp() error {
	if _, err := d.smtpReply("220"); err != nil {
		return err
	}
	if err := d.greeted(); err != nil {
		return err
	}
	if err := d.send("EHLO " + d.ehlo() + "\r\n"); err != nil {
		return err
	}
	offers, err := d.smtpReply("250")
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(offers, func(s string) bool { return strings.EqualFold(s, "STARTTLS") }) {
		return d.refused("the server doesn't offer STARTTLS")
	}
	if err := d.send("STARTTLS\r\n" + d.injected); err != nil {
		return err
	}
	_, err = d.smtpReply("220")
	return err
}

// ehlo returns an address literal (RFC 5321, section 4.1.3): the client's name is nobody's business.
func (d *dialogue) ehlo() string {
	address, ok := d.conn.LocalAddr().(*net.TCPAddr)
	switch {
	case !ok:
		return "localhost"
	case address.IP.To4() != nil:
		return "[" + address.IP.String() + "]"
	}
	return "[IPv6:" + address.IP.String() + "]"
}

// smtpReply reads a reply of one or several lines, and returns them without the code.
func (d *dialogue) smtpReply(code string) ([]string, error) {
	var lines []string
	for {
		line, err := d.line()
		if err != nil {
			return nil, err
		}
		switch {
		case len(line) < 3 || len(line) > 3 && line[3] != ' ' && line[3] != '-':
			return nil, d.refused("%s is not a reply", quote(line))
		case line[0] == '4': // a busy server refuses this connection only
			return nil, errors.New("SMTP: the server answered " + quote(line))
		case line[:3] != code:
			return nil, d.refused("the server answered %s", quote(line))
		}
		if len(line) == 3 {
			return append(lines, ""), nil
		}
		lines = append(lines, line[4:])
		if line[3] == ' ' {
			return lines, nil
		}
	}
}

// imap is RFC 9051, section 6.2.1.
func (d *dialogue) imap() error {
	greeting, err := d.line()
	if err != nil {
		return err
	}
	switch upper := strings.ToUpper(greeting); {
	case strings.HasPrefix(upper, "* BYE"):
		return errors.New("IMAP: the server answered " + quote(greeting))
	case !strings.HasPrefix(upper, "* OK"):
		return d.refused("%s is not a greeting", quote(greeting))
	}
	if err := d.greeted(); err != nil {
		return err
	}
	if err := d.send("a STARTTLS\r\n" + d.injected); err != nil {
		return err
	}
	for {
		line, err := d.line()
		if err != nil {
			return err
		}
		switch {
		case strings.HasPrefix(line, "* "):
		case strings.HasPrefix(strings.ToUpper(line), "A OK"):
			return nil
		default:
			return d.refused("the server answered %s", quote(line))
		}
	}
}

// pop3 is RFC 2595, section 4.
func (d *dialogue) pop3() error {
	for _, command := range []string{"", "STLS\r\n" + d.injected} {
		if command != "" {
			if err := d.send(command); err != nil {
				return err
			}
		}
		line, err := d.line()
		if err != nil {
			return err
		}
		if !strings.HasPrefix(line, "+OK") {
			return d.refused("the server answered %s", quote(line))
		}
		if err := d.greeted(); err != nil {
			return err
		}
	}
	return nil
}

// xmpp is RFC 6120, section 5.
func (d *dialogue) xmpp(space string) error {
	var to strings.Builder
	if err := xml.EscapeText(&to, []byte(d.name)); err != nil {
		return err
	}
	if err := d.send("<?xml version='1.0'?><stream:stream to='" + to.String() + "' version='1.0' xmlns='" + space +
		"' xmlns:stream='http://etherx.jabber.org/streams'>"); err != nil {
		return err
	}
	decoder := xml.NewDecoder(d.in)
	offered := false
	for {
		token, err := decoder.Token()
		if err != nil {
			return d.malformed(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			switch token.Name.Local {
			case "starttls":
				offered = true
			case "error", "failure":
				return d.refused("the server answered <%s>", token.Name.Local)
			case "proceed":
				if err := decoder.Skip(); err != nil {
					return d.malformed(err)
				}
				return nil
			}
		case xml.EndElement:
			switch token.Name.Local {
			case "features":
				if !offered {
					return d.refused("the server doesn't offer STARTTLS")
				}
				if err := d.send("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"); err != nil {
					return err
				}
			case "stream":
				return d.refused("the server closed the stream")
			}
		}
	}
}

func (d *dialogue) malformed(err error) error {
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) && syntax.Msg != "unexpected EOF" {
		return d.refused("the server's answer is not XMPP: %s", quote(syntax.Msg))
	}
	return unexpected(err)
}
