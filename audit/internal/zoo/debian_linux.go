package zoo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ossl-go/ossl/audit"
)

// Debian returns the servers of three releases, which ci/openssl-versions -servers unpacked into the
// folder.
func Debian(folder string) (all []*Server) {
	for _, release := range []string{"bookworm", "trixie", "sid"} {
		t := tree{release, filepath.Join(folder, "servers-"+release)}
		for _, some := range [][]*Server{t.nginx(), t.otherHTTP(), t.postgres(), t.openssl(), t.gnutls()} {
			for _, server := range some {
				server.Debian = true
				all = append(all, server)
			}
		}
	}
	return all
}

// modern reports whether the release's OpenSSL has post-quantum groups, as 3.5 does.
func (t tree) modern() bool { return t.release != "bookworm" }

// expect returns the verdicts, with those that every server of the release has.
func (t tree) expect(more ...Verdict) []Verdict {
	if !t.modern() {
		more = append(more, Verdict{"group-postquantum", "OpenSSL 3.0 has no post-quantum group"})
	}
	return more
}

func (t tree) groups() string {
	if t.modern() {
		return "X25519MLKEM768:X25519:prime256v1"
	}
	return "X25519:prime256v1"
}

const ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256"

const nginxConf = `daemon off;
master_process off;
pid @dir/pid;
error_log @dir/error.log;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path @dir/1; proxy_temp_path @dir/2; fastcgi_temp_path @dir/3; uwsgi_temp_path @dir/4; scgi_temp_path @dir/5;
  server {
    listen @host:@port ssl @http2;
    server_name localhost;
    ssl_certificate @dir/cert.pem;
    ssl_certificate_key @dir/key.pem;
    @ssl
    add_header Strict-Transport-Security "max-age=31536000";
    location / { return 200 "zoo\n"; }
  }
}
`

// startNginx starts nginx at each host, with the directives.
func (t tree) startNginx(r *Running, http2 bool, directives string, hosts ...string) error {
	if err := r.pem(pki.ecdsa()); err != nil {
		return err
	}
	for i, host := range hosts {
		port, err := r.reserve(host)
		if err != nil {
			return err
		}
		on := ""
		if http2 {
			on = "http2"
		}
		conf, err := r.write(fmt.Sprintf("nginx-%d.conf", i), nginxConf, "@host", host, "@port", port, "@http2", on,
			"@ssl", directives, "@groups", t.groups())
		if err != nil {
			return err
		}
		if err := t.start(r, false, "nginx", "-p", r.Folder, "-c", conf, "-e", filepath.Join(r.Folder, "error.log")); err != nil {
			return err
		}
	}
	return nil
}

func (t tree) nginx() []*Server {
	model := strings.NewReplacer("@groups", t.groups(), "@ciphers", ciphers).Replace(
		"ssl_protocols TLSv1.2 TLSv1.3; ssl_ciphers @ciphers; ssl_prefer_server_ciphers on; ssl_ecdh_curve @groups; " +
			"ssl_session_timeout 10m; ssl_session_cache shared:zoo:1m; ")
	server := func(name, about, directives string, expect ...Verdict) *Server {
		return &Server{
			Name: "nginx-" + t.release + name, About: "nginx of " + t.release + about, Protocol: "https", Expect: t.expect(expect...),
			start: func(r *Running) error { return t.startNginx(r, true, directives, "127.0.0.1") },
		}
	}
	replay := func(s *Server) *Server {
		s.Options = func(o *audit.Options) { o.Replay = true }
		return s
	}
	early := Verdict{"early-data-on", "ssl_early_data is on"}
	all := []*Server{
		server("", ", as the policy wants it", model),
		server("-no-tickets", " without tickets and cache",
			strings.Replace(model, "shared:zoo:1m", "off", 1)+"ssl_session_tickets off;",
			Verdict{"resume-none", "no session is resumed in any way"}),
		replay(server("-early-data", " with ssl_early_data", model+"ssl_early_data on;", early,
			Verdict{"early-data-replay", "nginx turns OpenSSL's protection off"})),
		replay(server("-anti-replay", " with ssl_early_data and AntiReplay",
			strings.Replace(model, "shared:zoo:1m", "builtin", 1)+"ssl_early_data on; ssl_conf_command Options AntiReplay;", early)),
		server("-anti-replay-shared", " with ssl_early_data, AntiReplay and a shared cache",
			model+"ssl_early_data on; ssl_conf_command Options AntiReplay;",
			Verdict{"resume-tls13", "tickets are names of sessions in a cache, in which nginx keeps none of TLS 1.3"}),
		{
			Name: "nginx-" + t.release + "-weak-ticket-key", About: "nginx of " + t.release + " with a ticket key of zeros",
			Protocol: "https", Expect: t.expect(Verdict{"ticket-key-weak", "everyone can open the tickets"}),
			start: func(r *Running) error {
				path := filepath.Join(r.Folder, "tickets")
				if err := os.WriteFile(path, make([]byte, 80), 0o600); err != nil {
					return err
				}
				return t.startNginx(r, true, model+"ssl_session_ticket_key "+path+";", "127.0.0.1")
			},
		},
		{
			Name: "nginx-" + t.release + "-fleet", About: "two nginx of " + t.release + " with ticket keys of their own",
			Protocol: "https",
			Expect:   t.expect(Verdict{"resume-fleet", "a session of one address isn't resumed by the other one"}),
			start:    func(r *Running) error { return t.startNginx(r, true, model, "127.0.0.1", "127.0.0.2") },
		},
		{
			Name: "nginx-" + t.release + "-http-1.1", About: "nginx of " + t.release + " without HTTP/2", Protocol: "https",
			Expect: t.expect(Verdict{"alpn-h2", "HTTP/2 isn't offered"}),
			start:  func(r *Running) error { return t.startNginx(r, false, model, "127.0.0.1") },
		},
	}
	if t.release == "bookworm" {
		all = append(all, server("-modern", ", as the archived generator's modern wants it",
			"ssl_protocols TLSv1.3; ssl_ecdh_curve X25519:prime256v1:secp384r1; ssl_prefer_server_ciphers off; ssl_session_tickets off;",
			Verdict{"resume-none", "tickets are off, and there is no cache"}, Verdict{"suite-order", "the client's order decides"}))
	}
	return all
}

const apacheConf = `ServerRoot @dir
PidFile @dir/pid
ServerName localhost
Listen 127.0.0.1:@port
ErrorLog @dir/error.log
DocumentRoot @dir/www
LoadModule mpm_event_module @modules/mod_mpm_event.so
LoadModule authz_core_module @modules/mod_authz_core.so
LoadModule socache_shmcb_module @modules/mod_socache_shmcb.so
LoadModule headers_module @modules/mod_headers.so
LoadModule http2_module @modules/mod_http2.so
LoadModule ssl_module @modules/mod_ssl.so
Mutex file:@dir default
StartServers 1
Protocols h2 http/1.1
SSLEngine on
SSLCertificateFile @dir/cert.pem
SSLCertificateKeyFile @dir/key.pem
SSLProtocol -all +TLSv1.2 +TLSv1.3
SSLCipherSuite @ciphers
SSLHonorCipherOrder on
SSLOpenSSLConfCmd Groups @groups
SSLSessionCache shmcb:@dir/cache(512000)
Header always set Strict-Transport-Security "max-age=31536000"
`

const haproxyConf = `global
  ssl-default-bind-ciphers @ciphers
  ssl-default-bind-options ssl-min-ver TLSv1.2 @options
  ssl-default-bind-curves @groups
defaults
  mode http
  timeout client 20s
  timeout connect 5s
  timeout server 20s
frontend zoo
  bind 127.0.0.1:@port ssl crt @dir/both.pem alpn h2,http/1.1 @more
  http-request return status 200 content-type text/plain string zoo hdr Strict-Transport-Security max-age=31536000
`

const lighttpdConf = `server.document-root = "@dir/www"
server.bind = "127.0.0.1"
server.port = @port
server.errorlog = "@dir/error.log"
server.modules += ("mod_openssl", "mod_setenv")
ssl.engine = "enable"
ssl.pemfile = "@dir/cert.pem"
ssl.privkey = "@dir/key.pem"
ssl.openssl.ssl-conf-cmd = ("MinProtocol" => "TLSv1.2", "CipherString" => "@ciphers", "Groups" => "@groups")
setenv.add-response-header = ("Strict-Transport-Security" => "max-age=31536000")
`

const caddyConf = `{
  admin off
  auto_https off
  skip_install_trust
}
https://localhost:@port {
  bind 127.0.0.1
  tls @dir/cert.pem @dir/key.pem
  header Strict-Transport-Security max-age=31536000
  respond zoo
}
`

// otherHTTP returns apache, haproxy, lighttpd and caddy.
func (t tree) otherHTTP() []*Server {
	server := func(name, about string, expect []Verdict, start func(r *Running, port string) error) *Server {
		return &Server{
			Name: fmt.Sprintf(name, t.release), About: fmt.Sprintf(about, t.release), Protocol: "https", Expect: expect,
			start: func(r *Running) error {
				if err := r.pem(pki.ecdsa()); err != nil {
					return err
				}
				if err := os.Mkdir(filepath.Join(r.Folder, "www"), 0o755); err != nil {
					return err
				}
				port, err := r.reserve("127.0.0.1")
				if err != nil {
					return err
				}
				return start(r, port)
			},
		}
	}
	haproxy := func(options, more string) func(*Running, string) error {
		return func(r *Running, port string) error {
			conf, err := r.write("haproxy.cfg", haproxyConf, "@options", options, "@port", port, "@ciphers", ciphers, "@groups",
				t.groups(), "@more", more)
			if err != nil {
				return err
			}
			return t.start(r, false, "haproxy", "-db", "-f", conf)
		}
	}
	return []*Server{
		server("apache-%s", "Apache of %s with tickets and a cache", t.expect(), func(r *Running, port string) error {
			conf, err := r.write("apache.conf", apacheConf, "@port", port, "@ciphers", ciphers, "@groups", t.groups(),
				"@modules", filepath.Join(t.folder, "usr/lib/apache2/modules"))
			if err != nil {
				return err
			}
			return t.start(r, true, "apache2", "-DFOREGROUND", "-f", conf)
		}),
		server("haproxy-%s", "HAProxy of %s", t.expect(), haproxy("", "")),
		server("haproxy-%s-client-order", "HAProxy of %s with prefer-client-ciphers",
			t.expect(Verdict{"suite-order", "the client's order decides"}), haproxy("prefer-client-ciphers", "")),
		server("haproxy-%s-no-tickets", "HAProxy of %s with no-tls-tickets",
			t.expect(Verdict{"resume-tls12-ticket", "no-tls-tickets"}), haproxy("", "no-tls-tickets")),
		server("haproxy-%s-early-data", "HAProxy of %s with allow-0rtt",
			t.expect(Verdict{"early-data-on", "allow-0rtt"}), haproxy("", "allow-0rtt")),
		server("lighttpd-%s", "lighttpd of %s, which has no session cache by default",
			t.expect(Verdict{"resume-tls12-id", "the session cache is off"}, Verdict{"suite-order", "the client's order decides"}),
			func(r *Running, port string) error {
				conf, err := r.write("lighttpd.conf", lighttpdConf, "@port", port, "@ciphers", ciphers, "@groups", t.groups())
				if err != nil {
					return err
				}
				return t.start(r, false, "lighttpd", "-D", "-f", conf, "-m", filepath.Join(t.folder, "usr/lib/lighttpd"))
			}),
		server("caddy-%s", "Caddy of %s", t.caddy(), func(r *Running, port string) error {
			conf, err := r.write("Caddyfile", caddyConf, "@port", port)
			if err != nil {
				return err
			}
			return t.start(r, false, "caddy", "run", "--adapter", "caddyfile", "--config", conf)
		}),
	}
}

// caddy returns the verdicts on Caddy, which are those on the crypto/tls that it is built with.
func (t tree) caddy() []Verdict {
	all := goVerdicts(
		Verdict{"group-postquantum", "Debian's Caddy offers X25519 and prime256v1"},
		Verdict{"signature-weak", "Debian builds Caddy with the GODEBUG setting tlssha1=1"},
	)
	if t.release == "bookworm" {
		all = append(all, Verdict{"ems-missing", "crypto/tls has it since Go 1.21"})
	}
	return all
}

func (t tree) postgres() []*Server {
	expect := []Verdict{
		{"suite-not-in-policy", "ssl_ciphers is HIGH:MEDIUM"}, {"suite-order", "OpenSSL's order has ARIA before AES-128"},
		{"group-postquantum", "ssl_ecdh_curve or ssl_groups has none"},
	}
	if t.release != "sid" {
		expect = append(expect, Verdict{"group-retry", "ssl_ecdh_curve is prime256v1"})
	}
	return []*Server{{
		Name: "postgres-" + t.release, About: "PostgreSQL of " + t.release + ", which resumes nothing", Protocol: "postgres",
		Expect: expect,
		start: func(r *Running) error {
			if err := r.pem(pki.ecdsa()); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			data := filepath.Join(r.Folder, "data")
			initdb, err := t.command(ctx, r, true, "initdb", "-D", data, "-A", "trust", "-N", "--no-instructions")
			if err != nil {
				return err
			}
			if out, err := initdb.CombinedOutput(); err != nil {
				return fmt.Errorf("initdb: %w: %s", err, out)
			}
			port, err := r.reserve("127.0.0.1")
			if err != nil {
				return err
			}
			return t.start(r, true, "postgres.bin", "-D", data, "-p", port, "-h", "127.0.0.1", "-k", "", "-c", "ssl=on", "-F",
				"-c", "ssl_cert_file="+filepath.Join(r.Folder, "cert.pem"), "-c", "ssl_key_file="+filepath.Join(r.Folder, "key.pem"),
				"-c", "shared_buffers=1MB")
		},
	}}
}

// openssl returns openssl s_server, which serves one connection at a time.
func (t tree) openssl() []*Server {
	server := func(name, about string, expect []Verdict, args ...string) *Server {
		return &Server{
			Name: "s-server-" + t.release + name, About: "openssl s_server of " + t.release + about, Expect: expect,
			start: func(r *Running) error {
				if err := r.pem(pki.ecdsa()); err != nil {
					return err
				}
				port, err := r.reserve("127.0.0.1")
				if err != nil {
					return err
				}
				all := []string{
					"s_server", "-accept", "127.0.0.1:" + port, "-cert", filepath.Join(r.Folder, "leaf.pem"),
					"-key", filepath.Join(r.Folder, "key.pem"), "-cert_chain", filepath.Join(r.Folder, "inter.pem"), "-quiet",
				}
				return t.start(r, false, "openssl", append(all, args...)...)
			},
		}
	}
	// basic returns verdicts, with those on every s_server.
	basic := func(more ...Verdict) []Verdict {
		return append(more, Verdict{"suite-not-in-policy", "OpenSSL's defaults have CBC suites"},
			Verdict{"suite-order", "without -serverpref the client's order decides"})
	}
	groups := func(more ...Verdict) []Verdict {
		return t.expect(basic(append(more, Verdict{"group-not-in-policy", "OpenSSL's defaults have finite fields"})...)...)
	}
	no13, missing := Verdict{"tls13-missing", "TLS 1.3 is off"}, Verdict{"version-missing", "TLS 1.3 is off"}
	defaults := Verdict{"group-not-in-policy", "OpenSSL's defaults have secp521r1 and x448"}
	all := []*Server{
		server("", " as it is", groups(), "-www"),
		server("-early-data", " with early data and without protection against replay", groups(Verdict{"early-data-on", "-early_data"}),
			"-early_data", "-no_anti_replay"),
		server("-prime256v1", " with prime256v1 alone", basic(
			Verdict{"group-postquantum", "prime256v1 is the only group"},
			Verdict{"group-retry", "clients with key shares of X25519 pay a HelloRetryRequest"},
		), "-www", "-groups", "P-256"),
		server("-renegotiation", " which renegotiates when a client asks", basic(
			no13, missing, Verdict{"renegotiation-client", "-client_renegotiation"}, defaults,
		), "-www", "-tls1_2", "-client_renegotiation"),
		server("-old", " with TLS 1.0 and security level 0", groups(
			Verdict{"version-old", "TLS 1.0 and 1.1"}, Verdict{"suite-weak", "suites without encryption"},
			Verdict{"signature-weak", "SHA-1"}, Verdict{"group-weak", "a prime of 1024 bits"},
		), "-www", "-cipher", "ALL:eNULL:@SECLEVEL=0", "-min_protocol", "TLSv1"),
		server("-no-resumption", " without cache and tickets", groups(Verdict{"resume-none", "-no_cache -no_ticket"}),
			"-www", "-no_cache", "-no_ticket", "-num_tickets", "0"),
	}
	if t.modern() { // 3.0 can't turn it off
		all = append(all, server("-no-ems", " without extended_master_secret", basic(
			no13, missing, Verdict{"ems-missing", "-no_ems"}, defaults,
		), "-www", "-tls1_2", "-no_ems"))
	}
	return all
}

// gnutls returns gnutls-serv.
func (t tree) gnutls() []*Server {
	return []*Server{{
		Name: "gnutls-" + t.release, About: "gnutls-serv of " + t.release + ", which listens on all addresses of the host",
		Everywhere: true, Expect: []Verdict{
			{"version-old", "TLS 1.0 and TLS 1.1"}, {"signature-weak", "SHA-1"}, {"suite-not-in-policy", "CBC and CCM suites"},
			{"suite-order", "the client's order decides"}, {"group-not-in-policy", "finite fields"},
			{"group-postquantum", "Debian builds GnuTLS without post-quantum groups"},
			{"renegotiation-client", "gnutls-serv renegotiates when a client asks"},
		},
		start: func(r *Running) error {
			if err := r.pem(pki.ecdsa()); err != nil {
				return err
			}
			port, err := r.reserve("127.0.0.1")
			if err != nil {
				return err
			}
			return t.start(r, false, "gnutls-serv", "--http", "--port", port, "--quiet", "--x509certfile",
				filepath.Join(r.Folder, "cert.pem"),
				"--x509keyfile", filepath.Join(r.Folder, "key.pem"))
		},
	}}
}
