// Package gofarm makes a GOROOT in which crypto/tls has ossl as its engine. It consists of symbolic
// links to another GOROOT (it is a farm of links), except below src/crypto/tls:
//
//	crypto/tls                the exported names, which are those of
//	crypto/tls/internal/core  crypto/tls's files, with a field and a branch in Conn's methods
//	crypto/tls/internal/ossl  ossl's packages
//
// So whoever imports crypto/tls gets ossl, and Go's tools need no flag. The linker is a script that has
// the command ossl examine what Go's linker has made.
package gofarm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options are the properties of a farm.
type Options struct {
	Mode      string // "prefer" or "require"
	Source    Source // ossl's
	Command   string // the file of the command ossl, which examines what the linker has made
	UnknownGo bool   // a Go that isn't known is allowed
}

// stateFile is the file in a farm that holds the GOROOT to which it links.
const stateFile = "ossl-farm"

// Files returns the files of the farm for a toolchain that are no links, by their path in src, and the
// farm's name, which has a hash of all that the farm consists of.
func Files(t Toolchain, o *Options) (files map[string][]byte, name string, err error) {
	original, err := readGo(t.Root)
	if err != nil {
		return nil, "", err
	}
	if known[Digest(original)] == "" && !o.UnknownGo {
		return nil, "", &UnknownGoError{t.Version, "this version of ossl was not tested with it. Use " + knownVersions() +
			", or try it with --unknown-go"}
	}
	if files, err = tlsFiles(original); err != nil {
		return nil, "", &UnknownGoError{t.Version, err.Error()}
	}
	m := marker{Version: o.Source.Version, Mode: o.Mode, Go: t.Version}
	own, err := osslFiles(o.Source.Dir, m)
	if err != nil {
		return nil, "", err
	}
	maps.Copy(files, own)

	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n", t.Root, o.Command, linkScript)
	for _, f := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s %x\n", f, sha256.Sum256(files[f]))
	}
	m.Farm = t.Version + "-" + hex.EncodeToString(h.Sum(nil)[:8])
	files[markerFile] = m.file()
	return files, m.Farm, nil
}

// Dir returns the folder of the user's farms.
func Dir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "ossl", "go"), nil
}

// halfMade is the beginning of the names of farms that are not complete.
const halfMade = "making-"

// Make returns the folder of the farm for a toolchain, and makes the farm if there is none yet. Several
// processes may do so at a time. If it fails, nothing half made remains.
func Make(ctx context.Context, t Toolchain, o *Options) (root string, err error) {
	files, name, err := Files(t, o)
	if err != nil {
		return "", err
	}
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	root = filepath.Join(dir, name)
	if _, err := os.Stat(filepath.Join(root, stateFile)); err == nil {
		return root, nil
	}
	if err := build(ctx, t, o, dir, root, files); err != nil {
		return "", fmt.Errorf("%w. XDG_CACHE_HOME can name another folder than %s", err, filepath.Dir(filepath.Dir(dir)))
	}
	return root, nil
}

// build makes a farm in dir under another name, and renames it to root when it is complete.
func build(ctx context.Context, t Toolchain, o *Options, dir, root string, files map[string][]byte) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
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
	if err := link(t, o, temp); err != nil {
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
	if err := write(filepath.Join(temp, stateFile), []byte(t.Root+"\n"), 0o444); err != nil {
		return err
	}
	if err := os.Rename(temp, root); err != nil {
		if _, there := os.Stat(filepath.Join(root, stateFile)); there == nil { // another process was quicker
			return os.RemoveAll(temp)
		}
		return err
	}
	return nil
}

// link makes a farm's links and its linker.
func link(t Toolchain, o *Options, farm string) error {
	tools, err := filepath.Rel(t.Root, t.ToolDir)
	if err != nil || !filepath.IsLocal(tools) {
		return fmt.Errorf("GOTOOLDIR, %s, is not in GOROOT, %s", t.ToolDir, t.Root)
	}
	// The folders that the farm has itself. What else is in them are links.
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
	script := strings.NewReplacer("LINK", quote(linker), "OSSL", quote(o.Command)).Replace(linkScript)
	return write(filepath.Join(farm, tools, "link"), []byte(script), 0o555)
}

// quote quotes a word for sh(1).
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// write writes a file and its folder.
func write(name string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, mode)
}

// removeHalfMade removes what killed processes have left.
func removeHalfMade(dir string) {
	old, _ := filepath.Glob(filepath.Join(dir, halfMade+"*"))
	for _, name := range old {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.RemoveAll(name)
		}
	}
}

// Clean removes the user's farms, and returns their number.
func Clean() (int, error) {
	dir, err := Dir()
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for i, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return i, err
		}
	}
	return len(entries), nil
}
