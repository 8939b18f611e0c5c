//go:build cgo

package ossl_test

import (
	"bytes"
	"crypto/tls"
	"net"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestRefusalKeyIsForgotten: Finished was sealed with the first nonce of the key that a refusal is sealed with. Once it may have
// been sent, there is no such key.
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
