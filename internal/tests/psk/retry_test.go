//go:build cgo || ossl_nocgo

package psk

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestPSKLeftOutOfSecondHello: a client whose second ClientHello lacks the key of the first, or has another
// identity, gets nothing from a server, not even its certificate.
func TestPSKLeftOutOfSecondHello(t *testing.T) {
	for name, edit := range map[string]func(hello []byte) []byte{
		"no key":           func(hello []byte) []byte { return withoutLastExtension(hello) },
		"another identity": func(hello []byte) []byte { return bytes.Replace(hello, key256.Identity, []byte("meter-00"), 1) },
	} {
		for _, needs := range []bool{true, false} {
			sc, opts := only(tls.VersionTLS13), []ossl.Option{knowing(key256)}
			if !needs {
				sc, opts = tlstest.ServerConfig(tlstest.Only(tls.VersionTLS13)), append(opts, ossl.WithPSKOrCertificate())
			}
			sc.CurvePreferences = []tls.CurveID{tls.CurveP384}
			server := ossltest.NewPlainContext(t, sc, opts...)
			cc := only(tls.VersionTLS13)
			cc.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP384}
			a, b := tlstest.Buffered()
			var rec tlstest.Recording
			c := ossltest.NewPlainContext(t, cc, offering(key256)).Client(&secondHello{Conn: a, edit: edit}, "")
			s := server.Server(rec.Tap(tlstest.ServerRole, b))
			done := make(chan error, 1)
			go func() {
				done <- c.Handshake()
				a.Close()
			}()
			var alert tls.AlertError
			if err := s.Handshake(); err == nil || needs && !errors.As(err, &alert) || !needs && !errors.Is(err, ossl.ErrNoPSK) {
				t.Errorf("%s: %v", name, err)
			}
			if err := <-done; err == nil {
				t.Errorf("%s: the client succeeded", name)
			}
			records, _ := tlstest.SplitRecords(rec.Bytes(tlstest.ServerRole))
			if messages := tlstest.Messages(records); len(messages) != 1 { // the HelloRetryRequest
				t.Errorf("%s: the server sent %d messages", name, len(messages))
			}
			c.Close()
			s.Close()
		}
	}
}

// A secondHello edits the second handshake message that is written in the clear, in a record of its own.
type secondHello struct {
	net.Conn
	edit   func(hello []byte) []byte
	hellos int
}

func (c *secondHello) Write(p []byte) (int, error) {
	records, _ := tlstest.SplitRecords(p)
	at := 0
	for _, r := range records {
		n := 5 + len(r.Payload)
		if p[at] == 22 {
			c.hellos++
			if c.hellos == 2 {
				edited := append(bytes.Clone(p[:at]), c.edit(bytes.Clone(p[at:at+n]))...)
				_, err := c.Conn.Write(append(edited, p[at+n:]...))
				return len(p), err
			}
		}
		at += n
	}
	return c.Conn.Write(p)
}

// withoutLastExtension drops the last extension from the record of a ClientHello.
func withoutLastExtension(hello []byte) []byte {
	first := extensionsAt(hello)
	at, last := first+2, 0
	for at < len(hello) {
		last = at
		at += 4 + int(binary.BigEndian.Uint16(hello[at+2:]))
	}
	for _, place := range []int{3, 5 + 2, first} {
		binary.BigEndian.PutUint16(hello[place:], uint16(int(binary.BigEndian.Uint16(hello[place:]))-(len(hello)-last)))
	}
	return hello[:last]
}
