package confgen

import (
	"fmt"
	"go/format"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const columns = 100

// A writer writes a file with comments.
type writer struct {
	out    strings.Builder
	indent int
	mark   string // the beginning of a comment
	bare   bool   // no comments, so that lines can be compared
}

func itoa(n int) string { return strconv.Itoa(n) }

func (w *writer) line(lines ...string) {
	for _, l := range lines {
		w.out.WriteString(strings.Repeat("    ", w.indent) + l + "\n")
	}
}

func (w *writer) raw(lines ...string) { w.out.WriteString(strings.Join(lines, "\n") + "\n") }

func (w *writer) open(l string) {
	w.line(l)
	w.indent++
}

func (w *writer) close(l string) {
	w.indent--
	if l != "" {
		w.line(l)
	}
}

func (w *writer) comment(text string) {
	if w.bare || text == "" {
		return
	}
	for _, l := range wrap(text, columns-4*w.indent-len(w.mark)-1) {
		w.line(strings.TrimRight(w.mark+" "+l, " "))
	}
}

// reason writes why a directive is there.
func (w *writer) reason(d Directive) {
	text := d.Reason
	if d.Source != "" {
		text += " Source: " + d.Source + "."
	}
	if d.Needs != "" {
		text += " Needs: " + d.Needs + "."
	}
	w.comment(strings.TrimSpace(text))
}

func (w *writer) directive(d Directive, text string) {
	w.reason(d)
	w.line(text)
}

// wrap splits text into lines of at most width characters, except for longer words.
func wrap(text string, width int) []string {
	var lines []string
	for _, paragraph := range strings.Split(text, "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
				lines = append(lines, line)
				line = ""
			}
			line = join(" ", line, word)
		}
		lines = append(lines, line)
	}
	return lines
}

// keyAdvice is the comment above the certificate.
func (c *Config) keyAdvice() string {
	if c.Policy == nil {
		return ""
	}
	text := "The chain is the leaf and its intermediates, without the root."
	if len(c.Policy.Keys) == 0 {
		return text
	}
	k := c.Policy.Keys[0]
	kind := k.Type
	switch {
	case len(k.Curves) > 0:
		kind += " with " + strings.Join(k.Curves, " or ")
	case k.Bits > 0:
		kind += fmt.Sprintf(" of %d bits", k.Bits)
	}
	return text + " The policy's first choice of key: " + kind + " (" + k.Source + ")."
}

// Text returns the configuration with its comments.
func (c *Config) Text() string { return c.write(false) }

// Bare returns the configuration without comments.
func (c *Config) Bare() string { return c.write(true) }

func (c *Config) write(bare bool) string {
	w := &writer{mark: "#", bare: bare}
	if c.Server.Kind == "go" {
		w.mark = "//"
	}
	c.writeHead(w)
	switch c.Server.Kind {
	case "nginx":
		c.nginx(w)
	case "apache":
		c.apache(w)
	case "haproxy":
		c.haproxy(w)
	case "lighttpd":
		c.lighttpd(w)
	case "caddy":
		c.caddy(w)
	case "postgresql":
		c.postgresql(w)
	case "go":
		c.golang(w)
		if text, err := format.Source([]byte(w.out.String())); err == nil {
			return string(text)
		}
	}
	return w.out.String()
}

// place returns a sentence that names the file's place, or "" if a user starts the server with it.
func (c *Config) place() string {
	name := c.Layout.Names[0]
	switch {
	case c.Layout.State != "" || c.Server.Kind == "go":
		return ""
	case c.Layout.Snippet:
		return "It belongs in /etc/nginx/sites-available/" + name + ", with a link to it in /etc/nginx/sites-enabled " +
			"(without these folders: in /etc/nginx/conf.d/" + name + ".conf)."
	}
	return map[string]string{
		"nginx": "It takes the place of all of /etc/nginx/nginx.conf; with --snippet it is a file for sites-available.",
		"apache": "It belongs in /etc/apache2/sites-available/" + name + ".conf, enabled by a2ensite (without this folder: in " +
			"/etc/httpd/conf.d/" + name + ".conf).",
		"haproxy":  "It takes the place of all of /etc/haproxy/haproxy.cfg.",
		"lighttpd": "It takes the place of all of /etc/lighttpd/lighttpd.conf.",
		"caddy":    "It takes the place of all of /etc/caddy/Caddyfile.",
		"postgresql": "It belongs in /etc/postgresql/VERSION/main/conf.d/tls.conf (without this folder: in a file that " +
			"postgresql.conf includes).",
	}[c.Server.Kind]
}

func (c *Config) writeHead(w *writer) {
	s := c.Server
	if w.bare || c.Policy == nil {
		return
	}
	running := ""
	if usesOpenSSL(s.Kind) {
		running = ", which runs with OpenSSL " + s.OpenSSL.String()
	} else if s.Go != (Version{}) && s.Kind == "caddy" {
		running = ", built with Go " + s.Go.String()
	}
	w.comment(fmt.Sprintf("TLS for %s %s%s, by the policy %s: %s (%s).", s.Kind, s.Version, running, c.Policy.Name,
		c.Policy.Title, c.Policy.Date))
	w.comment("Written by 'ossl config " + s.Kind + "'. Replace the names and paths by yours.")
	w.comment(c.place())
	for _, n := range c.Notes {
		w.comment(n)
	}
	if len(c.Unmet) > 0 {
		w.comment("")
		w.raw(w.mark)
		w.comment("What this server can't do of the policy:")
		for _, r := range c.Unmet {
			w.comment("- " + r.Setting + ": " + r.Reason + ".")
		}
	}
	var used []string
	for _, d := range c.Directives {
		for _, source := range strings.Split(d.Source, "; ") {
			key, _, _ := strings.Cut(source, " ")
			if key != "" && !slices.Contains(used, key) {
				used = append(used, key)
			}
		}
	}
	if len(used) > 0 {
		w.raw(w.mark)
		w.comment("Sources:")
		for _, key := range used {
			source := c.Policy.Sources[key]
			w.comment("- " + key + ": " + source.Title + iff(source.URL != "", ", "+source.URL))
		}
	}
	w.raw("")
}
