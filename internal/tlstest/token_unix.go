//go:build unix

package tlstest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const (
	envToken    = "OSSL_TEST_PKCS11"          // the token's URI
	envPIN      = "OSSL_TEST_PKCS11_PIN"      // its PIN
	envProvider = "OSSL_TEST_PKCS11_PROVIDER" // pkcs11-provider's module
	envGateSO   = "OSSL_TEST_PKCS11_GATE_SO"  // keys/testdata/pkcs11/gate.c, built
	envActive   = "OSSL_TEST_PKCS11_ACTIVE"   // if not empty, openssl.cnf activates the provider
)

// A Token is a PKCS #11 token whose behaviour tests control through the module of
// keys/testdata/pkcs11/gate.c. ci/pkcs11 makes it.
type Token struct {
	URI    string
	PIN    string
	Active bool // openssl.cnf activates the provider

	t   testing.TB
	dir string // of gate.c's files
}

// NewToken configures OpenSSL, which must not be loaded yet, for the token, as described in
// docs/KEYS.md. It skips the test if the environment names no token.
func NewToken(t testing.TB) *Token {
	t.Helper()
	for _, name := range []string{envToken, envPIN, envProvider, envGateSO} {
		if os.Getenv(name) == "" {
			t.Skipf("%s names nothing: softhsm2 and OpenSSL's pkcs11 provider not found (ci/pkcs11 finds them)", name)
		}
	}
	k := &Token{URI: os.Getenv(envToken), PIN: os.Getenv(envPIN), Active: os.Getenv(envActive) != "", t: t, dir: t.TempDir()}
	k.Tell("")
	t.Setenv("OSSL_TEST_PKCS11_GATE", k.dir)
	conf := "openssl_conf = main\n[main]\nproviders = list\n[list]\ndefault = default_provider\npkcs11 = pkcs11_provider\n" +
		"[default_provider]\nactivate = 1\n[pkcs11_provider]\nmodule = " + os.Getenv(envProvider) +
		"\npkcs11-module-path = " + os.Getenv(envGateSO) + "\npkcs11-module-cache-keys = false\n"
	if k.Active {
		conf += "activate = 1\n"
	}
	file := filepath.Join(k.dir, "openssl.cnf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OPENSSL_CONF", file)
	return k
}

// Tell sets how the token signs: see gate.c.
func (k *Token) Tell(what string) {
	if err := os.WriteFile(filepath.Join(k.dir, "gate"), []byte(what), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// Close holds up all signatures until open is called.
func (k *Token) Close() (open func()) {
	f, err := os.Open(filepath.Join(k.dir, "gate"))
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return func() { f.Close() }
}

// Count returns how often an event of a kind that gate.c counts has happened.
func (k *Token) Count(what string) int {
	info, err := os.Stat(filepath.Join(k.dir, what))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return int(info.Size())
}

// Await waits until Count is at least n.
func (k *Token) Await(what string, n int) {
	k.t.Helper()
	for deadline := time.Now().Add(time.Minute); k.Count(what) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			k.t.Fatalf("%s: %d of %d", what, k.Count(what), n)
		}
	}
}
