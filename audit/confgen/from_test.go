package confgen

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/policy"
)

// read reads a configuration of several files, of which the first is the main one, and returns its
// directives as lines.
func read(t *testing.T, kind string, files ...string) ([]string, error) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.conf", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Read(Server{Kind: kind}, filepath.Join(dir, "0.conf"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, d := range c.Directives {
		out = append(out, strings.TrimSpace(d.Scope+": "+d.Name+" "+d.Value))
	}
	return out, nil
}

func TestRead(t *testing.T) {
	for _, test := range []struct {
		kind  string
		files []string
		want  []string
	}{
		{"nginx",
			[]string{"http { include 1.conf; ssl_session_cache shared:A:1m; # ssl_ciphers no;\n" +
				" server { listen 80; ssl_protocols SSLv3; }\n" +
				"server { listen 443 ssl http2; ssl_certificate /x; location / { sendfile off; } " +
				"add_header Strict-Transport-Security 'max-age=1; preload' always; } }",
				"ssl_conf_command Ciphersuites \"TLS_AES_128_GCM_SHA256\"; map $a $b { default ${c}; }"},
			[]string{"main: ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256", "main: ssl_session_cache shared:A:1m", "listen: http2",
				`site: add_header Strict-Transport-Security "max-age=1; preload" always`}},
		{"apache", []string{"SSLProtocol all \\\n -SSLv3\nSSLSessionCache shmcb:/run/x(512000)\nIncludeOptional 1.conf\n" +
			"<VirtualHost *:443>\nSSLEngine on\nSSLCertificateFile /x\nSSLCipherSuite TLSv1.3 TLS_AES_128_GCM_SHA256\n</VirtualHost>\n" +
			"<VirtualHost *:8443>\nSSLEngine on\nSSLCipherSuite ALL\n</VirtualHost>",
			"<IfModule mod_ssl.c>\nSSLHonorCipherOrder on\n</IfModule>"},
			[]string{"main: SSLProtocol all -SSLv3", "main: SSLSessionCache shmcb:/run/x(512000)",
				"main: SSLHonorCipherOrder on",
				"site: SSLCipherSuite TLSv1.3 TLS_AES_128_GCM_SHA256"}},
		{"haproxy",
			[]string{"global\n ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets\n ca-base /etc\nfrontend a\n bind :80\n" +
				"bind :443 ssl crt /x.pem alpn h2,http/1.1 ssl-max-ver TLSv1.2 no-tlsv13\n"},
			[]string{"main: ssl-default-bind-options ssl-min-ver TLSv1.2",
				"main: ssl-default-bind-options no-tls-tickets", "listen: alpn h2,http/1.1",
				"listen: ssl-max-ver TLSv1.2", "listen: no-tlsv13"}},
		{"lighttpd", []string{"include \"1.conf\"\nssl.pemfile = \"/x\"\n# ssl.openssl.ssl-conf-cmd = (\"Groups\" => \"x\")\n",
			"ssl.openssl.ssl-conf-cmd = (\"MinProtocol\" => \"TLSv1.2\",\n \"Options\" => \"-KTLS\")\n"},
			[]string{"site: ssl.openssl.ssl-conf-cmd MinProtocol TLSv1.2", "site: ssl.openssl.ssl-conf-cmd Options -KTLS"}},
		{"caddy", []string{"example.com {\n tls a b {\n protocols tls1.2 tls1.3\n }\n file_server\n}\n"},
			[]string{"tls: protocols tls1.2 tls1.3"}},
		{"postgresql", []string{"ssl = on # yes\nssl_key_file = '/x'\nssl_ciphers='HIGH:!aNULL'\nport = 1\ninclude_dir '.d'"},
			[]string{"main: ssl on", "main: ssl_ciphers 'HIGH:!aNULL'"}},
	} {
		got, err := read(t, test.kind, test.files...)
		if err != nil || strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%s: %v\n%s\nwant\n%s", test.kind, err, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for name, files := range map[string][]string{
		"open":   {"http {"},
		"closed": {"}"},
		"loop":   {"include 0.conf;"},
		"large":  {strings.Repeat("#", maxBytes+2)},
	} {
		if got, err := read(t, "nginx", files...); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got, err := read(t, "postgresql", "include_if_exists '1.conf'", strings.Repeat("#", maxBytes+2)); err == nil {
		t.Errorf("a large file that is included if it exists: %q", got)
	}
	for _, kind := range []string{"nginx", "apache", "lighttpd", "go"} {
		if _, err := Read(Server{Kind: kind}, t.TempDir()); err == nil {
			t.Errorf("%s: a folder was read", kind)
		}
	}
}

// TestReadOwn reads what Generate writes: nothing may differ.
func TestReadOwn(t *testing.T) {
	for kind, version := range map[string]string{"nginx": "1.22.1", "apache": "2.4.71", "haproxy": "3.2.0",
		"lighttpd": "1.4.79", "caddy": "2.11.4", "postgresql": "18.0"} {
		for _, name := range policy.Names() {
			ours := generate(t, kind, version, "3.6.0", name)
			file := filepath.Join(t.TempDir(), "conf")
			if err := os.WriteFile(file, []byte(ours.Text()), 0o600); err != nil {
				t.Fatal(err)
			}
			yours, err := Read(ours.Server, file)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range Compare(yours, ours) {
				t.Errorf("%s, %s: %+v", kind, name, d)
			}
		}
	}
}

// TestSame: the same value in other words is no difference.
func TestSame(t *testing.T) {
	for _, test := range []struct {
		name, yours, ours string
		same              bool
	}{
		{"ssl_session_timeout", "1d", "86400s", true},
		{"ssl_session_timeout", "10m", "600s", true},
		{"ssl_session_timeout", "600", "600s", true},
		{"ssl_session_timeout", "5m", "600s", false},
		{"ssl_session_timeout", "dm", "600s", false},
		{"ssl_session_timeout", "", "600s", false},
		{"ssl_buffer_size", "4k", "4096", true},
		{"ssl_buffer_size", "4m", "4096", false},
		{"ssl_protocols", "TLSv1.3 TLSv1.2", "TLSv1.2 TLSv1.3", true},
		{"ssl_protocols", "TLSv1.3", "TLSv1.2 TLSv1.3", false},
		{"ssl_ciphers", "'A:B'", `"a:b"`, true},
		{"ssl_ciphers", "B:A", "A:B", false},
		{"ssl_prefer_server_ciphers", "off", "on", false},
		{"ssl_session_cache", "shared:SSL:10m", "shared:TLS:10m", true},
		{"ssl_session_cache", "shared:SSL:20m", "shared:TLS:10m", false},
		{"ssl_session_cache", "builtin:1000 shared:SSL:10m", "shared:TLS:10m", false},
		{"http2", "", "on", true},
		{"protocols", "tls1.2", "tls1.2 tls1.3", true},
		{"protocols", "tls1.3", "tls1.2 tls1.3", false},
		{"protocols", "tls1.2 tls1.2", "tls1.2 tls1.3", false},
		{"tune.ssl.lifetime", "1d", "86400", true},
		{"tune.ssl.lifetime", "300", "86400", false},
		{"http2", "off", "on", false},
		{"SSLProtocol", "all -SSLv3 -TLSv1 -TLSv1.1", "-all +TLSv1.2 +TLSv1.3", true},
		{"SSLProtocol", "TLSv1.2 TLSv1.3", "-all +TLSv1.2 +TLSv1.3", false}, // the last one without a sign
		{"SSLProtocol", "TLSv1.2 +TLSv1.3", "-all +TLSv1.2 +TLSv1.3", true},
		{"SSLProtocol", "all -SSLv3", "-all +TLSv1.2 +TLSv1.3", false},
		{"SSLSessionCache", "shmcb:/run/x(512000)", "shmcb:${APACHE_RUN_DIR}/y(512000)", true},
		{"SSLSessionCache", "shmcb:/run/x(512000)", "shmcb:/run/x(1000)", false},
		{"SSLSessionCache", "dbm:/run/x", "shmcb:/run/x", false},
	} {
		yours := &Config{Directives: []Directive{{Scope: "site", Name: test.name, Value: test.yours}}}
		ours := &Config{Directives: []Directive{{Scope: "main", Name: test.name, Value: test.ours}}}
		if got := len(Compare(yours, ours)) == 0; got != test.same {
			t.Errorf("%s %s and %s: %v", test.name, test.yours, test.ours, got)
		}
	}
}

// TestCompareHAProxy: HAProxy has many words for the same.
func TestCompareHAProxy(t *testing.T) {
	for _, test := range []struct {
		yours, ours string   // ours is the line ssl-default-bind-options
		want        []string // the differences in yours
	}{
		{"no-sslv3 no-tlsv10 no-tlsv11", "ssl-min-ver TLSv1.2", nil},
		{"no-sslv3", "ssl-min-ver TLSv1.2", nil}, // the default of HAProxy 2.2 and later
		{"", "ssl-min-ver TLSv1.2", []string{"(not there)"}},
		{"no-tlsv12", "ssl-min-ver TLSv1.3", nil},
		{"no-sslv3 no-tlsv12", "ssl-min-ver TLSv1.2", []string{"no-sslv3 no-tlsv12"}},
		{"ssl-min-ver TLSv1.0 no-tlsv10", "ssl-min-ver TLSv1.2", []string{"ssl-min-ver TLSv1.0 no-tlsv10"}},
		{"no-tlsv13", "ssl-min-ver TLSv1.2 ssl-max-ver TLSv1.2", nil},
		{"force-tlsv12", "ssl-min-ver TLSv1.2 ssl-max-ver TLSv1.2", nil},
		{"force-tlsv12 no-tls-tickets", "ssl-min-ver TLSv1.2", []string{"force-tlsv12", "no-tls-tickets"}},
		{"ssl-min-ver TLSv1.0\nfrontend a\n bind :1 ssl ssl-min-ver TLSv1.2 no-tls-tickets",
			"ssl-min-ver TLSv1.2 no-tls-tickets", nil},
		{"ssl-min-ver TLSv1.2\n ssl-default-bind-ciphers A\nfrontend a\n bind :1 ssl ciphers B",
			"ssl-min-ver TLSv1.2\n ssl-default-bind-ciphers B", nil},
		{"ssl-min-ver TLSv1.2\ndefaults\n http-response set-header Strict-Transport-Security A\nfrontend a\n bind :1 ssl",
			"ssl-min-ver TLSv1.2\nfrontend a\n bind :1 ssl\n http-after-response set-header Strict-Transport-Security A", nil},
	} {
		var configs [2]*Config
		for i, text := range []string{test.yours, test.ours} {
			file := filepath.Join(t.TempDir(), "conf")
			if err := os.WriteFile(file, []byte("global\n ssl-default-bind-options "+text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := Read(Server{Kind: "haproxy"}, file)
			if err != nil {
				t.Fatal(err)
			}
			c.Policy = &policy.Policy{}
			configs[i] = c
		}
		var got []string
		for _, d := range Compare(configs[0], configs[1]) {
			got = append(got, iff(!d.HasYours, "(not there)")+d.Yours)
		}
		if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%q and %q: %q, want %q", test.yours, test.ours, got, test.want)
		}
	}
}

// TestReadFolders: paths in a site's file are relative to the folder of the main file, and Apache's Include
// takes folders.
func TestReadFolders(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sites-available/a":  "server { listen 443 ssl; include snippets/*; }",
		"snippets/tls.conf":  "ssl_protocols TLSv1.3;",
		"apache.conf":        "ServerRoot " + dir + "/root\nInclude conf.d\n",
		"root/conf/copied":   "ServerRoot /etc/root\nInclude conf.d/*.conf\n",
		"root/conf.d/a.conf": "SSLProtocol all\n",
		"root/conf.d/b/c":    "SSLCompression off\n",
		"root/conf.d/.x":     "SSLCompression on\n",
		"snippets/.x":        "ssl_protocols TLSv1;",
		"a.conf":             "include_if_exists 'none'\ninclude_if_exists 'root'\nssl = on\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range [][3]string{
		{"nginx", "sites-available/a", "site: ssl_protocols TLSv1.3\nsite a:1\n"},
		{"apache", "apache.conf", "main: SSLProtocol all\nmain: SSLCompression off\n"},
		{"apache", "root/conf/copied", "main: SSLProtocol all\n"},
		{"postgresql", "a.conf", "main: ssl on\nsite a.conf:3\nunread a.conf:2: include_if_exists: root is not a regular file\n"},
	} {
		if got := describe(t, test[0], filepath.Join(dir, test[1])); got != test[2] {
			t.Errorf("%s: got\n%s\nwant\n%s", test[1], got, test[2])
		}
	}
}

// TestReadPatterns: a pattern matches the same names as with filepath.Glob. The number of names that are
// compared with patterns is bounded.
func TestReadPatterns(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/b/1.conf", "a/c/2.conf", "a/c/3", "d/b/1.conf", "[/x.conf"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, pattern := range []string{"*", "a/*", "a//*/*.conf", "*/*/*", "*/b/1.conf", "a/c/3", "a/x",
		"a/c/3/*", "\\[/*", "[", "*/.."} {
		want, wantErr := filepath.Glob(filepath.Join(dir, pattern))
		got, err := new(reading).glob(filepath.Join(dir, pattern))
		if !slices.Equal(got, want) || !errors.Is(err, wantErr) {
			t.Errorf("%s: %q, %v, want %q, %v", pattern, got, err, want, wantErr)
		}
	}
	for _, pattern := range []string{"/*/*/*/*/*/*", dir + "/*", dir + "/x?", dir + "/none"} {
		if _, err := read(t, "nginx", strings.Repeat("include "+pattern+";", maxVisited+1)); err == nil {
			t.Errorf("%s: no error", pattern)
		}
	}
	if got, err := new(reading).glob(strings.Repeat("*/", maxPattern)); !errors.Is(err, filepath.ErrBadPattern) {
		t.Errorf("a long pattern: %q, %v", got, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("http { server { listen 443 ssl; ssl_protocols TLSv1.3; } }")
	f.Add("<VirtualHost *:443>\nSSLEngine on\n</VirtualHost>\nSSLCipherSuite \"a")
	f.Add("ssl.openssl.ssl-conf-cmd += (\"A\" => \"b\")")
	f.Add("frontend x\nbind :443 ssl alpn")
	f.Add("init_by_lua_block { --[=[ } ]=] '}' } ssl_protocols \"a\\\"b\";")
	f.Add("(a) {\ntls {\nprotocols {args[0]}\n}\n}\nb,\nc {\nimport a x\nrespond <<E\n}\nE\n}")
	f.Add("a = (\"b\" => \"c\") + d $SERVER[\"socket\"] == \":1\" { ssl.engine = \"enable\" }")
	f.Add("ssl = 'a''b' # c\nssl_ciphers\\")
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, kind := range Servers {
			if c, err := Read(Server{Kind: kind}, file); err == nil {
				_ = c.Bare()
			}
		}
	})
}
