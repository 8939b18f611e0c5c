/*
 * The modules that FIPS mode may use. OpenSSL's own is the provider "fips". The others are providers
 * that call a validated module; each is listed with the marks that its source gives it:
 *
 *   symcryptprovider   microsoft/SymCrypt-OpenSSL, SymCryptProvider/inc/p_scossl_base.h.in and
 *                      src/p_scossl_base.c; the module is libsymcrypt. Azure Linux activates it
 *   libwolfprov        wolfSSL/wolfProvider, src/wp_wolfprov.c; the module is libwolfssl. Only builds
 *                      with wolfCrypt FIPS have this title and fips=yes
 *
 * A name proves nothing: any file can have it, and any provider can declare its algorithms
 * fips=yes. So the other marks are checked as well, and a provider that isn't listed is never used.
 */

#include "fipslist.h"
#include "dl.h"
#include "fips.h"
#include "provider.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fips_listed list[] = {
	{"fips", NULL, "provider=fips", NULL},
	{"symcryptprovider", "symcryptprovider", "provider=symcryptprovider", "SymCryptModuleInit"},
	{"libwolfprov", "wolfSSL Provider FIPS", "provider=wolfprov", "wolfCrypt_GetStatus_fips"},
};

enum { LISTED = sizeof list / sizeof list[0], MAX_NAMES = 1 << 12 };

const fips_listed *const fips_own = &list[0];

static OPENSSL_STACK *providers_of(const CONF *conf)
{
	const char *name = ossl_fn.NCONF_get_string(conf, NULL, "openssl_conf");

	return section_of(conf, name ? ossl_fn.NCONF_get_string(conf, name, "providers") : NULL);
}

const fips_listed *fips_other(const CONF *conf, const char **section)
{
	OPENSSL_STACK *entries = providers_of(conf);
	int i, j;

	for (i = 0; entries && i < ossl_fn.OPENSSL_sk_num(entries); i++) {
		const conf_value *entry = ossl_fn.OPENSSL_sk_value(entries, i);
		provider_entry p = provider_of(conf, entry);

		for (j = 1; j < LISTED; j++)
			if (p.activated && strcmp(p.name, list[j].name) == 0) {
				*section = entry->value;
				return &list[j];
			}
	}
	return NULL;
}

static int is_known(const char *name)
{
	static const char *const known[] = {"default", "base", "legacy", "null", "pkcs11", "tpm2"};
	size_t i;

	for (i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strcmp(name, known[i]) == 0)
			return 1;
	for (i = 0; i < LISTED; i++)
		if (strcmp(name, list[i].name) == 0)
			return 1;
	return 0;
}

char *ossl_fips_unlisted(const CONF *conf)
{
	OPENSSL_STACK *entries = providers_of(conf);
	bytes names = {0};
	int i, ok = 1;

	for (i = 0; entries && ok && i < ossl_fn.OPENSSL_sk_num(entries); i++) {
		provider_entry p = provider_of(conf, ossl_fn.OPENSSL_sk_value(entries, i));

		if (p.activated && !is_known(p.name))
			ok = bytes_append(&names, p.name, strlen(p.name) + 1, MAX_NAMES);
	}
	if (!ok || !names.len || !bytes_append(&names, "", 1, MAX_NAMES))
		bytes_free(&names);
	ossl_fn.ERR_clear_error();
	return (char *)names.data;
}

/* Reports whether the library context has an algorithm with these properties. */
static int has(OSSL_LIB_CTX *lib, char kind, const char *name, const char *properties)
{
	EVP_MD *md;
	EVP_CIPHER *cipher;
	EVP_KDF *kdf;
	EVP_SIGNATURE *signature;

	switch (kind) {
	case 'd':
		md = ossl_fn.EVP_MD_fetch(lib, name, properties);
		ossl_fn.EVP_MD_free(md); /* these take NULL */
		return md != NULL;
	case 'c':
		cipher = ossl_fn.EVP_CIPHER_fetch(lib, name, properties);
		ossl_fn.EVP_CIPHER_free(cipher);
		return cipher != NULL;
	case 'k':
		kdf = ossl_fn.EVP_KDF_fetch(lib, name, properties);
		ossl_fn.EVP_KDF_free(kdf);
		return kdf != NULL;
	default:
		signature = ossl_fn.EVP_SIGNATURE_fetch(lib, name, properties);
		ossl_fn.EVP_SIGNATURE_free(signature);
		return signature != NULL;
	}
}

/* The algorithms that a connection in FIPS mode requires. */
static const struct {
	char kind;
	const char *name;
} needed[] = {
	{'d', "SHA2-256"}, {'d', "SHA2-384"}, {'c', "AES-128-GCM"}, {'c', "AES-256-GCM"}, {'c', "AES-256-CBC"},
	{'k', "TLS13-KDF"}, {'k', "TLS1-PRF"}, {'s', "ECDSA"}, {'s', "RSA"},
};

int fips_is_listed(const fips_listed *l, OSSL_LIB_CTX *lib, OSSL_PROVIDER *p, char *report, size_t size)
{
	char *title = NULL, properties[64], provider[PATH_MAX], core[PATH_MAX];
	OSSL_PARAM params[] = {
		{"name", (unsigned)OSSL_OSSL_PARAM_UTF8_PTR, &title, sizeof title, (size_t)-1},
		{NULL, 0, NULL, 0, 0},
	};
	size_t i;

	if (ossl_fn.OSSL_PROVIDER_get_params(p, params) != 1 || !title || strcmp(title, l->title) != 0) {
		snprintf(report, size, "%s says that it is \"%s\", not \"%s\"", l->name, title ? title : "", l->title);
		return 0;
	}
	snprintf(properties, sizeof properties, "%s,fips=yes", l->property);
	for (i = 0; i < sizeof needed / sizeof needed[0]; i++)
		if (!has(lib, needed[i].kind, needed[i].name, properties)) {
			snprintf(report, size, "%s has no %s with the properties %s", l->name, needed[i].name, properties);
			return 0;
		}
	fips_paths(l, p, provider, core);
	if (!*core) {
		snprintf(report, size, "%s (%s) calls no library that has %s", l->name, provider, l->core);
		return 0;
	}
	return 1;
}

void fips_paths(const fips_listed *l, OSSL_PROVIDER *p, char *provider, char *core)
{
	char unused[256];
	int no_cache;
	const OSSL_ALGORITHM *digests = ossl_fn.OSSL_PROVIDER_query_operation(p, (int)OSSL_OSSL_OP_DIGEST, &no_cache);
	void *lib, *function;

	*provider = *core = 0;
	/* The table is the provider's, even if its functions are not. */
	if (!digests || dl_path(digests, provider, PATH_MAX) != 0 || !l->core)
		return;
	lib = dl_open(provider, unused, sizeof unused); /* it is loaded already */
	function = lib ? dl_symbol(lib, l->core) : NULL; /* also searches the libraries that it needs */
	if (function)
		dl_path(function, core, PATH_MAX);
}

static int comes_from(const fips_listed *l, const EVP_MD *md)
{
	const OSSL_PROVIDER *p = md ? ossl_fn.EVP_MD_get0_provider(md) : NULL;
	const char *name = p ? ossl_fn.OSSL_PROVIDER_get0_name(p) : NULL;

	return name && strcmp(name, l->name) == 0;
}

typedef struct {
	const fips_listed *listed;
	int modules, bases, others;
} provider_count;

static int count_provider(OSSL_PROVIDER *p, void *arg)
{
	provider_count *n = arg;
	const char *name = ossl_fn.OSSL_PROVIDER_get0_name(p);

	if (name && strcmp(name, n->listed->name) == 0)
		n->modules++;
	else if (name && strcmp(name, "base") == 0)
		n->bases++;
	else
		n->others++;
	return 1;
}

int fips_is_tight(const fips_listed *l, OSSL_LIB_CTX *lib)
{
	EVP_MD *good = ossl_fn.EVP_MD_fetch(lib, "SHA2-256", NULL), *bad = ossl_fn.EVP_MD_fetch(lib, "MD5", NULL);
	EVP_CIPHER *chacha = ossl_fn.EVP_CIPHER_fetch(lib, "ChaCha20-Poly1305", NULL);
	provider_count n = {l, 0, 0, 0};
	int tight = comes_from(l, good) && (!bad || (l != fips_own && comes_from(l, bad))) && !chacha;

	if (ossl_fn.OSSL_PROVIDER_do_all(lib, count_provider, &n) != 1 || n.modules != 1 || n.bases != 1 || n.others)
		tight = 0;

	ossl_fn.EVP_MD_free(good);
	ossl_fn.EVP_MD_free(bad);
	ossl_fn.EVP_CIPHER_free(chacha);
	return tight;
}
