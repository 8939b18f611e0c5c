package gofarm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/ossl-go/ossl"
)

// A Source is a folder with the sources of ossl's module.
type Source struct {
	Dir     string
	Version string

	module *debug.Module // of a release
}

// FindSource returns the sources from which the command ossl itself was built: of the released module, as the
// go command keeps it in its cache, or the working tree. dir, if it isn't empty, is the folder instead.
func FindSource(ctx context.Context, dir string) (Source, error) {
	if dir != "" {
		return sourceIn(dir, "(devel)")
	}
	if m := ownModule(); m != nil && m.Sum != "" {
		dir, err := download(ctx, m)
		if err != nil {
			return Source{}, err
		}
		s, err := sourceIn(dir, m.Version)
		s.module = m
		return s, err
	}
	// The file of a function of the module: a name without a folder in a build with -trimpath.
	pc := reflect.ValueOf(ossl.Library).Pointer()
	file, _ := runtime.FuncForPC(pc).FileLine(pc)
	if !filepath.IsAbs(file) {
		return Source{}, fmt.Errorf("this ossl doesn't know its sources, since it was built from a working tree with -trimpath: " +
			"name the tree by --source")
	}
	tree := filepath.Dir(file)
	if err := checkOwner(tree, os.Stat); err != nil {
		return Source{}, fmt.Errorf("the sources that this ossl was built from can't be used (%w): name them by --source", err)
	}
	return sourceIn(tree, "(devel)")
}

// sourceIn returns the source in a folder that must hold ossl's module.
func sourceIn(dir, version string) (Source, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Source{}, err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Source{}, err
	}
	if first, _, _ := strings.Cut(string(mod), "\n"); strings.TrimSpace(first) != "module "+module {
		return Source{}, fmt.Errorf("%s doesn't hold the module %s: name its folder by --source", dir, module)
	}
	return Source{Dir: dir, Version: version}, nil
}

// ownModule returns ossl's module as this command was built with it, or nil.
func ownModule() *debug.Module {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, m := range info.Deps {
		if m.Path == module {
			if m.Replace != nil {
				return m.Replace
			}
			return m
		}
	}
	return nil
}

// download returns a module's folder in the go command's cache, and compares its hash with m's, if that is set.
// The go command compares it with the checksum database's.
func download(ctx context.Context, m *debug.Module) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.Path+"@"+m.Version)
	cmd.Dir = os.TempDir() // not in a module or workspace, which could replace it
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.Output()
	var answer struct{ Dir, Sum, Error string }
	if jsonErr := json.Unmarshal(out, &answer); jsonErr == nil && answer.Error != "" {
		return "", fmt.Errorf("%s: %s", m.Path, answer.Error)
	}
	if err != nil {
		return "", goFailed(ctx, m.Path, err, &told)
	}
	if m.Sum != "" && answer.Sum != m.Sum {
		return "", fmt.Errorf("the sources of %s %s have the hash %s, but this command was made for %s: install ossl again",
			m.Path, m.Version, answer.Sum, m.Sum)
	}
	return answer.Dir, nil
}
