package confgen

import (
	"slices"
	"strings"
)

// A scanner splits text into tokens.
type scanner struct {
	text string
	i    int // the index of the next byte
	line int // the line of the next byte, from 1 on
}

// A token is a word, or a mark.
type token struct {
	word string
	mark byte // { } ; or a newline, and theEnd
	line int
}

const theEnd = 0xff

func newScanner(text string) *scanner { return &scanner{text: text, line: 1} }

// take returns the next n bytes, and moves behind them.
func (s *scanner) take(n int) string {
	n = min(n, len(s.text)-s.i)
	taken := s.text[s.i : s.i+n]
	s.i += n
	s.line += strings.Count(taken, "\n")
	return taken
}

// rest returns the text that is left.
func (s *scanner) rest() string { return s.text[s.i:] }

// until returns the number of bytes up to the first of these, or to the end.
func (s *scanner) until(bytes string) int {
	if n := strings.IndexAny(s.rest(), bytes); n >= 0 {
		return n
	}
	return len(s.rest())
}

// nginx returns the next token as ngx_conf_read_token does.
func (s *scanner) nginx() token {
	for s.i < len(s.text) {
		line := s.line
		switch b := s.text[s.i]; b {
		case ' ', '\t', '\r', '\n':
			s.take(1)
		case '#':
			s.take(s.until("\n"))
		case ';', '{', '}':
			s.take(1)
			return token{mark: b, line: line}
		case '"', '\'':
			s.take(1)
			word := nginxUnescape(s.take(s.quoted(b)))
			s.take(1)
			return token{word: word, line: line}
		default:
			n := 0
			for rest := s.rest(); n < len(rest) && !strings.ContainsRune(" \t\r\n;", rune(rest[n])); n++ {
				if rest[n] == '{' && (n == 0 || rest[n-1] != '$') {
					break
				}
				if rest[n] == '\\' {
					n++
				}
			}
			return token{word: nginxUnescape(s.take(n)), line: line}
		}
	}
	return token{mark: theEnd, line: s.line}
}

// quoted returns the number of bytes before the next quote without a backslash.
func (s *scanner) quoted(quote byte) int {
	rest := s.rest()
	for n := 0; n < len(rest); n++ {
		if rest[n] == '\\' {
			n++
		} else if rest[n] == quote {
			return n
		}
	}
	return len(rest)
}

var nginxUnescape = strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\\`, `\`, `\t`, "\t", `\r`, "\r", `\n`, "\n").Replace

// skipLua moves behind the } that closes a block of Lua, whose { has been taken. It ignores braces in
// Lua's strings and comments.
func (s *scanner) skipLua() {
	for open := 1; open > 0 && s.i < len(s.text); {
		s.take(s.until(`{}"'-[`))
		rest := s.rest()
		switch {
		case strings.HasPrefix(rest, "--"):
			s.take(2)
			if n := luaLong(s.rest()); n > 0 {
				s.take(n)
			} else {
				s.take(s.until("\n"))
			}
		case luaLong(rest) > 0:
			s.take(luaLong(rest))
		default:
			switch b := s.take(1); b {
			case "{":
				open++
			case "}":
				open--
			case `"`, "'":
				s.take(s.quoted(b[0]) + 1)
			}
		}
	}
}

// luaLong returns the length of the long string of Lua that text begins with, such as [==[ x ]==], or 0.
func luaLong(text string) int {
	level := strings.TrimLeft(strings.TrimPrefix(text, "["), "=")
	n := len(text) - len(level)
	if n == 0 || !strings.HasPrefix(text, "[") || !strings.HasPrefix(level, "[") {
		return 0
	}
	ending := "]" + strings.Repeat("=", n-1) + "]"
	if end := strings.Index(level, ending); end >= 0 {
		return n + end + len(ending)
	}
	return len(text)
}

func (r *reading) nginx(file string, around []*block, depth int) ([]statement, error) {
	text, err := r.file(file, depth)
	if err != nil {
		return nil, err
	}
	var out []statement
	var words []string
	begin := 0 // the line of the first word
	n, s := newNest(file, around), newScanner(text)
	for {
		t := s.nginx()
		if t.mark == 0 {
			if words = append(words, t.word); len(words) == 1 {
				begin = t.line
			}
			continue
		}
		st := n.statement(words, begin)
		words = nil
		switch {
		case t.mark == '}' || t.mark == theEnd:
			if len(st.words) > 0 { // nginx wants a ; here
				r.add(&out, st)
			}
			if t.mark == theEnd {
				return out, n.end()
			}
			err = n.close(t.line)
		case t.mark == '{' && len(st.words) > 0 && strings.HasSuffix(st.words[0], "_by_lua_block"):
			r.note(st.Place, "Lua code")
			s.skipLua()
		case t.mark == '{':
			if len(st.words) == 0 {
				st.Line = t.line
			}
			err = n.open(st.words, st.Line)
		case len(st.words) == 2 && st.words[0] == "include":
			err = r.include(st, st.words[1], func(name string) error {
				more, err := r.nginx(name, n.blocks, depth+1)
				out = append(out, more...)
				return err
			})
		case len(st.words) > 0:
			if strings.Contains(st.words[0], "_by_lua") {
				r.note(st.Place, "Lua code")
			}
			r.add(&out, st)
		}
		if err != nil {
			return nil, err
		}
	}
}

// An nginxServer is a block "server {}".
type nginxServer struct {
	block     *block
	context   string // "http", "stream" or "mail"
	addresses []string
	on        string // the value of ssl or starttls, which nginx before 1.25.1 has
}

// nginxServers returns the servers with TLS. The servers in http {} come first.
func nginxServers(statements []statement) (servers []*nginxServer) {
	var all []*nginxServer
	byBlock := map[*block]*nginxServer{}
	secure := map[string]bool{} // the word ssl of one listen holds for all servers of an address
	on := map[string]string{}   // the value of ssl, of all servers of a context
	for _, s := range statements {
		context := "http"
		if len(s.blocks) > 0 && s.blocks[0].name() != "server" {
			context = s.blocks[0].name()
		}
		isFlag := len(s.words) == 2 && (s.is("ssl") || s.is("starttls"))
		if isFlag && s.in(context) {
			on[context] = s.words[1]
		}
		if !s.in("server") && !s.in(context, "server") {
			continue
		}
		server := byBlock[s.inner()]
		if server == nil {
			server = &nginxServer{block: s.inner(), context: context}
			byBlock[server.block], all = server, append(all, server)
		}
		switch {
		case isFlag:
			server.on = s.words[1]
		case s.is("listen") && len(s.words) > 1:
			address := context + " " + strings.TrimPrefix(strings.TrimPrefix(s.words[1], "*:"), "0.0.0.0:")
			server.addresses = append(server.addresses, address)
			secure[address] = secure[address] || s.has("ssl") || s.has("quic")
		}
	}
	for _, server := range all {
		value := server.on
		if value == "" {
			value = on[server.context]
		}
		if value == "on" || value == "only" ||
			slices.ContainsFunc(server.addresses, func(a string) bool { return secure[a] }) {
			servers = append(servers, server)
		}
	}
	slices.SortStableFunc(servers, func(a, b *nginxServer) int {
		return strings.Compare(iff(a.context != "http", "other"), iff(b.context != "http", "other"))
	})
	return servers
}

func (c *Config) readNginx(r *reading, file string) error {
	statements, err := r.nginx(file, nil, 0)
	if err != nil {
		return err
	}
	servers := nginxServers(statements)
	first := &nginxServer{context: "http"}
	for i, server := range servers {
		if c.site(server.block); i == 0 {
			first = server
		}
	}
	// A site that has one of these directives inherits none with its name from the level above.
	own := map[string]bool{}
	for _, s := range statements {
		if first.block != nil && s.inner() == first.block && (s.is("add_header") || s.is("ssl_conf_command")) {
			own[s.words[0]] = true
		}
	}
	http2 := false // as a word of listen
	for _, s := range statements {
		scope := ""
		switch {
		case own[s.words[0]] && s.in(first.context):
			if s.is("ssl_conf_command") || s.has(hstsName) {
				r.note(s.Place, "%s, which the site doesn't inherit", head(s.words[:min(2, len(s.words))], " "))
			}
		case s.in(first.context) || len(s.blocks) == 0:
			scope = "main"
		case first.block != nil && s.inner() == first.block:
			scope = "site"
		case first.block == nil && s.inner().name() == "server" && strings.HasPrefix(s.words[0], "ssl_"):
			r.note(s.Place, "%s in a server without TLS", s.words[0])
		case slices.Contains(s.blocks, first.block) && s.is("add_header") && s.has(hstsName):
			r.note(s.Place, "%s in %s", hstsName, head(s.inner().words, " "))
		}
		if scope == "site" && s.words[0] == "listen" && slices.Contains(s.words, "http2") && !http2 {
			http2 = true
			c.put("listen", "http2", "")
		} else if scope != "" && !secretFile(s.words[0]) && len(s.words) > 1 {
			c.nginxDirective(scope, s)
		}
	}
	return nil
}

func (c *Config) nginxDirective(scope string, s statement) {
	name, value := s.words[0], strings.Join(s.words[1:], " ")
	switch {
	case name == "ssl_conf_command" && len(s.words) == 3:
		c.put(scope, name+" "+s.words[1], s.words[2])
	case name == "add_header" && strings.EqualFold(s.words[1], hstsName) && len(s.words) > 2:
		c.put(scope, "add_header "+hstsName, `"`+s.words[2]+`"`+iff(len(s.words) > 3, " always"))
	case strings.HasPrefix(name, "ssl_") || strings.HasPrefix(name, "sendfile") || name == "tcp_nopush" ||
		name == "tcp_nodelay" || name == "http2":
		if strings.ContainsAny(value, " ") && name != "ssl_protocols" && name != "ssl_session_cache" {
			value = `"` + value + `"`
		}
		c.put(scope, name, value)
	}
}
