package libssl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// The host's openssl.cnf. libcrypto ignores the errors of the files that it includes, and of every
// read. So the files are read here, in the order in which libcrypto reads them, and libcrypto
// parses the whole: def_load_bio in OpenSSL's crypto/conf/conf_def.c, 1.1.1 to 4.0.

// maxConfig bounds the length of a configuration with all that it includes.
const maxConfig = 1 << 20

var errTooLong = fmt.Errorf("it is longer than %d bytes", maxConfig)

// A ConfigFault is the reason why the host's openssl.cnf can't be relied on: its demands may be
// incomplete.
type ConfigFault struct {
	File string // openssl.cnf
	At   string // the file at fault
	Err  error  // the cause

	// Missing means that the file at fault does not exist. OpenSSL then continues without it.
	Missing bool
	// NoAlgorithms means that everything could be read, and nothing in it is about algorithms
	// (alg_section), although it can't be parsed.
	NoAlgorithms bool
	// Parsed means that everything could be read and parsed, and something in it is wrong.
	Parsed bool
}

// Error returns the fault and a remedy. It does not name openssl.cnf.
func (e *ConfigFault) Error() string { return e.What() + "; " + e.remedy() }

// What returns the fault.
func (e *ConfigFault) What() string {
	what, which := "it", ""
	if e.At != e.File {
		what, which = "it includes "+e.At, ", which"
	}
	if which == "" && e.Missing {
		return "it is a link to a file that is missing"
	}
	if e.Missing {
		return what + which + " is missing"
	}
	if e.Parsed {
		return e.Err.Error()
	}
	cause := e.Err
	var path *fs.PathError
	if errors.As(cause, &path) {
		cause = path.Err
	}
	return what + which + " can't be read: " + cause.Error()
}

// Unwrap returns the cause.
func (e *ConfigFault) Unwrap() error { return e.Err }

// passing are errors that don't depend on the file.
var passing = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO, syscall.EINTR, syscall.EAGAIN, syscall.ENOBUFS}

// Passing reports whether the same call may succeed later although nobody has mended anything.
func (e *ConfigFault) Passing() bool {
	return slices.ContainsFunc(passing, func(err error) bool { return errors.Is(e.Err, err) })
}

func (e *ConfigFault) remedy() string {
	switch {
	case e.Passing():
		return "try again when that has passed"
	case e.Missing:
		return "restore that file, or remove the line"
	case errors.Is(e.Err, fs.ErrPermission):
		return "let this process's user read it"
	}
	return "mend it"
}

// HidesFIPS reports whether the fault leaves it open if the host asks for FIPS mode. A file that
// doesn't exist asks for nothing.
func (e *ConfigFault) HidesFIPS() bool { return !e.Missing && !e.NoAlgorithms }

// A configSource is the rest of a file.
type configSource struct{ rest []byte }

// next returns the next line with its continuations: as it is, or nil after the last one, and as
// libcrypto joins it.
func (s *configSource) next() (raw, joined []byte) {
	text := s.rest
	for len(s.rest) > 0 {
		n := bytes.IndexByte(s.rest, '\n') + 1
		if n == 0 {
			n = len(s.rest)
		}
		line := bytes.TrimRight(s.rest[:n], "\r\n")
		s.rest = s.rest[n:]
		if joined == nil {
			joined = line
		} else {
			joined = append(joined, line...)
		}
		end := len(joined) - 1
		if end < 0 || joined[end] != '\\' || end > 0 && joined[end-1] == '\\' {
			break
		}
		joined = joined[:end:end] // what follows must not be overwritten
	}
	if len(text) == 0 {
		return nil, nil
	}
	return text[:len(text)-len(s.rest)], joined
}

// A configReader puts the files that a configuration includes in their places.
type configReader struct {
	file string
	// expand returns the value of a name in a section of a configuration.
	expand func(text []byte, section, name string) (string, error)
	// new is whether there are pragmas, and OPENSSL_CONF_INCLUDE: from 3.0 on.
	new bool

	text    []byte
	missing *ConfigFault // the first file that is missing
	section string
	folder  *string // for relative names; nil means the working directory
	onlyAbs bool    // a relative name is an error

	now     *configSource
	outer   []*configSource
	entries []string // the rest of the folder that is being included
	inside  bool     // a folder is being included
}

// read returns the text, without .include. A fault that is Missing comes with a text.
func (r *configReader) read() ([]byte, *ConfigFault) {
	text, fault := r.load(r.file)
	switch {
	case fault != nil && fault.Missing && !isDangling(r.file): // libcrypto ignores that
		return []byte("\n"), nil
	case fault != nil && fault.Missing:
		return []byte("\n"), fault
	case fault != nil:
		return nil, fault
	}
	r.section = "default"
	if folder, ok := r.includeVariable(); ok {
		r.folder = &folder
	}
	r.now = &configSource{text}
	r.text = make([]byte, 0, len(text)+len("\n\n\n"))
	for first := true; ; first = false {
		raw, line := r.now.next()
		if raw == nil {
			if more, fault := r.leave(); fault != nil {
				return nil, fault
			} else if !more {
				break
			}
			continue
		}
		if first {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if s := bytes.TrimLeft(line, configBlanks); len(s) == 0 || s[0] == '#' {
			r.text = append(r.text, raw...)
		} else if fault := r.line(raw, string(line)); fault != nil {
			return nil, fault
		}
		if len(r.text) > maxConfig {
			return nil, r.fault(r.file, errTooLong)
		}
	}
	return append(r.text, '\n'), r.missing
}

func (r *configReader) fault(at string, err error) *ConfigFault {
	return &ConfigFault{File: r.file, At: at, Err: err,
		Missing: errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)}
}

// isDangling reports whether a file that doesn't exist is named by a symbolic link.
func isDangling(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// skip keeps the fault of an included file or folder that is missing, and returns nil: libcrypto
// continues after the line. It returns any other fault.
func (r *configReader) skip(fault *ConfigFault) *ConfigFault {
	if !fault.Missing {
		return fault
	}
	if r.missing == nil {
		r.missing = fault
	}
	return nil
}

// load reads a file. If that fails for a passing reason, it tries once more.
func (r *configReader) load(file string) ([]byte, *ConfigFault) {
	text, fault := r.loadOnce(file)
	if fault != nil && fault.Passing() {
		return r.loadOnce(file)
	}
	return text, fault
}

func (r *configReader) loadOnce(file string) ([]byte, *ConfigFault) {
	f, err := os.Open(file)
	if err != nil {
		return nil, r.fault(file, err)
	}
	defer f.Close()
	var text bytes.Buffer
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		text.Grow(int(min(info.Size(), maxConfig)) + bytes.MinRead)
	}
	_, err = text.ReadFrom(io.LimitReader(f, maxConfig+1))
	if err == nil && text.Len() > maxConfig {
		err = errTooLong
	}
	if err != nil {
		return nil, r.fault(file, err)
	}
	return text.Bytes(), nil
}

// leave continues after the end of a file. libcrypto continues with the folder that it is including
// before it returns to the file that included this one.
func (r *configReader) leave() (more bool, fault *ConfigFault) {
	// No line continues in the next file.
	if n := len(r.text); n > 0 {
		r.text = append(r.text, "\n\n"...)
	}
	for len(r.entries) > 0 {
		next := r.entries[0]
		r.entries = r.entries[1:]
		text, fault := r.load(next)
		if fault == nil {
			r.now = &configSource{text}
			return true, nil
		}
		if fault = r.skip(fault); fault != nil {
			return false, fault
		}
	}
	r.inside = false
	if len(r.outer) == 0 {
		return false, nil
	}
	r.now, r.outer = r.outer[len(r.outer)-1], r.outer[:len(r.outer)-1]
	return true, nil
}

const configBlanks = " \t\r\n"

// nameEnd returns the length of the name at the beginning of s.
func nameEnd(s string) int {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', strings.IndexByte("_!%&*+,-./;?@^|~", c) >= 0:
		case c == '\\' && i+1 < len(s):
			i++
		default:
			return i
		}
	}
	return len(s)
}

// directive returns the rest of a line if its name begins with one.
func directive(line, name string, end int) (rest string, ok bool) {
	rest = strings.TrimLeft(line[end:], configBlanks)
	if !strings.HasPrefix(line, name) || len(line)-len(rest) == len(name) && !strings.HasPrefix(rest, "=") {
		return "", false
	}
	return strings.TrimPrefix(rest, "="), true
}

// line takes a line. joined is without line breaks.
func (r *configReader) line(raw []byte, joined string) *ConfigFault {
	s := strings.TrimLeft(joined, configBlanks)
	if section, ok := strings.CutPrefix(s, "["); ok {
		section, _, _ = strings.Cut(section, "]")
		r.section = strings.Trim(section, configBlanks)
	}
	section, end := r.section, nameEnd(s)
	if rest, ok := strings.CutPrefix(s[end:], "::"); ok {
		section, s = s[:end], rest
		end = nameEnd(s)
	}
	if rest, ok := directive(s, ".pragma", end); ok && r.new {
		r.pragma(rest)
	} else if rest, ok := directive(s, ".include", end); ok {
		return r.include(section, rest)
	}
	r.text = append(r.text, raw...)
	return nil
}

// pragma takes the value of a pragma about included files. libcrypto reports those that are wrong.
func (r *configReader) pragma(rest string) {
	rest, _, _ = strings.Cut(rest, "#")
	name, value, _ := strings.Cut(rest, ":")
	value = strings.Trim(value, configBlanks)
	switch strings.Trim(name, configBlanks) {
	case "abspath":
		r.onlyAbs = strings.EqualFold(value, "on") || strings.EqualFold(value, "true")
	case "includedir":
		if _, ok := r.includeVariable(); !ok {
			r.folder = &value
		}
	}
}

func (r *configReader) includeVariable() (folder string, ok bool) {
	folder, ok = os.LookupEnv("OPENSSL_CONF_INCLUDE")
	return folder, ok && r.new && !Privileged()
}

// includedName is a name that no configuration has.
const includedName = "ossl-included-file"

// include begins with a file, or with the files of a folder.
func (r *configReader) include(section, rest string) *ConfigFault {
	// libcrypto knows the variables in it.
	prefix := "\n"
	if section != r.section {
		prefix += section + "::"
	}
	text := append(slices.Clone(r.text), prefix+includedName+" = "+rest+"\n"...)
	name, err := r.expand(text, section, includedName)
	if err != nil {
		return r.fault(r.file, fmt.Errorf("line .include %s: %w", strings.Trim(rest, configBlanks), err))
	}
	if r.folder != nil && !filepath.IsAbs(name) {
		name = *r.folder + "/" + name
	}
	if r.onlyAbs && !filepath.IsAbs(name) {
		return r.fault(r.file, fmt.Errorf("it includes %q, which is relative", name))
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return r.includeFolder(name)
	}
	content, fault := r.load(name)
	if fault != nil {
		return r.skip(fault)
	}
	return r.enter(content)
}

// includeFolder begins with the first file of a folder, in the folder's own order.
func (r *configReader) includeFolder(folder string) *ConfigFault {
	if r.inside {
		return r.fault(r.file, fmt.Errorf("it includes the folder %s from within a folder", folder))
	}
	f, err := os.Open(folder)
	if err != nil {
		return r.skip(r.fault(folder, err))
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return r.skip(r.fault(folder, err))
	}
	for _, name := range names {
		if ext := strings.ToLower(filepath.Ext(name)); (ext == ".cnf" || ext == ".conf") && len(name) > len(ext) {
			r.entries = append(r.entries, folder+"/"+name)
		}
	}
	if len(r.entries) > 0 {
		r.inside = true
		return r.enter(nil) // leave continues with the first of them
	}
	return nil
}

// maxIncluded bounds the depth of files that include another one.
const maxIncluded = 100

func (r *configReader) enter(content []byte) *ConfigFault {
	r.outer = append(r.outer, r.now)
	r.now = &configSource{content}
	if len(r.outer) > maxIncluded {
		return r.fault(r.file, errors.New("it includes itself"))
	}
	return nil
}
