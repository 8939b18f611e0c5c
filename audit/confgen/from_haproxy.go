package confgen

import (
	"slices"
	"strings"
)

// haproxySections begin a section.
var haproxySections = []string{"global", "defaults", "frontend", "backend", "listen", "peers", "resolvers", "mailers", "userlist",
	"program", "cache", "ring", "http-errors", "fcgi-app", "crt-store", "log-forward", "log-profile", "traces", "acme",
	"dynamic-update"}

// bindWords maps the words about TLS in HAProxy's bind lines to whether a value follows.
var bindWords = map[string]bool{"alpn": true, "npn": true, "ciphers": true, "ciphersuites": true, "curves": true, "ecdhe": true,
	"sigalgs": true, "client-sigalgs": true, "ssl-min-ver": true, "ssl-max-ver": true, "allow-0rtt": false, "no-alpn": false,
	"no-tls-tickets": false, "tls-tickets": false, "no-sslv3": false, "no-tlsv10": false, "no-tlsv11": false, "no-tlsv12": false,
	"no-tlsv13": false, "force-sslv3": false, "force-tlsv10": false, "force-tlsv11": false, "force-tlsv12": false,
	"force-tlsv13": false, "prefer-client-ciphers": false}

// haproxyWords splits a line as HAProxy's parse_line does.
func haproxyWords(line string) (words []string) {
	var word []byte
	begun := false
	var quote byte
	for i := 0; i < len(line); i++ {
		b := line[i]
		switch {
		case b == '\\' && quote != '\'' && i+1 < len(line):
			i++
			word, begun = append(word, line[i]), true
		case b == quote:
			quote = 0
		case quote == 0 && (b == '"' || b == '\''):
			quote, begun = b, true
		case quote == 0 && b == '#':
			i = len(line)
		case quote == 0 && (b == ' ' || b == '\t' || b == '\r'):
			if begun {
				words = append(words, string(word))
			}
			word, begun = nil, false
		default:
			word, begun = append(word, b), true
		}
	}
	if begun {
		words = append(words, string(word))
	}
	return words
}

func (c *Config) readHAProxy(r *reading, file string) error {
	text, err := r.file(file, 0)
	if err != nil {
		return err
	}
	var statements []statement
	var section []*block
	_ = logicalLines(text, false, func(line string, number int) error {
		words := haproxyWords(line)
		switch at := (Place{file, number}); {
		case len(words) == 0:
		case slices.Contains(haproxySections, words[0]):
			section = []*block{{words, at}}
		case words[0] == ".if" || words[0] == ".elif" || words[0] == ".else":
			r.note(at, "%s: taken as true", words[0])
		default:
			r.add(&statements, statement{words, section, at})
		}
		return nil
	})
	sites := map[*block]bool{}
	var site *block
	for _, s := range statements {
		if b := s.inner(); s.is("bind") && slices.Contains(s.words, "ssl") && !sites[b] && (s.in("frontend") || s.in("listen")) {
			sites[b] = true
			if c.site(b); site == nil {
				site = b
			}
		}
	}
	bound := false
	for _, s := range statements {
		switch isSite := s.inner() != nil && s.inner() == site; {
		case s.in("global"):
			c.haproxyGlobal(r, s)
		case s.is("bind") && slices.Contains(s.words, "ssl") && (isSite || s.in("peers")):
			if bound || !isSite {
				r.note(s.Place, "a further bind with TLS")
				continue
			}
			bound = true
			c.haproxyBind(r, s)
			if slices.Contains(s.words, "crt-list") {
				r.note(s.Place, "the crt-list, whose lines may have words about TLS")
			}
		case !isHSTS(s):
		case isSite || s.in("defaults"):
			c.put("site", s.words[0]+" set-header "+hstsName, `"`+s.words[3]+`"`)
		case s.in("backend"):
			r.note(s.Place, "%s in %s", hstsName, head(s.inner().words, " "))
		}
	}
	return nil
}

func isHSTS(s statement) bool {
	return len(s.words) >= 4 && strings.HasPrefix(s.words[0], "http-") &&
		(s.words[1] == "set-header" || s.words[1] == "add-header") && strings.EqualFold(s.words[2], hstsName)
}

func (c *Config) haproxyGlobal(r *reading, s statement) {
	name := s.words[0]
	switch {
	case name == "ssl-default-bind-options":
		for i := 1; i < len(s.words) && !r.full(s.Place); i++ { // a directive for each option, as in our configurations
			option := s.words[i]
			if (option == "ssl-min-ver" || option == "ssl-max-ver") && i+1 < len(s.words) {
				i++
				option += " " + s.words[i]
			}
			c.put("main", name, option)
		}
	case (strings.HasPrefix(name, "ssl-default-bind") || strings.HasPrefix(name, "tune.ssl")) && !secretFile(name):
		c.put("main", name, strings.Join(s.words[1:], " "))
	}
}

func (c *Config) haproxyBind(r *reading, s statement) {
	for i := 2; i < len(s.words) && !r.full(s.Place); i++ {
		if hasValue, ok := bindWords[s.words[i]]; ok && hasValue && i+1 < len(s.words) {
			i++
			c.put("listen", s.words[i-1], s.words[i])
		} else if ok && !hasValue {
			c.put("listen", s.words[i], "")
		}
	}
}
