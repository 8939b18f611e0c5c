package confgen

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/policy"
)

// A configuration of somebody else can't smuggle directives into a trial.
func TestCopyable(t *testing.T) {
	for _, test := range []struct {
		kind, text string
		bad        int
	}{
		{"nginx", "http { server { listen 1 ssl; ssl_ciphers 'A; } load_module evil.so; #'; } }", 1},
		{"nginx", "http { server { listen 1 ssl; ssl_ciphers 'A\" ; load_module \"evil.so'; } }", 1},
		{"nginx", "ssl_protocols 'TLSv1.2\nTLSv1.3';", 1},
		{"nginx", "ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:A:1m;\n" +
			"add_header Strict-Transport-Security 'max-age=1; preload' always;", 0},
		{"apache", "SSLRandomSeed startup exec:/bin/evil 16", 1},
		{"apache", "SSLSessionCache shmcb:/run/cache(512000)\nSSLProtocol all -SSLv3", 0},
		{"haproxy", "frontend a\n bind :1 ssl ciphers \"A crt /etc/other.pem\"", 1},
		{"haproxy", "global\n ssl-default-bind-options no-sslv3 no-tlsv10", 0},
		{"postgresql", "ssl_ciphers = 'A'\nssl_min_protocol_version = 'TLSv1.2'", 0},
		{"caddy", "a {\n header Strict-Transport-Security \"x\n}\nb {\"\n}", 1},
	} {
		file := filepath.Join(t.TempDir(), "conf")
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Read(Server{Kind: test.kind}, file)
		if err != nil {
			t.Fatal(err)
		}
		bad := 0
		for _, d := range c.Directives {
			if d.Copyable() != nil {
				bad++
			}
		}
		if bad != test.bad || len(c.Directives) == 0 {
			t.Errorf("%s: %q: %d of %+v", test.kind, test.text, bad, c.Directives)
		}
	}
}

// All that this package writes, and reads again, can be copied.
func TestOwnCopyable(t *testing.T) {
	p, err := policy.Get("fast-and-safe")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range Servers {
		c, err := Generate(Options{Policy: p, Server: Server{Kind: kind, Version: limits[kind].newest, OpenSSL: Version{3, 5, 0},
			Go: Version{1, 26, 0}}})
		if err != nil {
			t.Fatal(err)
		}
		if kind == "go" {
			continue // there is no configuration to read
		}
		file := filepath.Join(t.TempDir(), "conf")
		if err := os.WriteFile(file, []byte(c.Text()), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err = Read(c.Server, file); err != nil || len(c.Directives) == 0 {
			t.Fatal(kind, err)
		}
		for _, d := range c.Directives {
			if err := d.Copyable(); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

// A named pipe would wait for its writer, and blocks in blocks would take much memory.
func TestReadHostile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skip("no mkfifo: ", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := Read(Server{Kind: "nginx"}, pipe)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "regular file") {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Fatal("waits for the pipe's writer")
	}
	for kind, text := range map[string]string{"nginx": strings.Repeat("a{", 1000), "caddy": strings.Repeat("a{", 1000),
		"apache": strings.Repeat("<a>\n", 1000)} {
		if _, err := read(t, kind, text); err == nil || !strings.Contains(err.Error(), "blocks in each other") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
