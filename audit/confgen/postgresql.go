package confgen

import "strings"

func (g *generator) postgresql() {
	tls12, tls13, src := g.versions()
	d := func(setting, name, value, reason, source, needs string) {
		g.add(Directive{"main", name, value, setting, reason, source, needs})
	}
	d("versions", "ssl", "on", "Off by default. pg_hba.conf says who has to use it: hostssl lines.", "", "")
	least, most := "TLSv1.3", "TLSv1.3"
	if tls12 {
		least = "TLSv1.2"
	}
	if !tls13 {
		most = "TLSv1.2"
	}
	d("versions", "ssl_min_protocol_version", "'"+least+"'", whyVersions, src, "PostgreSQL 12")
	d("versions", "ssl_max_protocol_version", "'"+most+"'", "The newest version that the policy has.", src, "PostgreSQL 12")
	if tls13 {
		list, src := g.suites13()
		if g.at(18, 0, 0) {
			d("suites13", "ssl_tls13_ciphers", "'"+list+"'", whySuites13, src, "PostgreSQL 18")
		} else {
			g.remain("suites13", "PostgreSQL before 18 can't set the suites of TLS 1.3: OpenSSL's default holds")
		}
	}
	if tls12 {
		list, src := g.suites12()
		d("suites12", "ssl_ciphers", "'"+list+"'", whySuites12, src, "")
	}
	server, reason, osrc := g.order()
	d("order", "ssl_prefer_server_ciphers", onOff(server), reason, osrc, "")
	if list, src, needs := g.groups(); g.at(18, 0, 0) {
		if list != "" {
			d("groups", "ssl_groups", "'"+list+"'", whyGroups, src, join(", ", "PostgreSQL 18", needs))
		}
	} else {
		// Before 18 the server takes one curve, by EC_KEY_new_by_curve_name(3): X25519 isn't one.
		curve := ""
		for name := range strings.SplitSeq(list, ":") {
			switch {
			case name == "prime256v1": // all clients have it, and it is the fastest
				curve = name
			case curve == "" && strings.HasPrefix(name, "secp"):
				curve = name
			}
		}
		if curve != "" {
			d("groups", "ssl_ecdh_curve", "'"+curve+"'",
				"One curve, and X25519 can't be it. Clients that guess another group pay a round trip more.", src, "")
		}
		g.remain("groups", "PostgreSQL before 18 has one curve for the key exchange, and neither X25519 nor post-quantum groups")
	}
	g.remain("signatures", "PostgreSQL can't set the signature schemes")
	g.remain("resumption", "PostgreSQL resumes no sessions, by design: keep connections open, with a pool")
	if yes(g.Policy.Records.Kernel) {
		g.remain("kernel", "PostgreSQL has no kernel TLS")
	}
	if g.OCSP && g.Policy.Stapling.Missing.Value == "finding" {
		g.remain("stapling", "PostgreSQL doesn't staple")
	}
}

func (c *Config) postgresql(w *writer) {
	l := c.Layout
	if l.State != "" {
		w.line("listen_addresses = '"+l.Address+"'", "port = "+itoa(l.Port), "unix_socket_directories = ''", "fsync = off",
			"logging_collector = off", "max_connections = 50")
	}
	w.comment(c.keyAdvice())
	w.line("ssl_cert_file = '"+l.Certificates[0].Chain+"'", "ssl_key_file = '"+l.Certificates[0].Key+"'")
	for _, d := range c.Directives {
		w.directive(d, d.Line("postgresql"))
	}
}
