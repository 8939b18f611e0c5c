package confgen

import (
	"strings"
)

func (g *generator) golang() {
	tls12, tls13, src := g.versions()
	d := func(setting, name, value, reason, source, needs string) {
		g.add(Directive{"main", name, value, setting, reason, source, needs})
	}
	least, most := "tls.VersionTLS13", "tls.VersionTLS13"
	if tls12 {
		least = "tls.VersionTLS12"
	}
	if !tls13 {
		most = "tls.VersionTLS12"
	}
	d("versions", "MinVersion", least, whyVersions, src, "")
	d("versions", "MaxVersion", most, "The newest version that the policy has.", src, "")
	if tls12 {
		names, src := g.goSuiteNames("crypto/tls")
		if len(names) > 0 {
			d("suites12", "CipherSuites", "[]uint16{tls."+strings.Join(names, ", tls.")+"}", whySuites12, src, "")
		}
	}
	values := current(g.Policy.Groups, g.At)
	var names []string
	for _, v := range values {
		group := goGroups[strings.ToLower(v.Name)]
		switch {
		case group.constant == "":
			g.remain("groups", "crypto/tls has no group "+v.Name)
		case !g.at(group.goSince.Major, group.goSince.Minor, group.goSince.Patch):
			g.remain("groups", v.Name+" needs Go "+group.goSince.String())
		default:
			names = append(names, "tls."+group.constant)
		}
	}
	if len(names) > 0 {
		needs := ""
		if strings.Contains(strings.Join(names, " "), "MLKEM") {
			needs = "Go 1.24"
		}
		d("groups", "CurvePreferences", "[]tls.CurveID{"+strings.Join(names, ", ")+"}",
			whyGroups+" crypto/tls ignores their order from Go 1.24 on.", sources(values), needs)
	}
	g.goUnmet("crypto/tls")
	on, tsrc := g.tickets()
	d("resumption.tickets", "SessionTicketsDisabled", map[bool]string{true: "false", false: "true"}[on],
		whyTickets+" crypto/tls changes the key every day.", tsrc, "")
	if header, src := g.hsts(); header != "" {
		g.add(Directive{"site", `w.Header().Set("Strict-Transport-Security",`, `"` + header + `")`, "hsts", whyHSTS, src, ""})
	}
	d("alpn", "NextProtos", `[]string{"h2", "http/1.1"}`, whyH2, "", "")
	g.note("The package github.com/ossl-go/ossl takes the same tls.Config, and does more of the policy: " +
		"suites of TLS 1.3, session IDs, kernel TLS.")
}

// golang writes a program.
func (c *Config) golang(w *writer) {
	l := c.Layout
	w.raw("package main", "", "import (", "\t\"crypto/tls\"", "\t\"log\"", "\t\"net/http\"", ")", "", "func main() {")
	w.indent++
	cert := l.Certificates[0]
	w.comment(c.keyAdvice())
	w.line(`certificate, err := tls.LoadX509KeyPair("` + cert.Chain + `", "` + cert.Key + `")`)
	w.open("if err != nil {")
	w.line("log.Fatal(err)")
	w.close("}")
	w.open("config := &tls.Config{")
	w.line("Certificates: []tls.Certificate{certificate},")
	for _, d := range c.Directives {
		if d.Scope == "main" {
			w.directive(d, d.Line("go"))
		}
	}
	w.close("}")
	w.line(`files := http.FileServer(http.Dir("` + l.Root + `"))`)
	w.open("handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {")
	for _, d := range c.Directives {
		if d.Scope == "site" {
			w.directive(d, d.Line("go"))
		}
	}
	w.line("files.ServeHTTP(w, r)")
	w.close("})")
	if l.PlainPort > 0 {
		w.comment("Plain HTTP only leads to HTTPS.")
		w.open("redirect := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {")
		w.line(`http.Redirect(w, r, "https://"+r.Host+r.URL.RequestURI(), http.StatusMovedPermanently)`)
		w.close("})")
		w.line(`go func() { log.Fatal(http.ListenAndServe("` + l.Address + ":" + itoa(l.PlainPort) + `", redirect)) }()`)
	}
	w.line(`server := &http.Server{Addr: "`+l.Address+":"+itoa(l.Port)+`", Handler: handler, TLSConfig: config}`,
		`log.Fatal(server.ListenAndServeTLS("", ""))`)
	w.close("}")
}
