//go:build cgo || ossl_nocgo

package libssl_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/libssl"
)

// askInConfig replaces string functions that libssl calls while it executes openssl.cnf's policy,
// with the SSL_CTX's library context as the thread's default one. They ask for random bytes then.
const askInConfig = `
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static __thread int busy;
static void ask(void)
{
	void *crypto = dlopen(getenv("OSSL_TEST_CRYPTO"), RTLD_LAZY | RTLD_NOLOAD);
	unsigned char to[16];
	FILE *asked;
	if (!crypto)
		return;
	void *(*set)(void *) = dlsym(crypto, "OSSL_LIB_CTX_set0_default");
	void *(*global)(void) = dlsym(crypto, "OSSL_LIB_CTX_get0_global_default");
	int (*bytes)(void *, unsigned char *, size_t, unsigned) = dlsym(crypto, "RAND_bytes_ex");
	if (set(NULL) == global())
		return;
	asked = fopen(getenv("OSSL_TEST_ASKED"), "w");
	if (!asked || bytes(NULL, to, sizeof to, 0) != 1)
		abort();
	fclose(asked);
}
static void seen(void)
{
	if (!busy && getenv("OSSL_TEST_CRYPTO")) {
		busy = 1;
		ask();
		busy = 0;
	}
}
int strcmp(const char *a, const char *b)
{
	seen();
	for (; *a && *a == *b; a++, b++)
		;
	return (unsigned char)*a - (unsigned char)*b;
}
int strncmp(const char *a, const char *b, size_t n)
{
	seen();
	for (; n > 0; n--, a++, b++)
		if (*a != *b || !*a)
			return (unsigned char)*a - (unsigned char)*b;
	return 0;
}
`

// TestSlimRandomAsDefault asks for random bytes while the slim library context is the thread's
// default one: its generator must not call itself.
func TestSlimRandomAsDefault(t *testing.T) {
	lib := slimLibrary(t)
	if lib == nil {
		return
	}
	if lib.Number >= 0x40000000 {
		t.Skip("in OpenSSL 4.0 none of the functions that askInConfig stands before is reached there")
	}
	cc, err := exec.LookPath(cmp.Or(os.Getenv("CC"), "cc"))
	if err != nil {
		t.Skip("cc, or what CC names, is not installed")
	}
	dir := t.TempDir()
	library, asked := filepath.Join(dir, "ask.so"), filepath.Join(dir, "asked")
	cmd := exec.Command(cc, "-shared", "-fPIC", "-fno-builtin", "-x", "c", "-", "-o", library)
	cmd.Stdin = strings.NewReader(askInConfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	policy := "CipherString = ECDHE+AESGCM\nCiphersuites = TLS_AES_128_GCM_SHA256\n"
	slim, _ := slimReport(t, lib, slimMain+"ssl_conf = tls\n"+slimTLS+policy, "LD_PRELOAD="+library,
		"OSSL_TEST_CRYPTO="+lib.CryptoPath, "OSSL_TEST_ASKED="+asked, libssl.EnvLibrary+"="+lib.Path,
		// AddressSanitizer's own library must be the first.
		"ASAN_OPTIONS="+os.Getenv("ASAN_OPTIONS")+":verify_asan_link_order=0")
	if !slim {
		t.Error("slim is false")
	}
	if _, err := os.Stat(asked); err != nil {
		t.Error("not asked: ", err)
	}
}
