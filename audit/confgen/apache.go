package confgen

import (
	"fmt"
	"strings"
)

func (g *generator) apache() {
	tls12, tls13, src := g.versions()
	d := func(setting, scope, name, value, reason, source, needs string) {
		g.add(Directive{scope, name, value, setting, reason, source, needs})
	}
	d("versions", "site", "SSLProtocol", join(" ", "-all", iff(tls12, "+TLSv1.2"), iff(tls13, "+TLSv1.3")), whyVersions, src,
		iff(tls13, "httpd 2.4.37"))
	if tls13 {
		list, src := g.suites13()
		d("suites13", "site", "SSLCipherSuite TLSv1.3", list, whySuites13, src, "httpd 2.4.37")
	}
	if tls12 {
		list, src := g.suites12()
		d("suites12", "site", "SSLCipherSuite", list, whySuites12, src, "")
	}
	server, reason, osrc := g.order()
	d("order", "site", "SSLHonorCipherOrder", onOff(server), reason, osrc, "")
	if list, src, needs := g.groups(); list != "" {
		d("groups", "site", "SSLOpenSSLConfCmd Groups", list, whyGroups, src, join(", ", "httpd 2.4.8", needs))
	}
	if list, src := g.signatures(); list != "" {
		d("signatures", "site", "SSLOpenSSLConfCmd SignatureAlgorithms", list, whySignatures, src, "httpd 2.4.8")
	}
	r := g.Policy.Resumption
	if want(r.ID) {
		d("resumption.id", "main", "SSLSessionCache", "shmcb:"+g.apacheState()+"/ssl_scache(5120000)", whyID, r.ID.Source, "")
	} else {
		d("resumption.id", "main", "SSLSessionCache", "none", "The policy forbids resumption by session ID.", r.ID.Source, "")
	}
	seconds, lsrc := g.lifetime()
	d("resumption.lifetime", "main", "SSLSessionCacheTimeout", seconds, whyLifetime, lsrc, "")
	on, tsrc := g.tickets()
	d("resumption.tickets", "site", "SSLSessionTickets", onOff(on), whyTickets, tsrc, "httpd 2.4.11")
	if on {
		g.rotation("httpd changes the key of tickets only when it is restarted: restart it gracefully each day," +
			" or use SSLSessionTicketKeyFile")
	}
	if yes(r.Early) {
		g.remain("early", "httpd has no early data")
	}
	d("compression", "site", "SSLCompression", "off", whyCompress, g.Policy.Records.Compression.Source, "httpd 2.4.3")
	if g.OCSP && g.Policy.Stapling.Missing.Value == "finding" {
		d("stapling", "main", "SSLStaplingCache", "shmcb:"+g.apacheState()+"/stapling(128000)", "Where responses are kept.",
			g.Policy.Stapling.Missing.Source, "")
		d("stapling", "site", "SSLUseStapling", "on", whyStapling, g.Policy.Stapling.Missing.Source, "")
	}
	if yes(g.Policy.Records.Kernel) {
		g.remain("kernel", "httpd has no kernel TLS")
	}
	if g.Policy.Records.BufferSize.Value > 0 {
		g.remain("buffer", "httpd can't bound its records")
	}
	if yes(g.Policy.Sockets.SendFile) {
		d("sendfile", "site", "EnableSendfile", "on",
			"It helps plain HTTP only: httpd has no kernel TLS. Leave it off for files on network shares.",
			g.Policy.Sockets.SendFile.Source, "")
	}
	if header, src := g.hsts(); header != "" {
		d("hsts", "site", "Header always set Strict-Transport-Security", `"`+header+`"`, whyHSTS, src, "mod_headers")
	}
	d("alpn", "site", "Protocols", "h2 http/1.1", whyH2, "", "httpd 2.4.17, mod_http2")
}

func (g *generator) apacheState() string {
	if s := g.config.Layout.State; s != "" {
		return s
	}
	return "${APACHE_RUN_DIR}"
}

func (c *Config) apache(w *writer) {
	l := c.Layout
	modules := l.Modules
	if modules == "" {
		modules = "/usr/lib/apache2/modules"
	}
	load := func(module string) {
		w.open("<IfModule !" + module + "_module>")
		w.line(fmt.Sprintf("LoadModule %s_module %s/mod_%s.so", module, modules, module))
		w.close("</IfModule>")
	}
	if l.State != "" {
		w.line("ServerRoot "+l.State, "ServerName localhost", "PidFile "+l.State+"/httpd.pid", "ErrorLog "+l.State+"/error.log",
			"DefaultRuntimeDir "+l.State, "Mutex file:"+l.State)
		for _, m := range []string{"mpm_event", "authz_core"} {
			load(m)
		}
	}
	for _, m := range []string{"socache_shmcb", "ssl", "http2", "headers", "alias", "dir"} {
		load(m)
	}
	write := func(scope string) {
		for _, d := range c.Directives {
			if d.Scope == scope {
				w.directive(d, strings.TrimSpace(d.Name+" "+d.Value))
			}
		}
	}
	write("main")
	address := "*"
	listen := ""
	if l.Address != "" {
		address, listen = l.Address, l.Address+":"
	}
	if l.State != "" {
		w.line(fmt.Sprintf("Listen %s%d", listen, l.Port))
		if l.PlainPort > 0 {
			w.line(fmt.Sprintf("Listen %s%d", listen, l.PlainPort))
		}
	} else {
		w.comment("/etc/apache2/ports.conf has the lines 'Listen 80' and 'Listen 443'.")
	}
	if l.PlainPort > 0 {
		w.open(fmt.Sprintf("<VirtualHost %s:%d>", address, l.PlainPort))
		w.line("ServerName " + l.Names[0])
		w.comment("Plain HTTP only leads to HTTPS.")
		w.line("Redirect permanent / https://" + l.Names[0] + "/")
		w.close("</VirtualHost>")
	}
	w.open(fmt.Sprintf("<VirtualHost %s:%d>", address, l.Port))
	w.line("ServerName " + l.Names[0])
	if len(l.Names) > 1 {
		w.line("ServerAlias " + strings.Join(l.Names[1:], " "))
	}
	w.line("DocumentRoot " + l.Root)
	w.open("<Directory " + l.Root + ">")
	w.line("Require all granted")
	w.close("</Directory>")
	w.line("SSLEngine on")
	w.comment(c.keyAdvice())
	for _, cert := range l.Certificates {
		w.line("SSLCertificateFile "+cert.Chain, "SSLCertificateKeyFile "+cert.Key)
	}
	write("site")
	w.close("</VirtualHost>")
}
