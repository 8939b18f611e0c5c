//go:build cgo || ossl_nocgo

package interop

import (
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestInteropGnuTLSServer is about a server that listens on all addresses.
func TestInteropGnuTLSServer(t *testing.T) {
	path, f := tlstest.Tool(t, "gnutls-serv"), tlstest.WriteFiles(t)
	interopCases(t, func(t *testing.T, version uint16, mutual bool) {
		tlstest.OwnNetwork(t)
		args := []string{"--echo", "--x509certfile", f.ServerCert, "--x509keyfile", f.ServerKey, "--x509cafile", f.CA,
			"--alpn", interopALPN, "--priority", gnutlsPriority(version), "--port", "5556"}
		if mutual {
			args = append(args, "--require-client-cert", "--verify-client-cert")
		} else {
			args = append(args, "--disable-client-cert")
		}
		tlstest.ServeTool(t, tlstest.Child(t, path, args...), "Echo Server listening on IPv4 ")
		dialEcho(t, "127.0.0.1:5556", version, mutual, unchanged)
	})
}
