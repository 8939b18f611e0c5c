package confgen

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/policy"
)

// generate returns the configuration of a server by a policy's name.
func generate(t *testing.T, kind, version, openssl, name string) *Config {
	t.Helper()
	p, err := policy.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	s := Server{Kind: kind}
	if s.Version, err = ParseVersion(version); err != nil {
		t.Fatal(err)
	}
	if openssl != "" {
		if s.OpenSSL, err = ParseVersion(openssl); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Generate(Options{Server: s, Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGenerate(t *testing.T) {
	for _, test := range []struct {
		kind, version, openssl, policy string
		has, lacks                     []string
	}{
		{"nginx", "1.22.1", "3.0.22", "mozilla-modern", []string{"ssl_protocols TLSv1.3;", "ssl_session_tickets on;",
			"listen 443 ssl http2;",
			`add_header Strict-Transport-Security "max-age=63072000" always;`}, []string{"MLKEM", "ssl_ciphers", "http2 on"}},
		{"nginx", "1.26.3", "3.5.7", "mozilla-intermediate", []string{"ssl_ecdh_curve X25519MLKEM768:X25519:", "http2 on;",
			"ssl_prefer_server_ciphers off;"}, []string{" ssl http2"}},
		{"nginx", "1.14.0", "1.1.1", "fast-and-safe", []string{"ssl_ecdh_curve X25519:"}, []string{"ssl_conf_command",
			"ssl_early_data"}},
		{"lighttpd", "1.4.79", "3.5.7", "fast-and-safe", []string{"-KTLS", `server.bind = "[::]"`}, []string{"mimetype", "use-ipv6"}},
		{"lighttpd", "1.4.69", "3.0.22", "fast-and-safe", []string{"ServerPreference", `".html" => "text/html"`}, []string{"KTLS"}},
		{"postgresql", "17.2", "3.5.7", "fast-and-safe", []string{"ssl_ecdh_curve = 'prime256v1'"}, []string{"ssl_groups",
			"ssl_tls13_ciphers"}},
		{"postgresql", "15.20", "3.0.22", "ncsc", []string{"ssl_ecdh_curve = 'prime256v1'"}, []string{"secp521r1"}},
		{"postgresql", "18.0", "3.5.7", "fast-and-safe", []string{"ssl_groups = 'X25519MLKEM768:X25519:"}, []string{"ssl_ecdh_curve"}},
		{"caddy", "2.6.2", "", "fast-and-safe", []string{"curves x25519 secp256r1"}, []string{"mlkem"}},
		{"caddy", "2.11.4", "", "fast-and-safe", []string{"curves x25519mlkem768 x25519"}, nil},
		{"haproxy", "2.6.12", "3.0.22", "fast-and-safe", []string{"alpn h2,http/1.1"}, []string{"sigalgs", "prefer-client-ciphers"}},
		{"haproxy", "3.2.26", "3.6.5", "mozilla-modern", []string{"ssl-default-bind-sigalgs", "prefer-client-ciphers"}, nil},
		{"go", "1.23", "", "fast-and-safe", []string{"tls.X25519,"}, []string{"MLKEM"}},
	} {
		t.Run(test.kind+"-"+test.version, func(t *testing.T) {
			text := generate(t, test.kind, test.version, test.openssl, test.policy).Bare()
			for _, s := range test.has {
				if !strings.Contains(text, s) {
					t.Errorf("no %q in\n%s", s, text)
				}
			}
			for _, s := range test.lacks {
				if strings.Contains(text, s) {
					t.Errorf("%q in\n%s", s, text)
				}
			}
		})
	}
}

// TestEarlyData: with OpenSSL's protection against replays, nginx would resume no session of its shared
// cache, and so take no early data: see nginx-*-anti-replay-shared in the zoo.
func TestEarlyData(t *testing.T) {
	p, err := policy.Get("fast-and-safe")
	if err != nil {
		t.Fatal(err)
	}
	early := *p
	early.Resumption.Early.Value = "yes"
	c, err := Generate(Options{Policy: &early, Server: Server{Kind: "nginx", Version: Version{1, 26, 3}, OpenSSL: Version{3, 5, 7}}})
	if err != nil {
		t.Fatal(err)
	}
	if text := c.Bare(); !strings.Contains(text, "ssl_early_data on;") || strings.Contains(text, "AntiReplay") {
		t.Error(text)
	}
	if !strings.Contains(strings.Join(c.Notes, " "), "425") {
		t.Errorf("notes %q", c.Notes)
	}
}

// TestReasons checks that every directive of every configuration has a reason, and that comments
// keep within the columns.
func TestReasons(t *testing.T) {
	for _, kind := range Servers {
		newest := limits[kind].newest
		for _, name := range policy.Names() {
			c := generate(t, kind, newest.String(), "3.6.0", name)
			for _, d := range c.Directives {
				if d.Reason == "" || d.Setting == "" || d.Name == "" {
					t.Errorf("%s, %s: %+v", kind, name, d)
				}
				for source := range strings.SplitSeq(d.Source, "; ") {
					key, _, _ := strings.Cut(source, " ")
					if _, ok := c.Policy.Sources[key]; key != "" && !ok {
						t.Errorf("%s, %s: %s has the unknown source %q", kind, name, d.Name, source)
					}
				}
			}
			for line := range strings.SplitSeq(c.Text(), "\n") {
				if strings.HasPrefix(strings.TrimSpace(line), "#") && len(line) > columns && !strings.Contains(line, "://") {
					t.Errorf("%s, %s: a comment of %d columns: %s", kind, name, len(line), line)
				}
			}
		}
	}
}

func TestGenerateRefuses(t *testing.T) {
	p, err := policy.Get("fast-and-safe")
	if err != nil {
		t.Fatal(err)
	}
	modern := Version{1, 22, 1}
	for name, o := range map[string]Options{
		"no policy":   {Server: Server{Kind: "nginx", Version: modern, OpenSSL: Version{3, 0, 0}}},
		"no server":   {Policy: p},
		"unknown":     {Policy: p, Server: Server{Kind: "iis", Version: modern}},
		"no version":  {Policy: p, Server: Server{Kind: "nginx", OpenSSL: Version{3, 0, 0}}},
		"no OpenSSL":  {Policy: p, Server: Server{Kind: "nginx", Version: modern}},
		"old server":  {Policy: p, Server: Server{Kind: "nginx", Version: Version{1, 2, 0}, OpenSSL: Version{3, 0, 0}}},
		"old OpenSSL": {Policy: p, Server: Server{Kind: "nginx", Version: modern, OpenSSL: Version{1, 0, 2}}},
	} {
		if c, err := Generate(o); err == nil {
			t.Errorf("%s: %v", name, c)
		}
	}
}

// TestAsk asks scripts that print what servers print.
func TestAsk(t *testing.T) {
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "server")
		if err := os.WriteFile(path, []byte("#!/bin/sh\ncat <<'E'\n"+text+"\nE\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, test := range []struct{ kind, text, version, openssl string }{
		{"nginx", "nginx version: nginx/1.26.3\nbuilt with OpenSSL 3.5.7 9 Jun 2026 (running with OpenSSL 3.5.9 29 Sep 2026)",
			"1.26.3", "3.5.9"},
		{"haproxy",
			"HAProxy version 3.2.26-1 2026/10/14\nBuilt with SSL library version : OpenSSL 3.6.5 29 Sep 2026\n" +
				"Running on SSL library version : OpenSSL 3.6.4 1 Sep 2026", "3.2.26", "3.6.4"},
		{"caddy", "v2.11.4 h1:abc=", "2.11.4", "0.0.0"},
	} {
		s, err := Ask(t.Context(), test.kind, script(test.text))
		if err != nil || s.Version.String() != test.version || s.OpenSSL.String() != test.openssl {
			t.Errorf("%s: %+v, %v", test.kind, s, err)
		}
	}
	for kind, text := range map[string]string{
		"nginx":   "nginx version: nginx/1.26.3\nbuilt with BoringSSL",
		"haproxy": "hello",
	} {
		if s, err := Ask(t.Context(), kind, script(text)); err == nil {
			t.Errorf("%s: %+v", kind, s)
		}
	}
	if _, err := Find("iis"); err == nil || errors.Is(err, ErrNotInstalled) {
		t.Errorf("Find(iis): %v", err)
	}
}

func FuzzParseVersion(f *testing.F) {
	f.Add("1.22.1")
	f.Add("go1.26")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseVersion(s)
		if err == nil && v.Before(v) {
			t.Error(v)
		}
	})
}
