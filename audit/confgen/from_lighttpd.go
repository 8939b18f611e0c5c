package confgen

import (
	"slices"
	"strings"
)

// lighttpd returns the next token: strings keep their quotes, so that they differ from names.
func (s *scanner) lighttpd() token {
	for s.i < len(s.text) {
		line, rest := s.line, s.rest()
		switch b := rest[0]; {
		case strings.ContainsRune(" \t\r\n", rune(b)):
			s.take(1)
		case b == '#':
			s.take(s.until("\n"))
		case b == '"':
			s.take(1)
			word := s.take(s.quoted(b))
			s.take(1)
			return token{word: `"` + strings.ReplaceAll(word, `\"`, `"`) + `"`, line: line}
		case b == '{' || b == '}':
			s.take(1)
			return token{mark: b, line: line}
		case len(rest) > 1 && slices.Contains([]string{"+=", "=>", "==", "=~", "!=", "!~", ":="}, rest[:2]):
			return token{word: s.take(2), line: line}
		case strings.IndexByte("()[],=+$", b) >= 0:
			return token{word: s.take(1), line: line}
		default:
			return token{word: s.take(max(1, s.until(" \t\r\n#\"{}()[],=+!$"))), line: line}
		}
	}
	return token{mark: theEnd, line: s.line}
}

// peek returns the next token without taking it.
func (s *scanner) peek() token {
	copied := *s
	return copied.lighttpd()
}

// lighttpdValue takes a value: a string, a list, or a sum of them.
func (s *scanner) lighttpdValue() (words []string) {
	for open := 0; ; {
		t := s.peek()
		if t.mark != 0 {
			return words
		}
		words = append(words, s.lighttpd().word)
		switch t.word {
		case "(":
			open++
		case ")":
			open--
		}
		if open > 0 || t.word == "+" {
			continue
		}
		if s.peek().word != "+" {
			return words
		}
	}
}

// lighttpd reads a file. The words of a statement are its name, its operator, and its value's tokens.
func (r *reading) lighttpd(file string, around []*block, depth int) ([]statement, error) {
	text, err := r.file(file, depth)
	if err != nil {
		return nil, err
	}
	var out []statement
	n, s := newNest(file, around), newScanner(text)
	for {
		t := s.lighttpd()
		words := []string{t.word}
		switch {
		case t.mark == theEnd:
			return out, n.end()
		case t.mark == '}':
			err = n.close(t.line)
		case t.mark == '{':
			err = n.open(nil, t.line)
		case t.word == "$" || t.word == "else":
			for s.peek().mark == 0 {
				words = append(words, s.lighttpd().word)
			}
			if s.peek().mark == '{' {
				s.lighttpd()
				err = n.open(words, t.line)
			}
		case t.word == "include" || t.word == "include_shell":
			st := n.statement(append(words, s.lighttpdValue()...), t.line)
			if t.word == "include" && len(st.words) == 2 && strings.HasPrefix(st.words[1], `"`) {
				err = r.include(st, strings.Trim(st.words[1], `"`), func(name string) error {
					more, err := r.lighttpd(name, n.blocks, depth+1)
					out = append(out, more...)
					return err
				})
			} else {
				r.note(st.Place, "%s", head(st.words, " "))
			}
		case slices.Contains([]string{"=", "+=", ":="}, s.peek().word):
			words = append(words, s.lighttpd().word)
			r.add(&out, n.statement(append(words, s.lighttpdValue()...), t.line))
		}
		if err != nil {
			return nil, err
		}
	}
}

func (c *Config) readLighttpd(r *reading, file string) error {
	statements, err := r.lighttpd(file, nil, 0)
	if err != nil {
		return err
	}
	// A site is a socket with TLS; nil stands for the main part.
	var site *block
	isSite := map[*block]bool{}
	for _, s := range statements {
		if s.is("ssl.engine") && len(s.words) == 3 && s.words[2] == `"enable"` && len(s.blocks) < 2 {
			if len(isSite) == 0 {
				site = s.inner()
			}
			isSite[s.inner()] = true
			c.Sites = append(c.Sites, s.Place)
		}
	}
	// A socket's directives come after the main part's, and their "=" replaces the main part's list.
	slices.SortStableFunc(statements, func(a, b statement) int { return len(a.blocks) - len(b.blocks) })
	begin := map[string]int{} // the index of each list's last "=", which discards the entries before it
	for i, s := range statements {
		if len(s.words) > 2 && s.words[1] == "=" && s.words[2] == "(" && !s.is("server.feature-flags") &&
			(len(s.blocks) == 0 || s.inner() == site) {
			begin[s.words[0]] = i
		}
	}
	for i, s := range statements {
		if len(s.words) < 3 || !strings.HasPrefix(s.words[0], "ssl.") && s.words[0] != "server.feature-flags" &&
			s.words[0] != "setenv.add-response-header" && s.words[0] != "setenv.set-response-header" ||
			secretFile(s.words[0]) || s.is("ssl.engine") {
			continue
		}
		here := len(s.blocks) == 0 || s.inner() == site
		note := func(name string) bool {
			if !here && !isSite[s.inner()] {
				r.note(s.Place, "%s in %s", name, head(s.inner().words, ""))
			}
			return here
		}
		if value := s.words[2]; value != "(" {
			if note(s.words[0]) {
				c.put("site", s.words[0], strings.Join(s.words[2:], ""))
			}
			continue
		}
		if here && i < begin[s.words[0]] {
			continue
		}
		for i := 3; i+2 < len(s.words) && !r.full(s.Place); i++ {
			if s.words[i+1] != "=>" {
				continue
			}
			key, value := strings.Trim(s.words[i], `"`), strings.Trim(s.words[i+2], `"`)
			i += 2
			switch {
			case s.is("server.feature-flags"):
				if here {
					c.put("main", s.words[0], key+"="+value)
				}
			case !strings.HasPrefix(s.words[0], "setenv."):
				if note(s.words[0] + " " + key) {
					c.put("site", s.words[0]+" "+key, value)
				}
			case strings.EqualFold(key, hstsName):
				if note(hstsName) {
					c.put("site", "setenv.add-response-header "+key, value)
				}
			}
		}
	}
	return nil
}
