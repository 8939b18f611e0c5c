package confgen

import (
	"fmt"
	"strconv"
	"strings"
)

func (g *generator) nginx() {
	tls12, tls13, src := g.versions()
	d := func(setting, name, value, reason, source, needs string) {
		g.add(Directive{"site", name, value, setting, reason, source, needs})
	}
	if tls13 {
		d("versions", "ssl_protocols", join(" ", iff(tls12, "TLSv1.2"), "TLSv1.3"),
			whyVersions+" nginx before 1.23.4 has no TLS 1.3 by default.", src, "nginx 1.13.0")
	} else {
		d("versions", "ssl_protocols", "TLSv1.2", whyVersions, src, "")
	}
	// nginx inherits ssl_conf_command from the level above only if a level has none of its own: all of
	// them stand together.
	commands := g.at(1, 19, 4)
	if tls13 {
		list, src := g.suites13()
		if commands {
			d("suites13", "ssl_conf_command Ciphersuites", list, whySuites13+
				" Keep all ssl_conf_command lines at one level: a level with one inherits none.", src, "nginx 1.19.4")
		} else {
			g.remain("suites13", "nginx before 1.19.4 can't set the suites of TLS 1.3")
		}
	}
	if tls12 {
		list, src := g.suites12()
		d("suites12", "ssl_ciphers", list, whySuites12, src, "")
	}
	server, reason, osrc := g.order()
	d("order", "ssl_prefer_server_ciphers", onOff(server), reason, osrc, "")
	if list, src, needs := g.groups(); list != "" {
		d("groups", "ssl_ecdh_curve", list, whyGroups, src, join(", ", "nginx 1.11.0", needs))
	}
	if list, src := g.signatures(); list != "" {
		if commands {
			d("signatures", "ssl_conf_command SignatureAlgorithms", list, whySignatures, src, "nginx 1.19.4")
		} else {
			g.remain("signatures", "nginx before 1.19.4 can't set the signature schemes")
		}
	}
	g.nginxSessions(d)
	g.nginxSpeed(d, commands)
	if header, src := g.hsts(); header != "" {
		d("hsts", "add_header Strict-Transport-Security", `"`+header+`" always`, whyHSTS, src, "nginx 1.7.5")
	}
	if g.at(1, 25, 1) {
		d("alpn", "http2", "on", whyH2, "", "nginx 1.25.1")
	} else {
		g.add(Directive{"listen", "http2", "", "alpn", whyH2, "", "nginx 1.9.5; from 1.25.1 on it is a directive"})
	}
}

func (g *generator) nginxSessions(d func(setting, name, value, reason, source, needs string)) {
	r := g.Policy.Resumption
	ticketsOn, tsrc := g.tickets()
	if want(r.ID) {
		d("resumption.id", "ssl_session_cache", "shared:TLS:10m", whyID+" 10 MB hold 40,000 sessions. "+
			"The default is none, although session IDs are sent.", r.ID.Source, "")
	} else {
		d("resumption.id", "ssl_session_cache", "off", "The policy forbids resumption by session ID.", r.ID.Source, "")
	}
	seconds, src := g.lifetime()
	d("resumption.lifetime", "ssl_session_timeout", seconds+"s", whyLifetime, src, "")
	d("resumption.tickets", "ssl_session_tickets", onOff(ticketsOn), whyTickets, tsrc, "nginx 1.5.9")
	if ticketsOn && !g.at(1, 23, 2) {
		g.rotation("nginx before 1.23.2 changes the key of tickets only when it is reloaded: reload it daily, " +
			"or use ssl_session_ticket_key")
	}
	if g.at(1, 15, 3) {
		d("early", "ssl_early_data", onOff(yes(r.Early)), whyEarly+" nginx turns OpenSSL's protection off.", r.Early.Source,
			"nginx 1.15.3")
		if yes(r.Early) {
			g.note("Early data can be replayed: pass it on with 'proxy_set_header Early-Data $ssl_early_data;', and have the " +
				"application answer 425 (Too Early) to requests that change something. OpenSSL's option AntiReplay is not " +
				"used: with it and a shared cache, nginx resumes no session of TLS 1.3, and so takes no early data.")
		}
	}
	if g.OCSP && g.Policy.Stapling.Missing.Value == "finding" {
		d("stapling", "ssl_stapling", "on", whyStapling, g.Policy.Stapling.Missing.Source, "nginx 1.3.7")
		d("stapling", "ssl_stapling_verify", "on", "A wrong response is worse than none.", g.Policy.Stapling.Missing.Source,
			"nginx 1.3.7")
		g.note("nginx needs a resolver for stapling: add 'resolver ADDRESS;' with the address of yours.")
	}
}

func (g *generator) nginxSpeed(d func(setting, name, value, reason, source, needs string), commands bool) {
	r, s := g.Policy.Records, g.Policy.Sockets
	if r.BufferSize.Value > 0 {
		d("buffer", "ssl_buffer_size", strconv.Itoa(r.BufferSize.Value), "The bytes that are collected for a record.",
			r.BufferSize.Source, "nginx 1.5.9")
	}
	if yes(r.Kernel) {
		if g.at(1, 21, 4) && commands && !g.Server.OpenSSL.Before(Version{3, 0, 0}) {
			d("kernel", "ssl_conf_command Options", "KTLS", whyKernel, r.Kernel.Source, "nginx 1.21.4, OpenSSL 3.0.0 with kernel TLS")
		} else {
			g.remain("kernel", "kernel TLS needs nginx 1.21.4 and OpenSSL 3.0")
		}
	}
	if yes(s.SendFile) {
		d("sendfile", "sendfile", "on", whySendFile, s.SendFile.Source, "")
		if s.SendFileChunk.Value > 0 {
			d("sendfile", "sendfile_max_chunk", strconv.Itoa(s.SendFileChunk.Value),
				"One fast client doesn't keep a worker for itself.", s.SendFileChunk.Source, "")
		}
	}
	if yes(s.NoPush) {
		d("nopush", "tcp_nopush", "on", "With sendfile, packets are full.", s.NoPush.Source, "")
	}
	if yes(s.NoDelay) {
		d("nodelay", "tcp_nodelay", "on", "The last packet of a response doesn't wait for an acknowledgement.", s.NoDelay.Source, "")
	}
}

func iff(ok bool, s string) string {
	if ok {
		return s
	}
	return ""
}

func (c *Config) nginx(w *writer) {
	l := c.Layout
	if l.Snippet {
		c.nginxSite(w)
		return
	}
	if l.State == "" {
		w.line("user www-data;", "worker_processes auto;", "pid /run/nginx.pid;", "include /etc/nginx/modules-enabled/*.conf;")
	} else {
		w.line("daemon off;", "worker_processes 1;", "pid "+l.State+"/nginx.pid;", "error_log stderr notice;")
	}
	w.open("events {")
	w.line("worker_connections 1024;")
	w.close("}")
	w.open("http {")
	if l.State == "" {
		w.line("include /etc/nginx/mime.types;", "access_log /var/log/nginx/access.log;")
	} else {
		w.line("access_log off;")
		for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			w.line(fmt.Sprintf("%s_temp_path %s/%s;", name, l.State, name))
		}
	}
	w.line("default_type application/octet-stream;")
	c.nginxSite(w)
	w.close("}")
}

// nginxSite writes the servers.
func (c *Config) nginxSite(w *writer) {
	l := c.Layout
	write := func(scope string) {
		for _, d := range c.Directives {
			if d.Scope == scope {
				w.directive(d, d.Line("nginx"))
			}
		}
	}
	write("main")
	if l.PlainPort > 0 {
		w.open("server {")
		c.nginxListen(w, l.PlainPort, "")
		w.line("server_name " + strings.Join(l.Names, " ") + ";")
		w.comment("Plain HTTP only leads to HTTPS.")
		w.line("return 301 https://$host$request_uri;")
		w.close("}")
	}
	w.open("server {")
	words := ""
	for _, d := range c.Directives {
		if d.Scope == "listen" {
			w.reason(d)
			words += " " + d.Line("nginx")
		}
	}
	c.nginxListen(w, l.Port, " ssl"+words)
	w.line("server_name "+strings.Join(l.Names, " ")+";", "root "+l.Root+";")
	w.comment(c.keyAdvice())
	for _, cert := range l.Certificates {
		w.line("ssl_certificate "+cert.Chain+";", "ssl_certificate_key "+cert.Key+";")
	}
	write("site")
	w.close("}")
}

func (c *Config) nginxListen(w *writer, port int, words string) {
	if c.Layout.Address != "" {
		w.line(fmt.Sprintf("listen %s:%d%s;", c.Layout.Address, port, words))
		return
	}
	w.line(fmt.Sprintf("listen %d%s;", port, words), fmt.Sprintf("listen [::]:%d%s;", port, words))
}
