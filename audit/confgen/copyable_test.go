package confgen

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/policy"
)

// Somebody else's configuration can't smuggle directives into a trial.
func TestCopyable(t *testing.T) {
	for _, test := range []struct {
		kind, text string
		refused    bool   // an error
		left       string // the names of directives that aren't copied
	}{
		{"nginx", "http { server { listen 1 ssl; ssl_ciphers 'A; } load_module evil.so; #'; } }", true, ""},
		{"nginx", "http { server { listen 1 ssl; ssl_ciphers 'A\" ; load_module \"evil.so'; } }", true, ""},
		{"nginx", "ssl_protocols 'TLSv1.2\nTLSv1.3';", true, ""},
		{"nginx", "ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:A:1m;\n" +
			"add_header Strict-Transport-Security 'max-age=1; preload' always;", false, ""},
		{"apache", "SSLRandomSeed startup exec:/bin/evil 16\nSSLProtocol all", false, "SSLRandomSeed"},
		{"apache", "SSLSessionCache shmcb:/run/cache(512000)\nSSLProtocol all -SSLv3", false, ""},
		{"haproxy", "frontend a\n bind :1 ssl ciphers \"A crt /etc/other.pem\"", true, ""},
		{"haproxy", "global\n ssl-default-bind-options no-sslv3 no-tlsv10", false, ""},
		{"postgresql", "ssl_ciphers = 'A'\nssl_min_protocol_version = 'TLSv1.2'", false, ""},
		{"nginx", "ssl_engine evil; ssl_protocols TLSv1.3; ssl_stapling_responder http://203.0.113.1/; " +
			"ssl_conf_command PrivateKey /etc/k;\n" +
			"ssl_conf_command Groups X25519; ssl_ocsp_responder http://203.0.113.1/;", false,
			"ssl_stapling_responder, ssl_conf_command PrivateKey, ssl_ocsp_responder"},
		{"apache", "SSLCryptoDevice /tmp/evil.so\nSSLProtocol all\nSSLStaplingForceURL http://203.0.113.1/\n" +
			"SSLOCSPDefaultResponder http://203.0.113.1/\nSSLCARevocationPath /etc\nSSLOpenSSLConfCmd ChainCAFile /etc/x\n" +
			"SSLOpenSSLConfCmd Groups X25519", false, "SSLCryptoDevice, SSLStaplingForceURL, SSLOCSPDefaultResponder, " +
			"SSLCARevocationPath, SSLOpenSSLConfCmd ChainCAFile"},
		{"haproxy", "global\n ssl-default-bind-options crt-ignore-err all\n tune.ssl.keylog on\n tune.ssl.cachesize 1\n" +
			" ssl-engine evil", false, "ssl-default-bind-options, ssl-default-bind-options, tune.ssl.keylog"},
		{"postgresql", "ssl_passphrase_command = '/bin/evil'\nssl = on\nssl_library = 'evil'", false, "ssl_library"},
		{"lighttpd", "ssl.acme-tls-1 = \"/etc\"\nssl.cipher-list = \"A\"\n" +
			"ssl.openssl.ssl-conf-cmd = (\"DHParameters\" => \"/etc/x\", " +
			"\"Groups\" => \"X25519\")\nserver.feature-flags = (\"server.evil\" => \"1\", \"ssl.session-cache\" => \"1\")", false,
			"ssl.acme-tls-1, ssl.openssl.ssl-conf-cmd DHParameters, server.feature-flags"},
		{"haproxy", "global\n tune.ssl.cachesize 1000\nfrontend a\n bind :1 ssl\n" +
			" http-response set-header Strict-Transport-Security \"%[str(root),map(/any/file)]\"", false,
			"http-response set-header Strict-Transport-Security"},
		{"haproxy", "global\n tune.ssl.cachesize 1000\n ssl-default-bind-ciphers \"A$HOME\"", false, "ssl-default-bind-ciphers"},
		{"haproxy", "global\n tune.ssl.cachesize 2000000000\n ssl-default-bind-ciphers A", false, "tune.ssl.cachesize"},
		{"nginx", "ssl_ciphers A; add_header Strict-Transport-Security $realpath_root; ssl_ecdh_curve $a;", false,
			"add_header Strict-Transport-Security, ssl_ecdh_curve"},
		{"nginx", "ssl_ciphers A; ssl_session_cache shared:A:99999m; ssl_buffer_size 1g; ssl_conf_command NumTickets 99999;", false,
			"ssl_session_cache, ssl_buffer_size, ssl_conf_command NumTickets"},
		{"nginx", "ssl_ciphers A; ssl_session_cache shared:A:99999999999999999999;", false, "ssl_session_cache"},
		{"apache", "SSLProtocol all\nHeader always set Strict-Transport-Security %D\nSSLCipherSuite %A\n" +
			"SSLSessionCache memcache:203.0.113.1\nSSLStaplingCache shmcb:/x(9999999999)", false,
			"Header always set Strict-Transport-Security, SSLCipherSuite, SSLSessionCache, SSLStaplingCache"},
		{"apache", "SSLProtocol all\nHeader always set Strict-Transport-Security %{HOME}e", true, ""},
		{"apache", "SSLCipherSuite ${HOME}", true, ""},
		{"caddy", "a {\n header Strict-Transport-Security {file./etc/x}\n}", true, ""},
		{"lighttpd", "ssl.cipher-list = env.HOME\nssl.ec-curve = \"A\"\n" +
			"setenv.add-response-header = (\"Strict-Transport-Security\" => \"$x\")", false,
			"ssl.cipher-list, setenv.add-response-header Strict-Transport-Security"},
		{"caddy", "a {\n header Strict-Transport-Security \"x\n}\nb {\"\n}", true, ""},
	} {
		file := filepath.Join(t.TempDir(), "conf")
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Read(Server{Kind: test.kind}, file)
		if err != nil {
			t.Fatal(err)
		}
		copied, left, err := c.Copyable()
		if (err != nil) != test.refused || strings.Join(left, ", ") != test.left || err == nil && len(copied) == 0 {
			t.Errorf("%s: %q: %+v, left out %q, error %v", test.kind, test.text, copied, left, err)
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
		if _, left, err := c.Copyable(); err != nil || len(left) > 0 {
			t.Errorf("%s: left out %q, error %v", kind, left, err)
		}
	}
}

// A named pipe would wait for its writer, and blocks in blocks would take much memory.
func TestReadHostile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skip("no mkfifo: ", err)
	}
	if _, err := Read(Server{Kind: "nginx"}, pipe); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Error(err)
	}
	if runtime.GOOS == "linux" {
		for _, file := range []string{"/proc/self/environ", "/sys/kernel/uevent_seqnum"} {
			if _, err := os.Stat(file); err != nil { // in some containers
				continue
			}
			if _, err := Read(Server{Kind: "nginx"}, file); err == nil || !strings.Contains(err.Error(), "of the kernel") {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	for kind, text := range map[string]string{"nginx": strings.Repeat("a{", 1000), "caddy": strings.Repeat("a {\n", 1000),
		"apache": strings.Repeat("<a>\n", 1000)} {
		if _, err := read(t, kind, text); err == nil || !strings.Contains(err.Error(), "blocks in each other") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestReadAllocations: no text makes Read allocate very much more than it has bytes.
func TestReadAllocations(t *testing.T) {
	const size = 200_000
	fill := func(text string) string { return strings.Repeat(text, size/len(text)) }
	for _, test := range []struct {
		name, kind, text string
		bounded          bool // an error names the bound
	}{
		{"lines that go on", "apache", fill("a\\\n"), false},
		{"statements in many blocks", "nginx", strings.Repeat("a {", maxBlocks) + fill("b;") + strings.Repeat("}", maxBlocks), false},
		{"notes in a block with long words", "apache", "<Directory " + fill("x") + ">\n" + fill("SSLProtocol all\n"), false},
		{"statements in a block with a long name", "nginx", fill("X") + "{" + fill("b c;") + "}", false},
		{"arguments", "caddy", "(a) {\nheader " + fill("{args[0]}") + "\n}\na {\nimport a " + fill("x") + "\n}", true},
		{"arguments of arguments", "caddy", "(a) {\nheader x\n}\n(b) {\nimport a " + strings.Repeat("{args[0]}", 100) +
			"\n}\n(c) {\nimport b " + strings.Repeat("{args[0]}", 100) + "\n}\n(d) {\nimport c " + strings.Repeat("{args[0]}", 100) +
			"\n}\na {\nimport d " + strings.Repeat("x", 1000) + "\n}", true},
		{"words of snippets", "caddy", "(a) {\nheader " + fill("a ") + "\n}\na {\n" + fill("import a\n") + "}", true},
		{"open placeholders", "caddy", "(a) {\nheader " + fill("{args") + "\n}\na {\nimport a x\n}", false},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := read(t, test.kind, test.text)
		runtime.ReadMemStats(&after)
		if n := (after.TotalAlloc - before.TotalAlloc) / size; n > 1000 || (err != nil) != test.bounded {
			t.Errorf("%s: %d bytes for each byte of the text, error %v", test.name, n, err)
		}
	}
}

// TestReadBounds: statements and notes over the bounds are left out, and a note says so.
func TestReadBounds(t *testing.T) {
	const few = 2 * maxNotes // statements up to the bound
	for _, test := range []struct {
		kind, text, note string
		directives       int // at most
	}{
		{"haproxy", "frontend a\nbind :1 ssl " + strings.Repeat("alpn x ", 2*few), "200000 statements", few},
		{"haproxy", "global\nssl-default-bind-options " + strings.Repeat("no-sslv3 ", 2*few), "200000 statements", few},
		{"lighttpd", "ssl.x = (" + strings.Repeat("\"a\" => \"b\", ", 2*few) + ")", "200000 statements", few},
		{"nginx", strings.Repeat("b c;", few) + "ssl_protocols TLSv1.3;", "200000 statements", 0},
		{"apache", strings.Repeat("b\n", few) + "SSLProtocol all", "200000 statements", 0},
		{"haproxy", strings.Repeat("b\n", few) + "global\ntune.ssl.lifetime 1", "200000 statements", 0},
		{"lighttpd", strings.Repeat("b=1\n", few) + "ssl.cipher-list = \"A\"", "200000 statements", 0},
		{"postgresql", strings.Repeat("b=1\n", few) + "ssl = on", "200000 statements", 0},
		{"apache", strings.Repeat("<Directory /x>\nSSLProtocol all\n</Directory>\n", few), "1000 parts", 0},
	} {
		file := filepath.Join(t.TempDir(), "conf")
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := (&reading{statements: maxStatements - few}).read(Server{Kind: test.kind}, file)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(c.Unread); len(c.Directives) > test.directives || n == 0 || n > maxNotes+1 ||
			!strings.Contains(c.Unread[n-1].What, "more than "+test.note) {
			t.Errorf("%s: %d directives, %d notes, no last one about %s", test.kind, len(c.Directives), n, test.note)
		}
	}
}
