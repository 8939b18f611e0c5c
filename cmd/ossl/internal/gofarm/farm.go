// Package gofarm makes a GOROOT in which crypto/tls has ossl as its engine. It consists of symbolic
// links to another GOROOT (it is a farm of links), except below src/crypto/tls:
//
//	crypto/tls                the exported names, which are those of
//	crypto/tls/internal/core  crypto/tls's files, with a field and a branch in Conn's methods
//	crypto/tls/internal/ossl  ossl's packages
//
// So every package that imports crypto/tls gets ossl, and Go's tools need no flag. The linker is a
// script: it runs Go's linker, and then the command ossl, which examines the program.
package gofarm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"
)

// Options are the properties of a farm.
type Options struct {
	Mode      string // "prefer" or "require"
	Source    Source // ossl's
	UnknownGo bool   // a Go that isn't known is allowed
	Settings  []byte // of the programs that the farm builds, or nil: see ReadSettings
}

// stateFile is the file in a farm that holds the GOROOT to which it links.
const stateFile = "ossl-farm"

// A Plan has the files of a farm.
type Plan struct {
	Root string // the folder of the farm, which may not exist yet

	options   *Options
	toolchain Toolchain
	tools     string            // the folder of the tools, in GOROOT
	goFiles   map[string][]byte // crypto/tls's
	osslFiles map[string][]byte
	marker    marker
}

// NewPlan returns the plan for a farm. The farm's name contains a hash of all its inputs.
func NewPlan(ctx context.Context, t Toolchain, o *Options) (*Plan, error) {
	p := &Plan{options: o, toolchain: t}
	var err error
	if p.tools, err = filepath.Rel(t.Root, t.ToolDir); err != nil || !filepath.IsLocal(p.tools) {
		return nil, fmt.Errorf("GOTOOLDIR, %s, is not in GOROOT, %s: unset it", t.ToolDir, t.Root)
	}
	if p.goFiles, err = readGo(t.Root); err != nil {
		return nil, err
	}
	if known[Digest(p.goFiles)] == "" && !o.UnknownGo {
		return nil, &UnknownGoError{t.Version, "this version of ossl was not tested with it. Set GOTOOLCHAIN to " +
			knownVersions() + ", or try it with --unknown-go"}
	}
	if p.osslFiles, err = readOssl(o.Source.Dir); err != nil {
		return nil, err
	}
	if t.NoCgo {
		if err := o.Source.addNocgo(ctx, p.osslFiles); err != nil {
			return nil, err
		}
	}
	settings := ""
	if o.Settings != nil {
		if err := checkSettings(o.Settings); err != nil {
			return nil, err
		}
		settings = fmt.Sprintf("%.6x", sha256.Sum256(o.Settings))
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %s %s\n", t.Version, o.Source.Version, o.Mode, settings)
	err = fs.WalkDir(generator, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := generator.ReadFile(name)
		fmt.Fprintf(h, "%s %x\n", name, sha256.Sum256(data))
		return err
	})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(h, "%s\n%s\n", Digest(p.goFiles), Digest(p.osslFiles))
	// Two builds in different folders are equal, so the marker has no folders in it.
	p.marker = marker{Version: o.Source.Version, Build: hex.EncodeToString(h.Sum(nil)[:8]), Mode: o.Mode, Go: t.Version,
		Settings: settings, settings: string(o.Settings)}
	fmt.Fprintln(h, t.Root)
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	p.Root = filepath.Join(dir, t.Version+"-"+hex.EncodeToString(h.Sum(nil)[:8]))
	return p, nil
}

// Files returns the files of the farm that are no links, by their path in src.
func (p *Plan) Files() (map[string][]byte, error) {
	files, err := tlsFiles(p.goFiles)
	if err != nil {
		return nil, &UnknownGoError{p.toolchain.Version, err.Error()}
	}
	maps.Copy(files, osslFiles(p.osslFiles, p.marker))
	return files, nil
}

// Dir returns the folder of the user's farms.
func Dir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("the user's cache: %w", err)
	}
	return filepath.Join(cache, "ossl", "go"), nil
}

// EnvCommand names the environment variable that holds the file of the command ossl, which examines
// linked programs. Without it, the command is found by PATH.
const EnvCommand = "OSSL_COMMAND"

// Environment returns the variables with which Go's tools use the farm, and their values. command is the file
// of the command ossl. Other farms leave PATH.
func (p *Plan) Environment(command string) [][2]string {
	farms := filepath.Dir(p.Root)
	rest := slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		return filepath.Base(dir) == "bin" && filepath.Dir(filepath.Dir(dir)) == farms
	})
	path := append([]string{filepath.Join(p.Root, "bin")}, rest...)
	return [][2]string{
		{EnvCommand, command},
		{"GOROOT", p.Root},
		{"GOTOOLCHAIN", "local"}, // another Go would have another GOROOT
		{"PATH", strings.Join(path, string(filepath.ListSeparator))},
	}
}

// Diff returns the changes to Go's own files, and the files that were added to them, as a unified diff.
// The files of ossl's module are not in it.
func (p *Plan) Diff() ([]byte, error) {
	files, err := p.Files()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		old := p.goFiles[path.Base(name)]
		before := path.Join("crypto/tls", path.Base(name))
		switch {
		case path.Dir(name) != corePath:
			if strings.HasPrefix(name, osslPath+"/") && path.Dir(name) != osslPath+"/hook" {
				continue
			}
			fallthrough
		case old == nil:
			old, before = nil, "/dev/null"
		}
		out.Write(diff.Diff(before, old, name, files[name]))
	}
	return out.Bytes(), nil
}

// halfMade is the beginning of the names of farms that are not complete.
const halfMade = "making-"

// Make makes the farm, if there is none yet. Several processes may do so at a time. If it fails, nothing half
// made remains.
func (p *Plan) Make(ctx context.Context) error {
	dir := filepath.Dir(p.Root)
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = checkOwner(dir, os.Stat) // else another user could have made the farm
	}
	switch {
	case err != nil:
	case p.made():
		if checkOwner(p.Root, os.Lstat) != nil { // it may be from a time when others could write to the folder
			err = fmt.Errorf("another user may have made or changed %s: remove it", p.Root)
		}
	default:
		files, wrong := p.Files()
		if wrong != nil {
			return wrong
		}
		err = p.build(ctx, files)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w. To use another cache, set XDG_CACHE_HOME", err)
	}
	return err
}

func (p *Plan) made() bool {
	_, err := os.Stat(filepath.Join(p.Root, stateFile))
	return err == nil
}

// build makes the farm under another name, and renames it when it is complete.
func (p *Plan) build(ctx context.Context, files map[string][]byte) (err error) {
	dir := filepath.Dir(p.Root)
	removeHalfMade(dir)
	temp, err := os.MkdirTemp(dir, halfMade)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(temp)
		}
	}()
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	if err := p.link(temp); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := write(filepath.Join(temp, "src", filepath.FromSlash(name)), files[name], 0o444); err != nil {
			return err
		}
	}
	if err := write(filepath.Join(temp, stateFile), []byte(p.toolchain.Root+"\n"), 0o444); err != nil {
		return err
	}
	if err := os.Rename(temp, p.Root); err != nil {
		if p.made() { // another process was quicker
			return os.RemoveAll(temp)
		}
		return err
	}
	return nil
}

// link makes a farm's links and its linker.
func (p *Plan) link(farm string) error {
	t, tools := p.toolchain, p.tools
	// The farm's own folders. Everything else in them is a link.
	own := map[string]bool{".": true, "src": true, "src/crypto": true, "src/crypto/tls": true, "src/crypto/tls/internal": true}
	for dir := filepath.ToSlash(tools); dir != "."; dir = filepath.ToSlash(filepath.Dir(dir)) {
		own[dir] = true
	}
	for _, dir := range slices.Sorted(maps.Keys(own)) {
		if err := os.MkdirAll(filepath.Join(farm, dir), 0o755); err != nil {
			return err
		}
		entries, err := os.ReadDir(filepath.Join(t.Root, dir))
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			switch {
			case own[filepath.ToSlash(name)]:
				continue
			case dir == "src/crypto/tls" && strings.HasSuffix(name, ".go") && e.Name() != "generate_cert.go":
				continue // it is in the core, or a test of it
			case dir == filepath.ToSlash(tools) && e.Name() == "link":
				continue
			}
			if err := os.Symlink(filepath.Join(t.Root, name), filepath.Join(farm, name)); err != nil {
				return err
			}
		}
	}
	linker := filepath.Join(t.ToolDir, "link")
	if _, err := os.Stat(linker); err != nil {
		return err
	}
	script := strings.Replace(linkScript, "LINK", Quote(linker), 1)
	return write(filepath.Join(farm, tools, "link"), []byte(script), 0o555)
}

// Quote quotes a word for sh(1).
func Quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// write writes a file and its folder.
func write(name string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, mode)
}

// removeHalfMade removes the folders of processes that were killed.
func removeHalfMade(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), halfMade) && time.Since(info.ModTime()) > time.Hour {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// Clean removes the user's farms, and returns their number. It removes nothing else, since another user may
// have put a link to any folder there.
func Clean() (n int, err error) {
	dir, err := Dir()
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if _, err := os.Stat(filepath.Join(name, stateFile)); err != nil && !strings.HasPrefix(e.Name(), halfMade) {
			continue
		}
		if err := os.RemoveAll(name); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
