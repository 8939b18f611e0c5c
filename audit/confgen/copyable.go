package confgen

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// opensslCommands are the commands of SSL_CONF_cmd(3) that name no file.
var opensslCommands = []string{"ciphersuites", "cipherstring", "signaturealgorithms", "clientsignaturealgorithms", "groups",
	"curves", "options", "protocol", "minprotocol", "maxprotocol", "recordpadding", "numtickets"}

// copied are the directives of each server that can be copied into another configuration: those that
// are about TLS, open no file, load no library, run no program and connect to nobody.
var copied = map[string]map[string]bool{
	"nginx": directives(words("ssl_conf_command", opensslCommands...), "ssl_protocols", "ssl_ciphers", "ssl_prefer_server_ciphers",
		"ssl_ecdh_curve", "ssl_session_cache", "ssl_session_timeout", "ssl_session_tickets", "ssl_early_data", "ssl_buffer_size",
		"ssl_stapling", "ssl_stapling_verify", "http2", "sendfile", "sendfile_max_chunk", "tcp_nopush", "tcp_nodelay",
		"add_header strict-transport-security"),
	"apache": directives(words("sslopensslconfcmd", opensslCommands...), "sslprotocol", "sslciphersuite", "sslciphersuite tlsv1.3",
		"sslciphersuite ssl", "sslhonorcipherorder", "sslsessioncache", "sslsessioncachetimeout", "sslsessiontickets",
		"sslcompression", "sslinsecurerenegotiation", "sslusestapling", "sslstaplingcache", "protocols", "enablesendfile",
		"header always set strict-transport-security"),
	"haproxy": directives(words("ssl-default-bind-options", haproxyOptions()...), "ssl-default-bind-ciphers",
		"ssl-default-bind-ciphersuites", "ssl-default-bind-curves", "ssl-default-bind-sigalgs", "ssl-default-bind-client-sigalgs",
		"tune.ssl.cachesize", "tune.ssl.lifetime", "tune.ssl.maxrecord", "tune.ssl.hard-maxrecord", "tune.ssl.force-private-cache",
		"tune.ssl.default-dh-param", "http-response set-header strict-transport-security",
		"http-after-response set-header strict-transport-security"),
	"postgresql": directives(nil, "ssl", "ssl_min_protocol_version", "ssl_max_protocol_version", "ssl_ciphers", "ssl_tls13_ciphers",
		"ssl_prefer_server_ciphers", "ssl_ecdh_curve", "ssl_groups", "ssl_renegotiation_limit"),
	"caddy": directives(nil, "protocols", "ciphers", "curves", "alpn", "header strict-transport-security"),
	"lighttpd": directives(words("ssl.openssl.ssl-conf-cmd", opensslCommands...), "ssl.cipher-list", "ssl.honor-cipher-order",
		"ssl.ec-curve", "ssl.disable-client-renegotiation", "ssl.use-sslv2", "ssl.use-sslv3", "ssl.use-compression",
		"server.feature-flags", "setenv.add-response-header strict-transport-security"),
}

// words returns a directive with each of some first words.
func words(name string, first ...string) (all []string) {
	for _, word := range first {
		all = append(all, name+" "+word)
	}
	return all
}

func directives(more []string, names ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range append(more, names...) {
		set[name] = true
	}
	return set
}

// haproxyOptions returns the words of bind lines that are options of ssl-default-bind-options too.
func haproxyOptions() (words []string) {
	for word := range bindWords {
		words = append(words, word)
	}
	return words
}

// Copyable returns the directives that can be copied into another configuration of the same server, and
// the names of the others. It copies the directives about TLS that it knows to open no file, load no
// library, run no program and connect to nobody, unless the server would replace a part of the value, or
// need much memory for it. Apache's caches get a path in the folder STATE. It returns an error for a
// value whose meaning is in doubt, such as one with a semicolon or a line break, which could smuggle in
// further directives.
func (c *Config) Copyable() (copyable []Directive, others []string, err error) {
	for _, d := range c.Directives {
		if !d.isCopied(c.Server.Kind) {
			others = append(others, d.Name)
			continue
		}
		scheme, size, isCache := apacheCache(d)
		if isCache {
			d.Value = scheme + ":STATE/" + strings.ToLower(d.Name) + iff(size != "", "("+size)
		}
		if err := d.checkValue(); err != nil {
			return nil, nil, err
		}
		if isCache && scheme != "shmcb" && scheme != "dbm" || d.expands(c.Server.Kind) || d.isLarge() {
			others = append(others, d.Name)
			continue
		}
		copyable = append(copyable, d)
	}
	return copyable, others, nil
}

// apacheCache splits the value of an Apache cache directive, such as shmcb:/run/cache(512000), into the
// cache's kind and its size.
func apacheCache(d Directive) (scheme, size string, ok bool) {
	if name := strings.ToLower(d.Name); name != "sslsessioncache" && name != "sslstaplingcache" {
		return "", "", false
	}
	scheme, path, ok := strings.Cut(d.Value, ":")
	_, size, _ = strings.Cut(path, "(")
	return scheme, size, ok
}

// isCopied reports whether a directive is copied for this kind of server.
func (d Directive) isCopied(kind string) bool {
	name, value := strings.ToLower(d.Name), strings.ToLower(d.Value)
	switch {
	case kind == "haproxy" && d.Scope == "listen":
		_, known := bindWords[name]
		return known
	case kind == "nginx" && d.Scope == "listen":
		return name == "http2"
	case name == "ssl-default-bind-options":
		word, _, _ := strings.Cut(value, " ")
		name += " " + word
	case name == "server.feature-flags":
		return strings.HasPrefix(value, "ssl.") || strings.HasPrefix(value, "server.h2proto")
	}
	return copied[kind][name]
}

// checkValue returns an error if the directive's value contains characters that may terminate it.
func (d Directive) checkValue() error {
	value, unsafe := d.Value, ";{}#"
	for _, quote := range []string{`"`, "'"} {
		// The closing quote may be followed by nginx's "always".
		if after, ok := strings.CutPrefix(d.Value, quote); ok {
			if inner, rest, ok := strings.Cut(after, quote); ok && (rest == "" || rest == " always") {
				value, unsafe = inner, "{}"
			}
		}
	}
	if d.Scope == "listen" {
		unsafe += " "
	}
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	if strings.ContainsAny(value, unsafe+"\"'`\\") || strings.ContainsFunc(value, control) {
		return fmt.Errorf("the value of %s, %.200q, has characters that can't be copied", d.Name, d.Value)
	}
	return nil
}

// hstsValue matches the values of the HSTS header in which no server replaces anything: HAProxy's
// %[…], which can read files, Apache's %{…}, nginx's $name, and Caddy's {…}.
var hstsValue = regexp.MustCompile(`^[A-Za-z0-9=;," -]*$`)

// plainLighttpd matches lighttpd's values without names of variables, which may be the environment's.
var plainLighttpd = regexp.MustCompile(`^("[^"]*"|[0-9]+|enable|disable)$`)

// expands reports whether the server may replace a part of the value, such as a variable, by something else.
func (d Directive) expands(kind string) bool {
	switch {
	case settingOf(d.Name) == "hsts":
		return !hstsValue.MatchString(d.Value)
	case kind == "lighttpd" && !strings.HasPrefix(d.Name, confCmd) && d.Name != "server.feature-flags":
		return !plainLighttpd.MatchString(d.Value)
	}
	return strings.ContainsAny(d.Value, "$%")
}

// largest are the largest numbers that are copied, by the ends of the directives' names. A server needs
// about 200 bytes for each of HAProxy's cachesize, and sends each of numtickets in each handshake.
var largest = map[string]int{"tune.ssl.cachesize": 1_000_000, "ssl_session_cache": 256 << 20, "sslsessioncache": 256 << 20,
	"sslstaplingcache": 256 << 20, "ssl_buffer_size": 1 << 20, "tune.ssl.default-dh-param": 8192, " numtickets": 100}

var number = regexp.MustCompile(`(?i)^([0-9]+)([kmg]?)$`)

// isLarge reports whether the value has a number that is larger than those that are copied.
func (d Directive) isLarge() bool {
	name := strings.ToLower(d.Name)
	for ending, most := range largest {
		if !strings.HasSuffix(name, ending) {
			continue
		}
		words := strings.FieldsFunc(d.Value, func(r rune) bool { return strings.ContainsRune(" :()\"'", r) })
		return slices.ContainsFunc(words, func(word string) bool {
			m := number.FindStringSubmatch(word)
			if m == nil {
				return false
			}
			n, err := strconv.Atoi(m[1])
			unit := map[string]int{"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}[strings.ToLower(m[2])]
			return err != nil || n > most/unit
		})
	}
	return false
}
