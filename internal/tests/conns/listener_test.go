//go:build cgo

package conns

import (
	"io"
	"net"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

// TestListenerGoesOnBesideSilentPeers checks that peers that connect and send nothing cost no SSL
// and delay no other peer.
func TestListenerGoesOnBesideSilentPeers(t *testing.T) {
	p := ossltest.NewContexts(t, nil)
	ln, err := p.Server.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	for range 200 {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	raw, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := p.Client.Client(raw, "")
	defer c.Close()
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 5)
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "hello" {
		t.Fatalf("%q, %v", buf, err)
	}
}
