package confgen

import "fmt"

func (g *generator) haproxy() {
	tls12, tls13, src := g.versions()
	d := func(setting, name, value, reason, source, needs string) {
		g.add(Directive{"main", name, value, setting, reason, source, needs})
	}
	option := func(setting, value, reason, source, needs string) {
		d(setting, "ssl-default-bind-options", value, reason, source, needs)
	}
	least := "TLSv1.3"
	if tls12 {
		least = "TLSv1.2"
	}
	option("versions", "ssl-min-ver "+least, whyVersions, src, "HAProxy 1.8")
	if !tls13 {
		option("versions", "ssl-max-ver TLSv1.2", "The policy has no TLS 1.3.", src, "HAProxy 1.8")
	}
	if tls13 {
		list, src := g.suites13()
		d("suites13", "ssl-default-bind-ciphersuites", list, whySuites13, src, "HAProxy 1.8.2")
	}
	if tls12 {
		list, src := g.suites12()
		d("suites12", "ssl-default-bind-ciphers", list, whySuites12, src, "")
	}
	if server, reason, src := g.order(); !server {
		option("order", "prefer-client-ciphers", reason, src, "HAProxy 1.8")
	}
	if list, src, needs := g.groups(); list != "" {
		d("groups", "ssl-default-bind-curves", list, whyGroups, src, join(", ", "HAProxy 1.8", needs))
	}
	if list, src := g.signatures(); list != "" {
		if g.at(2, 8, 0) {
			d("signatures", "ssl-default-bind-sigalgs", list, whySignatures, src, "HAProxy 2.8")
		} else {
			g.remain("signatures", "HAProxy before 2.8 can't set the signature schemes")
		}
	}
	r := g.Policy.Resumption
	if want(r.ID) {
		d("resumption.id", "tune.ssl.cachesize", "40000",
			whyID+" The unit is a block of 200 bytes; a session needs one, or some with client certificates.", r.ID.Source, "")
	} else {
		d("resumption.id", "tune.ssl.cachesize", "0", "The policy forbids resumption by session ID.", r.ID.Source, "")
	}
	seconds, lsrc := g.lifetime()
	d("resumption.lifetime", "tune.ssl.lifetime", seconds, whyLifetime, lsrc, "")
	if on, src := g.tickets(); !on {
		option("resumption.tickets", "no-tls-tickets", "The policy forbids tickets.", src, "")
	} else {
		g.rotation("HAProxy changes the key of tickets only when it is reloaded: reload it daily, " +
			"or use tls-ticket-keys and 'set ssl tls-key'")
	}
	if yes(r.Early) {
		g.add(Directive{"listen", "allow-0rtt", "", "early", whyEarly, r.Early.Source, "HAProxy 1.8"})
	}
	if g.OCSP && g.Policy.Stapling.Missing.Value == "finding" {
		if g.at(2, 8, 0) {
			g.note("For stapling add '[ocsp-update on]' to the certificate's line of a crt-list (HAProxy 2.8).")
		} else {
			g.remain("stapling", "HAProxy before 2.8 staples only responses that something else put into CERTIFICATE.ocsp")
		}
	}
	if yes(g.Policy.Records.Kernel) {
		g.remain("kernel", "HAProxy's kernel TLS (ktls on, from 3.3 on) is experimental")
	}
	if n := g.Policy.Records.BufferSize; n.Value > 0 {
		d("buffer", "tune.ssl.maxrecord", fmt.Sprint(n.Value), "The bytes of a record.", n.Source, "")
	}
	if yes(g.Policy.Sockets.SendFile) {
		g.remain("sendfile", "HAProxy has no files to send; splicing works only for plain TCP")
	}
	if header, src := g.hsts(); header != "" {
		g.add(Directive{"site", "http-after-response set-header Strict-Transport-Security", `"` + header + `"`, "hsts", whyHSTS,
			src, "HAProxy 2.2"})
	}
	g.add(Directive{"listen", "alpn", "h2,http/1.1", "alpn", whyH2, "", "HAProxy 1.8; the default from 2.8 on"})
}

func (c *Config) haproxy(w *writer) {
	l := c.Layout
	write := func(scope string) {
		for _, d := range c.Directives {
			if d.Scope == scope {
				w.directive(d, d.Line("haproxy"))
			}
		}
	}
	w.open("global")
	if l.State == "" {
		w.line("log /dev/log local0", "user haproxy", "group haproxy", "daemon", "maxconn 4096")
	} else {
		w.line("maxconn 1000")
	}
	write("main")
	w.close("")
	w.open("defaults")
	w.line("mode http", "timeout connect 5s", "timeout client 30s", "timeout server 30s", "timeout http-request 10s")
	w.close("")
	address := l.Address
	if address == "" {
		address = ":::%d v4v6"
	} else {
		address += ":%d"
	}
	if l.PlainPort > 0 {
		w.open("frontend plain")
		w.line("bind " + fmt.Sprintf(address, l.PlainPort))
		w.comment("Plain HTTP only leads to HTTPS.")
		w.line("http-request redirect scheme https code 301")
		w.close("")
	}
	w.open("frontend secure")
	words := " ssl"
	for _, cert := range l.Certificates {
		words += " crt " + cert.Chain
	}
	for _, d := range c.Directives {
		if d.Scope == "listen" {
			w.reason(d)
			words += " " + d.Line("haproxy")
		}
	}
	w.comment(c.keyAdvice() + " HAProxy wants chain and key in one file.")
	w.line("bind " + fmt.Sprintf(address, l.Port) + words)
	write("site")
	w.line("default_backend application")
	w.close("")
	w.open("backend application")
	w.line("server one " + l.Backend)
	w.close("")
}
