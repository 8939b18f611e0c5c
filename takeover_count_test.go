//go:build cgo

package ossl_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestTakeoverCountsTwice has the message callback miss a record, each in turn, or Finished, where the counts begin. What is
// counted for a takeover is then wrong, and would use a nonce twice: the connection must stay with libssl, and work.
func TestTakeoverCountsTwice(t *testing.T) {
	if os.Getenv("OSSL_RECORDS") == "libssl" {
		t.Skip("OSSL_RECORDS=libssl: nothing is taken over")
	}
	for _, test := range []struct {
		role           tlstest.Role
		version        uint16
		deferred       bool
		received, sent int // records
	}{
		{tlstest.ClientRole, tls.VersionTLS12, false, 4, 3},
		{tlstest.ClientRole, tls.VersionTLS13, false, 2, 2},
		{tlstest.ClientRole, tls.VersionTLS13, true, 1, 1},
		{tlstest.ServerRole, tls.VersionTLS12, false, 3, 7},
		{tlstest.ServerRole, tls.VersionTLS13, false, 2, 7},
	} {
		t.Run(fmt.Sprintf("%s/%s/deferred %t", test.role, tlstest.VersionName(test.version), test.deferred), func(t *testing.T) {
			for sent, want := range map[bool]int{false: test.received, true: test.sent} {
				n := 0
				for n < 50 && missRecord(t, test.role, test.version, test.deferred, sent, uint8(n+1)) {
					n++
				}
				if n != want {
					t.Errorf("sent %t: %d records keep the connection with libssl, want %d", sent, n, want)
				}
				if test.version == tls.VersionTLS13 && !test.deferred &&
					!missRecord(t, test.role, test.version, false, sent, libssl.MissFinished) {
					t.Errorf("sent %t: Finished was missed and the connection taken over", sent)
				}
			}
		})
	}
}

// missRecord makes a connection whose n-th record is missed, and reports whether that left it with libssl. Where the takeover is
// deferred it is the n-th after the handshake; else the n-th after the peer's certificate, or the client's hello, was seen.
func missRecord(t *testing.T, role tlstest.Role, version uint16, deferred, sent bool, n uint8) bool {
	t.Helper()
	cc, sc := tlstest.Resuming(version)
	var conn *ossl.Conn
	a, b := tlstest.Buffered()
	defer a.Close()
	defer b.Close()
	var client, server tlstest.Conn
	if role == tlstest.ClientRole {
		if !deferred {
			cc.ClientSessionCache = nil
			cc.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error {
				conn.MissRecord(sent, n)
				return nil
			}
		}
		conn = ossltest.NewContext(t, cc).Client(a, "")
		client, server = conn, tlstest.Std.Server(b, sc)
	} else {
		cert := sc.Certificates[0]
		sc.Certificates = nil
		sc.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			conn.MissRecord(sent, n)
			return &cert, nil
		}
		conn = ossltest.NewContext(t, sc).Server(b)
		client, server = tlstest.Std.Client(a, cc), conn
	}
	done := make(chan error, 1)
	go func() {
		_, err := io.CopyN(server, server, 6)
		if err != nil {
			server.Close()
		}
		done <- err
	}()
	if err := client.Handshake(); err != nil {
		t.Fatalf("record %d: %v", n, err)
	}
	if deferred {
		conn.MissRecord(sent, n)
	}
	for i := range 3 {
		if _, err := client.Write([]byte{byte(i), 'x'}); err != nil {
			t.Fatalf("record %d, write %d: %v", n, i, err)
		}
		buf := make([]byte, 2)
		if _, err := io.ReadFull(client, buf); err != nil || buf[0] != byte(i) {
			t.Fatalf("record %d, read %d: %v", n, i, err)
		}
	}
	if err := <-done; err != nil {
		t.Fatalf("record %d: %v", n, err)
	}
	return !conn.TakenOver()
}
