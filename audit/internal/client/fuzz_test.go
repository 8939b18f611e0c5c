package client_test

import (
	"bytes"
	"compress/zlib"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

// A bytesConn is a connection to a server that sends the same bytes to every client.
type bytesConn struct{ io.Reader }

func (bytesConn) Write(b []byte) (int, error)      { return len(b), nil }
func (bytesConn) Close() error                     { return nil }
func (bytesConn) LocalAddr() net.Addr              { return nil }
func (bytesConn) RemoteAddr() net.Addr             { return nil }
func (bytesConn) SetDeadline(time.Time) error      { return nil }
func (bytesConn) SetReadDeadline(time.Time) error  { return nil }
func (bytesConn) SetWriteDeadline(time.Time) error { return nil }

// message returns a handshake message in a record of its own.
func message(typ byte, body []byte) []byte {
	n := len(body)
	return append([]byte{22, 3, 3, byte((n + 4) >> 8), byte(n + 4), typ, byte(n >> 16), byte(n >> 8), byte(n)}, body...)
}

// vector returns data after a length of n bytes.
func vector(n int, data []byte) (v []byte) {
	for n--; n >= 0; n-- {
		v = append(v, byte(len(data)>>(8*n)))
	}
	return append(v, data...)
}

func FuzzHandshake13(f *testing.F) {
	random := sha256.Sum256([]byte("HelloRetryRequest")) // RFC 8446, section 4.1.3
	retry := append([]byte{3, 3}, random[:]...)
	retry = append(retry, 0, 0x13, 1, 0, 0, 12, 0, 43, 0, 2, 3, 4, 0, 51, 0, 2, 0, 23)
	f.Add(message(2, retry))
	f.Add(append(message(2, retry), message(2, retry)...))
	f.Add([]byte{21, 3, 3, 0, 2, 2, 40})
	f.Fuzz(func(t *testing.T, data []byte) {
		h := client.Default("test")
		h.Random, h.SessionID = make([]byte, 32), []byte{}
		offered := &client.Session{Version: hello.TLS13, Suite: client.AES128GCM, Secret: make([]byte, 32), Ticket: []byte{1}}
		for _, session := range []*client.Session{nil, offered} {
			c, err := client.Handshake13(bytesConn{bytes.NewReader(data)}, &client.Config{Hello: h, Session: session, Shares: []uint16{}})
			if err == nil {
				t.Errorf("a handshake without keys succeeded: %+v", c.State)
			}
		}
	})
}

func FuzzEncrypted13(f *testing.F) {
	// Seeds must be the same in each process.
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	cert, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		f.Fatal(err)
	}
	extensions := message(8, []byte{0, 0})
	list := append([]byte{0}, vector(3, append(vector(3, cert), 0, 0))...)
	verify := append([]byte{8, 7}, vector(2, []byte("signature"))...)
	f.Add(bytes.Join([][]byte{extensions, message(11, list), message(15, verify), message(20, make([]byte, 32))}, nil))
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	w.Write(list)
	w.Close()
	compressed := append(append([]byte{0, 1}, byte(len(list)>>16), byte(len(list)>>8), byte(len(list))), vector(3, z.Bytes())...)
	f.Add(append(extensions, message(25, compressed)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		h := client.Default("test")
		h.CompressCertificate, h.ALPN = []uint16{1, 2}, []string{"h2"}
		client.ReadEncrypted(client.NewConn(bytesConn{bytes.NewReader(data)}), &client.Config{Hello: h})
	})
}

func FuzzPost13(f *testing.F) {
	ticket := append(make([]byte, 8), vector(1, []byte{0})...)
	ticket = append(append(ticket, vector(2, []byte("ticket"))...), 0, 8, 0, 42, 0, 4, 0, 0, 64, 0)
	f.Add(message(4, ticket)[5:])
	f.Add(message(24, []byte{1})[5:])
	f.Fuzz(func(t *testing.T, data []byte) {
		client.ReadPost(client.NewConn(bytesConn{bytes.NewReader(nil)}), data)
	})
}

// TestCompressed13 has the certificate compressed, and sees it.
func TestCompressed13(t *testing.T) {
	cert := certificate(ecKind).Certificate[0]
	list := append([]byte{0}, vector(3, append(vector(3, cert), 0, 0))...)
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	w.Write(list)
	w.Close()
	for _, test := range []struct {
		name      string
		algorithm byte
		size      int
		sees      bool
	}{
		{"zlib", 1, len(list), true},
		{"zlib, a size too small", 1, len(list) - 1, false},
		{"zlib, a size too large", 1, len(list) + 1, false},
		{"zlib, a size of 16 MB", 1, 1<<24 - 1, false},
		{"brotli", 2, len(list), false},
		{"not offered", 3, len(list), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			size := []byte{byte(test.size >> 16), byte(test.size >> 8), byte(test.size)}
			body := append(append([]byte{0, test.algorithm}, size...), vector(3, z.Bytes())...)
			data := append(message(8, []byte{0, 0}), message(25, body)...)
			h := client.Default("test")
			h.CompressCertificate = []uint16{1, 2}
			state, err := client.ReadEncrypted(client.NewConn(bytesConn{bytes.NewReader(data)}), &client.Config{Hello: h})
			if err == nil {
				t.Error("no signature, and no error")
			}
			if sees := len(state.Certificates) == 1 && bytes.Equal(state.Certificates[0], cert); sees != test.sees {
				t.Errorf("certificates are %x", state.Certificates)
			}
			if state.Compressed != uint16(test.algorithm) && test.algorithm != 3 {
				t.Errorf("compressed by %d", state.Compressed)
			}
		})
	}
}
