package confgen_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/ossl-go/ossl/audit/confgen"
	"github.com/ossl-go/ossl/internal/freeport"
	"github.com/ossl-go/ossl/policy"
)

// tree returns the servers of the releases that ci/config has unpacked.
func tree(t *testing.T) []Server {
	dir := os.Getenv("OSSL_SERVERS")
	if dir == "" {
		t.Skip("OSSL_SERVERS names no folder of servers: ci/config runs it")
	}
	var out []Server
	for _, release := range []string{"bookworm", "trixie", "sid"} {
		root := filepath.Join(dir, "servers-"+release)
		for kind, pattern := range map[string]string{"nginx": "usr/sbin/nginx", "apache": "usr/sbin/apache2",
			"haproxy":  "usr/sbin/haproxy",
			"lighttpd": "usr/sbin/lighttpd", "caddy": "usr/bin/caddy", "postgresql": "usr/lib/postgresql/*/bin/postgres.bin"} {
			found, _ := filepath.Glob(filepath.Join(root, pattern))
			if len(found) != 1 {
				t.Errorf("%s has no %s", root, pattern)
				continue
			}
			prefix := []string{filepath.Join(root, "run")}
			if kind == "caddy" { // it is static
				prefix = nil
			}
			s, err := Ask(t.Context(), kind, found[0], prefix...)
			if err != nil {
				t.Errorf("%s: %v", found[0], err)
				continue
			}
			out = append(out, s)
		}
	}
	return out
}

// start generates a configuration for a folder of the test's, and starts the server with it.
func start(t *testing.T, s Server, p *policy.Policy, change func(*Config)) (*Config, *Process, *x509.CertPool, error) {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		os.Chmod(d, 0o711)
	}
	kinds := []string{"ECDSA"}
	if s.Kind == "nginx" || s.Kind == "apache" || s.Kind == "haproxy" {
		kinds = append(kinds, "RSA 3072")
	}
	roots, certs, err := ThrowAway(dir, s.Kind, kinds...)
	if err != nil {
		t.Fatal(err)
	}
	port, plain := takePort(t), takePort(t)
	page := filepath.Join(dir, "root")
	if err := os.Mkdir(page, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(page, "index.html"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	layout := Layout{Names: []string{"localhost"}, Certificates: certs, Address: "127.0.0.1", Port: port,
		PlainPort: plain, Root: page, State: dir, Modules: s.Modules}
	c, err := Generate(Options{Server: s, Policy: p, Layout: layout})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	file, err := c.Write(ctx)
	if err != nil {
		return c, nil, roots, err
	}
	if err := c.Check(ctx, file); err != nil {
		return c, nil, roots, err
	}
	process, err := c.Start(ctx, file)
	if err == nil {
		t.Cleanup(process.Stop)
	}
	return c, process, roots, err
}

// TestServersStart starts each server of three releases with the configuration for each policy, and
// shakes hands with it.
func TestServersStart(t *testing.T) {
	for _, s := range tree(t) {
		for _, name := range policy.Names() {
			p, err := policy.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(fmt.Sprintf("%s-%s/%s", s.Kind, s.Version, name), func(t *testing.T) {
				t.Parallel()
				c, process, roots, err := start(t, s, p, nil)
				if err != nil {
					t.Fatalf("%v\n%s", err, c.Bare())
				}
				var conn net.Conn
				if s.Kind == "postgresql" {
					conn, err = net.Dial("tcp", process.Address)
					if err == nil {
						conn.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47})
						b := make([]byte, 1)
						conn.Read(b)
						if b[0] != 'S' {
							t.Fatalf("the server answers %q to SSLRequest", b)
						}
						client := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: "localhost"})
						err = client.Handshake()
						defer client.Close()
					}
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
				defer transport.CloseIdleConnections()
				resp, err := transport.RoundTrip(mustRequest(t, "https://"+strings.Replace(process.Address, "127.0.0.1", "localhost", 1)+"/"))
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if s.Kind != "haproxy" && resp.StatusCode != http.StatusOK { // HAProxy has no page
					t.Errorf("the page: %s", resp.Status)
				}
				typ := resp.Header.Get("Content-Type")
				if (s.Kind == "nginx" || s.Kind == "lighttpd" || s.Kind == "caddy") && !strings.HasPrefix(typ, "text/html") {
					t.Errorf("the page has type %q", typ)
				}
				if resp.ProtoMajor != 2 {
					t.Errorf("the server speaks %s", resp.Proto)
				}
				if want := p.Sockets.HSTS.Value; want > 0 && resp.Header.Get("Strict-Transport-Security") != fmt.Sprintf("max-age=%d", want) {
					t.Errorf("HSTS is %q", resp.Header.Get("Strict-Transport-Security"))
				}
			})
		}
	}
}

// TestGoStart: the Go program has the defaults of the Go that compiles it, such as ML-KEM.
func TestGoStart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("servers are started on Linux only")
	}
	if testing.Short() {
		t.Skip("compiles a program: only without -short")
	}
	program, err := Find("go")
	if err != nil {
		t.Skip("go is not installed")
	}
	s, err := Ask(t.Context(), "go", program)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Get("fast-and-safe")
	if err != nil {
		t.Fatal(err)
	}
	c, process, roots, err := start(t, s, p, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Bare())
	}
	conn, err := tls.Dial("tcp", process.Address, &tls.Config{RootCAs: roots, ServerName: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if group := conn.ConnectionState().CurveID; group != tls.X25519MLKEM768 {
		t.Errorf("the key exchange is %s", group)
	}
}

func takePort(t *testing.T) int {
	t.Helper()
	port, err := freeport.Take()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func mustRequest(t *testing.T, url string) *http.Request {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
