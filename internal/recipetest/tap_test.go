package recipetest

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestTap: the facts that the tap finds in a server's records agree with the server's own state.
func TestTap(t *testing.T) {
	for _, version := range tlstest.Versions {
		for _, retry := range []bool{false, true} { // a HelloRetryRequest, in TLS 1.3
			name := tlstest.VersionName(version)
			if retry {
				name += " with another group"
			}
			t.Run(name, func(t *testing.T) {
				site := newSite(t)
				if retry {
					site.Config.CurvePreferences = []tls.CurveID{tls.CurveP384}
				}
				client := site.ClientConfig()
				client.MinVersion, client.MaxVersion = version, version
				client.ClientSessionCache = tls.NewLRUClientSessionCache(0)
				client.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP384, tls.CurveP256}
				for visit := range 3 {
					resumed := serveOne(t, site, client)
					if resumed != (visit > 0) {
						t.Fatalf("visit %d: the server resumed %v", visit+1, resumed)
					}
					want := counts{count: visit + 1, resumed: visit}
					if got := site.tap.hellos(); got.count != want.count || got.resumed != want.resumed || got.versions[version] != want.count {
						t.Errorf("visit %d: the tap has %+v, want %+v", visit+1, got, want)
					}
				}
			})
		}
	}
}

// serveOne makes a connection with crypto/tls, and returns the server's DidResume.
func serveOne(t *testing.T, site *Site, client *tls.Config) (resumed bool) {
	t.Helper()
	done := make(chan bool, 1)
	go func() {
		defer close(done)
		raw, err := site.Listener.Accept()
		if err != nil {
			return
		}
		conn := tls.Server(raw, site.Config)
		defer conn.Close()
		if _, err := conn.Write([]byte("hello")); err == nil {
			done <- conn.ConnectionState().DidResume
		}
	}()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: tlstest.Patience}, "tcp", site.Addr, client)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil { // the tickets come before it
		t.Fatal(err)
	}
	return <-done
}

// FuzzJudge: a server's bytes cause no panic, and no result without a ServerHello.
func FuzzJudge(f *testing.F) {
	f.Add([]byte{22, 3, 3, 0, 4, 2, 0, 0, 0})
	f.Add([]byte{22, 3, 3, 0, 4, 11, 0, 0, 0})
	f.Fuzz(func(t *testing.T, flight []byte) {
		if _, _, ok := judge(flight); ok && !bytes.Contains(flight, []byte{tlstest.MsgServerHello}) {
			t.Error("a result without a ServerHello")
		}
	})
}
