package confgen

import "fmt"

// confCmd is the name of lighttpd's directives that OpenSSL reads.
const confCmd = "ssl.openssl.ssl-conf-cmd "

func (g *generator) lighttpd() {
	tls12, tls13, src := g.versions()
	d := func(setting, name, value, reason, source, needs string) {
		g.add(Directive{"site", confCmd + name, value, setting, reason, source, join(", ", "lighttpd 1.4.48", needs)})
	}
	least := "TLSv1.3"
	if tls12 {
		least = "TLSv1.2"
	}
	d("versions", "MinProtocol", least, whyVersions+" From 1.4.77 on the default is TLS 1.3.", src, "")
	if !tls13 {
		d("versions", "MaxProtocol", "TLSv1.2", "The policy has no TLS 1.3.", src, "")
	}
	if tls13 {
		list, src := g.suites13()
		d("suites13", "Ciphersuites", list, whySuites13, src, "")
	}
	if tls12 {
		list, src := g.suites12()
		d("suites12", "CipherString", list, whySuites12, src, "")
	}
	if list, src, needs := g.groups(); list != "" {
		d("groups", "Groups", list, whyGroups, src, needs)
	}
	if list, src := g.signatures(); list != "" {
		d("signatures", "SignatureAlgorithms", list, whySignatures, src, "")
	}
	r := g.Policy.Resumption
	if want(r.ID) {
		g.add(Directive{"main", "server.feature-flags", "ssl.session-cache=enable", "resumption.id", whyID + " Off by default.",
			r.ID.Source, "lighttpd 1.4.56"})
	}
	g.lighttpdOptions(d)
	if r.Lifetime.Value > 0 {
		g.remain("resumption.lifetime", "lighttpd can't set the lifetime of sessions: OpenSSL's default holds")
	}
	if yes(r.Early) {
		g.remain("early", "lighttpd has no early data")
	}
	if g.OCSP && g.Policy.Stapling.Missing.Value == "finding" {
		g.add(Directive{"site", "ssl.stapling-file", `"/var/lib/lighttpd/ocsp.der"`, "stapling", whyStapling +
			" Another program has to renew the file.", g.Policy.Stapling.Missing.Source, "lighttpd 1.4.56"})
	}
	if g.Policy.Records.BufferSize.Value > 0 {
		g.remain("buffer", "lighttpd can't bound its records")
	}
	if header, src := g.hsts(); header != "" {
		g.add(Directive{"site", "setenv.add-response-header Strict-Transport-Security", header, "hsts", whyHSTS, src, "mod_setenv"})
	}
	value := "enable"
	g.add(Directive{"main", "server.feature-flags", "server.h2proto=" + value, "alpn", whyH2, "",
		"lighttpd 1.4.56; the default from 1.4.59 on"})
}

// lighttpdOptions writes OpenSSL's options in one command, since lighttpd takes each command once.
func (g *generator) lighttpdOptions(d func(setting, name, value, reason, source, needs string)) {
	server, reason, src := g.order()
	options := "-ServerPreference"
	if server {
		options = "ServerPreference"
	}
	on, tsrc := g.tickets()
	if on {
		options += ",SessionTicket"
		reason += " " + whyTickets + " The key changes every 8 hours."
	} else {
		options += ",-SessionTicket"
		reason += " The policy forbids tickets."
	}
	src = join("; ", src, tsrc)
	// lighttpd turns kernel TLS on by itself if the kernel has it; "-KTLS" turns it off.
	if k := g.Policy.Records.Kernel; k.Value == "no" && g.at(1, 4, 77) && !g.Server.OpenSSL.Before(Version{3, 0, 0}) {
		options += ",-KTLS"
		reason += " lighttpd turns kernel TLS on by itself if the kernel has it, and the policy doesn't want it."
		src = join("; ", src, k.Source)
	}
	d("order", "Options", options, reason, src, "")
}

func (c *Config) lighttpd(w *writer) {
	l := c.Layout
	w.line(`server.modules += ( "mod_redirect", "mod_setenv", "mod_openssl" )`)
	if l.State == "" {
		w.line(`server.username = "www-data"`, `server.groupname = "www-data"`, `server.pid-file = "/run/lighttpd.pid"`,
			`server.errorlog = "/var/log/lighttpd/error.log"`)
	} else {
		w.line(fmt.Sprintf(`server.pid-file = "%s/lighttpd.pid"`, l.State), fmt.Sprintf(`server.errorlog = "%s/error.log"`, l.State),
			fmt.Sprintf(`server.upload-dirs = ( "%s" )`, l.State))
	}
	w.line(fmt.Sprintf(`server.document-root = "%s"`, l.Root), `index-file.names = ( "index.html" )`)
	if c.Server.Version.Before(Version{1, 4, 79}) {
		w.comment("This lighttpd knows no types of files by itself, and browsers would save pages instead of showing them.")
		w.line(`mimetype.assign = (`,
			`    ".html" => "text/html", ".txt" => "text/plain", ".css" => "text/css", ".js" => "text/javascript",`,
			`    ".json" => "application/json", ".xml" => "application/xml", ".pdf" => "application/pdf",`,
			`    ".svg" => "image/svg+xml", ".png" => "image/png", ".jpg" => "image/jpeg", ".gif" => "image/gif",`,
			`    ".webp" => "image/webp", ".ico" => "image/x-icon", ".woff2" => "font/woff2"`, `)`)
	}
	address := l.Address
	if address == "" {
		address = "[::]"
		w.line(`server.v4mapped = "enable"`) // IPv4 too
	}
	w.line(fmt.Sprintf(`server.bind = "%s"`, address))
	plain := l.PlainPort
	if plain <= 0 {
		plain = l.Port // then it is the only one
	}
	w.line(fmt.Sprintf(`server.port = %d`, plain))
	for _, d := range c.Directives {
		if d.Scope == "main" {
			w.directive(d, d.Line("lighttpd"))
		}
	}
	if l.PlainPort > 0 {
		w.open(fmt.Sprintf(`$SERVER["socket"] == "%s:%d" {`, address, l.PlainPort))
		w.comment("Plain HTTP only leads to HTTPS.")
		w.line(`url.redirect = ( "" => "https://${url.authority}${url.path}${qsa}" )`)
		w.close("}")
	}
	w.open(fmt.Sprintf(`$SERVER["socket"] == "%s:%d" {`, address, l.Port))
	w.line(`ssl.engine = "enable"`)
	w.comment(c.keyAdvice())
	w.line(fmt.Sprintf(`ssl.pemfile = "%s"`, l.Certificates[0].Chain), fmt.Sprintf(`ssl.privkey = "%s"`, l.Certificates[0].Key))
	for _, d := range c.Directives {
		if d.Scope == "site" {
			w.directive(d, d.Line("lighttpd"))
		}
	}
	w.close("}")
}
