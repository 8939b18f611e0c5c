package confgen

import (
	"slices"
	"strconv"
	"strings"
)

// read takes the directives about TLS from statements.
func (c *Config) read(statements []statement) {
	switch c.Server.Kind {
	case "nginx":
		c.readNginx(statements)
	case "apache":
		c.readApache(statements)
	case "haproxy":
		c.readHAProxy(statements)
	case "postgresql":
		for _, s := range statements {
			if strings.HasPrefix(s.words[0], "ssl") && len(s.words) > 1 && !secretFile(s.words[0]) {
				value := strings.Trim(strings.Join(s.words[1:], " "), "'")
				if value != "on" && value != "off" {
					value = "'" + value + "'"
				}
				c.put("main", s.words[0], value)
			}
		}
	case "caddy":
		for _, s := range statements {
			switch in := len(s.blocks) - 1; {
			case in >= 0 && s.blocks[in] == "tls" && slices.Contains([]string{"protocols", "ciphers", "curves", "alpn"}, s.words[0]):
				c.put("tls", s.words[0], strings.Join(s.words[1:], " "))
			case in >= 0 && s.blocks[in] == "servers" && s.words[0] == "protocols":
				c.put("servers", s.words[0], strings.Join(s.words[1:], " "))
			case s.words[0] == "header" && len(s.words) == 3 && strings.EqualFold(s.words[1], "Strict-Transport-Security"):
				c.put("site", "header Strict-Transport-Security", `"`+s.words[2]+`"`)
			}
		}
	}
}

// firstBlock returns the number of the first block in which a statement is that wanted accepts.
func firstBlock(statements []statement, wanted func(statement) bool) int {
	for _, s := range statements {
		if wanted(s) {
			return s.block
		}
	}
	return -1
}

func (c *Config) readNginx(statements []statement) {
	inside := func(s statement, blocks ...string) bool { return slices.Equal(s.blocks, blocks) }
	server := firstBlock(statements, func(s statement) bool {
		return (inside(s, "http", "server") || inside(s, "server")) && (s.words[0] == "listen" && slices.Contains(s.words, "ssl"))
	})
	for _, s := range statements {
		scope := ""
		switch {
		case inside(s, "http") || len(s.blocks) == 0:
			scope = "main"
		case s.block == server:
			scope = "site"
		}
		name := s.words[0]
		if scope == "" || secretFile(name) || len(s.words) < 2 {
			continue
		}
		value := strings.Join(s.words[1:], " ")
		switch {
		case name == "listen" && scope == "site":
			if slices.Contains(s.words, "http2") && !slices.ContainsFunc(c.Directives,
				func(d Directive) bool { return d.Scope == "listen" }) {
				c.put("listen", "http2", "")
			}
		case name == "ssl_conf_command" && len(s.words) == 3:
			c.put(scope, name+" "+s.words[1], s.words[2])
		case name == "add_header" && strings.EqualFold(s.words[1], "Strict-Transport-Security") && len(s.words) > 2:
			c.put(scope, "add_header Strict-Transport-Security", `"`+s.words[2]+`"`+iff(len(s.words) > 3, " always"))
		case strings.HasPrefix(name, "ssl_") || strings.HasPrefix(name, "sendfile") || name == "tcp_nopush" ||
			name == "tcp_nodelay" || name == "http2":
			if strings.ContainsAny(value, " ") && name != "ssl_protocols" && name != "ssl_session_cache" {
				value = `"` + value + `"`
			}
			c.put(scope, name, value)
		}
	}
}

func (c *Config) readApache(statements []statement) {
	site := firstBlock(statements, func(s statement) bool {
		return strings.EqualFold(s.words[0], "SSLEngine") && len(s.words) > 1 && strings.EqualFold(s.words[1], "on") &&
			len(s.blocks) > 0
	})
	for _, s := range statements {
		host := slices.ContainsFunc(s.blocks, func(b string) bool { return strings.HasPrefix(b, "<virtualhost") })
		scope := "main"
		if host {
			if scope = "site"; s.block != site {
				continue
			}
		}
		if slices.ContainsFunc(s.blocks, func(b string) bool {
			return strings.HasPrefix(b, "<directory") || strings.HasPrefix(b, "<files") || strings.HasPrefix(b, "<location")
		}) {
			continue
		}
		name, words := s.words[0], s.words[1:]
		lower := strings.ToLower(name)
		switch {
		case len(words) == 0 || secretFile(name):
		case lower == "sslopensslconfcmd" && len(words) == 2:
			c.put(scope, name+" "+words[0], words[1])
		case lower == "sslciphersuite" && len(words) == 2:
			c.put(scope, name+" "+words[0], words[1])
		case lower == "sslsessioncache" || lower == "sslstaplingcache":
			value := words[0]
			if scheme, rest, ok := strings.Cut(value, ":"); ok {
				// The path is the trial's own.
				_, size, sized := strings.Cut(rest, "(")
				value = scheme + ":STATE/" + lower + iff(sized, "("+size)
			}
			c.put("main", name, value)
		case lower == "header" && len(words) >= 3:
			if i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, "Strict-Transport-Security") }); i > 0 &&
				i+1 < len(words) {
				c.put(scope, "Header always set Strict-Transport-Security", `"`+words[i+1]+`"`)
			}
		case strings.HasPrefix(lower, "ssl") || lower == "protocols" || lower == "enablesendfile":
			c.put(scope, name, strings.Join(words, " "))
		}
	}
}

// bindWords are the words of HAProxy's bind lines about TLS, and whether a value follows.
var bindWords = map[string]bool{"alpn": true, "npn": true, "ciphers": true, "ciphersuites": true, "curves": true, "ecdhe": true,
	"sigalgs": true, "ssl-min-ver": true, "ssl-max-ver": true, "allow-0rtt": false, "no-tls-tickets": false, "no-sslv3": false,
	"no-tlsv10": false, "no-tlsv11": false, "no-tlsv12": false, "no-tlsv13": false, "force-tlsv12": false, "force-tlsv13": false,
	"prefer-client-ciphers": false}

func (c *Config) readHAProxy(statements []statement) {
	site := firstBlock(statements, func(s statement) bool { return s.words[0] == "bind" && slices.Contains(s.words, "ssl") })
	done := false
	for _, s := range statements {
		name := s.words[0]
		switch {
		case slices.Equal(s.blocks, []string{"global"}) && name == "ssl-default-bind-options":
			for i := 1; i < len(s.words); i++ { // each by itself, as ours are
				option := s.words[i]
				if (option == "ssl-min-ver" || option == "ssl-max-ver") && i+1 < len(s.words) {
					i++
					option += " " + s.words[i]
				}
				c.put("main", name, option)
			}
		case slices.Equal(s.blocks, []string{"global"}) && (strings.HasPrefix(name, "ssl-default-bind") || strings.HasPrefix(name,
			"tune.ssl")) && !secretFile(name):
			c.put("main", name, strings.Join(s.words[1:], " "))
		case s.block == site && name == "bind" && slices.Contains(s.words, "ssl") && !done:
			done = true
			for i := 2; i < len(s.words); i++ {
				if hasValue, ok := bindWords[s.words[i]]; ok && hasValue && i+1 < len(s.words) {
					c.put("listen", s.words[i], s.words[i+1])
				} else if ok && !hasValue {
					c.put("listen", s.words[i], "")
				}
			}
		case s.block == site && len(s.words) >= 4 && strings.HasPrefix(name, "http-") && s.words[1] == "set-header" &&
			strings.EqualFold(s.words[2], "Strict-Transport-Security"):
			c.put("site", name+" set-header Strict-Transport-Security", `"`+s.words[3]+`"`)
		}
	}
}

// settingOf returns the part of a policy that a directive is about.
func settingOf(name string) string {
	n := strings.ToLower(name)
	for _, p := range []struct{ part, setting string }{{"strict-transport", "hsts"}, {"ciphersuites", "suites13"},
		{"tls13_ciphers", "suites13"},
		{"sslciphersuite tlsv1.3", "suites13"}, {"prefer", "order"}, {"honorcipherorder", "order"}, {"cipher", "suites12"},
		{"curve", "groups"}, {"groups", "groups"}, {"ecdhe", "groups"}, {"sigalgs", "signatures"}, {"signaturealgorithms",
			"signatures"},
		{"protocols", "versions"}, {"protocol_version", "versions"}, {"sslprotocol", "versions"}, {"minprotocol", "versions"},
		{"-ver", "versions"}, {"session_cache", "resumption.id"}, {"sessioncache", "resumption.id"}, {"cachesize", "resumption.id"},
		{"ticket", "resumption.tickets"}, {"timeout", "resumption.lifetime"}, {"lifetime", "resumption.lifetime"},
		{"early", "early"}, {"0rtt", "early"}, {"stapling", "stapling"}, {"http2", "alpn"}, {"alpn", "alpn"}, {"sendfile", "sendfile"},
		{"tcp_no", "sockets"}, {"compression", "compression"}} {
		if strings.Contains(n, p.part) {
			return p.setting
		}
	}
	return "other"
}

// A Difference is a directive that isn't the same in two configurations.
type Difference struct {
	Name         string
	Yours, Ours  string // values, "" if the directive is missing; HasYours and HasOurs tell
	HasYours     bool
	HasOurs      bool
	Reason, From string
}

// Compare returns the differences of your configuration from ours.
func Compare(yours, ours *Config) (out []Difference) {
	find := func(c *Config, d Directive) (string, bool) {
		value, ok := "", false
		for _, e := range c.Directives {
			if key(e) != key(d) && !repeats(e) || !strings.EqualFold(e.Name, d.Name) {
				continue
			}
			// ssl-default-bind-options and feature-flags are given more than once.
			if repeats(e) {
				if e.Value == d.Value {
					return e.Value, true
				}
				continue
			}
			value, ok = e.Value, true // the site's comes after the server's
		}
		return value, ok
	}
	seen := map[string]bool{}
	for _, d := range ours.Directives {
		seen[key(d)] = true
		value, ok := find(yours, d)
		if !ok || !same(d.Name, value, d.Value) {
			out = append(out, Difference{d.Name, value, d.Value, ok, true, d.Reason, join("; needs ", d.Source, d.Needs)})
		}
	}
	for _, d := range yours.Directives {
		if !seen[key(d)] {
			seen[key(d)] = true
			reason := "The policy " + ours.Policy.Name + " doesn't ask for it: the server's default holds."
			for _, r := range ours.Unmet {
				if r.Setting == d.Setting {
					reason = strings.ToUpper(r.Reason[:1]) + r.Reason[1:] + "."
				}
			}
			out = append(out, Difference{d.Name, d.Value, "", true, false, reason, ""})
		}
	}
	return out
}

// key distinguishes directives: by name, by value if they repeat, and Caddy's two kinds of
// protocols.
func key(d Directive) string {
	return strings.ToLower(d.Name) + iff(repeats(d), " "+d.Value) + iff(d.Scope == "servers", " of servers")
}

func repeats(d Directive) bool {
	return d.Name == "ssl-default-bind-options" || d.Name == "server.feature-flags" || d.Name == "ssl_conf_command Options"
}

// same compares values without regard to quotes, to units, and to the order of versions.
func same(name, a, b string) bool {
	a, b = strings.ToLower(strings.Trim(a, `"'`)), strings.ToLower(strings.Trim(b, `"'`))
	if name == "ssl_protocols" {
		return slices.Equal(slices.Sorted(slices.Values(strings.Fields(a))), slices.Sorted(slices.Values(strings.Fields(b))))
	}
	n, ok := amount(name, a)
	m, also := amount(name, b)
	return a == b || ok && also && n == m
}

// units are those of nginx's directives.
var units = map[string]map[string]int{
	"ssl_session_timeout": {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400},
	"ssl_buffer_size":     {"": 1, "k": 1 << 10, "m": 1 << 20},
	"sendfile_max_chunk":  {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30},
}

// amount returns the seconds or the bytes of a value that is a number with a unit.
func amount(name, value string) (int, bool) {
	digits := strings.TrimRight(value, "smhdwkg")
	unit, ok := units[name][value[len(digits):]]
	n, err := strconv.Atoi(digits)
	return n * unit, ok && err == nil
}
