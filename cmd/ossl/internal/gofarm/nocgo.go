package gofarm

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// The module whose package internal/fakecgo runs C without cgo: the one that ossl/nocgo requires.
var purego = debug.Module{Path: "github.com/ebitengine/purego", Version: "v0.11.3",
	Sum: "h1:OB+JLpdm7ioymhyA+6s5kbb/uOuYycAgL8NNTFc5MLg="}

// nocgoImport is the file that links ossl's object into programs that are built without cgo.
const nocgoImport = `//go:build !cgo && linux && (amd64 || arm64)

package hook

import _ "crypto/tls/internal/ossl/nocgo"
`

// addNocgo adds the files for programs that are built without cgo: the object of ossl's C code, and purego's
// runtime part. It adds none if there is no object in the source. In that case the programs' connections are
// crypto/tls's, or the programs don't compile, depending on the mode.
func (s *Source) addNocgo(ctx context.Context, files map[string][]byte) error {
	dir := filepath.Join(s.Dir, "nocgo")
	if s.module != nil {
		own := debug.Module{Path: module + "/nocgo", Version: s.module.Version}
		source, err := download(ctx, &own)
		if err != nil {
			return err
		}
		dir = source
	}
	if _, err := os.Stat(filepath.Join(dir, "internal", "object", "object.go")); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	fake, err := download(ctx, &purego)
	if err != nil {
		return err
	}
	for to, from := range map[string]string{"nocgo": dir, "nocgo/link": filepath.Join(dir, "link"),
		"nocgo/internal/object": filepath.Join(dir, "internal", "object"),
		"nocgo/fakecgo":         filepath.Join(fake, "internal", "fakecgo")} {
		entries, err := os.ReadDir(from)
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := e.Name()
			if !slices.Contains([]string{".go", ".s", ".h", ".syso"}, filepath.Ext(name)) || strings.HasSuffix(name, "_test.go") ||
				name == "gen.go" { // a program
				continue
			}
			data, err := os.ReadFile(filepath.Join(from, name))
			if err != nil {
				return err
			}
			if filepath.Ext(name) == ".go" {
				data = []byte(strings.ReplaceAll(string(data), `"`+purego.Path+`" //`, `"`+module+`/nocgo/fakecgo" //`))
			}
			files[to+"/"+name] = data
		}
	}
	files["hook/nocgo.go"] = []byte(nocgoImport)
	return nil
}
