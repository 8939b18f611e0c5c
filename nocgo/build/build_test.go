package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestBindings: the bindings are those of the C sources.
func TestBindings(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("cgo's output is Linux's")
	}
	tree, err := open(runtime.GOARCH, compiler(runtime.GOARCH))
	if err != nil {
		t.Fatal(err)
	}
	defer tree.close()
	want, err := bindingsOf(tree.types, tree.functions, tree.hash)
	if err != nil {
		t.Fatal(err)
	}
	if have, err := os.ReadFile(filepath.Join(tree.dir, bindings)); err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s isn't what the C sources give: run ci/nocgo -bindings (%v)", bindings, err)
	}
	for _, f := range tree.functions {
		// Only this one may call Go, in which case the goroutine's stack may move.
		if f.name == "ossl_store_load" && !f.escapes {
			t.Error("arguments of ossl_store_load may be on the stack")
		}
	}
}

// TestRefusedObjects: objects that Go's linker can't link, or that would call another function than meant.
func TestRefusedObjects(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("objects are Linux's")
	}
	for text, want := range map[string]string{
		"__thread int v; int f(void) { return v; }":                                            "thread-local variables",
		"#include <pthread.h>\nint f(pthread_cond_t *c) { return pthread_cond_broadcast(c); }": "pthread_cond_broadcast, whose meaning",
		"#include <stdlib.h>\nvoid *f(void) { return malloc(1); }":                             "",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "f.c"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cc := compiler(runtime.GOARCH)
		cmd := exec.Command(cc[0], append(cc[1:], "-c", "-fPIC", "f.c")...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		object, err := os.ReadFile(filepath.Join(dir, "f.o"))
		if err != nil {
			t.Fatal(err)
		}
		imports, err := importsOf(object)
		switch {
		case want == "" && (err != nil || !strings.Contains(imports, `//go:cgo_import_dynamic malloc malloc "libc.so.6"`)):
			t.Errorf("%q: %v, %s", text, err, imports)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: error %v; want %q", text, err, want)
		}
	}
}
