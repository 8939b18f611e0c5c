package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
)

// A goModule is a module of the repository.
type goModule struct {
	dir      string // below the root, with slashes; "." for the core
	path     string
	requires []string // paths of modules of the repository
	released bool     // whether it gets tags: it is in the replace directives of go.work
}

// tag returns the name of the module's tag for a version, as the go command looks for it.
func (m *goModule) tag(version string) string { return path.Join(m.dir, version) }

// modulesIn lists the modules of a tree, each after those that it requires.
func modulesIn(root string) ([]*goModule, error) {
	work, err := readWork(root)
	if err != nil {
		return nil, err
	}
	released := map[string]bool{}
	for _, r := range work.Replace {
		released[r.Old.Path] = true
	}
	files, err := sources(root)
	if err != nil {
		return nil, err
	}
	byPath := map[string]*goModule{}
	parsed := map[string]*modfile.File{}
	for _, name := range files {
		if path.Base(name) != "go.mod" || strings.Contains(name, "testdata/") {
			continue
		}
		file, err := readMod(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		p := file.Module.Mod.Path
		byPath[p], parsed[p] = &goModule{dir: path.Dir(name), path: p, released: released[p]}, file
	}
	for p, m := range byPath {
		for _, r := range parsed[p].Require {
			if byPath[r.Mod.Path] != nil {
				m.requires = append(m.requires, r.Mod.Path)
			}
		}
	}
	for p := range released {
		if byPath[p] == nil {
			return nil, fmt.Errorf("go.work replaces %s, and no go.mod is of that module", p)
		}
	}
	return ordered(byPath)
}

// ordered sorts modules so that each follows those that it requires.
func ordered(byPath map[string]*goModule) ([]*goModule, error) {
	var paths []string
	for p := range byPath {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	var all []*goModule
	done := map[string]bool{}
	for len(all) < len(paths) {
		before := len(all)
		for _, p := range paths {
			m := byPath[p]
			ready := !slices.ContainsFunc(m.requires, func(r string) bool { return !done[r] })
			if !done[p] && ready {
				done[p] = true
				all = append(all, m)
			}
		}
		if len(all) == before {
			return nil, fmt.Errorf("modules require one another: %s", strings.Join(paths, ", "))
		}
	}
	for _, m := range all {
		for _, r := range m.requires {
			if m.released && !byPath[r].released {
				return nil, fmt.Errorf("%s requires %s, which is not released", m.path, r)
			}
		}
	}
	return all, nil
}

// A stage is a copy of the tree whose modules require each other at one version, and a proxy that
// serves them.
type stage struct {
	tree, proxy string
	version     string
	modules     []*goModule
	sums        map[string]string // the hashes of modules as they are in go.sum, by path
}

// newStage fills the folder out. prepare may change the copy before the modules are packed.
func newStage(root, out, version string, prepare func(tree string) error) (*stage, error) {
	s := &stage{
		tree: filepath.Join(out, "tree"), proxy: filepath.Join(out, "proxy"), version: version, sums: map[string]string{},
	}
	var err error
	if s.modules, err = modulesIn(root); err != nil {
		return nil, err
	}
	if err := copyTree(root, s.tree); err != nil {
		return nil, err
	}
	if err := prepare(s.tree); err != nil {
		return nil, err
	}
	if err := s.setVersions(); err != nil {
		return nil, err
	}
	for _, m := range s.modules {
		if err := s.setSums(m); err != nil {
			return nil, err
		}
		if !m.released {
			continue
		}
		if err := s.pack(m); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// setVersions writes the version to go.work and all go.mod files.
func (s *stage) setVersions() error {
	work, err := readWork(s.tree)
	if err != nil {
		return err
	}
	for _, r := range work.Replace {
		r.Syntax.Token[slices.Index(r.Syntax.Token, r.Old.Version)] = s.version
	}
	if err := os.WriteFile(filepath.Join(s.tree, "go.work"), modfile.Format(work.Syntax), 0o644); err != nil {
		return err
	}
	for _, m := range s.modules {
		name := filepath.Join(s.tree, m.dir, "go.mod")
		file, err := readMod(name)
		if err != nil {
			return err
		}
		if len(file.Replace) > 0 {
			return fmt.Errorf("%s has a replace directive: go install refuses it, and users' builds ignore it", path.Join(m.dir, "go.mod"))
		}
		for _, p := range m.requires {
			if err := file.AddRequire(p, s.version); err != nil {
				return err
			}
		}
		text, err := file.Format()
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// setSums replaces the lines of the repository's modules in the go.sum of m. Those that m requires
// must have been packed.
func (s *stage) setSums(m *goModule) error {
	if len(m.requires) == 0 {
		return nil
	}
	name := filepath.Join(s.tree, m.dir, "go.sum")
	old, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	lines := strings.SplitAfter(string(old), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool {
		p, _, _ := strings.Cut(line, " ")
		return line == "" || slices.ContainsFunc(s.modules, func(m *goModule) bool { return m.path == p })
	})
	for _, p := range m.requires {
		lines = append(lines, strings.SplitAfter(s.sums[p], "\n")...)
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	slices.SortStableFunc(lines, compareSums)
	return os.WriteFile(name, []byte(strings.Join(lines, "")), 0o644)
}

// compareSums orders lines of go.sum as the go command does: by path, version, and file.
func compareSums(a, b string) int {
	x, y := strings.Fields(a), strings.Fields(b)
	if c := strings.Compare(x[0], y[0]); c != 0 {
		return c
	}
	xv, xfile, _ := strings.Cut(x[1], "/")
	yv, yfile, _ := strings.Cut(y[1], "/")
	if c := semver.Compare(xv, yv); c != 0 {
		return c
	}
	return strings.Compare(xfile, yfile)
}

// pack puts m into the proxy.
func (s *stage) pack(m *goModule) error {
	dir := filepath.Join(s.tree, m.dir)
	// The go command adds the repository's license to a module that has none.
	license := filepath.Join(dir, "LICENSE")
	if _, err := os.Stat(license); os.IsNotExist(err) {
		if err := copyFile(filepath.Join(s.tree, "LICENSE"), license); err != nil {
			return err
		}
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := modzip.CreateFromDir(&packed, module.Version{Path: m.path, Version: s.version}, dir); err != nil {
		return err
	}
	s.sums[m.path], err = publish(s.proxy, m.path, s.version, mod, packed.Bytes())
	return err
}

// publish adds a version of a module to the proxy in dir, as "go help goproxy" describes it, and
// returns its lines for go.sum.
func publish(dir, modPath, version string, mod, packed []byte) (sums string, err error) {
	escaped, err := module.EscapePath(modPath)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, time.Now().UTC()})
	if err != nil {
		return "", err
	}
	list, err := os.ReadFile(filepath.Join(dir, "list"))
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	files := map[string][]byte{
		version + ".info": info, version + ".mod": mod, version + ".zip": packed, "list": append(list, version+"\n"...),
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return "", err
		}
	}
	hash, err := dirhash.HashZip(filepath.Join(dir, version+".zip"), dirhash.Hash1)
	if err != nil {
		return "", err
	}
	modHash, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(mod)), nil
	})
	return fmt.Sprintf("%s %s %s\n%[1]s %[2]s/go.mod %[4]s\n", modPath, version, hash, modHash), err
}

// copyTree copies the files that git has or would add, and the objects.
func copyTree(from, to string) error {
	files, err := sources(from)
	if err != nil {
		return err
	}
	for _, name := range append(files, objects(from)...) {
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

// objects lists the files that ci/nocgo -objects makes. Only the tags of a release have them.
func objects(root string) []string {
	made, _ := filepath.Glob(filepath.Join(root, "nocgo", "internal", "object", "object*")) // the pattern is constant
	for i, name := range made {
		made[i] = filepath.Join("nocgo", "internal", "object", filepath.Base(name))
	}
	return made
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}

// sources lists the files of a tree that git has or would add, and that exist.
func sources(root string) ([]string, error) {
	out, err := git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	files := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	return slices.DeleteFunc(files, func(name string) bool {
		info, err := os.Lstat(filepath.Join(root, name))
		return err != nil || !info.Mode().IsRegular()
	}), nil
}

func readMod(name string) (*modfile.File, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(name, data, nil)
}

func readWork(root string) (*modfile.WorkFile, error) {
	name := filepath.Join(root, "go.work")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.ParseWork(name, data, nil)
}
