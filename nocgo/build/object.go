package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// compile has the compiler's flags. With them, the object depends on no folder and no day, and Go's linker
// can link it.
var compile = []string{"-c", "-O2", "-fPIC", "-fvisibility=hidden", "-g0", "-w", "-fno-asynchronous-unwind-tables",
	"-fno-unwind-tables", "-fno-stack-protector", "-frandom-seed=ossl", "-Werror=date-time",
	"-D_cgo_topofstack=ossl_top_of_stack", "-I."}

// moreFor are more flags for a processor: Go's programs have no libgcc, which has arm64's atomics.
var moreFor = map[string][]string{"arm64": {"-mno-outline-atomics"}}

// libraries are those of the C library that have the functions whose names begin so. musl's loader takes
// all these names for itself; glibc has all in libc.so.6 since 2.34.
var libraries = []struct{ prefix, name string }{
	{"dl", "libdl.so.2"}, {"pthread_", "libpthread.so.0"}, {"", "libc.so.6"},
}

// refused are functions of glibc whose unversioned name means an old version that works otherwise.
var refused = []string{"pthread_cond_", "pthread_attr_", "sem_", "regexec"}

// addObject compiles for a processor, and adds the files of the package.
func addObject(files map[string][]byte, arch string) error {
	cc := compiler(arch)
	t, err := open(arch, cc)
	if err != nil {
		return err
	}
	defer t.close()
	if have, err := os.ReadFile(filepath.Join(t.dir, bindings)); err != nil {
		return err
	} else if !bytes.Contains(have, []byte(t.hash)) {
		return fmt.Errorf("%s isn't made of these C sources: run ci/nocgo -bindings", bindings)
	} else if want, err := bindingsOf(t.types, t.functions, t.hash); err != nil {
		return err
	} else if !bytes.Equal(have, want) {
		return fmt.Errorf("%s is not what this compiler, its headers and this toolchain make of the C sources", bindings)
	}
	// The C sources are compiled in a folder of their own, so that no path gets into the object.
	names, err := sources(t.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(t.dir, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(t.scratch, name), text, 0o644); err != nil {
			return err
		}
	}
	wrappers, err := wrappersOf(t.scratch, t.functions, t.hash)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(t.scratch, "nocgo.c"), []byte(wrappers), 0o644); err != nil {
		return err
	}
	link := []string{"-r", "-nostdlib", "-o", "all.o"}
	for _, name := range append(slices.Clone(names), "nocgo.c") {
		if filepath.Ext(name) != ".c" {
			continue
		}
		o := strings.TrimSuffix(name, ".c") + ".o"
		args := slices.Concat(cc[1:], compile, moreFor[arch], []string{name, "-o", o})
		if _, err := output(t.scratch, nil, cc[0], args...); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		link = append(link, o)
	}
	if _, err := output(t.scratch, nil, cc[0], slices.Concat(cc[1:], link)...); err != nil {
		return err
	}
	object, err := os.ReadFile(filepath.Join(t.scratch, "all.o"))
	if err != nil {
		return err
	}
	imports, err := importsOf(object)
	if err != nil {
		return err
	}
	files["object_linux_"+arch+".syso"] = object
	files["object_linux_"+arch+".go"] = fmt.Appendf(nil, archSource, sha256.Sum256(object), imports)
	return nil
}

// importsOf returns the directives by which the linker finds the C library's functions for an object.
func importsOf(object []byte) (string, error) {
	file, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return "", err
	}
	for _, s := range file.Sections {
		if s.Flags&elf.SHF_TLS != 0 {
			return "", fmt.Errorf("the object has thread-local variables (%s), which Go's linker doesn't link", s.Name)
		}
	}
	symbols, err := file.Symbols()
	if err != nil {
		return "", err
	}
	slices.SortFunc(symbols, func(a, b elf.Symbol) int { return cmp.Compare(a.Name, b.Name) })
	var out strings.Builder
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF || s.Name == "" || s.Name == "_GLOBAL_OFFSET_TABLE_" {
			continue
		}
		for _, prefix := range refused {
			if strings.HasPrefix(s.Name, prefix) {
				return "", fmt.Errorf("the object calls %s, whose meaning depends on a symbol version", s.Name)
			}
		}
		for _, library := range libraries {
			if strings.HasPrefix(s.Name, library.prefix) {
				fmt.Fprintf(&out, "//go:cgo_import_dynamic %s %s %q\n", s.Name, s.Name, library.name)
				break
			}
		}
	}
	return out.String(), nil
}

// objectSource is C that follows cgo's wrappers.
const objectSource = `
#include <stdint.h>
#include <stdlib.h>

/* What the object and package link know of each other; Go's struct is in internal/libssl/nocgo.go. */
extern struct {
	void *const *table;
	uint64_t functions;
	const char *sources;
	char *(*top_of_stack)(void);
	void (*crosscall2)(void (*go)(void *), void *args, int size, size_t context);
	void (*passphrase)(void *);
} ossl_nocgo_object;

char *ossl_top_of_stack(void) { return ossl_nocgo_object.top_of_stack(); }

int32_t osslGoPassphrase(uintptr_t handle, uint8_t *buf, int32_t size)
{
	struct {
		uintptr_t handle;
		uint8_t *buf;
		int32_t size, n;
	} args = {handle, buf, size, 0};

	ossl_nocgo_object.crosscall2(ossl_nocgo_object.passphrase, &args, sizeof args, 0);
	return args.n;
}

static void allocate(void *v)
{
	struct {
		size_t n;
		void *r;
	} *args = v;

	args->r = malloc(args->n ? args->n : 1);
}
`

const objectEnd = "__typeof__(ossl_nocgo_object) ossl_nocgo_object = {table, %d, \"%s\", 0, 0, 0};\n"

const packageSource = `// Code generated by ossl/nocgo/build; DO NOT EDIT.

//go:build !cgo

// Package object has ossl's C code, compiled, for programs that are built without cgo: import it for its
// effect.
package object

import "` + linkPath + `"

// Of the object: object.s.
var object, topOfStack, crosscall2 uintptr

// MadeByNocgoBuild is there if the objects are.
const MadeByNocgoBuild = true

func init() { link.Object(object, topOfStack, crosscall2, SHA256) }
`

const assemblySource = `// Code generated by ossl/nocgo/build; DO NOT EDIT.

//go:build !cgo && linux && (amd64 || arm64)

#include "textflag.h"

DATA ·object(SB)/8, $ossl_nocgo_object(SB)
GLOBL ·object(SB), NOPTR|RODATA, $8
DATA ·topOfStack(SB)/8, $_cgo_topofstack(SB)
GLOBL ·topOfStack(SB), NOPTR|RODATA, $8
DATA ·crosscall2(SB)/8, $crosscall2(SB)
GLOBL ·crosscall2(SB), NOPTR|RODATA, $8
`

const archSource = `// Code generated by ossl/nocgo/build; DO NOT EDIT.

//go:build !cgo

package object

// SHA256 is the object's hash.
const SHA256 = "%x"

%s`
