//go:build cgo || ossl_nocgo

package ossl_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// In TestNestedHandshake, the verification of a client's certificate, which is called from within
// libssl, runs the handshake of another connection and exports keying material from it, on the same
// thread and under the names of the outer connection's secrets. The outer connection must keep its
// own secrets.
func TestNestedHandshake(t *testing.T) {
	for name, path := range map[string]ossl.RecordPath{"direct": ossl.RecordsDirect, "libssl": ossl.RecordsLibssl} {
		t.Run(name, func(t *testing.T) {
			inner := ossltest.OnPath(path)
			nested := func() error {
				a, b := tlstest.NewPipe()
				server := inner.Server(b, tlstest.ServerConfig())
				done := make(chan error, 1)
				go func() { done <- server.Handshake() }()
				client := inner.Client(a, tlstest.ClientConfig())
				if err := errors.Join(client.Handshake(), <-done); err != nil {
					return err
				}
				for _, label := range []string{"c hs traffic", "c ap traffic", "s ap traffic", "exp master"} {
					if _, err := client.(*ossl.Conn).ExportKeyingMaterial(label, nil, 32); err != nil {
						return err
					}
				}
				return errors.Join(client.Close(), server.Close())
			}
			called := 0
			serverConfig := tlstest.ServerConfig(func(c *tls.Config) {
				c.ClientAuth = tls.RequireAnyClientCert
				c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error {
					called++
					return nested()
				}
			})
			clientConfig := tlstest.ClientConfig(func(c *tls.Config) {
				c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
			})
			a, b := tlstest.NewPipe()
			client, server := ossltest.OnPath(ossl.RecordsDirect).Client(a, clientConfig), ossltest.OnPath(ossl.RecordsDirect).Server(b,
				serverConfig)
			tlstest.Shake(t, client, server)
			tlstest.EchoBack(t, client, server, make([]byte, 100))
			if called != 1 || !server.(*ossl.Conn).TakenOver() {
				t.Errorf("called %d times, taken over: %t", called, server.(*ossl.Conn).TakenOver())
			}
		})
	}
}

// TestNotTakenOver checks that a connection with a suite that ossl can't take over stays with
// libssl, unless the option forbids that.
func TestNotTakenOver(t *testing.T) {
	const suite = tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA
	for _, path := range []ossl.RecordPath{ossl.RecordsAuto, ossl.RecordsLibssl, ossl.RecordsDirect} {
		clientConfig, serverConfig, _ := ossltest.SuiteConfigs(t, suite, tlstest.P256)
		ctx, err := ossl.NewContext(clientConfig, ossl.WithRecordPath(path))
		if err != nil {
			t.Fatal(err)
		}
		a, b := tlstest.Buffered()
		client, server := ctx.Client(a, ""), tlstest.Std.Server(b, serverConfig)
		go server.Handshake()
		err = client.Handshake()
		if (err != nil) != (path == ossl.RecordsDirect) {
			t.Errorf("path %d: %v", path, err)
		}
		if err == nil {
			tlstest.EchoBack(t, client, server, []byte("hello"))
		}
		client.Close()
		server.Close()
		if !client.Freed() {
			t.Errorf("path %d: C memory is kept", path)
		}
	}
}

// TestOwnKeyUpdate checks that a key that has sealed 2^24 records is updated, once, and that the
// connection goes on.
func TestOwnKeyUpdate(t *testing.T) {
	t.Setenv("OSSL_RECORDS", "direct")
	client, server := ossltest.Connected(t, tlstest.Loopback, func(c, _ *tls.Config) { c.MinVersion = tls.VersionTLS13 })
	tlstest.EchoBack(t, client, server, []byte("before"))
	const limit = 1 << 24
	if !client.SkipTo(true, limit-3) || !server.SkipTo(false, limit-3) {
		t.Fatal("can't skip")
	}
	if client.SkipTo(true, limit-4) {
		t.Fatal("sequence numbers go back")
	}
	for i := range 10 {
		tlstest.EchoBack(t, client, server, []byte(fmt.Sprint("record ", i)))
	}
	// Another peer reads the update, and the data that follows it.
	std, ours := tlstest.NewPipe()
	defer std.Close()
	c := ossltest.OnPath(ossl.RecordsDirect).Client(ours, tlstest.ClientConfig()).(*ossl.Conn)
	s := tlstest.Std.Server(std, tlstest.ServerConfig())
	tlstest.Shake(t, c, s)
	for range 3 {
		if err := c.KeyUpdate(false); err != nil {
			t.Fatal(err)
		}
		tlstest.EchoBack(t, c, s, make([]byte, 50_000))
	}
}

// TestRefusalKeyIsForgotten checks that the key that seals refusals is gone once Finished may have
// been sent: Finished was sealed with the key's first nonce.
func TestRefusalKeyIsForgotten(t *testing.T) {
	cc, sc := tlstest.Resuming(tls.VersionTLS13)
	client, server := ossltest.NewContext(t, cc), tlstest.StdServer(sc)
	tlstest.Visit(t, func(conn net.Conn) tlstest.Conn { return client.Client(conn, "") }, server)
	a, b := tlstest.Buffered()
	c, s := client.Client(a, ""), server(b)
	defer s.Close()
	defer c.Close()
	go s.Handshake()
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	if !c.ConnectionState().DidResume {
		t.Fatal("not resumed")
	}
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if alert := c.Refuse(42); !bytes.Equal(alert, []byte{21, 3, 3, 0, 2, 2, 42}) {
		t.Errorf("a refusal is sealed again: %x", alert)
	}
}

// TestMessageFinishedByWrite checks that a Write that finds half a ticket reads the rest of it,
// before the takeover.
func TestMessageFinishedByWrite(t *testing.T) {
	if os.Getenv("OSSL_RECORDS") == "libssl" {
		t.Skip("OSSL_RECORDS=libssl: nothing is taken over")
	}
	cc, _ := tlstest.Resuming(tls.VersionTLS13)
	h := tlstest.Hijack(t, ossltest.UnderTest, tlstest.ServerRole, cc, tlstest.ServerConfig())
	c := h.Victim.(*ossl.Conn)
	h.Send(tlstest.TypeHandshake, tlstest.OneTicket[:10])
	c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // enough to read the first half
	if n, err := c.Read(make([]byte, 100)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(n, err)
	}
	c.SetReadDeadline(time.Time{})
	h.Send(tlstest.TypeHandshake, tlstest.OneTicket[10:])
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	h.Send(tlstest.TypeApplicationData, []byte("data"))
	buf := make([]byte, 100)
	if n, err := c.Read(buf); err != nil || string(buf[:n]) != "data" {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	if !c.TakenOver() {
		t.Error("libssl still has the connection")
	}
}

// TestTakeoverCountsTwice makes the message callback miss a record, each in turn, or Finished, with
// which the counts begin. The counts for a takeover are then wrong, and would use a nonce twice:
// the connection must stay with libssl, and work.
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

// missRecord makes a connection whose n-th record is missed, and reports whether that left it with
// libssl. If the takeover is deferred, it is the n-th after the handshake; otherwise the n-th after
// the peer's certificate, or the client's hello, was seen.
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

// TestStatsOfAbandonedTakeover checks that a client whose takeover is given up after the handshake,
// here because of a KeyUpdate behind the ticket, counts as one whose records libssl has.
func TestStatsOfAbandonedTakeover(t *testing.T) {
	cc, sc := tlstest.Resuming(tls.VersionTLS13)
	a, b := tlstest.Loopback()
	client, server := ossltest.NewPlainContext(t, cc).Client(a, ""), ossltest.NewPlainContext(t, sc).Server(b)
	defer client.Close()
	defer server.Close()
	tlstest.Shake(t, client, server)
	if err := server.KeyUpdate(false); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(client, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	if got := client.Stats().Records; got != (ossl.RecordStats{Libssl: 1}) {
		t.Errorf("records %+v", got)
	}
}
