//go:build cgo || ossl_nocgo

package psk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestInteropGnuTLSServer is about a server that listens on all addresses.
func TestInteropGnuTLSServer(t *testing.T) {
	path := tlstest.Tool(t, "gnutls-serv")
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte(identity+":"+hexKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	forExchanges(t, func(t *testing.T, version uint16, without bool, opts []ossl.Option) {
		tlstest.OwnNetwork(t)
		tlstest.ServeTool(t, tlstest.Child(t, path, "--echo", "--pskpasswd", keys, "--priority", gnutlsPriority(version, without),
			"--port", "5556"), "Echo Server listening on IPv4 ")
		state := dialLine(t, "127.0.0.1:5556", version, line, opts...)
		if (state.CurveID == 0) != without {
			t.Errorf("group %v", state.CurveID)
		}
	})
}
