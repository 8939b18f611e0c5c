package confgen

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// caddy returns the next token as Caddy's lexer does: braces are marks if they stand alone.
func (s *scanner) caddy() token {
	for s.i < len(s.text) {
		line, rest := s.line, s.rest()
		switch b := rest[0]; {
		case b == '\n':
			s.take(1)
			return token{mark: '\n', line: line}
		case b == ' ' || b == '\t' || b == '\r':
			s.take(1)
		case strings.HasPrefix(rest, "\\\n"):
			s.take(2)
		case b == '#':
			s.take(s.until("\n"))
		case b == '"':
			s.take(1)
			word := s.take(s.quoted(b))
			s.take(1)
			return token{word: strings.ReplaceAll(word, `\"`, `"`), line: line}
		case b == '`':
			s.take(1)
			word := s.take(s.until("`"))
			s.take(1)
			return token{word: word, line: line}
		default:
			word := s.take(s.until(" \t\r\n"))
			if word == "{" || word == "}" {
				return token{mark: word[0], line: line}
			}
			if mark, ok := strings.CutPrefix(word, "<<"); ok && mark != "" && !strings.ContainsAny(mark, "<{}\"'`") {
				return token{word: s.heredoc(mark), line: line}
			}
			return token{word: word, line: line}
		}
	}
	return token{mark: theEnd, line: s.line}
}

// heredoc takes the lines up to one that begins with a mark.
func (s *scanner) heredoc(mark string) string {
	s.take(s.until("\n") + 1)
	start := s.i
	for s.i < len(s.text) {
		end := s.i
		line := s.rest()[:s.until("\n")]
		if trimmed := strings.TrimLeft(line, " \t"); strings.HasPrefix(trimmed, mark) {
			s.take(len(line) - len(trimmed) + len(mark))
			return s.text[start:end]
		}
		s.take(len(line) + 1)
	}
	return s.text[start:]
}

// A caddyNode is a line of a Caddyfile, and the block that it begins.
type caddyNode struct {
	words []string
	block bool
	under []*caddyNode
	Place
}

// maxNodes bounds the lines of a Caddyfile, also with its snippets inserted. Their words then have
// maxBytes at most.
const maxNodes = 100_000

type caddyReading struct {
	*reading
	snippets             map[string][]*caddyNode
	parsed, nodes, bytes int
}

func (r *caddyReading) parse(file string) ([]*caddyNode, error) {
	text, err := r.file(file, 0)
	if err != nil {
		return nil, err
	}
	root := &caddyNode{}
	open := []*caddyNode{root}
	var node *caddyNode
	end := func() {
		if node != nil {
			top := open[len(open)-1]
			top.under = append(top.under, node)
			node = nil
		}
	}
	for s := newScanner(text); ; {
		t := s.caddy()
		if node == nil && (t.mark == 0 || t.mark == '{') {
			node = &caddyNode{Place: Place{file, t.line}}
			if r.parsed++; r.parsed > maxNodes {
				return nil, fmt.Errorf("%s: the Caddyfile has more than %d lines", node.Place, maxNodes)
			}
		}
		switch t.mark {
		case '{':
			if len(open) == maxBlocks {
				return nil, fmt.Errorf("%s:%d: more than %d blocks in each other", file, t.line, maxBlocks)
			}
			begun := node
			begun.block = true
			end()
			open = append(open, begun)
		case '}':
			end()
			if len(open) == 1 {
				return nil, fmt.Errorf("%s:%d: a } without a {", file, t.line)
			}
			open = open[:len(open)-1]
		case '\n', theEnd:
			// A site's addresses may continue on the next line.
			if len(open) > 1 || node == nil || !strings.HasSuffix(node.words[len(node.words)-1], ",") || t.mark == theEnd {
				end()
			}
			if t.mark == theEnd && len(open) > 1 {
				return nil, fmt.Errorf("%s: a { without a }", open[len(open)-1].Place)
			}
			if t.mark == theEnd {
				return root.under, nil
			}
		default:
			node.words = append(node.words, t.word)
		}
	}
}

// resolve replaces each import in nodes by the snippet or the files that it names.
func (r *caddyReading) resolve(nodes []*caddyNode, args []string, depth int) (out []*caddyNode, err error) {
	for _, n := range nodes {
		if r.nodes++; r.nodes > maxNodes {
			return nil, fmt.Errorf("%s: the snippets have more than %d lines", n.Place, maxNodes)
		}
		words, err := r.arguments(n, args)
		if err != nil {
			return nil, err
		}
		copied := &caddyNode{words: words, block: n.block, Place: n.Place}
		if len(copied.words) > 0 && strings.HasPrefix(copied.words[0], "(") && n.block {
			r.snippets[strings.Trim(copied.words[0], "()")] = n.under
			continue
		}
		if len(copied.words) < 2 || copied.words[0] != "import" {
			if copied.under, err = r.resolve(n.under, args, depth); err != nil {
				return nil, err
			}
			out = append(out, copied)
			continue
		}
		if err := tooDeep(n.File, depth); err != nil {
			return nil, err
		}
		imported := func(nodes []*caddyNode) error {
			more, err := r.resolve(nodes, copied.words[2:], depth+1)
			out = append(out, more...)
			return err
		}
		if snippet, ok := r.snippets[copied.words[1]]; ok {
			err = imported(snippet)
		} else {
			err = r.include(statement{words: copied.words, Place: n.Place}, copied.words[1], func(name string) error {
				nodes, err := r.parse(name)
				if err != nil {
					return err
				}
				return imported(nodes)
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// arguments returns the words of a line, with their placeholders replaced by the arguments of an import.
func (r *caddyReading) arguments(n *caddyNode, args []string) ([]string, error) {
	words := n.words
	for i, word := range n.words {
		if strings.Contains(word, "{args") {
			if &words[0] == &n.words[0] {
				words = slices.Clone(words)
			}
			words[i] = caddyArguments(word, args, maxBytes-r.bytes)
		}
		if r.bytes += len(words[i]) + 1; r.bytes > maxBytes {
			return nil, fmt.Errorf("%s: the snippets have more than %d bytes", n.Place, maxBytes)
		}
	}
	return words, nil
}

// caddyArguments replaces the placeholders {args[0]} and {args.0} of a word, until it has more than most
// bytes.
func caddyArguments(word string, args []string, most int) string {
	var out strings.Builder
	for out.Len() <= most {
		before, after, ok := strings.Cut(word, "{args")
		out.WriteString(before)
		if !ok {
			break
		}
		index, _, ok := strings.Cut(after[:min(len(after), 10)], "}")
		digits, isIndex := strings.CutPrefix(strings.TrimSuffix(index, "]"), "[")
		if !isIndex {
			digits, isIndex = strings.CutPrefix(index, ".")
		}
		if k, err := strconv.Atoi(digits); ok && isIndex && err == nil && k >= 0 && k < len(args) {
			out.WriteString(args[k])
			word = after[len(index)+1:]
			continue
		}
		out.WriteString("{args")
		word = after
	}
	return out.String()
}

// caddyHasTLS reports whether a site has TLS. Caddy turns TLS on for all sites with a name that aren't on
// the port of plain HTTP. If automatic HTTPS is off, a port other than 443 has no TLS.
func caddyHasTLS(site *caddyNode, auto bool, httpPort string) bool {
	if slices.ContainsFunc(site.under, func(n *caddyNode) bool { return len(n.words) > 0 && n.words[0] == "tls" }) {
		return true
	}
	return slices.ContainsFunc(site.words, func(address string) bool {
		address = strings.TrimSuffix(address, ",")
		if !strings.Contains(address, "://") {
			address = "//" + address
		}
		u, err := url.Parse(address)
		if err != nil { // {$NAME}, for example
			return auto
		}
		port := u.Port()
		return u.Scheme == "https" || port == "443" ||
			u.Scheme != "http" && port != httpPort && u.Hostname() != "" && (auto || port == "")
	})
}

func (c *Config) readCaddy(r *reading, file string) error {
	cr := &caddyReading{reading: r, snippets: map[string][]*caddyNode{}}
	nodes, err := cr.parse(file)
	if err != nil {
		return err
	}
	if nodes, err = cr.resolve(nodes, nil, 0); err != nil {
		return err
	}
	// A Caddyfile of one site needs no braces: its first line is the address.
	for i, n := range nodes {
		if !n.block && !slices.Contains([]string{"tls", "header"}, n.words[0]) {
			nodes = append(nodes[:i:i], &caddyNode{n.words, true, nodes[i+1:], n.Place})
			break
		}
	}
	auto, httpPort := true, "80"
	var site *caddyNode
	for _, n := range nodes {
		switch {
		case n.block && len(n.words) == 0:
			for _, option := range n.under {
				switch {
				case len(option.words) > 1 && option.words[0] == "auto_https" && option.words[1] == "off":
					auto = false
				case len(option.words) > 1 && option.words[0] == "http_port":
					httpPort = option.words[1]
				case option.block && len(option.words) > 0 && option.words[0] == "servers":
					for _, o := range option.under {
						if len(o.words) > 1 && o.words[0] == "protocols" {
							c.put("servers", o.words[0], strings.Join(o.words[1:], " "))
						}
					}
				}
			}
		case n.block && strings.HasPrefix(n.words[0], "&("): // a named route
		case n.block && caddyHasTLS(n, auto, httpPort):
			if c.Sites = append(c.Sites, n.Place); site == nil {
				site = n
			}
		case !n.block: // a line of a file that a site imports
			site = &caddyNode{under: nodes}
		}
	}
	if site != nil {
		c.caddySite(r, site, site)
	}
	return nil
}

// caddySite adds the directives under a node of a site.
func (c *Config) caddySite(r *reading, site, under *caddyNode) {
	for _, n := range under.under {
		if len(n.words) == 0 {
			continue
		}
		value := ""
		switch rest := n.words[1:]; {
		case n.words[0] == "tls" && site == under:
			for _, o := range n.under {
				if len(o.words) > 1 && slices.Contains([]string{"protocols", "ciphers", "curves", "alpn"}, o.words[0]) {
					c.put("tls", o.words[0], strings.Join(o.words[1:], " "))
				}
			}
			continue
		case n.words[0] == "header":
			for _, o := range append([]*caddyNode{{words: rest}}, n.under...) {
				for i, word := range o.words[:max(0, len(o.words)-1)] {
					if strings.EqualFold(strings.TrimLeft(word, "+?>"), hstsName) {
						value = o.words[i+1]
					}
				}
			}
		default:
			c.caddySite(r, site, n)
		}
		if value != "" && site == under {
			c.put("site", "header "+hstsName, `"`+value+`"`)
		} else if value != "" {
			r.note(n.Place, "%s in %s", hstsName, head(under.words, " "))
		}
	}
}
