package trial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/audit/confgen"
	"github.com/ossl-go/ossl/audit/internal/testcert"
	"github.com/ossl-go/ossl/policy"
)

// TestInterrupted interrupts a trial at each of its steps. No file and no process may be left.
func TestInterrupted(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("servers are started on Linux only")
	}
	program, err := confgen.Find("nginx")
	if err != nil {
		t.Skip("nginx is not installed")
	}
	server, err := confgen.Ask(t.Context(), "nginx", program)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Get("fast-and-safe")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"starting nginx with yours", "starting nginx with ours", "auditing", "measuring, round 2"} {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := Run(ctx, Options{Ours: confgen.Options{Server: server, Policy: p}, Rounds: 3, Progress: func(s string) {
				if strings.HasPrefix(s, step) {
					cancel()
				}
			}})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the error is %v", err)
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
			// A server's command line has the name of its folder.
			processes, err := os.ReadDir("/proc")
			if err != nil {
				t.Fatal(err)
			}
			for _, process := range processes {
				line, _ := os.ReadFile("/proc/" + process.Name() + "/cmdline")
				if strings.Contains(string(line), dir) {
					t.Errorf("process %s is left: %q", process.Name(), line)
				}
			}
		})
	}
}

// TestInterruptedMeasurement: an interrupt while a response is awaited is no error of the connection.
func TestInterruptedMeasurement(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	root := testcert.Root(testcert.Template{CA: true})
	server.TLS = &tls.Config{Certificates: []tls.Certificate{root.Issue(testcert.Template{}).TLS()}}
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(root.Certificate)
	r := &running{side: &Side{}, process: &confgen.Process{Address: server.Listener.Addr().String()},
		config: &confgen.Config{Server: confgen.Server{Kind: "nginx"}}, roots: roots}
	if err := r.measure(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// TestServersTry tries each server of Debian 13 that ci/config has unpacked: all rows of the comparison
// are there.
func TestServersTry(t *testing.T) {
	dir := os.Getenv("OSSL_SERVERS")
	if dir == "" {
		t.Skip("OSSL_SERVERS names no folder of servers: ci/config runs it")
	}
	root := filepath.Join(dir, "servers-trixie")
	p, err := policy.Get("fast-and-safe")
	if err != nil {
		t.Fatal(err)
	}
	for kind, pattern := range map[string]string{"nginx": "usr/sbin/nginx", "apache": "usr/sbin/apache2",
		"haproxy": "usr/sbin/haproxy", "lighttpd": "usr/sbin/lighttpd", "caddy": "usr/bin/caddy",
		"postgresql": "usr/lib/postgresql/*/bin/postgres.bin"} {
		t.Run(kind, func(t *testing.T) {
			found, _ := filepath.Glob(filepath.Join(root, pattern))
			if len(found) != 1 {
				t.Fatalf("%s has no %s", root, pattern)
			}
			prefix := []string{filepath.Join(root, "run")}
			if kind == "caddy" { // it is static
				prefix = nil
			}
			server, err := confgen.Ask(t.Context(), kind, found[0], prefix...)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Run(t.Context(), Options{Ours: confgen.Options{Server: server, Policy: p}, Rounds: 1})
			if err != nil {
				t.Fatal(err)
			}
			for name, side := range map[string]Side{"yours": r.Yours, "ours": r.Ours} {
				if side.Stopped != "" || side.AuditError != "" || len(side.Full) != 1 || len(side.Bulk) != 1 && kind != "postgresql" {
					t.Errorf("%s: %+v", name, side)
				}
			}
		})
	}
}

// A configuration of many directives doesn't start as many checks.
func TestSearchBounded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("servers are started on Linux only")
	}
	dir := t.TempDir()
	program, calls := filepath.Join(dir, "nginx"), filepath.Join(dir, "calls")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho >>"+calls+"\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := &confgen.Config{Server: confgen.Server{Kind: "nginx", Program: program},
		Directives: make([]confgen.Directive, 3*maxSearched), Layout: confgen.Layout{State: dir, Names: []string{"localhost"}}}
	side := &Side{}
	if _, err := start(t.Context(), c, nil, side); err != nil || side.Stopped == "" {
		t.Fatal(err, side.Stopped)
	}
	if b, err := os.ReadFile(calls); err != nil || len(b) != 1+maxSearched {
		t.Errorf("%d checks, error %v", len(b), err)
	}
}
