//go:build (cgo || ossl_nocgo) && !race && !asan

package conns

import (
	"crypto/tls"
	"net"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// A deepConn records the stack depth of a goroutine that reads.
type deepConn struct {
	net.Conn
	at *uintptr
}

//go:noinline
func (c deepConn) Read(b []byte) (int, error) {
	*c.at = here()
	return c.Conn.Read(b)
}

//go:noinline
func here() uintptr {
	var local byte
	return uintptr(unsafe.Pointer(&local))
}

// TestStackOfRead compares how much stack is in use when Read waits: for HTTP/2 as much as in
// crypto/tls's Read (readDeep), otherwise less. The race detector has frames of its own.
func TestStackOfRead(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which moves stacks
	for _, proto := range []string{"h2", ""} {
		depth := func(client func(net.Conn, *tls.Config) net.Conn) uintptr {
			a, b := tlstest.Loopback()
			defer a.Close()
			clients, servers := tlstest.ClientConfig(), tlstest.ServerConfig()
			if proto != "" {
				clients.NextProtos, servers.NextProtos = []string{proto}, []string{proto}
			}
			server := tls.Server(b, servers)
			defer server.Close()
			go func() { _, _ = server.Write([]byte("data")) }()
			var at uintptr
			c := client(deepConn{a, &at}, clients)
			if err := c.(interface{ Handshake() error }).Handshake(); err != nil {
				t.Fatal(err)
			}
			from := here() // after the handshake, in which the stack may grow and move
			if _, err := c.Read(make([]byte, 4)); err != nil {
				t.Fatal(err)
			}
			return from - at
		}
		std := depth(func(c net.Conn, config *tls.Config) net.Conn { return tls.Client(c, config) })
		own := depth(func(c net.Conn, config *tls.Config) net.Conn { return ossl.Client(c, config) })
		t.Logf("%q: crypto/tls %d bytes, ossl %d", proto, std, own)
		if (own >= std) != (proto == "h2") {
			t.Errorf("%q: %d bytes are in use, in crypto/tls's Read %d", proto, own, std)
		}
	}
}
