package confgen

import (
	"os"
	"path/filepath"
	"strings"
)

// logicalLines splits text into lines, each with its first line's number. A \ before a newline, if
// there is an escape, joins two lines.
func logicalLines(text string, escape bool, each func(line string, number int) error) error {
	number, begin := 0, 1
	var joined strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		number++
		if part, ok := strings.CutSuffix(line, `\`); ok && escape {
			joined.WriteString(part)
			continue
		}
		joined.WriteString(line)
		if err := each(joined.String(), begin); err != nil {
			return err
		}
		joined.Reset()
		begin = number + 1
	}
	return each(joined.String(), begin)
}

// apacheWords splits a line as ap_getword_conf does: a # begins a comment only at the start of a line.
func apacheWords(line string) (words []string) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "#") {
		return nil
	}
	for line != "" {
		s, n := newScanner(line), 0
		if b := line[0]; b == '"' || b == '\'' {
			s.take(1)
			n = s.quoted(b)
			word := s.take(n)
			s.take(1)
			words = append(words, strings.NewReplacer(`\\`, `\`, `\`+string(b), string(b)).Replace(word))
		} else {
			words = append(words, s.take(s.until(" \t\r")))
		}
		line = strings.TrimSpace(s.rest())
	}
	return words
}

func (r *reading) apache(file string, around []*block, depth int) ([]statement, error) {
	text, err := r.file(file, depth)
	if err != nil {
		return nil, err
	}
	var out []statement
	n := newNest(file, around)
	err = logicalLines(text, true, func(line string, number int) error {
		words := apacheWords(line)
		if len(words) == 0 {
			return nil
		}
		s := n.statement(words, number)
		switch name := strings.ToLower(words[0]); {
		case strings.HasPrefix(name, "</"):
			if len(n.blocks) > n.outer {
				return n.close(number)
			}
		case strings.HasPrefix(name, "<"):
			return n.open(words, number)
		case name == "serverroot" && len(words) == 2:
			r.serverRoot(s)
		case (name == "include" || name == "includeoptional") && len(words) == 2:
			return r.include(s, words[1], func(name string) error {
				more, err := r.apacheFiles(s, name, n.blocks, depth+1)
				out = append(out, more...)
				return err
			})
		default:
			r.add(&out, s)
		}
		return nil
	})
	return out, err
}

// serverRoot makes names relative to the folder of ServerRoot. In a copy from another machine, that is
// the folder with the same name around the main file.
func (r *reading) serverRoot(s statement) {
	root := s.words[1]
	for _, dir := range []string{root, filepath.Dir(r.base), r.base} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && filepath.Base(dir) == filepath.Base(root) {
			r.base = dir
			return
		}
	}
	r.note(s.Place, "ServerRoot %s: no such folder, so names of files are taken from %s", root, r.base)
}

// apacheFiles reads a file, or all files of a folder.
func (r *reading) apacheFiles(s statement, name string, around []*block, depth int) (out []statement, err error) {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return r.apache(name, around, depth)
	}
	if err := tooDeep(name, depth); err != nil {
		return nil, err
	}
	return out, r.include(s, filepath.Join(name, "*"), func(name string) error {
		more, err := r.apacheFiles(s, name, around, depth+1)
		out = append(out, more...)
		return err
	})
}

// apachePart is the part of a configuration that a statement is in.
type apachePart struct {
	host      *block // <VirtualHost>
	narrow    *block // a part of a site
	condition *block // a condition that isn't evaluated
	macro     bool
}

func partOf(s statement) (p apachePart) {
	for _, b := range s.blocks {
		switch name := strings.TrimRight(strings.TrimPrefix(b.name(), "<"), ">"); name {
		case "virtualhost":
			p.host = b
		case "ifdefine", "ifversion", "ifdirective", "ifsection", "iffile":
			p.condition = b
		case "ifmodule":
			if len(b.words) > 1 && strings.HasPrefix(b.words[1], "!") {
				p.condition = b
			}
		case "macro":
			p.macro = true
		default:
			p.narrow = b
		}
	}
	return p
}

func (c *Config) readApache(r *reading, file string) error {
	statements, err := r.apache(file, nil, 0)
	if err != nil {
		return err
	}
	// The whole server's SSLEngine holds for the virtual hosts without one.
	var hosts []*block
	engine := map[*block]string{}
	for _, s := range statements {
		p := partOf(s)
		if _, known := engine[p.host]; !known {
			if engine[p.host] = ""; p.host != nil {
				hosts = append(hosts, p.host)
			}
		}
		if s.is("SSLEngine") && len(s.words) > 1 && p.narrow == nil {
			engine[p.host] = strings.ToLower(s.words[1])
		}
	}
	var site *block
	for _, host := range hosts {
		if engine[host] == "on" || engine[host] == "" && engine[nil] == "on" {
			if c.site(host); site == nil {
				site = host
			}
		}
	}
	if len(c.Sites) == 0 && engine[nil] == "on" {
		c.Sites = []Place{{file, 1}}
	}
	for _, s := range statements {
		p := partOf(s)
		scope := iff(p.host != nil, "site")
		if scope == "" {
			scope = "main"
		}
		d, ok := apacheDirective(s)
		switch {
		case s.is("Use"):
			r.note(s.Place, "Use: macros aren't expanded")
		case ok && p.host != nil && site == nil:
			r.note(s.Place, "%s in %s without TLS", d.Name, head(p.host.words, " "))
		case !ok || p.host != nil && p.host != site || p.macro && p.host == nil:
		case p.narrow != nil:
			r.note(s.Place, "%s in %s", d.Name, head(p.narrow.words, " "))
		case p.condition != nil && strings.HasPrefix(p.condition.words[0], "<IfModule"):
			r.note(s.Place, "%s in %s", d.Name, head(p.condition.words, " "))
		default:
			if p.condition != nil {
				r.note(p.condition.Place, "%s: taken as true", head(p.condition.words, " "))
			}
			if d.Scope == "" {
				d.Scope = scope
			}
			c.put(d.Scope, d.Name, d.Value)
		}
	}
	return nil
}

// apacheDirective returns the directive of a statement about TLS. Its scope is "main" if the server
// accepts it nowhere else.
func apacheDirective(s statement) (d Directive, ok bool) {
	name, words := s.words[0], s.words[1:]
	lower := strings.ToLower(name)
	switch {
	case len(words) == 0 || secretFile(name):
	case lower == "ssloptions" || lower == "sslusername" || strings.HasPrefix(lower, "sslrequire"): // these concern requests
	case (lower == "sslopensslconfcmd" || lower == "sslciphersuite") && len(words) == 2:
		return Directive{Name: name + " " + words[0], Value: words[1]}, true
	case lower == "sslsessioncache" || lower == "sslstaplingcache":
		return Directive{Name: name, Value: words[0], Scope: "main"}, true
	case lower == "header":
		for i, w := range words {
			if strings.EqualFold(w, hstsName) && i > 0 && i+1 < len(words) && !strings.HasPrefix(words[i-1], "edit") {
				return Directive{Name: "Header always set " + hstsName, Value: `"` + words[i+1] + `"`}, true
			}
		}
	case strings.HasPrefix(lower, "ssl") || lower == "protocols" || lower == "enablesendfile":
		return Directive{Name: name, Value: strings.Join(words, " ")}, true
	}
	return d, false
}
