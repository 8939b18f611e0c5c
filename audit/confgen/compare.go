package confgen

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

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
	Yours, Ours  string // values; "" also if the directive is missing, see HasYours and HasOurs
	HasYours     bool
	HasOurs      bool
	Reason, From string
}

// Compare returns the differences between your configuration and ours. Directives with
// the same effect count as equal.
func Compare(yours, ours *Config) (out []Difference) {
	mine, theirs := yours.Directives, ours.Directives
	if ours.Server.Kind == "haproxy" {
		mine, theirs = haproxyDefaults(mine), haproxyDefaults(theirs)
		var d *Difference
		if mine, theirs, d = haproxyVersions(mine, theirs); d != nil {
			out = append(out, *d)
		}
	}
	last := map[string]string{} // the site's comes after the server's
	for _, d := range mine {
		last[key(d)] = d.Value
	}
	seen := map[string]bool{}
	for _, d := range theirs {
		seen[key(d)] = true
		value, ok := last[key(d)]
		if !ok || !same(d.Name, value, d.Value) {
			out = append(out, Difference{d.Name, value, d.Value, ok, true, d.Reason, join("; needs ", d.Source, d.Needs)})
		}
	}
	for _, d := range mine {
		if !seen[key(d)] {
			seen[key(d)] = true
			reason := "The policy " + ours.Policy.Name + " doesn't ask for it: the server's default holds."
			for _, r := range ours.Unmet {
				if r.Setting == d.Setting {
					reason = strings.ToUpper(r.Reason[:1]) + r.Reason[1:] + "."
				}
			}
			out = append(out, Difference{d.Name, last[key(d)], "", true, false, reason, ""})
		}
	}
	return out
}

// key returns a key that distinguishes directives: by name, by value if they can repeat, and between
// Caddy's two kinds of protocols. Any directive may set the HSTS header.
func key(d Directive) string {
	if d.Setting == "hsts" {
		return d.Setting
	}
	return strings.ToLower(d.Name) + iff(repeats(d), " "+d.Value) + iff(d.Scope == "servers", " of servers")
}

func repeats(d Directive) bool {
	return d.Name == "ssl-default-bind-options" || d.Name == "server.feature-flags" || d.Name == "ssl_conf_command Options"
}

// haproxyDefaults returns directives, with each word of a bind line as the default that it overrides.
func haproxyDefaults(directives []Directive) []Directive {
	directives = slices.Clone(directives)
	for i, d := range directives {
		switch {
		case d.Scope != "listen" || d.Name == "alpn" || d.Name == "npn" || d.Name == "no-alpn" || d.Name == "allow-0rtt":
		case d.Name == "ecdhe":
			directives[i].Name = "ssl-default-bind-curves"
		case slices.Contains([]string{"ciphers", "ciphersuites", "curves", "sigalgs", "client-sigalgs"}, d.Name):
			directives[i].Name = "ssl-default-bind-" + d.Name
		default:
			directives[i].Name, directives[i].Value = "ssl-default-bind-options", join(" ", d.Name, d.Value)
		}
	}
	return directives
}

// haproxyVersions returns both lists without the directives about TLS versions, and the difference of
// these directives. HAProxy has five words for the versions. With ssl-min-ver or ssl-max-ver, it
// ignores no-tlsv1x. Without ssl-min-ver and force-tlsv1x, the minimum is TLS 1.2 from HAProxy 2.2 on,
// the oldest version that is known here.
func haproxyVersions(yours, ours []Directive) (restYours, restOurs []Directive, d *Difference) {
	versions := []string{"sslv3", "tlsv10", "tlsv11", "tlsv12", "tlsv13"}
	split := func(all []Directive) (words []string, rest []Directive, allowed [5]bool) {
		least, most := -1, -1
		var not [5]bool
		for _, d := range all {
			option, value, _ := strings.Cut(d.Value, " ")
			forced, isForce := strings.CutPrefix(option, "force-")
			forbidden, _ := strings.CutPrefix(option, "no-")
			switch version := slices.Index(versions, strings.ReplaceAll(strings.ToLower(value), ".", "")); {
			case d.Name != "ssl-default-bind-options":
				rest = append(rest, d)
				continue
			case option == "ssl-min-ver":
				least = version
			case option == "ssl-max-ver":
				most = version
			case isForce && slices.Contains(versions, forced):
				least = slices.Index(versions, forced)
				most = least
			case slices.Contains(versions, forbidden):
				not[slices.Index(versions, forbidden)] = true
			default:
				rest = append(rest, d)
				continue
			}
			words = append(words, d.Value)
		}
		if least >= 0 || most >= 0 {
			not = [5]bool{}
		}
		if most < 0 {
			most = len(versions) - 1
		}
		if least < 0 {
			least = min(most, slices.Index(versions, "tlsv12"))
		}
		for i := range allowed {
			allowed[i] = i >= least && i <= most && !not[i]
		}
		return words, rest, allowed
	}
	mine, restYours, allowed := split(yours)
	wanted, restOurs, want := split(ours)
	if len(mine) > 0 && allowed == want || len(mine)+len(wanted) == 0 {
		return restYours, restOurs, nil
	}
	d = &Difference{Name: "ssl-default-bind-options", Yours: strings.Join(mine, " "), HasYours: len(mine) > 0,
		Ours: strings.Join(wanted, " "), HasOurs: len(wanted) > 0}
	for _, o := range ours {
		if o.Setting == "versions" && d.Reason == "" {
			d.Reason, d.From = o.Reason, join("; needs ", o.Source, o.Needs)
		}
	}
	return restYours, restOurs, d
}

// same compares values without regard to quotes, to units, and to the order of versions.
func same(name, a, b string) bool {
	a, b = strings.ToLower(strings.Trim(a, `"'`)), strings.ToLower(strings.Trim(b, `"'`))
	switch name = strings.ToLower(name); name {
	case "ssl_protocols":
		return slices.Equal(slices.Sorted(slices.Values(strings.Fields(a))), slices.Sorted(slices.Values(strings.Fields(b))))
	case "sslprotocol":
		return apacheVersions(a) == apacheVersions(b)
	case "http2": // nginx: a word of listen, or a directive
		return a == b || a+b == "on"
	case "protocols": // Caddy: without a highest version, it is TLS 1.3
		return strings.TrimSuffix(a, " tls1.3") == strings.TrimSuffix(b, " tls1.3")
	case "ssl_session_cache": // the cache's name has no effect
		return sharedZone.ReplaceAllString(a, "shared:$1") == sharedZone.ReplaceAllString(b, "shared:$1")
	case "sslsessioncache", "sslstaplingcache":
		kind, size, ok := apacheCache(Directive{Name: name, Value: a})
		otherKind, otherSize, also := apacheCache(Directive{Name: name, Value: b})
		return a == b || ok && also && kind == otherKind && size == otherSize
	}
	n, ok := amount(name, a)
	m, also := amount(name, b)
	return a == b || ok && also && n == m
}

// apacheVersions returns the versions from SSL 3.0 to TLS 1.3 that a value of SSLProtocol allows. A version without
// a sign discards those before it.
func apacheVersions(value string) (allowed [5]bool) {
	for word := range strings.FieldsSeq(value) {
		name := strings.TrimLeft(word, "+-")
		i := slices.Index([]string{"sslv3", "tlsv1", "tlsv1.1", "tlsv1.2", "tlsv1.3"}, name)
		if !strings.HasPrefix(word, "+") && !strings.HasPrefix(word, "-") {
			allowed = [5]bool{}
		}
		for k := range allowed {
			if k == i || name == "all" && k > 0 {
				allowed[k] = !strings.HasPrefix(word, "-")
			}
		}
	}
	return allowed
}

var sharedZone = regexp.MustCompile(`shared:[^: ]*(:|$)`)

// units maps directives of nginx and HAProxy to the units of their values.
var units = map[string]map[string]int{
	"ssl_session_timeout": {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400},
	"tune.ssl.lifetime":   {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400},
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
