package client_test

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/audit/internal/testcert"
)

const ecKind = "ECDSA secp256r1"

// certificate returns a self-signed certificate with a staple and a timestamp.
func certificate(kind string) tls.Certificate {
	cert := testcert.Root(testcert.Template{Key: testcert.Key(kind, "")}).TLS()
	cert.OCSPStaple, cert.SignedCertificateTimestamps = []byte("staple"), [][]byte{[]byte("sct")}
	return cert
}

// echo sends data, and wants them back.
func echo(t *testing.T, c *client.Conn) {
	t.Helper()
	data := bytes.Repeat([]byte("echo "), 8000)
	go c.Write(data)
	got := make([]byte, len(data))
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, data) {
		t.Error("other data came back")
	}
}

func TestHandshake13(t *testing.T) {
	groups := []uint16{client.X25519, client.P256, client.P384, client.P521, client.X25519MLKEM768}
	suites := []uint16{client.AES128GCM, client.AES256GCM, client.ChaCha20}
	type test struct {
		name         string
		key          string
		group, suite uint16
		retry        bool
		client       tls.ClientAuthType
	}
	tests := []test{
		{"RSA", "RSA 2048", client.X25519, client.AES128GCM, false, 0},
		{"Ed25519", "Ed25519", client.X25519, client.AES128GCM, false, 0},
		{"client certificate asked", ecKind, client.X25519, client.AES128GCM, false, tls.RequestClientCert},
	}
	for _, g := range groups {
		for _, s := range suites {
			tests = append(tests, test{fmt.Sprintf("%04x %04x", g, s), ecKind, g, s, false, 0},
				test{fmt.Sprintf("%04x %04x retry", g, s), ecKind, g, s, true, 0})
		}
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cert := certificate(test.key)
			address := client.EchoServer(t, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "x"},
				CurvePreferences: []tls.CurveID{tls.CurveID(test.group)}, ClientAuth: test.client})
			h := client.Default("test")
			h.Suites, h.Groups = []uint16{test.suite}, groups
			shares := []uint16{test.group}
			if test.retry {
				shares = []uint16{}
			}
			c, err := client.Handshake13(client.Connect(t, address), &client.Config{Hello: h, ALPN: []string{"x"}, Shares: shares})
			if err != nil {
				t.Fatal(err)
			}
			s := c.State
			if s.Version != hello.TLS13 || s.Suite != test.suite || s.Group != test.group || s.ALPN != "x" || s.Retried != test.retry ||
				s.Resumed || s.Unverified != nil || s.Signature == 0 {
				t.Errorf("state is %+v", s)
			}
			if len(s.Certificates) != 1 || !bytes.Equal(s.Certificates[0], cert.Certificate[0]) || string(s.Staple) != "staple" ||
				string(s.SCTs) != "\x00\x05\x00\x03sct" {
				t.Errorf("certificates are %x, %q, %q", s.Certificates, s.Staple, s.SCTs)
			}
			if s.Flight < len(cert.Certificate[0])+200 || s.Flight > 4000 || s.Times.Flight.Before(s.Times.FirstByte) ||
				s.Times.FirstByte.Before(s.Times.Sent) || s.Times.Done.Before(s.Times.Flight) {
				t.Errorf("flight has %d bytes, times are %+v", s.Flight, s.Times)
			}
			echo(t, c)
			if got := len(c.Sessions()); got != 1 {
				t.Errorf("%d sessions", got)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestResume13(t *testing.T) {
	for _, retry := range []bool{false, true} {
		for _, suite := range []uint16{client.AES128GCM, client.AES256GCM} {
			t.Run(fmt.Sprintf("%04x retry %v", suite, retry), func(t *testing.T) {
				cert := certificate(ecKind)
				address := client.EchoServer(t, &tls.Config{Certificates: []tls.Certificate{cert}})
				h := client.Default("test")
				h.Suites = []uint16{suite}
				config := &client.Config{Hello: h}
				first, err := client.Handshake13(client.Connect(t, address), config)
				if err != nil {
					t.Fatal(err)
				}
				sessions, err := first.ReadSessions(1)
				if err != nil || len(sessions) != 1 {
					t.Fatal(sessions, err)
				}
				s := sessions[0]
				if s.Lifetime == 0 || s.Suite != suite || len(s.Certificates) != 1 {
					t.Errorf("session is %+v", s)
				}
				config.Session = s
				if retry {
					config.Shares = []uint16{}
				}
				second, err := client.Handshake13(client.Connect(t, address), config)
				if err != nil {
					t.Fatal(err)
				}
				if !second.State.Resumed || second.State.Retried != retry || second.State.Certificates != nil {
					t.Errorf("state is %+v", second.State)
				}
				echo(t, second)
				damaged := *s
				damaged.Ticket = append([]byte{damaged.Ticket[0] ^ 1}, damaged.Ticket[1:]...)
				config.Session = &damaged
				third, err := client.Handshake13(client.Connect(t, address), config)
				if err != nil || third.State.Resumed || len(third.State.Certificates) != 1 {
					t.Errorf("a damaged ticket: %v, %+v", err, third)
				}
			})
		}
	}
}

// otherSigner signs with a key that isn't the certificate's.
type otherSigner struct {
	crypto.Signer
	other crypto.Signer
}

func (s otherSigner) Sign(r io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return s.other.Sign(r, digest, opts)
}

// A changingConn changes the server's byte at an offset.
type changingConn struct {
	net.Conn
	offset int
}

func (c *changingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.offset >= 0 && c.offset < n {
		b[c.offset] ^= 1
	}
	c.offset -= n
	return n, err
}

func TestLies13(t *testing.T) {
	honest := certificate(ecKind)
	liar := honest
	liar.PrivateKey = otherSigner{honest.PrivateKey.(crypto.Signer), testcert.Key(ecKind, "other")}
	address := client.EchoServer(t, &tls.Config{Certificates: []tls.Certificate{liar}})
	c, err := client.Handshake13(client.Connect(t, address), &client.Config{ServerName: "test"})
	if !errors.As(err, new(*client.ProtocolError)) || c == nil || len(c.State.Certificates) != 1 {
		t.Errorf("a signature by another key: %v, %+v", err, c)
	}
	address = client.EchoServer(t, &tls.Config{Certificates: []tls.Certificate{honest}})
	c, err = client.Handshake13(client.Connect(t, address), &client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	const shorter = 8 // how much a flight may be, with another ECDSA signature
	for offset := 0; offset < c.State.Flight-shorter; offset += 1 + offset/64 {
		conn := client.Connect(t, address)
		conn.SetDeadline(time.Now().Add(100 * time.Millisecond)) // a changed length makes us wait
		if _, err := client.Handshake13(&changingConn{conn, offset}, &client.Config{}); err == nil && offset != 1 && offset != 2 {
			t.Errorf("byte %d was changed, and the handshake succeeded", offset)
		}
		conn.Close()
	}
}
