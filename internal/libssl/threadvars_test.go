//go:build (cgo || ossl_nocgo) && linux

package libssl_test

import (
	"debug/elf"
	"testing"
)

// TestNoThreadVariables pins a fact that a paused step relies on: libssl and libcrypto have no
// thread-local variables whose address code could keep, only pthread_getspecific(3) variables.
func TestNoThreadVariables(t *testing.T) {
	lib := load(t)
	for _, path := range []string{lib.Path, lib.CryptoPath} {
		file, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range file.Progs {
			if p.Type == elf.PT_TLS {
				t.Errorf("%s has %d bytes of variables for each thread", path, p.Memsz)
			}
		}
		file.Close()
	}
}
