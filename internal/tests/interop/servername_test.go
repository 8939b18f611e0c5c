//go:build cgo || ossl_nocgo

package interop

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestInteropServerName makes openssl s_client print the extensions that the server answers with.
func TestInteropServerName(t *testing.T) {
	path, f := tlstest.Tool(t, "openssl"), tlstest.WriteFiles(t)
	for _, version := range tlstest.Versions {
		for _, named := range []bool{true, false} {
			server := ossltest.Server(t, tlstest.ServerConfig(tlstest.Only(version)))
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				if conn, err := l.Accept(); err == nil {
					s := server(conn)
					io.Copy(io.Discard, s)
					s.Close()
				}
			}()
			args := []string{"s_client", "-connect", l.Addr().String(), "-CAfile", f.CA, "-tlsextdebug", opensslVersionFlag(version)}
			if named {
				args = append(args, "-servername", tlstest.ServerName)
			} else {
				args = append(args, "-noservername")
			}
			cmd := tlstest.Child(t, path, args...)
			cmd.Stdin = strings.NewReader("Q\n")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if got := strings.Contains(string(out), `TLS server extension "server name" (id=0), len=0`); got != named {
				t.Errorf("%s, name sent %t: acknowledged %t\n%s", tlstest.VersionName(version), named, got, out)
			}
		}
	}
}
