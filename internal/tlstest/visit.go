package tlstest

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
)

// Shake runs the handshakes of client and server.
func Shake(t *testing.T, client, server interface{ Handshake() error }) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	if err := client.Handshake(); err != nil {
		t.Fatal("client:", err)
	}
	if err := <-done; err != nil {
		t.Fatal("server:", err)
	}
}

// TryShake runs the handshakes of client and server over a pipe, and returns their errors. In TLS
// 1.3 a client learns that the server has refused it only when it reads.
func TryShake(client, server func(net.Conn) interface{ Handshake() error }) (clientErr, serverErr error) {
	a, b := Buffered()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() { done <- server(b).Handshake() }()
	if clientErr = client(a).Handshake(); clientErr != nil {
		a.Close()
	}
	return clientErr, <-done
}

// EchoBack sends data from the client and fails the test unless the same data comes back. The
// server echoes it in other portions.
func EchoBack(t *testing.T, client, server Conn, data []byte) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		buf := make([]byte, 7000)
		for left := len(data); left > 0; {
			n, err := server.Read(buf[:1+rand.IntN(len(buf))])
			if err == nil {
				_, err = server.Write(buf[:n])
			}
			if err != nil {
				done <- err
				return
			}
			left -= n
		}
		done <- nil
	}()
	go client.Write(data)
	got := make([]byte, len(data))
	if _, err := io.ReadFull(client, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, data) {
		t.Fatal("other data came back")
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// An End makes connections of one role, with ossl or crypto/tls.
type End func(conn net.Conn) Conn

// StdClient returns an End that makes crypto/tls's clients.
func StdClient(config *tls.Config) End {
	return func(conn net.Conn) Conn { return Std.Client(conn, config) }
}

// StdServer returns an End that makes crypto/tls's servers.
func StdServer(config *tls.Config) End {
	return func(conn net.Conn) Conn { return Std.Server(conn, config) }
}

// Visit makes one connection, sends data both ways, and returns the states of client and server,
// which must agree on whether the connection was resumed.
func Visit(t testing.TB, client, server End) (c, s tls.ConnectionState) {
	t.Helper()
	c, s, err := TryVisit(client, server)
	if err != nil {
		t.Fatal(err)
	}
	if c.DidResume != s.DidResume {
		t.Fatalf("the client says that it resumed: %v, the server: %v", c.DidResume, s.DidResume)
	}
	return c, s
}

// TryVisit is Visit for connections that may fail.
func TryVisit(client, server End) (cs, ss tls.ConnectionState, err error) {
	a, b := Buffered()
	c, s := client(a), server(b)
	defer c.Close()
	defer s.Close()
	done := make(chan error, 1)
	go func() {
		buf := make([]byte, 40000)
		_, err := io.ReadFull(s, buf)
		if err == nil {
			_, err = s.Write(buf)
		}
		if err != nil {
			s.Close()
		}
		done <- err
	}()
	buf := make([]byte, 40000)
	for i := range buf {
		buf[i] = byte(i)
	}
	if _, err = c.Write(buf); err == nil {
		_, err = io.ReadFull(c, buf)
	}
	if err != nil {
		c.Close()
		<-done
		return cs, ss, err
	}
	if err = <-done; err != nil {
		return cs, ss, err
	}
	for i := range buf {
		if buf[i] != byte(i) {
			return cs, ss, fmt.Errorf("byte %d was changed", i)
		}
	}
	return c.ConnectionState(), s.ConnectionState(), nil
}

// SameState returns an error if the state of a resumed connection differs from the first
// connection's state.
func SameState(first, resumed tls.ConnectionState) error {
	switch {
	case len(first.PeerCertificates) != len(resumed.PeerCertificates):
		return fmt.Errorf("%d certificates, then %d", len(first.PeerCertificates), len(resumed.PeerCertificates))
	case len(first.VerifiedChains) != len(resumed.VerifiedChains):
		return fmt.Errorf("%d chains, then %d", len(first.VerifiedChains), len(resumed.VerifiedChains))
	case first.Version != resumed.Version || first.CipherSuite != resumed.CipherSuite:
		return fmt.Errorf("version %x suite %x, then %x, %x", first.Version, first.CipherSuite, resumed.Version, resumed.CipherSuite)
	case first.CurveID != resumed.CurveID:
		return fmt.Errorf("group %v, then %v", first.CurveID, resumed.CurveID)
	case first.ServerName != resumed.ServerName || first.NegotiatedProtocol != resumed.NegotiatedProtocol:
		return fmt.Errorf("%q %q, then %q %q", first.ServerName, first.NegotiatedProtocol, resumed.ServerName,
			resumed.NegotiatedProtocol)
	case string(first.OCSPResponse) != string(resumed.OCSPResponse):
		return fmt.Errorf("OCSP response of %d bytes, then %d", len(first.OCSPResponse), len(resumed.OCSPResponse))
	case len(first.SignedCertificateTimestamps) != len(resumed.SignedCertificateTimestamps):
		return fmt.Errorf("%d SCTs, then %d", len(first.SignedCertificateTimestamps), len(resumed.SignedCertificateTimestamps))
	}
	for i, cert := range first.PeerCertificates {
		if !cert.Equal(resumed.PeerCertificates[i]) {
			return fmt.Errorf("certificate %d differs", i)
		}
	}
	return nil
}

// Pattern returns n bytes of which few neighbours are equal, so that none can be lost or moved
// unnoticed.
func Pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i/251)
	}
	return b
}

// WantResumed makes a connection and fails the test unless DidResume is as wanted.
func WantResumed(t *testing.T, client, server End, want bool) {
	t.Helper()
	if c, _ := Visit(t, client, server); c.DidResume != want {
		t.Errorf("DidResume is %v", c.DidResume)
	}
}
