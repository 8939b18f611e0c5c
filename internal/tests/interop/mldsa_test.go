//go:build (cgo || ossl_nocgo) && go1.27

package interop

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestInteropMLDSA connects openssl 3.5 or later to both sides, with ML-DSA certificates on both,
// issued by ML-DSA authorities. OSSL_TEST_OPENSSL is a folder of ci/openssl-versions that has it;
// ci/newest-go sets it.
func TestInteropMLDSA(t *testing.T) {
	dir := os.Getenv("OSSL_TEST_OPENSSL")
	if dir == "" {
		t.Skip("openssl 3.5 is not installed: OSSL_TEST_OPENSSL names no folder")
	}
	if !ossltest.AtLeast("3.5") {
		t.Skipf("OpenSSL %s has no ML-DSA; 3.5 has", ossltest.Version())
	}
	openssl := func(args ...string) []string {
		return append([]string{filepath.Join(dir, "usr", "bin", "openssl")}, args...)
	}
	for _, kind := range tlstest.MLDSAKinds {
		t.Run(string(kind), func(t *testing.T) {
			files := t.TempDir()
			root := tlstest.NewAuthorityOf(kind, "interop root "+string(kind), nil, nil)
			issuer := tlstest.NewAuthorityOf(kind, "interop issuer "+string(kind), root, nil)
			cert := tlstest.New(tlstest.Options{Kind: kind, Issuer: issuer, Chain: []*x509.Certificate{issuer.Cert}})
			key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
			if err != nil {
				t.Fatal(err)
			}
			write := func(name, block string, ders ...[]byte) string {
				var text []byte
				for _, der := range ders {
					text = append(text, pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der})...)
				}
				path := filepath.Join(files, name)
				if err := os.WriteFile(path, text, 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			common := []string{"-tls1_3", "-CAfile", write("ca.pem", "CERTIFICATE", root.Cert.Raw),
				"-cert", write("cert.pem", "CERTIFICATE", cert.Certificate[0]),
				"-cert_chain", write("chain.pem", "CERTIFICATE", issuer.Cert.Raw), "-key", write("key.pem", "PRIVATE KEY", key),
				"-verify_return_error"}
			config := &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: root.Pool(), ClientCAs: root.Pool(),
				ServerName: tlstest.ServerName, ClientAuth: tls.RequireAndVerifyClientCert}

			t.Run("s_client", func(t *testing.T) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				server, served := ossltest.Server(t, config), make(chan error, 1)
				go func() {
					raw, err := l.Accept()
					if err == nil {
						raw.SetDeadline(time.Now().Add(tlstest.Patience))
						conn := server(raw)
						_, err = io.WriteString(conn, "welcome\n")
						conn.Close()
					}
					served <- err
				}()
				args := openssl("s_client", "-quiet", "-connect", l.Addr().String(), "-servername", tlstest.ServerName,
					"-verify_hostname", tlstest.ServerName)
				cmd := tlstest.Child(t, filepath.Join(dir, "run"), append(args, common...)...)
				cmd.Stdin = strings.NewReader("")
				out, err := cmd.CombinedOutput()
				if servedErr := <-served; servedErr != nil || !strings.Contains(string(out), "welcome") {
					t.Errorf("server: %v; s_client: %v\n%s", servedErr, err, out)
				}
			})
			t.Run("s_server", func(t *testing.T) {
				args := openssl("s_server", "-accept", "127.0.0.1:0", "-rev", "-Verify", "2")
				addr := tlstest.ServeTool(t, tlstest.Child(t, filepath.Join(dir, "run"), append(args, common...)...), "ACCEPT ")
				raw, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				raw.SetDeadline(time.Now().Add(tlstest.Patience))
				conn := ossltest.Client(t, config)(raw)
				defer conn.Close()
				if _, err := io.WriteString(conn, "olleh\n"); err != nil {
					t.Fatal(err)
				}
				if line, err := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" {
					t.Errorf("got %q, %v", line, err)
				}
				state := conn.ConnectionState()
				if got := state.PeerCertificates[0].PublicKeyAlgorithm; got != x509.MLDSA || len(state.PeerCertificates) != 2 {
					t.Errorf("%d certificates, the first for %v", len(state.PeerCertificates), got)
				}
			})
		})
	}
}
