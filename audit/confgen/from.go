package confgen

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Bounds of a configuration that is read, with the files that it includes.
const (
	maxFiles = 500
	maxBytes = 8 << 20
	maxDepth = 16
	// maxBlocks bounds the blocks in each other.
	maxBlocks = 64
)

// A reading reads a configuration and the files that it includes.
type reading struct {
	files, bytes int
	blocks       int    // the number of blocks so far
	base         string // folder for relative names
}

func (r *reading) file(path string) (string, error) {
	if r.files++; r.files > maxFiles {
		return "", fmt.Errorf("the configuration includes more than %d files", maxFiles)
	}
	if info, err := os.Stat(path); err != nil { // before it is opened: a named pipe would wait for its writer
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if r.bytes += len(b); err == nil && r.bytes > maxBytes {
		err = fmt.Errorf("the configuration has more than %d bytes", maxBytes)
	}
	return string(b), err
}

// A statement is a line of a configuration, or of nginx a directive, and the blocks around it.
type statement struct {
	words  []string
	blocks []string // the first words of the blocks around it, the outermost first
	block  int      // the number of the innermost block, which distinguishes blocks
}

// Read reads the part of a server's configuration that is about TLS: the directives that hold for
// the whole server, and those of the first site with TLS. It reads included files too, and runs
// nothing. Files with secrets, such as keys, are not opened.
func Read(s Server, file string) (*Config, error) {
	r := &reading{base: filepath.Dir(file)}
	c := &Config{Server: s, Layout: Layout{}.withDefaults(s.Kind)}
	var statements []statement
	var err error
	switch s.Kind {
	case "nginx", "caddy":
		statements, err = r.braces(file, s.Kind, nil, 0, 0)
	case "apache", "haproxy", "postgresql":
		statements, err = r.lines(file, s.Kind, nil, 0, 0)
	case "lighttpd":
		var text string
		if text, err = r.lighttpdText(file, 0); err == nil {
			c.readLighttpd(text)
		}
	default:
		return nil, fmt.Errorf("confgen: configurations of %q can't be read", s.Kind)
	}
	if err != nil {
		return nil, err
	}
	c.read(statements)
	return c, nil
}

// tokens splits text as nginx and Caddy do: words, quoted words, and { } and ;. At the end of a
// line there is "\n".
func tokens(text string) []string {
	var out []string
	for i := 0; i < len(text); {
		switch b := text[i]; {
		case b == '\n':
			out = append(out, "\n")
			i++
		case b == ' ' || b == '\t' || b == '\r':
			i++
		case b == '#':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case b == ';' || b == '{' || b == '}':
			out = append(out, string(b))
			i++
		case b == '"' || b == '\'':
			word := []byte{}
			for i++; i < len(text) && text[i] != b; i++ {
				if text[i] == '\\' && i+1 < len(text) {
					i++
				}
				word = append(word, text[i])
			}
			i++
			out = append(out, "\x00"+string(word)) // never mistaken for a brace
		default:
			start := i
			for i < len(text) && !strings.ContainsRune(" \t\r\n;", rune(text[i])) {
				if text[i] == '{' && (i == start || text[i-1] != '$') || text[i] == '}' && !strings.Contains(text[start:i], "{") {
					break
				}
				i++
			}
			if i == start {
				i++
			}
			out = append(out, text[start:i])
		}
	}
	return out
}

// braces reads the files of nginx and Caddy.
func (r *reading) braces(file, kind string, around []string, number, depth int) ([]statement, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: files include each other %d deep", file, depth)
	}
	text, err := r.file(file)
	if err != nil {
		return nil, err
	}
	var out []statement
	var words []string
	blocks := slices.Clone(around)
	open := []int{number}
	end := func() error {
		if len(words) == 0 {
			return nil
		}
		st := statement{words, slices.Clone(blocks), open[len(open)-1]}
		words = nil
		if include := st.words[0]; (include == "include" && kind == "nginx" || include == "import" && kind == "caddy") &&
			len(st.words) == 2 {
			found, err := filepath.Glob(r.path(st.words[1]))
			if err != nil {
				return err
			}
			for _, name := range found {
				more, err := r.braces(name, kind, blocks, open[len(open)-1], depth+1)
				if err != nil {
					return err
				}
				out = append(out, more...)
			}
			return nil
		}
		out = append(out, st)
		return nil
	}
	for _, t := range tokens(text) {
		switch t {
		case "\n":
			if kind == "caddy" {
				err = end()
			}
		case ";":
			err = end()
		case "{":
			first := "{"
			if len(words) > 0 {
				first = words[0]
				out = append(out, statement{words, slices.Clone(blocks), open[len(open)-1]})
			}
			words = nil
			if blocks = append(blocks, first); len(blocks) > maxBlocks {
				return nil, fmt.Errorf("%s: more than %d blocks in each other", file, maxBlocks)
			}
			r.blocks++
			open = append(open, r.blocks)
		case "}":
			if err = end(); err == nil && len(blocks) <= len(around) {
				err = fmt.Errorf("%s: a } without a {", file)
			} else if err == nil {
				blocks, open = blocks[:len(blocks)-1], open[:len(open)-1]
			}
		default:
			words = append(words, strings.TrimPrefix(t, "\x00"))
		}
		if err != nil {
			return nil, err
		}
	}
	if err := end(); err != nil {
		return nil, err
	}
	if len(blocks) > len(around) {
		return nil, fmt.Errorf("%s: a { without a }", file)
	}
	return out, nil
}

func (r *reading) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.base, name)
}

// lines reads the files of Apache, HAProxy and PostgreSQL.
func (r *reading) lines(file, kind string, around []string, number, depth int) ([]statement, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: files include each other %d deep", file, depth)
	}
	text, err := r.file(file)
	if err != nil {
		return nil, err
	}
	var out []statement
	blocks, open := slices.Clone(around), []int{number}
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		if kind == "postgresql" {
			line = strings.Replace(line, "=", " ", 1)
		}
		words := fields(line)
		if len(words) == 0 {
			continue
		}
		switch {
		case kind == "apache" && strings.HasPrefix(words[0], "</"):
			if len(open) > 1 {
				blocks, open = blocks[:len(blocks)-1], open[:len(open)-1]
			}
			continue
		case kind == "apache" && strings.HasPrefix(words[0], "<"):
			if r.blocks++; len(blocks) == maxBlocks {
				return nil, fmt.Errorf("%s: more than %d blocks in each other", file, maxBlocks)
			}
			blocks, open = append(blocks, strings.ToLower(strings.Join(words, " "))), append(open, r.blocks)
			continue
		case kind == "haproxy" && slices.Contains([]string{"global", "defaults", "frontend", "backend", "listen"}, words[0]):
			r.blocks++
			blocks, open = []string{words[0]}, []int{r.blocks}
			continue
		}
		pattern := ""
		if len(words) > 1 {
			switch strings.ToLower(words[0]) {
			case "include", "includeoptional", "include_if_exists":
				pattern = r.path(words[1])
			case "include_dir":
				pattern = filepath.Join(r.path(words[1]), "*.conf")
			}
		}
		if pattern == "" || kind == "haproxy" {
			out = append(out, statement{words, slices.Clone(blocks), open[len(open)-1]})
			continue
		}
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			more, err := r.lines(name, kind, blocks, open[len(open)-1], depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
	}
	return out, nil
}

// fields splits a line into words, some of them in quotes.
func fields(line string) []string {
	var out []string
	for _, t := range tokens(strings.NewReplacer("{", "\x01", "}", "\x02", ";", "\x03").Replace(line)) {
		out = append(out, strings.NewReplacer("\x00", "", "\x01", "{", "\x02", "}", "\x03", ";").Replace(t))
	}
	return out
}

func (r *reading) lighttpdText(file string, depth int) (string, error) {
	if depth > maxDepth {
		return "", fmt.Errorf("%s: files include each other %d deep", file, depth)
	}
	text, err := r.file(file)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		words := fields(line)
		if len(words) == 2 && words[0] == "include" {
			found, _ := filepath.Glob(r.path(words[1]))
			for _, name := range found {
				more, err := r.lighttpdText(name, depth+1)
				if err != nil {
					return "", err
				}
				out.WriteString(more)
			}
			continue
		}
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			out.WriteString(line + "\n")
		}
	}
	return out.String(), nil
}

var (
	lighttpdList = regexp.MustCompile(`(ssl\.openssl\.ssl-conf-cmd|server\.feature-flags|setenv\.add-response-header)` +
		`\s*\+?=\s*\(([^()]*)\)`)
	lighttpdPair   = regexp.MustCompile(`"([^"]*)"\s*=>\s*"([^"]*)"`)
	lighttpdSimple = regexp.MustCompile(`(?m)^\s*(ssl\.[a-z0-9.-]+)\s*=\s*("[^"\n]*")`)
)

func (c *Config) readLighttpd(text string) {
	for _, m := range lighttpdList.FindAllStringSubmatch(text, -1) {
		for _, pair := range lighttpdPair.FindAllStringSubmatch(m[2], -1) {
			switch {
			case m[1] == "server.feature-flags":
				c.put("main", m[1], pair[1]+"="+pair[2])
			case m[1] != "setenv.add-response-header" || strings.EqualFold(pair[1], "Strict-Transport-Security"):
				c.put("site", m[1]+" "+pair[1], pair[2])
			}
		}
	}
	for _, m := range lighttpdSimple.FindAllStringSubmatch(text, -1) {
		if !secretFile(m[1]) && m[1] != "ssl.engine" {
			c.put("site", m[1], m[2])
		}
	}
}

func (c *Config) put(scope, name, value string) {
	c.Directives = append(c.Directives, Directive{Scope: scope, Name: name, Value: value, Setting: settingOf(name),
		Reason: "Yours."})
}

// secretFile reports whether a directive names certificates, keys or clients' authorities: the
// trial has its own.
func secretFile(name string) bool {
	n := strings.ToLower(name)
	for _, part := range []string{"certificate", "pemfile", "privkey", "_key", "-file", "ca-", "cacert", "verify", "password",
		"dhparam",
		"ticket_key", "keyfile", "stapling_file", "_file", "_crl", "engine", "sslproxy", "passphrase", "stek"} {
		if strings.Contains(n, part) {
			return true
		}
	}
	return false
}
