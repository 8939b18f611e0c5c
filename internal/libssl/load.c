/* The loader: finds the libraries at run time and fills the function table. */

#define _GNU_SOURCE /* dladdr */

#include "private.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ossl_table ossl_fn;

static void report_set(char *report, size_t size, const char *text)
{
	snprintf(report, size, "%s", text ? text : "unknown error");
}

int ossl_load(const char *path, const char *crypto_path, char *report, size_t size)
{
	ossl_table t;
	size_t used = 0;
	unsigned long version;
	void *lib;

	/* libssl names its libcrypto by soname: what is loaded already under that name is what it binds to. */
	if (crypto_path && !dlopen(crypto_path, RTLD_NOW | RTLD_LOCAL)) {
		report_set(report, size, dlerror());
		return -1;
	}
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		report_set(report, size, dlerror());
		return -1;
	}
	/* A lookup by libssl's handle searches what libssl itself depends on, so the pair always matches. */
	memset(&t, 0, sizeof t);
	*(void **)&t.OpenSSL_version_num = dlsym(lib, "OpenSSL_version_num");
	if (!t.OpenSSL_version_num) {
		report_set(report, size, "no OpenSSL_version_num: not OpenSSL 1.1.1 or later");
		return -1;
	}
	version = t.OpenSSL_version_num();
	if (version < OSSL_V1_1_1) {
		snprintf(report, size, "version %#lx is older than 1.1.1", version);
		return -1;
	}
	report[0] = 0;
#define REQUIRED 1
#define OPTIONAL 0
#define ONLY_1_1_1 (version < OSSL_V3_0)
#define LOAD(lib_name, since, need, ret, name, params) \
	*(void **)&t.name = dlsym(lib, #name); \
	if (!t.name && (need) && version >= (unsigned long)(since) && used < size) \
		used += (size_t)snprintf(report + used, size - used, "%s%s", used ? " " : "missing symbols: ", #name);
	OSSL_API(LOAD)
#undef LOAD
#undef REQUIRED
#undef OPTIONAL
#undef ONLY_1_1_1
	if (used)
		return -1;
	/* Reads the host's openssl.cnf. No atexit handler: other threads may still be in the library when Go exits. */
	if (t.OPENSSL_init_ssl(OSSL_OPENSSL_INIT_NO_ATEXIT, NULL) != 1) {
		report_set(report, size, "OPENSSL_init_ssl failed (a broken openssl.cnf?)");
		return -1;
	}
	if (ossl_window_bio)
		ossl_fn.BIO_meth_free(ossl_window_bio);
	ossl_fn = t;
	ossl_window_bio = NULL; /* one that an earlier, refused library made is not this one's */
	if (!ossl_bio_setup()) {
		memset(&ossl_fn, 0, sizeof ossl_fn);
		report_set(report, size, "out of memory");
		return -1;
	}
	return 0;
}

int ossl_real_path(const void *address, char *to, size_t size)
{
	Dl_info info;
	char resolved[PATH_MAX];

	if (!dladdr(address, &info) || !info.dli_fname)
		return -1;
	snprintf(to, size, "%s", realpath(info.dli_fname, resolved) ? resolved : info.dli_fname);
	return 0;
}

int ossl_paths(char *ssl, char *crypto, size_t size)
{
	if (ossl_real_path(*(void **)&ossl_fn.SSL_new, ssl, size) != 0)
		return -1;
	return ossl_real_path(*(void **)&ossl_fn.OpenSSL_version_num, crypto, size);
}

unsigned long ossl_version(void) { return ossl_fn.OpenSSL_version_num(); }

const char *ossl_version_text(int type) { return ossl_fn.OpenSSL_version(type); }

const char *ossl_error_reason(unsigned long code) { return ossl_fn.ERR_reason_error_string(code); }

const char *ossl_error_library(unsigned long code) { return ossl_fn.ERR_lib_error_string(code); }

/* glibc's struct mallinfo2, declared here because older C libraries lack it. */
struct heap_info {
	size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

size_t ossl_heap_in_use(void)
{
	struct heap_info (*mallinfo)(void);
	struct heap_info m;

	*(void **)&mallinfo = dlsym(RTLD_DEFAULT, "mallinfo2");
	if (!mallinfo)
		return 0;
	m = mallinfo();
	return m.uordblks + m.hblkhd;
}
