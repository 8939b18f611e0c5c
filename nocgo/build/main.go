// Build makes Go bindings and objects for builds of the module ossl without cgo. Its input is the C code in
// internal/libssl. Each processor has its own object.
//
//	go run github.com/ossl-go/ossl/nocgo/build [-arch LIST] -o FOLDER
//
// With -o it writes a package of your own, in a module that requires ossl/nocgo, so that no binary of others
// is linked: import that package for its effect, in place of github.com/ossl-go/ossl/nocgo. The C compiler
// is $CC, for each processor $CC_amd64 and $CC_arm64, or cc. Equal sources and compilers make equal objects.
// The other flags are for ossl itself: ci/nocgo.
package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const (
	corePath = "github.com/ossl-go/ossl"
	linkPath = corePath + "/nocgo/link"
)

func main() {
	writeBindings := flag.Bool("bindings", false, "write internal/libssl/"+bindings+", for a change of the C sources")
	objects := flag.String("objects", "", "the `folder` to write the objects to, for ossl/nocgo itself")
	out := flag.String("o", "", "the `folder` of the package to write")
	arch := flag.String("arch", runtime.GOARCH, "the processors, as `list` of amd64 and arm64, separated by commas")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: build [-arch LIST] -o FOLDER")
		fmt.Fprintln(flag.CommandLine.Output(), "       build -bindings | [-arch LIST] -objects FOLDER")
		flag.PrintDefaults()
	}
	flag.Parse()
	archs := strings.Split(*arch, ",")
	var err error
	switch {
	case flag.NArg() == 0 && *writeBindings && *out == "" && *objects == "":
		err = makeBindings()
	case flag.NArg() == 0 && !*writeBindings && *out == "" && *objects != "":
		err = makeObjects(*objects, archs)
	case flag.NArg() == 0 && !*writeBindings && *out != "" && *objects == "":
		err = makePackage(*out, archs)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

// A tree is the C sources and cgo's output for them.
type tree struct {
	dir       string // internal/libssl
	scratch   string
	hash      string
	types     string
	functions []function
}

// open runs cgo on the sources of the core that the go command finds.
func open(arch string, cc []string) (*tree, error) {
	dir, err := output("", nil, "go", "list", "-f", "{{.Dir}}", corePath+"/internal/libssl")
	if err != nil {
		return nil, err
	}
	t := &tree{dir: dir}
	if t.hash, err = hashOf(dir); err != nil {
		return nil, err
	}
	if t.scratch, err = os.MkdirTemp("", "ossl-nocgo-"); err != nil {
		return nil, err
	}
	_, err = output(dir, []string{"GOARCH=" + arch, "GOOS=linux", "CGO_ENABLED=1", "CC=" + strings.Join(cc, " ")},
		"go", "tool", "cgo", "-objdir", t.scratch, "-importpath", corePath+"/internal/libssl", "-trimpath", dir+"=>.",
		"--", "-I", ".", "-O2", "-fsigned-char", cgoSource) // char is unsigned on arm64: equal bindings for all
	if err == nil {
		var types []byte
		types, err = os.ReadFile(filepath.Join(t.scratch, "_cgo_gotypes.go"))
		t.types = named(string(types))
	}
	if err == nil {
		t.functions, err = functionsOf(t.types)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *tree) close() { os.RemoveAll(t.scratch) }

// sources returns the names of the C sources and headers that are compiled.
func sources(dir string) ([]string, error) {
	var names []string
	for _, pattern := range []string{"*.c", "*.h"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			if name := filepath.Base(file); name != "dl_windows.c" && name != "faults.c" {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no C sources", dir)
	}
	return names, nil
}

// hashOf returns the hash of an object's sources.
func hashOf(dir string) (string, error) {
	names, err := sources(dir)
	if err != nil {
		return "", err
	}
	all := sha256.New()
	for _, name := range append(names, cgoSource) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(all, "%s %x\n", name, sha256.Sum256(text))
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

// compiler returns the C compiler for a processor.
func compiler(arch string) []string {
	return strings.Fields(cmp.Or(os.Getenv("CC_"+arch), os.Getenv("CC"), "cc"))
}

func makeBindings() error {
	t, err := open(runtime.GOARCH, compiler(runtime.GOARCH))
	if err != nil {
		return err
	}
	defer t.close()
	text, err := bindingsOf(t.types, t.functions, t.hash)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.dir, bindings), text, 0o644)
}

// output runs a command, and returns its standard output without the last line end.
func output(dir string, env []string, command string, args ...string) (string, error) {
	cmd := exec.Command(command, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(append([]string{command}, args[:min(2, len(args))]...), " "), err)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// makePackage writes a package that a program imports, and below it the one with the objects, which a build
// with cgo must not have.
func makePackage(dir string, archs []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	imported, err := importPath(dir)
	if err != nil {
		return err
	}
	if err := makeObjects(filepath.Join(dir, "object"), archs); err != nil {
		return err
	}
	name := strings.ReplaceAll(path.Base(imported), "-", "_")
	for file, text := range map[string]string{
		"doc.go": fmt.Sprintf("// Package %[1]s has ossl's C code for builds without cgo. Ossl/nocgo/build made it.\n"+
			"package %[1]s\n", name),
		"link.go": fmt.Sprintf("//go:build !cgo && linux && (amd64 || arm64)\n\npackage %s\n\nimport _ %q\n", name, imported+"/object"),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// importPath returns the import path of a folder, which may be empty.
func importPath(dir string) (string, error) {
	mod, err := output(dir, nil, "go", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	if mod == "" || mod == os.DevNull {
		return "", fmt.Errorf("%s is not in a module", dir)
	}
	text, err := output(dir, nil, "go", "mod", "edit", "-json", mod)
	if err != nil {
		return "", err
	}
	var file struct{ Module struct{ Path string } }
	if err := json.Unmarshal([]byte(text), &file); err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	below, err := filepath.Rel(filepath.Dir(mod), dir)
	return path.Join(file.Module.Path, filepath.ToSlash(below)), err
}

// makeObjects writes the package with an object for each processor.
func makeObjects(dir string, archs []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files := map[string][]byte{}
	for _, arch := range archs {
		if !slices.Contains([]string{"amd64", "arm64"}, arch) {
			return fmt.Errorf("no object can be made for %q: amd64 and arm64 are known", arch)
		}
		if err := addObject(files, arch); err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
	}
	files["object.go"] = []byte(packageSource)
	files["object.s"] = []byte(assemblySource)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
