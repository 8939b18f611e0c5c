/* The loader: finds the libraries at run time and fills the function table. */

#include "dl.h"
#include "faults.h"
#include "private.h"

#include <stdio.h>
#include <string.h>

ossl_table ossl_fn;

size_t ossl_report_size(void)
{
	enum { REST = 4096 }; /* for the paths and other texts of a report */
#define NAME_SIZE(lib_name, since, need, ret, name, params) + sizeof(#name)
	return REST OSSL_API(NAME_SIZE);
#undef NAME_SIZE
}

static void append(char *report, size_t size, size_t *used, const char *text)
{
	if (*used < size)
		*used += (size_t)snprintf(report + *used, size - *used, "%s", text);
}

/* Fills t. Returns 0, or -1 with the reason in report. */
static int find_symbols(ossl_table *t, void *ssl, void *crypto, char *report, size_t size)
{
	unsigned long version;
	const char *newer = NULL;
	size_t used = 0;
	int newer_count = 0;

	memset(t, 0, sizeof *t);
	*(void **)&t->OpenSSL_version_num = crypto ? dl_symbol(crypto, "OpenSSL_version_num") : NULL;
	if (!t->OpenSSL_version_num) {
		snprintf(report, size, "no OpenSSL_version_num: not OpenSSL 1.1.1 or later");
		return -1;
	}
	version = t->OpenSSL_version_num(); /* libcrypto's: libssl has no function for its own */
	if (version < OSSL_V1_1_1) {
		snprintf(report, size, "version %#lx is older than 1.1.1", version);
		return -1;
	}
	report[0] = 0;
#define REQUIRED 1
#define OPTIONAL 0
#define ONLY_1_1_1 (version < OSSL_V3_0)
#define HANDLE_SSL ssl
#define HANDLE_CRYPTO crypto
#define IN_SSL(lib_name) (#lib_name[0] == 'S')
#define LOAD(lib_name, since, need, ret, name, params) \
	*(void **)&t->name = dl_symbol(HANDLE_##lib_name, #name); \
	if (!t->name && (need) && version >= (unsigned long)(since)) { \
		append(report, size, &used, used ? " " : "missing symbols: "); \
		append(report, size, &used, #name); \
	} \
	if (t->name && IN_SSL(lib_name) && version < (unsigned long)(since)) { \
		newer = #name; \
		newer_count++; \
	}
	OSSL_API(LOAD)
#undef LOAD
#undef REQUIRED
#undef OPTIONAL
#undef ONLY_1_1_1
#undef HANDLE_SSL
#undef HANDLE_CRYPTO
#undef IN_SSL
	if (used > 0)
		return -1;
	/* A distribution may have backported a single symbol to its older version. In ELF, symbol
	 * versions already keep a newer libssl from an older libcrypto. */
	if (newer_count > 1) {
		snprintf(report, size, "not a matching pair: libcrypto is %s, and libssl has %s, which is newer",
			t->OpenSSL_version(OSSL_OPENSSL_VERSION), newer);
		return OSSL_LOAD_MISMATCH;
	}
	return 0;
}

/* The table that ossl_load has filled and ossl_use will use. */
static ossl_table found;

int ossl_load(const char *path, const char *crypto_path, const char *crypto_name, ossl_library *lib, char *report, size_t size)
{
	const char *name;
	const void *at;
	void *ssl;
	int status;
	size_t used;

	lib->crypto_before = crypto_name && dl_is_loaded(crypto_name);
	lib->ssl_before = dl_is_loaded(path) != 0;
	/* libssl names its libcrypto by soname: it binds to a library that is already loaded under that
	 * name. */
	if (crypto_path && !dl_open(crypto_path, report, size))
		return -1;
	ssl = dl_open(path, report, size);
	if (!ssl)
		return -1;
	status = find_symbols(&found, ssl, dl_crypto(ssl), report, size);
	if (status != 0)
		return status;
#ifdef OSSL_FAULTS
	faults_take(dl_symbol(dl_crypto(ssl), "CRYPTO_set_mem_functions"), dl_symbol(dl_crypto(ssl), "OPENSSL_thread_stop"));
#endif
	lib->version = found.OpenSSL_version_num();
	lib->text = found.OpenSSL_version(OSSL_OPENSSL_VERSION);
	if (dl_path(*(void **)&found.SSL_new, lib->ssl, sizeof lib->ssl) != 0 ||
		dl_path(*(void **)&found.OpenSSL_version_num, lib->crypto, sizeof lib->crypto) != 0) {
		snprintf(report, size, "can't determine the path of the library");
		return -1;
	}
	name = dl_foreign(ssl, *(void **)&found.OpenSSL_version_num, &at);
	if (!name)
		return 0;
	used = (size_t)snprintf(report, size,
		"not a matching pair: this libssl calls %s, but not its libcrypto's: it is bound to that of ", name);
	if (dl_path(at, report + used, size - used) != 0)
		append(report, size, &used, "an unknown object");
	return OSSL_LOAD_MISMATCH;
}

int ossl_load_begin(void)
{
	/* Without the configuration. The first caller decides about the atexit handler, see below:
	 * errors may initialize it. */
	if (found.OPENSSL_init_crypto(OSSL_OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
		return 0;
	ossl_fn = found; /* no other code uses it before ossl_use */
	return 1;
}

void ossl_load_give_up(void) { memset(&ossl_fn, 0, sizeof ossl_fn); }

int ossl_use(char *report, size_t size)
{
	/* Reads the host's openssl.cnf. No atexit handler: other threads may still be in the library
	 * when Go exits. */
	if (found.OPENSSL_init_ssl(OSSL_OPENSSL_INIT_NO_ATEXIT, NULL) != 1) {
		snprintf(report, size, "OPENSSL_init_ssl failed (a broken openssl.cnf?)");
		return -1;
	}
	if (!ossl_bio_setup() || !occupant_setup()) {
		snprintf(report, size, "out of memory");
		return -1;
	}
	return 0;
}

unsigned long ossl_version(void) { return ossl_fn.OpenSSL_version_num(); }

int ossl_privileged(void) { return dl_privileged(); }

/* glibc's struct mallinfo2, declared here because older C libraries lack it. */
struct heap_info {
	size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

size_t ossl_heap_in_use(void)
{
	struct heap_info (*mallinfo)(void);
	struct heap_info m;

	*(void **)&mallinfo = dl_mallinfo();
	if (!mallinfo)
		return 0;
	m = mallinfo();
	return m.uordblks + m.hblkhd;
}

int ossl_heap_trim(int do_it)
{
	int (*trim)(size_t);

	*(void **)&trim = dl_malloc_trim();
	if (trim && do_it)
		trim(0);
	return trim != NULL;
}
