//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// decodeError is the alert for a message that can't be parsed.
const decodeError = 50

// TestDifferentialSCTLists sends clients well-formed and malformed SignedCertificateTimestampLists.
// The sender is libssl with a list as it is given, which neither ossl nor crypto/tls would send.
func TestDifferentialSCTLists(t *testing.T) {
	for _, list := range []struct {
		name, list string
		good       bool
	}{
		{"one", "\x00\x03\x00\x01x", true},
		{"two", "\x00\x07\x00\x01x\x00\x02yz", true},
		{"half a length", "\x00", false},
		{"empty list", "\x00\x00", false},
		{"half an entry's length", "\x00\x01\x00", false},
		{"empty entry", "\x00\x02\x00\x00", false},
		{"empty entry at the end", "\x00\x05\x00\x01x\x00\x00", false},
		{"entry too long", "\x00\x03\x00\x02x", false},
		{"list too short", "\x00\x02\x00\x01x", false},
		{"list too long", "\x00\x04\x00\x01x", false},
		{"trailing byte", "\x00\x04\x00\x01x\x00", false},
	} {
		for _, version := range tlstest.Versions {
			t.Run(tlstest.VersionName(version)+"/"+list.name, func(t *testing.T) {
				wantAlert, want := withSCTs(t, tlstest.Std, version, list.list)
				gotAlert, got := withSCTs(t, ossltest.UnderTest, version, list.list)
				if list.good {
					if want != nil || got != nil {
						t.Errorf("crypto/tls: %v; ossl: %v", want, got)
					}
					return
				}
				if want == nil || wantAlert != decodeError {
					t.Fatalf("crypto/tls: %v, alert %d", want, wantAlert)
				}
				var alert tls.AlertError
				if !errors.As(got, &alert) || alert != decodeError || gotAlert != decodeError {
					t.Errorf("%v, alert %d; crypto/tls: %v, alert %d", got, gotAlert, want, wantAlert)
				}
			})
		}
	}
}

// withSCTs returns the error of a client's handshake with a server that sends list, and the alert
// that the server got, or -1.
func withSCTs(t *testing.T, impl tlstest.Impl, version uint16, list string) (alert int, err error) {
	t.Helper()
	ossltest.Library() // is loaded
	cert := tlstest.ServerCert(tlstest.P256)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cred, err := libssl.NewCredential(false, cert.Certificate, pkcs8, nil, nil, []byte(list))
	if err != nil {
		t.Fatal(err)
	}
	cfg := &libssl.ContextConfig{MinVersion: version, MaxVersion: version, SecurityLevel: -1, Credential: cred}
	ctx, err := libssl.NewContext(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := tlstest.Buffered()
	defer ours.Close()
	server, _, err := ctx.Start(true, true, "", nil, nil, make([]byte, 100))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Free(false, nil)
	client := impl.Client(theirs, tlstest.ClientConfig())
	done := make(chan error, 1)
	go func() {
		err := client.Handshake()
		if err == nil {
			_, err = client.Write([]byte("x"))
		}
		if err == nil && len(client.ConnectionState().SignedCertificateTimestamps) == 0 {
			err = fmt.Errorf("no list came")
		}
		client.Close()
		done <- err
	}()
	alert = drive(server, ours)
	return alert, <-done
}

// drive runs libssl's handshake over wire and then reads, until there is data, an alert or an EOF.
// It returns the alert, or -1.
func drive(c *libssl.Conn, wire net.Conn) int {
	var in []byte
	out, buf := make([]byte, 1<<16), make([]byte, 1<<16)
	var facts libssl.Facts
	for done := false; ; {
		var s libssl.Step
		if done {
			if s = c.Read(in, buf); s.N > 0 {
				return -1
			}
		} else {
			s = c.Handshake(in, out, &facts)
			wire.Write(out[:s.Produced]) // the peer may have sent an alert and closed
		}
		in = in[s.Consumed:]
		switch s.Status {
		case libssl.Done:
			done = true
		case libssl.WantWrite:
		case libssl.WantRead:
			n, err := wire.Read(buf)
			in = append(in[:len(in):len(in)], buf[:n]...)
			// libssl doesn't take an alert of version 3.1, as crypto/tls sends it before it knows
			// the version.
			if records, _ := tlstest.SplitRecords(in); len(records) > 0 && records[0].Type == tlstest.TypeAlert {
				return int(records[0].Payload[1])
			}
			if n == 0 && err != nil {
				return -1
			}
		default:
			if _, alert, ok := c.AlertIn(); ok {
				return int(alert)
			}
			return -1
		}
	}
}

// TestDifferentialSCTListOfClient makes crypto/tls clients send, in TLS 1.3, a list with an empty
// entry, besides their certificate.
func TestDifferentialSCTListOfClient(t *testing.T) {
	for _, scts := range [][][]byte{{{1}}, {{}}} {
		cert := tlstest.ClientCert(tlstest.P256)
		cert.SignedCertificateTimestamps = scts
		want := tlstest.Run(tlstest.Pairing{Client: tlstest.Std, Server: tlstest.Std}, tlstest.Case{
			Client: tlstest.ClientWith(tlstest.Only(tls.VersionTLS13),
				tlstest.Certificates(cert)), Server: tlstest.ServerWith(tlstest.AskClient(tls.RequireAndVerifyClientCert))})
		got := tlstest.Run(tlstest.Pairing{Client: tlstest.Std, Server: ossltest.UnderTest}, tlstest.Case{
			Client: tlstest.ClientWith(tlstest.Only(tls.VersionTLS13),
				tlstest.Certificates(cert)), Server: tlstest.ServerWith(tlstest.AskClient(tls.RequireAndVerifyClientCert))})
		if (want.Server.Handshake == "ok") != (len(scts[0]) > 0) {
			t.Fatalf("crypto/tls: %v", want.Server.HandshakeErr)
		}
		if got.Server.Handshake != want.Server.Handshake || got.Server.Alerts != want.Server.Alerts {
			t.Errorf("%v: %v, alerts %s; crypto/tls: %v, alerts %s", scts, got.Server.HandshakeErr, got.Server.Alerts,
				want.Server.HandshakeErr, want.Server.Alerts)
		}
	}
}

// TestDifferentialResumedStaples: a client that resumes reports the OCSP response and the SCTs of its
// session, but the SCTs that a TLS 1.2 server sends again take the place of these.
func TestDifferentialResumedStaples(t *testing.T) {
	visits := func(p tlstest.Pairing, version uint16) (seen []string) {
		client, _ := tlstest.Resuming(version)
		for _, status := range []byte{1, 0, 2} {
			_, server := tlstest.Resuming(version)
			server.SetSessionTicketKeys([][32]byte{{1}})
			if status > 0 { // an OCSPResponse without a response (RFC 6960, section 4.2.1), and an SCT
				server.Certificates[0].OCSPStaple = []byte{0x30, 0x03, 0x0a, 0x01, status}
				server.Certificates[0].SignedCertificateTimestamps = [][]byte{{status}}
			}
			state, _ := tlstest.Visit(t, func(conn net.Conn) tlstest.Conn { return p.Client.Client(conn, client) },
				func(conn net.Conn) tlstest.Conn { return p.Server.Server(conn, server) })
			seen = append(seen, fmt.Sprintf("resumed %t, OCSP %x, SCTs %x", state.DidResume, state.OCSPResponse,
				state.SignedCertificateTimestamps))
		}
		return seen
	}
	for _, version := range tlstest.Versions {
		want := visits(pairings()[0], version)
		if replaced := strings.HasSuffix(want[2], "[02]"); replaced != (version == tls.VersionTLS12) {
			t.Errorf("crypto/tls: %q", want)
		}
		for _, p := range pairings()[1:] {
			t.Run(tlstest.VersionName(version)+"/"+p.Name(), func(t *testing.T) {
				if got := visits(p, version); !slices.Equal(got, want) {
					t.Errorf("%q\ncrypto/tls: %q", got, want)
				}
			})
		}
	}
}
