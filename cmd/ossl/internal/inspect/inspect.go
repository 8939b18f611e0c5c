// Package inspect finds out whether Go programs, and processes of them, use OpenSSL for TLS.
//
// Programs are ELF files. They may be hostile: the memory that reading takes is bounded, and so is the
// time, by the size of the file.
package inspect

import (
	"cmp"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
)

// The engines of a program's TLS.
const (
	OSSL    = "ossl"         // built by "ossl go": crypto/tls's connections use OpenSSL
	Library = "ossl-library" // the program's own code uses ossl
	Twice   = "ossl-twice"   // both, with two copies of ossl
	Go      = "crypto/tls"
	None    = "none" // the program has no TLS
)

// The core's module, and the functions that every program with its connections has.
const (
	modulePath       = "github.com/ossl-go/ossl"
	libraryFunctions = modulePath + ".(*Conn)."
	farmFunctions    = "crypto/tls/internal/ossl"
	linkObject       = "/internal/libssl.LinkObject" // links an object in a build without cgo
	core             = "crypto/tls/internal/core"    // crypto/tls's own functions, if "ossl go" has built the program
	clientHandshake  = ".(*Conn).clientHandshake"
	serverHandshake  = ".(*Conn).serverHandshake"
)

// A Program is a Go program in a file.
type Program struct {
	Engine    string  `json:"engine"`
	Unchanged *Marker `json:"unchanged,omitempty"` // of "ossl go"
	Library   string  `json:"library,omitempty"`   // the version of the module, if the program's own code uses ossl

	GoVersion string   `json:"go"` // "" if unknown, as are the next four
	GOOS      string   `json:"goos"`
	GOARCH    string   `json:"goarch"`
	CGO       *bool    `json:"cgo"`
	Tags      []string `json:"tags"`
	Race      bool     `json:"race"`
	Static    bool     `json:"static"` // linked statically, so that it can't load libraries
	PIE       bool     `json:"pie"`

	Package string   `json:"package"` // the main one's import path
	Main    Module   `json:"module"`
	Modules []Module `json:"modules,omitempty"` // all others

	problem  string // the reason why its own marker is unknown
	object   bool   // has ossl's C code as an object, for a build without cgo
	embedded bool   // all markers belong to files that it embeds
}

// A Module is a part of a program.
type Module struct {
	Path     string `json:"path"`
	Version  string `json:"version"`
	Replaced string `json:"replaced,omitempty"` // the module's path and version, if another took its place
}

// maxFile bounds the size of a program.
const maxFile = 4 << 30

// ReadProgram reads the Go program in a file.
func ReadProgram(path string) (*Program, error) {
	f, size, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f, size)
}

// open opens a regular file. Its errors don't name the file.
func open(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		if target, e := os.Readlink(path); e == nil && errors.Is(err, fs.ErrNotExist) {
			return nil, 0, fmt.Errorf("a symbolic link to %s, which doesn't exist", target)
		}
		return nil, 0, reason(err)
	}
	if err := isRegular(info); err != nil {
		return nil, 0, err
	}
	// By now the name may be another file's: opening a named pipe must not wait.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, reason(err)
	}
	info, err = f.Stat()
	if err == nil {
		err = isRegular(info)
	}
	if err == nil && info.Size() > maxFile {
		err = fmt.Errorf("has %d bytes, and programs of more than %d aren't read", info.Size(), int64(maxFile))
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func isRegular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errors.New("a folder: name the program in it")
	case !info.Mode().IsRegular():
		return errors.New("not a regular file")
	}
	return nil
}

// reason returns an error without the name of the file.
func reason(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

var errNotGo = errors.New("not a Go program")

// read reads the program in a file of a size.
func read(r io.ReaderAt, size int64) (*Program, error) {
	file, err := readELF(r)
	if err != nil {
		return nil, err
	}
	p := &Program{Tags: []string{}} // not null
	p.linkage(file)
	names := file.sections(".gopclntab", size)
	info, err := buildinfo.Read(&bounded{r, maxHeaders})
	switch {
	case err == nil:
		p.build(info)
	case len(names) == 0: // programs whose build information was removed still have this section
		return nil, errNotGo
	}
	if len(names) == 0 {
		names = file.loads(size)
	}
	functions, err := findFunctions(r, names, farmFunctions, libraryFunctions, farmFunctions+linkObject, modulePath+linkObject,
		Go+clientHandshake, Go+serverHandshake, core+clientHandshake, core+serverHandshake)
	if err != nil {
		return nil, err
	}
	markers, err := findMarkers(r, file.loads(size))
	if err != nil {
		return nil, err
	}
	farm, library := functions[0], functions[1]
	p.object = farm && functions[2] || !farm && functions[3]
	if !library {
		p.Library = "" // the program has only other packages of the module
	} else if p.Library == "" {
		p.Library = "(unknown)"
	}
	switch {
	case !farm:
		p.embedded = len(markers) > 0
	case len(markers) == 0:
		p.problem = "it has the functions of 'ossl go', but not its mark"
	case len(markers) > 1:
		p.problem = "it embeds another program that 'ossl go' has built, so its own mode is unknown"
	case markers[0].problem != "":
		p.problem = markers[0].problem
	default:
		p.Unchanged = &markers[0]
	}
	switch {
	case farm && library:
		p.Engine = Twice
	case farm:
		p.Engine = OSSL
	case library:
		p.Engine = Library
	case slices.Contains(functions[4:], true):
		p.Engine = Go
	default:
		p.Engine = None
	}
	return p, nil
}

// build sets the fields that "go version -m" shows too.
func (p *Program) build(info *debug.BuildInfo) {
	p.GoVersion, p.Package, p.Main = info.GoVersion, info.Path, moduleOf(&info.Main)
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == modulePath {
			p.Library = cmp.Or(m.Version, "(devel)")
		}
	}
	for _, m := range info.Deps {
		p.Modules = append(p.Modules, moduleOf(m))
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS":
			p.GOOS = s.Value
		case "GOARCH":
			p.GOARCH = s.Value
		case "CGO_ENABLED":
			on := s.Value == "1"
			p.CGO = &on
		case "-tags":
			p.Tags = strings.Split(s.Value, ",")
		case "-race":
			p.Race = s.Value == "true"
		}
	}
}

func moduleOf(m *debug.Module) Module {
	if m.Replace == nil {
		return Module{Path: m.Path, Version: m.Version}
	}
	return Module{Path: m.Path, Version: m.Version, Replaced: strings.TrimSpace(m.Replace.Path + " " + m.Replace.Version)}
}
