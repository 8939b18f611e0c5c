package gofarm

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// generator has this package's own files: farms depend on them.
//
//go:embed *.go template
var generator embed.FS

//go:embed template/engine.go.txt
var engineGo []byte

//go:embed template/hook.go.txt
var hookGo []byte

//go:embed template/link.sh.txt
var linkScript string

// module is ossl's.
const module = "github.com/ossl-go/ossl"

// readGo reads crypto/tls's files in a GOROOT, without its tests and generate_cert.go, which
// is a program.
func readGo(goroot string) (map[string][]byte, error) {
	dir := filepath.Join(goroot, "src", "crypto", "tls")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	files := map[string][]byte{}
	for _, e := range entries {
		name := e.Name()
		if name == "generate_cert.go" || strings.HasSuffix(name, "_test.go") || !strings.HasSuffix(name, ".go") {
			continue
		}
		if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("crypto/tls has no sources in %s: install Go with its standard library", dir)
	}
	return files, nil
}

// Digest returns the hash by which a crypto/tls is known.
func Digest(files map[string][]byte) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s %x\n", name, sha256.Sum256(files[name]))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// tlsFiles returns the files below src/crypto/tls of a farm that come from crypto/tls itself, by their
// path in src.
func tlsFiles(files map[string][]byte) (map[string][]byte, error) {
	p, err := parse(files)
	if err != nil {
		return nil, err
	}
	if got := p.methodsOfConn(); !slices.Equal(got, connMethods) {
		return nil, fmt.Errorf("the methods of Conn are %s, not %s", strings.Join(got, ", "), strings.Join(connMethods, ", "))
	}
	out := map[string][]byte{corePath + "/ossl_engine.go": engineGo}
	for name, data := range files {
		text := pushLinknames(string(data))
		if text, err = applied(name, text, patches[name]); err != nil {
			return nil, err
		}
		out[corePath+"/"+name] = []byte(text)
	}
	if out["crypto/tls/ossl_facade.go"], err = p.facade(); err != nil {
		return nil, err
	}
	return out, nil
}

// readOssl reads the files of ossl's module that belong to a farm, by their path in it.
func readOssl(source string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(source, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(source, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			if name != "." && !inFarm(name) {
				return filepath.SkipDir
			}
			return nil
		}
		if isSource(name) && d.Type().IsRegular() {
			files[name], err = os.ReadFile(file)
		}
		return err
	})
	if err == nil && files[markerSource] == nil {
		err = fmt.Errorf("%s has no ossl that can be built into crypto/tls", source)
	}
	return files, err
}

// osslFiles returns the files of a farm that come from ossl's, by their path in src. Imports are
// rewritten, and C's names have a prefix.
func osslFiles(files map[string][]byte, m marker) map[string][]byte {
	c := map[string][]byte{}
	for name, data := range files {
		if path.Dir(name) == "internal/libssl" {
			c[name] = data
		}
	}
	globals := globalNames(c)
	out := map[string][]byte{osslPath + "/hook/hook.go": hookGo}
	for name, data := range files {
		if c[name] != nil {
			data = renameC(name, data, globals)
		}
		if strings.HasSuffix(name, ".go") {
			data = bytes.ReplaceAll(data, []byte(`"`+module), []byte(`"`+osslPath))
			data = bytes.ReplaceAll(data, []byte(`"crypto/tls"`), []byte(`"`+corePath+`"`)) // imports, and a PkgPath
			data = bytes.Replace(data, []byte("//go:build ossl_unchanged\n"), nil, 1)
		}
		out[osslPath+"/"+name] = data
	}
	out[osslPath+"/"+markerSource] = m.file()
	if m.Mode == "require" && files["hook/nocgo.go"] == nil {
		out[osslPath+"/internal/unchanged/require_cgo.go"] = []byte(requireCgo)
	}
	return out
}

// requireCgo doesn't compile: without cgo, every connection would fail.
const requireCgo = `//go:build !cgo

package unchanged

const _ = mode_require_needs_CGO_ENABLED_1_and_a_C_compiler
`

// inFarm reports whether a folder of ossl's module has packages that the root package imports, or may, or
// that package attach imports.
func inFarm(dir string) bool {
	first, rest, _ := strings.Cut(dir, "/")
	switch first {
	case "session":
		return rest == ""
	case "tlsnames", "keys":
		return rest == ""
	case "policy":
		return true
	case "internal":
		return !strings.Contains(rest, "test") && !strings.HasPrefix(rest, "bogoshim")
	}
	return false
}

func isSource(name string) bool {
	switch path.Ext(name) {
	case ".go":
		return !strings.HasSuffix(name, "_test.go")
	case ".c", ".h", ".S":
		return true
	case ".json":
		return path.Dir(name) == "policy/data" // which package policy embeds
	}
	return false
}

// markerSource has the marker.
const markerSource = "internal/unchanged/built.go"

// A marker describes the programs of a farm to themselves: internal/unchanged.Info.
type marker struct {
	Format   int    `json:"format"`
	Version  string `json:"version"`
	Build    string `json:"build"`
	Mode     string `json:"mode"`
	Go       string `json:"go"`
	Settings string `json:"settings"` // the beginning of their SHA-256 hash, or ""

	settings string
}

// file returns the Go file with the marker.
func (m marker) file() []byte {
	m.Format = 1
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // it consists of strings
	}
	return fmt.Appendf(nil, "package unchanged\n\nconst marker = %q\n\nconst settings = %q\n",
		"\xffOSSL\xffunchanged\xff"+string(text)+"\x00", m.settings)
}
