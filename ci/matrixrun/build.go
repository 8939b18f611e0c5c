//go:build unix

package main

import (
	"bytes"
	"context"
	"debug/elf"
	endian "encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A binary is one package's tests, compiled.
type binary struct {
	pkg, dir, file string
	adapter        bool // of another module than the core
	fips           bool // runs only in the rows for FIPS mode's own tests
	goOnly         bool // doesn't come to OpenSSL, so that its result doesn't depend on a version
}

// boundary is the package by which all others call OpenSSL.
const boundary = "github.com/ossl-go/ossl/internal/libssl"

// terminator is the package of the command that has tests of FIPS mode.
const terminator = "internal/terminator"

// build compiles every package's tests once, for all versions. patterns narrows the core's
// packages.
func (b *testbed) build(ctx context.Context, patterns string, adapters bool) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	list := []string{"./..."}
	if patterns != "" {
		list = strings.Split(patterns, ",")
	}
	core, err := os.Getwd()
	if err != nil {
		return err
	}
	command := filepath.Join(core, "cmd", "ossl") // a module of its own
	if err := b.buildModule(ctx, core, list, false); err != nil {
		return err
	}
	if len(b.binaries) == 0 {
		return fmt.Errorf("no package with tests in %s", strings.Join(list, " "))
	}
	if adapters && patterns == "" && b.sysroot == "" {
		out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output() // the workspace's
		if err != nil {
			return commandError("go list -m", err)
		}
		for _, dir := range strings.Fields(string(out)) {
			if dir == core || dir == command { // the command's tests take long and call few OpenSSL functions themselves
				continue
			}
			if err := b.buildModule(ctx, dir, []string{"./..."}, true); err != nil {
				return err
			}
		}
	}
	if adapters && patterns == "" && b.sysroot == "" {
		before := len(b.binaries)
		if err := b.buildModule(ctx, command, []string{"./" + terminator}, true); err != nil {
			return err
		}
		for i := range b.binaries[before:] {
			b.binaries[before+i].fips = true
		}
	}
	if err := b.compile(ctx, command, "build", "-buildvcs=false", "-o", b.command(), "."); err != nil {
		return err
	}
	return b.wrap(b.command())
}

func (b *testbed) buildModule(ctx context.Context, dir string, patterns []string, adapter bool) error {
	// go list -test lists the main packages of test binaries too: PACKAGE.test.
	const format = `{{.ImportPath}} {{.Name}} {{.Dir}}{{range .Deps}} {{.}}{{end}}`
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-test", "-f", format}, patterns...)...)
	cmd.Dir = dir
	list, err := cmd.Output()
	if err != nil {
		return commandError("go list", err)
	}
	names := map[string]string{} // of packages, by their paths
	var tested []binary
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		if strings.HasPrefix(words[1], "[") {
			continue // a package as the test of another one has it
		}
		names[words[0]] = words[1]
		pkg, ok := strings.CutSuffix(words[0], ".test")
		if !ok || strings.Contains(pkg, "/ci/") {
			continue // no test, or one of the scripts
		}
		tested = append(tested, binary{pkg: pkg, dir: words[2], adapter: adapter, goOnly: !slices.Contains(words, boundary)})
	}
	// One command links several binaries at a time, but names each after the last part of its package's path.
	if err := b.overlay(tested, names); err != nil {
		return err
	}
	for len(tested) > 0 {
		folder, err := os.MkdirTemp(b.dir, "tests")
		if err != nil {
			return err
		}
		args := []string{"test", "-c", "-o", folder + string(filepath.Separator)}
		named := map[string]bool{}
		var later []binary
		for _, t := range tested {
			name := path.Base(t.pkg)
			if named[name] {
				later = append(later, t)
				continue
			}
			named[name] = true
			t.file = filepath.Join(folder, name+".test")
			b.binaries = append(b.binaries, t)
			args = append(args, t.pkg)
		}
		if err := b.compile(ctx, dir, args...); err != nil {
			return err
		}
		for _, t := range b.binaries[len(b.binaries)-len(named):] {
			if err := b.wrap(t.file); err != nil {
				return err
			}
		}
		tested = later
	}
	return nil
}

// compile runs a go command that links its result to the testbed's loader and libraries, or builds
// it for the emulated processor.
func (b *testbed) compile(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go")
	if b.nocgo {
		args = slices.Insert(args, 1, "-tags", nocgoTag, "-overlay", b.overlayFile())
	}
	args = slices.Insert(args, 1, "-ldflags", strings.TrimSpace("-s -w "+b.ldflags())) // half of the time to link
	if b.sysroot == "" {
		if b.nocgo {
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		} else if b.cc != "" {
			cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "CC="+b.cc)
		}
	} else {
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+emulatedArch, "CGO_ENABLED=1", "CC="+emulatedCC)
		if b.nocgo {
			cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
		}
	}
	cmd.Args = append(cmd.Args, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// nocgoTag is the build tag of tests, and of the command, in builds without cgo.
const nocgoTag = "ossl_nocgo"

func (b *testbed) overlayFile() string { return filepath.Join(b.dir, "overlay.json") }

// overlay adds a file to the tests that come to OpenSSL, for builds without cgo: it imports the objects, which
// the modules themselves must not require.
func (b *testbed) overlay(tested []binary, names map[string]string) error {
	if !b.nocgo {
		return nil
	}
	replace := map[string]string{}
	for i, t := range tested {
		if t.goOnly {
			continue
		}
		file := filepath.Join(b.dir, fmt.Sprint("import", i, ".go"))
		text := fmt.Sprintf("package %s_test\n\nimport _ \"github.com/ossl-go/ossl/nocgo\"\n", names[t.pkg])
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		replace[filepath.Join(t.dir, "nocgo_import_test.go")] = file
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(b.overlayFile(), data, 0o600)
}

// useRPath gives a program that Go's own linker has linked DT_RPATH in place of DT_RUNPATH: see ldflags.
func (b *testbed) useRPath(file string) error {
	if !b.nocgo {
		return nil
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	parsed, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return err
	}
	section := parsed.Section(".dynamic")
	if section == nil {
		return nil // it doesn't come to OpenSSL
	}
	for at := section.Offset; at < section.Offset+section.Size; at += 16 {
		if entry := program[at:]; elf.DynTag(endian.LittleEndian.Uint64(entry)) == elf.DT_RUNPATH {
			endian.LittleEndian.PutUint64(entry, uint64(elf.DT_RPATH))
		}
	}
	return os.WriteFile(file, program, 0o700)
}

// The emulated processor, its C compiler, and its emulator.
const (
	emulatedArch = "arm64"
	emulatedCC   = "aarch64-linux-gnu-gcc"
	emulator     = "qemu-aarch64-static"
)

// muslCC links to musl.
const muslCC = "musl-gcc"

// wrap puts a script in place of a program for the emulated processor. Tests that start themselves
// again use the name of the script, and so get the emulator too. Other programs that they start are
// the host's.
func (b *testbed) wrap(file string) error {
	if b.sysroot == "" {
		return b.useRPath(file)
	}
	path, err := exec.LookPath(emulator)
	if err != nil {
		return err
	}
	if strings.ContainsAny(path+b.sysroot, "'\n") {
		return errors.New("a path with a quote in it")
	}
	if err := os.Rename(file, file+"."+emulatedArch); err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' -L '%s' -0 \"$0\" \"$0.%s\" \"$@\"\n", path, b.sysroot, emulatedArch)
	return os.WriteFile(file, []byte(script), 0o700)
}

// commandError adds a command's error output to its exit status.
func commandError(what string, err error) error {
	if exit, ok := err.(*exec.ExitError); ok && len(exit.Stderr) > 0 {
		return fmt.Errorf("%s: %w\n%s", what, err, exit.Stderr)
	}
	return fmt.Errorf("%s: %w", what, err)
}
