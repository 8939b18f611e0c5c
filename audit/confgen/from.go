package confgen

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of a configuration that is read, with the files that it includes.
const (
	maxFiles = 500
	maxBytes = 8 << 20
	maxDepth = 16
	// maxBlocks bounds the depth of nested blocks.
	maxBlocks     = 64
	maxStatements = 200_000
	maxNotes      = 1000
)

// A Place is a line of a configuration.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line"`
}

func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// An Unread is a part of a configuration that [Read] passed over, and that may be about TLS.
type Unread struct {
	What string `json:"what"`
	Place
}

// A reading reads a configuration and the files that it includes.
type reading struct {
	files, bytes, visited, statements int
	base                              string // folder for relative names
	unread                            []Unread
	noted                             map[Unread]bool
}

// errUnreadable means that one file can't be read. The others can.
var errUnreadable = errors.New("can't be read")

// file reads a file that depth others include in each other.
func (r *reading) file(path string, depth int) (string, error) {
	if err := tooDeep(path, depth); err != nil {
		return "", err
	}
	if r.files++; r.files > maxFiles {
		return "", fmt.Errorf("the configuration includes more than %d files", maxFiles)
	}
	if info, err := os.Stat(path); err != nil { // before opening it, since a named pipe would wait for its writer
		return "", unreadable{err}
	} else if !info.Mode().IsRegular() {
		return "", unreadable{fmt.Errorf("%s is not a regular file", path)}
	} else if isKernels(path) {
		return "", unreadable{fmt.Errorf("%s is a file of the kernel, as in /proc and /sys", path)}
	}
	f, err := os.Open(path)
	if err != nil {
		return "", unreadable{err}
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if r.bytes += len(b); err == nil && r.bytes > maxBytes {
		err = fmt.Errorf("the configuration has more than %d bytes", maxBytes)
	}
	return strings.TrimPrefix(strings.ReplaceAll(string(b), "\r\n", "\n"), "\ufeff"), err
}

type unreadable struct{ error }

func (unreadable) Is(target error) bool { return target == errUnreadable }

func (u unreadable) Unwrap() error { return u.error }

// note notes a part that isn't read, in one line.
func (r *reading) note(at Place, format string, args ...any) {
	if len(r.unread) > maxNotes {
		return
	}
	what := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	u := Unread{fmt.Sprintf("%.200s", what), at}
	if r.noted[u] {
		return
	}
	if len(r.unread) == maxNotes {
		u.What = fmt.Sprintf("this and all that follows: more than %d parts weren't read", maxNotes)
	}
	r.noted[u] = true
	r.unread = append(r.unread, u)
}

// full counts a statement, or a part of a long one, and reports whether the configuration has too many. It
// notes the first that isn't read.
func (r *reading) full(at Place) bool {
	if r.statements++; r.statements == maxStatements+1 {
		r.note(at, "this and all that follows: more than %d statements", maxStatements)
	}
	return r.statements > maxStatements
}

// add adds a statement to those that were read, unless there are too many.
func (r *reading) add(to *[]statement, s statement) {
	if !r.full(s.Place) {
		*to = append(*to, s)
	}
}

// head joins the first of these words: enough for a note.
func head(words []string, separator string) string {
	var out strings.Builder
	for i, word := range words {
		if out.Len() > 800 {
			break
		}
		out.WriteString(iff(i > 0, separator) + word[:min(len(word), 800)])
	}
	return strings.ToValidUTF8(out.String(), "")
}

// include calls read for each file that a pattern names. It notes why a file can't be read.
func (r *reading) include(s statement, pattern string, read func(file string) error) error {
	what := head(s.words, " ")
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(r.base, pattern)
	}
	found, err := r.glob(pattern)
	if errors.Is(err, filepath.ErrBadPattern) {
		r.note(s.Place, "%s: %v", what, err)
		return nil
	} else if err != nil {
		return fmt.Errorf("%s: %w", s.Place, err)
	}
	if !strings.HasPrefix(filepath.Base(pattern), ".") { // glob(3) leaves out hidden files, and so do servers
		found = slices.DeleteFunc(found, func(name string) bool { return strings.HasPrefix(filepath.Base(name), ".") })
	}
	if len(found) == 0 {
		// A pattern with wildcards may match nothing. It is noted only if its folder doesn't exist here.
		if _, err := os.Stat(filepath.Dir(pattern)); err != nil || !strings.ContainsAny(pattern, "*?[") {
			r.note(s.Place, "%s: no such file", what)
		}
	}
	for _, name := range found {
		if err := read(name); errors.Is(err, errUnreadable) {
			r.note(s.Place, "%s: %v", what, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// A block is a part of a configuration that contains other parts.
type block struct {
	words []string // at its beginning
	Place
}

// name returns the first word in lower case. Long ones are no names of directives.
func (b *block) name() string {
	if len(b.words) == 0 || len(b.words[0]) > 100 {
		return ""
	}
	return strings.ToLower(b.words[0])
}

// A statement is a directive, and the blocks around it, the outermost first.
type statement struct {
	words  []string
	blocks []*block
	Place
}

// in reports whether blocks with these names, and no others, are around a statement.
func (s statement) in(names ...string) bool {
	return slices.EqualFunc(s.blocks, names, func(b *block, name string) bool { return b.name() == name })
}

func (s statement) inner() *block {
	if len(s.blocks) == 0 {
		return nil
	}
	return s.blocks[len(s.blocks)-1]
}

// is reports whether a statement begins with this word, in any case.
func (s statement) is(name string) bool { return strings.EqualFold(s.words[0], name) }

// has reports whether an argument is this word.
func (s statement) has(word string) bool {
	return slices.ContainsFunc(s.words[1:], func(w string) bool { return strings.EqualFold(w, word) })
}

// A nest holds the blocks around the current place in a file.
type nest struct {
	file   string
	outer  int // the number of blocks that began in other files
	blocks []*block
}

func newNest(file string, around []*block) *nest {
	return &nest{file, len(around), around}
}

func (n *nest) statement(words []string, line int) statement {
	return statement{words, n.blocks, Place{n.file, line}}
}

func (n *nest) open(words []string, line int) error {
	if len(n.blocks) == maxBlocks {
		return fmt.Errorf("%s:%d: more than %d blocks in each other", n.file, line, maxBlocks)
	}
	n.blocks = append(slices.Clip(n.blocks), &block{words, Place{n.file, line}}) // statements have the old slice
	return nil
}

func (n *nest) close(line int) error {
	if len(n.blocks) <= n.outer {
		return fmt.Errorf("%s:%d: a } without a {", n.file, line)
	}
	n.blocks = n.blocks[:len(n.blocks)-1]
	return nil
}

// end returns an error if a block is open.
func (n *nest) end() error {
	if len(n.blocks) > n.outer {
		return fmt.Errorf("%s: a { without a }", n.blocks[len(n.blocks)-1].Place)
	}
	return nil
}

// tooDeep returns an error if files include each other.
func tooDeep(file string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: files include each other %d deep", file, depth)
	}
	return nil
}

// siteFolders are the folders of files that the main file in the folder above includes: paths in them
// are relative to the folder above.
var siteFolders = []string{"sites-available", "sites-enabled", "conf-available", "conf-enabled", "mods-available", "mods-enabled",
	"conf.d", "snippets"}

// Read reads the part of a server's configuration that is about TLS: the directives that hold for
// the whole server or for its first site with TLS. It reads included files too, and runs nothing.
// It doesn't open files with secrets, such as keys. The other sites are in Sites, and the parts that
// it couldn't read in Unread.
func Read(s Server, file string) (*Config, error) { return new(reading).read(s, file) }

func (r *reading) read(s Server, file string) (*Config, error) {
	r.base, r.noted = filepath.Dir(file), map[Unread]bool{}
	if abs, err := filepath.Abs(r.base); err == nil && slices.Contains(siteFolders, filepath.Base(abs)) {
		r.base = filepath.Join(r.base, "..")
	}
	c := &Config{Server: s, Layout: Layout{}.withDefaults(s.Kind)}
	read := map[string]func(*reading, string) error{"nginx": c.readNginx, "apache": c.readApache, "haproxy": c.readHAProxy,
		"lighttpd": c.readLighttpd, "caddy": c.readCaddy, "postgresql": c.readPostgreSQL}[s.Kind]
	if read == nil {
		return nil, fmt.Errorf("confgen: configurations of %q can't be read", s.Kind)
	}
	if err := read(r, file); err != nil {
		return nil, err
	}
	c.Unread = r.unread
	return c, nil
}

// site appends a site with TLS, which begins with a block, to the sites that were found.
func (c *Config) site(b *block) { c.Sites = append(c.Sites, b.Place) }

func (c *Config) put(scope, name, value string) {
	c.Directives = append(c.Directives, Directive{Scope: scope, Name: name, Value: value, Setting: settingOf(name),
		Reason: "Yours."})
}

const hstsName = "Strict-Transport-Security"

// secretFile reports whether a directive names certificates, keys or clients' authorities. The trial
// has its own.
func secretFile(name string) bool {
	n := strings.ToLower(name)
	if n == "ssl_stapling_verify" {
		return false
	}
	for _, part := range []string{"certificate", "pemfile", "privkey", "_key", "-file", "ca-", "cacert", "verify", "password",
		"dhparam", "ticket_key", "keyfile", "stapling_file", "_file", "_crl", "engine", "sslproxy", "passphrase", "stek"} {
		if strings.Contains(n, part) {
			return true
		}
	}
	return false
}
