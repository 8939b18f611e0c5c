//go:build cgo

package ossl_test

import (
	"crypto/tls"
	"fmt"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestNotTakenOver: a connection with a suite that ossl can't take over stays with libssl, unless the option forbids that.
func TestNotTakenOver(t *testing.T) {
	const suite = tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA
	for _, path := range []ossl.RecordPath{ossl.RecordsAuto, ossl.RecordsLibssl, ossl.RecordsOwn} {
		clientConfig, serverConfig, _ := ossltest.SuiteConfigs(t, suite, tlstest.P256)
		ctx, err := ossl.NewContext(clientConfig, ossl.WithRecordPath(path))
		if err != nil {
			t.Fatal(err)
		}
		a, b := tlstest.Buffered()
		client, server := ctx.Client(a, ""), tlstest.Std.Server(b, serverConfig)
		go server.Handshake()
		err = client.Handshake()
		if (err != nil) != (path == ossl.RecordsOwn) {
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

// TestOwnKeyUpdate: a key that has sealed 2^24 records is updated, once, and the connection goes on.
func TestOwnKeyUpdate(t *testing.T) {
	t.Setenv("OSSL_RECORDS", "own")
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
	// Another peer sees the update, and what follows it.
	std, ours := tlstest.NewPipe()
	defer std.Close()
	c := ossltest.OnPath(ossl.RecordsOwn).Client(ours, tlstest.ClientConfig()).(*ossl.Conn)
	s := tlstest.Std.Server(std, tlstest.ServerConfig())
	tlstest.Shake(t, c, s)
	for range 3 {
		if err := c.KeyUpdate(false); err != nil {
			t.Fatal(err)
		}
		tlstest.EchoBack(t, c, s, make([]byte, 50_000))
	}
}
