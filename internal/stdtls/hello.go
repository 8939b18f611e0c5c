package stdtls

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ossl-go/ossl/internal/record"
)

// errCaptured ends a crypto/tls handshake that was run only to parse its ClientHello.
var errCaptured = errors.New("ossl: hello captured")

// A scriptedConn is a net.Conn that reads from in and appends to out.
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

// LeaveToCryptoTLS marks the connection for IsPlain.
func (c *scriptedConn) LeaveToCryptoTLS() {}

// IsPlain reports whether a connection is one of this package's, or of another copy of it, whose
// handshakes are crypto/tls's.
func IsPlain(conn net.Conn) bool {
	_, ok := conn.(interface{ LeaveToCryptoTLS() })
	return ok
}

// A plainPipe is an end of a net.Pipe for crypto/tls.
type plainPipe struct{ net.Conn }

// LeaveToCryptoTLS marks the connection for IsPlain.
func (plainPipe) LeaveToCryptoTLS() {}

func (c *scriptedConn) Close() error                     { return nil }
func (c *scriptedConn) LocalAddr() net.Addr              { return nil }
func (c *scriptedConn) RemoteAddr() net.Addr             { return nil }
func (c *scriptedConn) SetDeadline(time.Time) error      { return nil }
func (c *scriptedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *scriptedConn) SetWriteDeadline(time.Time) error { return nil }

// ParseHello has crypto/tls parse a ClientHello in records. So callbacks see every field as they do
// in crypto/tls, unexported ones included, and a hello that crypto/tls finds malformed is refused.
// SupportsCertificate of the info consults config. If parsing fails, alert is the record that
// crypto/tls answers with, if any.
func ParseHello(ctx context.Context, records []byte, config *tls.Config) (info *tls.ClientHelloInfo, alert []byte, err error) {
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

// A Hello has the lists of a ClientHello.
type Hello struct {
	Versions, CipherSuites []uint16
	Groups                 []tls.CurveID
	SignatureSchemes       []tls.SignatureScheme
}

// maxHellos bounds the remembered hellos. Few programs have more than one or two configurations that
// differ in what they depend on.
const maxHellos = 64

var hellos = struct {
	sync.Mutex
	of map[string]*Hello // by helloKey
}{of: map[string]*Hello{}}

// helloKey returns everything that DefaultHello depends on: the fields, and the settings in GODEBUG,
// which a program may change.
func helloKey(c *tls.Config) string {
	// A nil list and an empty one have different meanings.
	return fmt.Sprintf("%d %d %#v %#v %s", c.MinVersion, c.MaxVersion, c.CipherSuites, c.CurvePreferences, os.Getenv("GODEBUG"))
}

// DefaultHello returns the ClientHello that a crypto/tls client with this configuration sends. It
// has the versions, suites, groups and signature algorithms in effect, in their order. It must not
// be changed: it is remembered, since crypto/tls makes keys for each ClientHello.
func DefaultHello(c *tls.Config) (*Hello, error) {
	key := helloKey(c)
	hellos.Lock()
	h := hellos.of[key]
	hellos.Unlock()
	if h != nil {
		return h, nil
	}
	info, err := newHello(c)
	if err != nil {
		return nil, err
	}
	h = &Hello{info.SupportedVersions, info.CipherSuites, info.SupportedCurves, info.SignatureSchemes}
	hellos.Lock()
	defer hellos.Unlock()
	if len(hellos.of) >= maxHellos {
		clear(hellos.of)
	}
	hellos.of[key] = h
	return h, nil
}

func newHello(c *tls.Config) (*tls.ClientHelloInfo, error) {
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
	info, _, err := ParseHello(context.Background(), conn.out, &tls.Config{})
	return info, err
}

// HelloRecords puts a ClientHello into records, as a client first sends it.
func HelloRecords(message []byte) []byte {
	var records []byte
	for len(message) > 0 {
		n := min(len(message), record.MaxPlaintext)
		records = append(records, record.Handshake, 3, 1, byte(n>>8), byte(n))
		records = append(records, message[:n]...)
		message = message[n:]
	}
	return records
}
