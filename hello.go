package ossl

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"

	"github.com/ossl-go/ossl/internal/record"
)

// What a ClientHello says, in crypto/tls's own type: crypto/tls itself is given the bytes. So a callback sees every field as it
// does there, unexported ones included (Context, SupportsCertificate), and a hello that crypto/tls finds malformed is refused.

// errCaptured ends a crypto/tls handshake whose only purpose was to have the hello parsed.
var errCaptured = errors.New("ossl: hello captured")

// scriptedConn is a net.Conn that gives what it was given and keeps what is written.
type scriptedConn struct {
	in, out []byte
}

func (c *scriptedConn) Read(b []byte) (int, error) {
	if len(c.in) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.in)
	c.in = c.in[n:]
	return n, nil
}

func (c *scriptedConn) Write(b []byte) (int, error) {
	c.out = append(c.out, b...)
	return len(b), nil
}

func (c *scriptedConn) Close() error                     { return nil }
func (c *scriptedConn) LocalAddr() net.Addr              { return nil }
func (c *scriptedConn) RemoteAddr() net.Addr             { return nil }
func (c *scriptedConn) SetDeadline(time.Time) error      { return nil }
func (c *scriptedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *scriptedConn) SetWriteDeadline(time.Time) error { return nil }

// parseHello lets crypto/tls parse a ClientHello in records. config is what the info's SupportsCertificate goes by.
// On failure, alert is the record that crypto/tls answers with, if any.
func parseHello(ctx context.Context, records []byte, config *tls.Config) (info *tls.ClientHelloInfo, alert []byte, err error) {
	config = config.Clone()
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		info = hello
		return nil, errCaptured
	}
	conn := &scriptedConn{in: records}
	err = tls.Server(conn, config).HandshakeContext(ctx)
	if info != nil {
		return info, nil, nil
	}
	return nil, conn.out, err
}

// helloFor returns the ClientHello that a crypto/tls client with this configuration sends: its versions, suites, groups and
// signature algorithms in effect, in their order.
func helloFor(c *tls.Config) (*tls.ClientHelloInfo, error) {
	conn := &scriptedConn{}
	client := &tls.Config{
		InsecureSkipVerify: true, // nothing is ever connected
		MinVersion:         c.MinVersion,
		MaxVersion:         c.MaxVersion,
		CipherSuites:       c.CipherSuites,
		CurvePreferences:   c.CurvePreferences,
	}
	if err := tls.Client(conn, client).Handshake(); len(conn.out) == 0 {
		return nil, err
	}
	info, _, err := parseHello(context.Background(), conn.out, &tls.Config{})
	return info, err
}

// helloRecords puts a handshake message into records as a client first sends it.
func helloRecords(message []byte) []byte {
	var records []byte
	for len(message) > 0 {
		n := min(len(message), maxPlaintext)
		records = append(records, record.Handshake, 3, 1, byte(n>>8), byte(n))
		records = append(records, message[:n]...)
		message = message[n:]
	}
	return records
}
