package confgen

import (
	"crypto/tls"
	"fmt"
	"strings"
)

// goSuites are crypto/tls's TLS 1.2 suites that aren't insecure. Caddy takes no others.
var goSuites = func() map[string]bool {
	m := map[string]bool{}
	for _, s := range tls.CipherSuites() {
		for _, v := range s.SupportedVersions {
			m[s.Name] = m[s.Name] || v == tls.VersionTLS12
		}
	}
	return m
}()

// goGroups are crypto/tls's groups by IANA's names in lower case: Go's name, Caddy's name, and the
// versions that have them.
var goGroups = map[string]struct {
	constant, caddy   string
	goSince, caddySet Version
}{
	"x25519":             {"X25519", "x25519", Version{1, 8, 0}, Version{2, 0, 0}},
	"secp256r1":          {"CurveP256", "secp256r1", Version{1, 2, 0}, Version{2, 0, 0}},
	"secp384r1":          {"CurveP384", "secp384r1", Version{1, 2, 0}, Version{2, 0, 0}},
	"secp521r1":          {"CurveP521", "secp521r1", Version{1, 2, 0}, Version{2, 0, 0}},
	"x25519mlkem768":     {"X25519MLKEM768", "x25519mlkem768", Version{1, 24, 0}, Version{2, 10, 0}},
	"secp256r1mlkem768":  {"SecP256r1MLKEM768", "", Version{1, 26, 0}, Version{}},
	"secp384r1mlkem1024": {"SecP384r1MLKEM1024", "", Version{1, 26, 0}, Version{}},
}

// goSuiteNames returns the policy's TLS 1.2 suites that crypto/tls has.
func (g *generator) goSuiteNames(who string) (names []string, source string) {
	values := g.chachaFirst(current(g.Policy.Suites12, g.At))
	lacks := 0
	for _, v := range values {
		if goSuites[v.Name] {
			names = append(names, v.Name)
		} else {
			lacks++
		}
	}
	if lacks > 0 {
		g.remain("suites12", fmt.Sprintf("%s doesn't have %d of the policy's suites of TLS 1.2", who, lacks))
	}
	return names, sources(values)
}

// goUnmet lists the settings that servers on crypto/tls lack.
func (g *generator) goUnmet(who string) {
	if g.Server.Go != (Version{}) && g.Server.Go.Before(Version{1, 21, 0}) {
		g.remain("ems", who+" has no extended master secret (RFC 7627) before Go 1.21; it was built with Go "+g.Server.Go.String())
	}
	g.remain("suites13", who+" can't set the suites of TLS 1.3: crypto/tls chooses by the processor's instructions for AES")
	g.remain("order", who+" can't set the order of suites: crypto/tls has one")
	g.remain("signatures", who+" can't set the signature schemes")
	if yes(g.Policy.Resumption.ID) {
		g.remain("resumption.id", who+" has no cache for session IDs: clients without tickets don't resume")
	}
	if yes(g.Policy.Resumption.Early) {
		g.remain("early", who+" has no early data")
	}
	if yes(g.Policy.Records.Kernel) {
		g.remain("kernel", who+" has no kernel TLS")
	}
	if g.Policy.Resumption.Lifetime.Value > 0 {
		g.remain("resumption.lifetime", who+" can't set the lifetime of tickets: crypto/tls gives them 7 days")
	}
}

func (g *generator) caddy() {
	tls12, tls13, src := g.versions()
	d := func(setting, name, value, reason, source, needs string) {
		g.add(Directive{"tls", name, value, setting, reason, source, needs})
	}
	least, most := "tls1.3", "tls1.3"
	if tls12 {
		least = "tls1.2"
	}
	if !tls13 {
		most = "tls1.2"
	}
	d("versions", "protocols", least+" "+most, whyVersions, src, "Caddy 2.0")
	if tls12 {
		names, src := g.goSuiteNames("Caddy")
		if len(names) > 0 {
			d("suites12", "ciphers", strings.Join(names, " "), whySuites12, src, "Caddy 2.0")
		}
	}
	values := current(g.Policy.Groups, g.At)
	var names []string
	for _, v := range values {
		group := goGroups[strings.ToLower(v.Name)]
		switch {
		case group.caddy == "":
			g.remain("groups", "Caddy has no group "+v.Name)
		case !g.at(group.caddySet.Major, group.caddySet.Minor, group.caddySet.Patch):
			g.remain("groups", v.Name+" needs Caddy "+group.caddySet.String())
		case g.Server.Go != (Version{}) && g.Server.Go.Before(group.goSince):
			g.remain("groups", v.Name+" needs a Caddy that was built with Go "+group.goSince.String())
		case g.Server.NoMLKEM && strings.Contains(group.caddy, "mlkem"):
			g.remain("groups", "this Caddy was built with tlsmlkem=0, so that it accepts "+v.Name+
				" and doesn't offer it: start it with GODEBUG=tlsmlkem=1")
		default:
			names = append(names, group.caddy)
		}
	}
	if len(names) > 0 {
		d("groups", "curves", strings.Join(names, " "), whyGroups, sources(values), "Caddy 2.0")
	}
	g.goUnmet("Caddy")
	if !want(g.Policy.Resumption.Tickets) {
		g.remain("resumption.tickets", "a Caddyfile can't turn tickets off: use session_tickets in Caddy's JSON")
	}
	if header, src := g.hsts(); header != "" {
		g.add(Directive{"site", "header Strict-Transport-Security", `"` + header + `"`, "hsts", whyHSTS, src, ""})
	}
	if g.at(2, 6, 0) {
		g.add(Directive{"servers", "protocols", "h1 h2 h3", "alpn", whyH2, "", "Caddy 2.6"})
	}
}

func (c *Config) caddy(w *writer) {
	l := c.Layout
	write := func(scope string) {
		for _, d := range c.Directives {
			if d.Scope == scope {
				w.directive(d, d.Line("caddy"))
			}
		}
	}
	w.open("{")
	if l.State != "" {
		w.line("admin off", "storage file_system "+l.State, "auto_https off")
	} else {
		w.comment("Caddy redirects plain HTTP to HTTPS by itself.")
	}
	if l.State == "" {
		if l.Port != 443 {
			w.line("https_port " + itoa(l.Port))
		}
		if l.PlainPort > 0 && l.PlainPort != 80 {
			w.line("http_port " + itoa(l.PlainPort))
		}
	}
	w.open("servers {")
	write("servers")
	w.close("}")
	w.close("}")
	var sites []string
	for _, name := range l.Names {
		site := "https://" + name
		if l.Port != 443 {
			site += ":" + itoa(l.Port)
		}
		sites = append(sites, site)
	}
	if l.State != "" {
		sites = []string{fmt.Sprintf("https://:%d", l.Port)}
	}
	w.open(strings.Join(sites, ", ") + " {")
	if l.Address != "" {
		w.line("bind " + l.Address)
	}
	w.comment(c.keyAdvice())
	for i, cert := range l.Certificates {
		if i == 0 {
			w.open("tls " + cert.Chain + " " + cert.Key + " {")
			write("tls")
			w.close("}")
		}
	}
	write("site")
	w.line("root * "+l.Root, "file_server")
	w.close("}")
	if l.State != "" && l.PlainPort > 0 {
		w.open(fmt.Sprintf("http://:%d {", l.PlainPort))
		w.line("redir https://{host}{uri} permanent")
		w.close("}")
	}
}
