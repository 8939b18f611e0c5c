package confgen

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// A Server is a server's program, and the libraries that it runs with.
type Server struct {
	Kind    string  `json:"kind"`
	Version Version `json:"version"`
	OpenSSL Version `json:"openssl"` // of the libssl that it runs with, if it uses one
	Go      Version `json:"go"`      // that Caddy was built with
	// NoMLKEM reports whether Caddy was built with GODEBUG's tlsmlkem=0: it accepts x25519mlkem768 in
	// its configuration then, and doesn't offer it.
	NoMLKEM bool   `json:"no_mlkem,omitempty"`
	Program string `json:"program,omitempty"`
	// Prefix is a command that starts the program, for trees of another release: []string{"/tree/run"}.
	Prefix []string `json:"prefix,omitempty"`
	// Modules is the folder of loadable modules, if the server has one that isn't the usual.
	Modules string `json:"modules,omitempty"`
}

// ErrNotInstalled means that a server's program was not found.
var ErrNotInstalled = errors.New("not installed")

// programs are the names of the servers' programs.
var programs = map[string][]string{"nginx": {"nginx"}, "apache": {"apache2", "httpd"}, "haproxy": {"haproxy"},
	"lighttpd": {"lighttpd"}, "caddy": {"caddy"}, "postgresql": {"postgres"}, "go": {"go"}}

// Find returns the path of a server's program, in PATH or in the folders that distributions use.
func Find(kind string) (string, error) {
	names, ok := programs[kind]
	if !ok {
		return "", fmt.Errorf("unknown server %q; known are %s", kind, strings.Join(Servers, ", "))
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
		patterns := []string{"/usr/sbin/" + name, "/usr/local/sbin/" + name, "/usr/local/bin/" + name}
		if kind == "postgresql" {
			patterns = []string{"/usr/lib/postgresql/*/bin/" + name, "/usr/pgsql-*/bin/" + name}
		}
		for _, pattern := range patterns {
			found, _ := filepath.Glob(pattern)
			slices.SortFunc(found, func(a, b string) int { // the newest last
				v, _ := ParseVersion(a)
				w, _ := ParseVersion(b)
				if v.Before(w) {
					return -1
				}
				return 1
			})
			for _, path := range slices.Backward(found) {
				if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
					return path, nil
				}
			}
		}
	}
	return "", fmt.Errorf("%s is %w", kind, ErrNotInstalled)
}

// questions are the arguments that make a server print its version.
var questions = map[string][]string{"nginx": {"-V"}, "apache": {"-v"}, "haproxy": {"-vv"}, "lighttpd": {"-v"},
	"caddy": {"version"}, "postgresql": {"--version"}, "go": {"version"}}

// answers match the version in the output.
var answers = map[string]*regexp.Regexp{
	"nginx":      regexp.MustCompile(`(?m)^nginx version: \S+?/(\d+\.\d+\.\d+)`),
	"apache":     regexp.MustCompile(`(?m)^Server version: Apache/(\d+\.\d+\.\d+)`),
	"haproxy":    regexp.MustCompile(`(?m)^HA-?Proxy version (\d+\.\d+(?:\.\d+|-dev\d+)?)`),
	"lighttpd":   regexp.MustCompile(`(?m)^lighttpd/(\d+\.\d+\.\d+)`),
	"caddy":      regexp.MustCompile(`(?m)^v?(\d+\.\d+\.\d+)`),
	"postgresql": regexp.MustCompile(`(?m)^postgres \(PostgreSQL\) (\d+(?:\.\d+)?)`),
	"go":         regexp.MustCompile(`(?m)^go version go(\d+\.\d+(?:\.\d+)?)`),
}

var (
	running = regexp.MustCompile(`(?mi)(?:running with|^Running on (?:OpenSSL|SSL library) version *:) *OpenSSL (\d+\.\d+\.\d+)`)
	built   = regexp.MustCompile(`(?mi)^built with (?:OpenSSL|(?:OpenSSL|SSL library) version *: *OpenSSL) (\d+\.\d+\.\d+)`)
	other   = regexp.MustCompile(`(?i)(?:built with|running with|version *:) *` +
		`((?:BoringSSL|LibreSSL|AWS-LC|wolfSSL|QuicTLS)[^\n]{0,40})`)
)

// Ask asks a server's program for its version, and finds the OpenSSL that it runs with. It starts
// the program with nothing but the option that prints its version.
func Ask(ctx context.Context, kind, program string, prefix ...string) (Server, error) {
	s := Server{Kind: kind, Program: program, Prefix: prefix}
	question, ok := questions[kind]
	if !ok {
		return s, fmt.Errorf("unknown server %q; known are %s", kind, strings.Join(Servers, ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := s.command(ctx, question...)
	out := &bounded{left: 1 << 16}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return s, fmt.Errorf("%s %s: %w", program, strings.Join(question, " "), err)
	}
	text := out.String()
	m := answers[kind].FindStringSubmatch(text)
	if m == nil {
		first, _, _ := strings.Cut(text, "\n")
		return s, fmt.Errorf("%s %s prints no version of %s: %.100q", program, strings.Join(question, " "), kind, first)
	}
	s.Version, _ = ParseVersion(m[1])
	switch kind {
	case "go":
		s.Go = s.Version
	case "caddy":
		if info, err := buildinfo.ReadFile(program); err == nil {
			s.Go, _ = ParseVersion(info.GoVersion)
			s.NoMLKEM = slices.ContainsFunc(info.Settings, func(b debug.BuildSetting) bool {
				return b.Key == "DefaultGODEBUG" && strings.Contains(","+b.Value+",", ",tlsmlkem=0,")
			})
		}
	default:
		return s, s.findOpenSSL(text)
	}
	return s, nil
}

func (s Server) command(ctx context.Context, args ...string) *exec.Cmd {
	argv := append(append(slices.Clone(s.Prefix), s.Program), args...)
	return exec.CommandContext(ctx, argv[0], argv[1:]...)
}

func (s *Server) findOpenSSL(text string) error {
	if m := other.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("%s runs with %s; configurations can be written for OpenSSL only", s.Kind, m[1])
	}
	for _, pattern := range []*regexp.Regexp{running, built} {
		if m := pattern.FindStringSubmatch(text); m != nil {
			s.OpenSSL, _ = ParseVersion(m[1])
			return nil
		}
	}
	file := s.Program
	switch s.Kind {
	case "apache":
		file = s.module("apache2/modules/mod_ssl.so", "httpd/modules/mod_ssl.so")
	case "lighttpd":
		file = s.module("lighttpd/mod_openssl.so")
	}
	if file == "" {
		return fmt.Errorf("%s has no module for OpenSSL: install it, or name the version of OpenSSL", s.Kind)
	}
	v, err := openSSLOf(file)
	if err != nil {
		return fmt.Errorf("the OpenSSL of %s isn't known: %w", s.Kind, err)
	}
	s.OpenSSL = v
	return nil
}

// module returns the path of a loadable module in the tree that has the program.
func (s *Server) module(names ...string) string {
	tree := filepath.Dir(filepath.Dir(filepath.Dir(s.Program))) // of /usr/sbin/apache2
	if real, err := filepath.EvalSymlinks(s.Program); err == nil && real != s.Program {
		tree = filepath.Dir(filepath.Dir(filepath.Dir(real)))
	}
	for _, root := range []string{tree, "/"} {
		for _, name := range names {
			for _, lib := range []string{"usr/lib", "usr/lib64", "usr/local/lib"} {
				path := filepath.Join(root, lib, name)
				if _, err := os.Stat(path); err == nil {
					s.Modules = filepath.Dir(path)
					return path
				}
			}
		}
	}
	return ""
}

// openSSLOf returns the version of the OpenSSL that a program or module is linked to. It reads
// files, and runs nothing.
func openSSLOf(file string) (Version, error) {
	f, err := elf.Open(file)
	if err != nil {
		return Version{}, err
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return Version{}, err
	}
	i := slices.IndexFunc(needed, func(n string) bool { return strings.HasPrefix(n, "libssl.so.") })
	if i < 0 {
		return Version{}, fmt.Errorf("%s isn't linked to libssl", file)
	}
	crypto := strings.Replace(needed[i], "libssl", "libcrypto", 1)
	var dirs []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		paths, _ := f.DynString(tag)
		for _, p := range paths {
			for dir := range strings.SplitSeq(p, ":") {
				dirs = append(dirs, strings.ReplaceAll(dir, "$ORIGIN", filepath.Dir(file)))
			}
		}
	}
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) { // the tree in which the file is, then the system's
		for _, lib := range []string{"lib/*-linux-gnu*", "usr/lib/*-linux-gnu*", "usr/lib64", "usr/lib", "lib64"} {
			found, _ := filepath.Glob(filepath.Join(dir, lib))
			dirs = append(dirs, found...)
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	for _, dir := range dirs {
		if v, err := versionIn(filepath.Join(dir, crypto)); err == nil {
			return v, nil
		}
	}
	return Version{}, fmt.Errorf("no %s was found for %s", crypto, file)
}

var versionText = regexp.MustCompile(`OpenSSL (\d+\.\d+\.\d+)[a-z]? {1,2}\d{1,2} [A-Z][a-z]{2} \d{4}`)

// versionIn finds OpenSSL's version in the file of libcrypto.
func versionIn(path string) (Version, error) {
	f, err := os.Open(path)
	if err != nil {
		return Version{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 64<<20))
	if err != nil {
		return Version{}, err
	}
	m := versionText.FindSubmatch(b)
	if m == nil {
		return Version{}, fmt.Errorf("%s names no version of OpenSSL", path)
	}
	return ParseVersion(string(m[1]))
}

// bounded is a buffer of a bounded size. It drops the rest.
type bounded struct {
	bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.Buffer.Write(p[:n])
	return len(p), nil
}
