/*
 * Keys and certificates by store URI, ossl_store(7), and operations of keys that stay where OpenSSL
 * found them.
 */

#include "store.h"
#include "signer.h"

#include <stdlib.h>
#include <string.h>

/* An ossl_key is an EVP_PKEY under another name, so that Go code uses no OpenSSL names. */
static EVP_PKEY *pkey_of(ossl_key *key) { return (EVP_PKEY *)key; }

enum { MAX_CERTS = 1 << 24, MAX_OBJECTS = 1 << 16 };

/* Calls into Go: store_calls.go. Returns the passphrase's length in buf, 0 for none. */
extern int32_t osslGoPassphrase(uintptr_t ask, uint8_t *buf, int32_t size);

typedef struct {
	uintptr_t ask;
	int unanswered; /* since this was reset */
} asking;

/*
 * A pem_password_cb. No passphrase is an empty answer, not a failure: after a failure
 * pkcs11-provider asks at the terminal.
 */
static int passphrase(char *buf, int size, int writing, void *arg)
{
	asking *a = arg;
	int32_t n = writing ? 0 : osslGoPassphrase(a->ask, (uint8_t *)buf, size);

	if (n > 0 && n <= size)
		return n;
	a->unanswered = 1;
	return 0;
}

/* 3.0 added OSSL_STORE_INFO_PUBKEY and so changed the numbers of the following types. */
static int info_type(long since_3_0)
{
	return (int)(ossl_fn.OpenSSL_version_num() < OSSL_V3_0 ? since_3_0 - 1 : since_3_0);
}

/* Reports whether there is no loader for the URI's scheme. */
static int is_unserved(const char *uri)
{
	const char *end = strchr(uri, ':');
	char scheme[64];
	OSSL_STORE_LOADER *loader;

	if (!end || (size_t)(end - uri) >= sizeof scheme || !ossl_fn.OSSL_STORE_LOADER_fetch)
		return 0;
	memcpy(scheme, uri, (size_t)(end - uri));
	scheme[end - uri] = 0;
	loader = ossl_fn.OSSL_STORE_LOADER_fetch(NULL, scheme, NULL);
	if (loader)
		ossl_fn.OSSL_STORE_LOADER_free(loader);
	return !loader;
}

/*
 * Reports whether two keys have the same public half: 1 or 0, -1 on failure. A token may have a key
 * twice: pkcs11-provider keeps copies in its session.
 */
static int same(ossl_key *a, ossl_key *b)
{
	unsigned char *x = NULL, *y = NULL;
	int n = ossl_fn.i2d_PUBKEY(pkey_of(a), &x), m = ossl_fn.i2d_PUBKEY(pkey_of(b), &y);
	int equal = n <= 0 || m <= 0 ? -1 : n == m && memcmp(x, y, (size_t)n) == 0;

	ossl_fn.CRYPTO_free(x, __FILE__, __LINE__);
	ossl_fn.CRYPTO_free(y, __FILE__, __LINE__);
	return equal;
}

static int take_key(ossl_loaded *loaded, ossl_key *key)
{
	int equal;

	if (!key)
		return 0;
	if (!loaded->key) {
		loaded->key = key;
		loaded->keys = 1;
		return 1;
	}
	equal = same(loaded->key, key);
	if (equal == 0)
		loaded->keys++;
	ossl_key_free(key);
	return equal >= 0;
}

/* Adds one object of the store. Returns 1 or 0. */
static int take(int what, ossl_loaded *loaded, bytes *certs, const OSSL_STORE_INFO *info)
{
	int type = ossl_fn.OSSL_STORE_INFO_get_type(info), ok;
	X509 *x;

	if (type == OSSL_OSSL_STORE_INFO_NAME) {
		loaded->names++;
		return 1;
	}
	if (what == OSSL_STORE_KEYS)
		return type != info_type(OSSL_OSSL_STORE_INFO_PKEY) ||
			take_key(loaded, (ossl_key *)ossl_fn.OSSL_STORE_INFO_get1_PKEY(info));
	if (type != info_type(OSSL_OSSL_STORE_INFO_CERT))
		return 1;
	x = ossl_fn.OSSL_STORE_INFO_get1_CERT(info);
	ok = x && cert_pack(certs, x, MAX_CERTS);
	ossl_fn.X509_free(x);
	return ok;
}

/*
 * Reports whether the thread's error queue has an error. For text behind the last PEM block, 1.1.1
 * also adds one, as for a block without a beginning: ERR_LIB_PEM, PEM_R_NO_START_LINE.
 */
static int failed(OSSL_STORE_CTX *store)
{
	unsigned long e = ossl_fn.ERR_peek_error();

	return e && !(ossl_fn.OpenSSL_version_num() < OSSL_V3_0 && e >> 24 == 9 && (e & 0xfff) == 108 &&
		ossl_fn.OSSL_STORE_eof(store));
}

/*
 * Reads all objects of the store. It stops at an object that can't be loaded, since continuing
 * would be a choice among the rest. But a caller that needs only certificates needs no passphrase
 * for a key beside them, and a provider that found an object may have left errors that it recovered
 * from: drop_foreign_errors, conn.c. Returns 1 or 0.
 */
static int take_all(OSSL_STORE_CTX *store, int file, int what, asking *a, ossl_loaded *loaded, bytes *certs)
{
	OSSL_STORE_INFO *info;
	int i, ok;

	for (i = 0; i < MAX_OBJECTS; i++) {
		ossl_fn.ERR_clear_error();
		a->unanswered = 0;
		info = ossl_fn.OSSL_STORE_load(store);
		if (info) {
			ok = take(what, loaded, certs, info);
			ossl_fn.OSSL_STORE_INFO_free(info);
			if (!ok)
				return 0;
			loaded->objects++;
			continue;
		}
		/* The end may be reported as an error, and an error as the end; only a real error leaves an
		 * entry in the queue. */
		ok = what == OSSL_STORE_CERTS && a->unanswered;
		ok |= !file && ossl_fn.OSSL_STORE_eof(store) && (loaded->key || certs->len);
		if (failed(store) && !ok)
			return 0;
		if (ossl_fn.OSSL_STORE_eof(store))
			return 1;
		if (ossl_fn.OSSL_STORE_error(store) && !ok)
			return 0;
	}
	return 0;
}

int ossl_store_load(const char *uri, int file, int what, uintptr_t ask, ossl_loaded *loaded, unsigned long *errors)
{
	int type = info_type(what == OSSL_STORE_KEYS ? OSSL_OSSL_STORE_INFO_PKEY : OSSL_OSSL_STORE_INFO_CERT);
	asking a = {ask, 0};
	UI_METHOD *ui;
	OSSL_STORE_CTX *store = NULL;
	bytes certs = {0};
	int ok = 0;

	memset(loaded, 0, sizeof *loaded);
	ossl_fn.ERR_clear_error();
	ui = ossl_fn.UI_UTIL_wrap_read_pem_callback(passphrase, 0);
	if (ui)
		store = ossl_fn.OSSL_STORE_open(uri, ui, &a, NULL, NULL);
	/* A token must know the expected type. A file's loader would no longer distinguish objects of
	 * other types from malformed ones. */
	if (store)
		ok = (file || ossl_fn.OSSL_STORE_expect(store, type) == 1) && take_all(store, file, what, &a, loaded, &certs);
	ossl_drain_errors(errors);
	if (ui && !store)
		loaded->unserved = is_unserved(uri);
	if (store) /* early 1.1.1 doesn't accept NULL */
		ossl_fn.OSSL_STORE_close(store);
	if (ui)
		ossl_fn.UI_destroy_method(ui);
	loaded->certs = certs.data;
	loaded->certs_len = certs.len;
	ossl_fn.ERR_clear_error();
	return ok;
}

void ossl_loaded_free(ossl_loaded *loaded) { free(loaded->certs); }

static int ignore_provider(OSSL_PROVIDER *p, void *arg)
{
	(void)p;
	(void)arg;
	return 1;
}

int ossl_provider_load(const char *name, unsigned long *errors)
{
	int ok;

	ossl_fn.ERR_clear_error();
	/* This activates the default provider if nothing is configured, and so before the other one:
	 * libcrypto prefers the provider that it knew first among those with the same algorithm. */
	ok = ossl_fn.OSSL_PROVIDER_do_all(NULL, ignore_provider, NULL) == 1 &&
		(ossl_fn.OSSL_PROVIDER_available(NULL, name) == 1 || ossl_fn.OSSL_PROVIDER_try_load(NULL, name, 1) != NULL);
	ossl_drain_errors(errors);
	return ok;
}

void ossl_prompt_never(void)
{
	if (ossl_fn.UI_OpenSSL && ossl_fn.UI_get_default_method() == ossl_fn.UI_OpenSSL())
		ossl_fn.UI_set_default_method(ossl_fn.UI_null());
}

void ossl_key_free(ossl_key *key) { ossl_fn.EVP_PKEY_free(pkey_of(key)); }

size_t ossl_key_public(ossl_key *key, uint8_t *out, size_t cap, unsigned long *errors)
{
	unsigned char *der = NULL;
	size_t n = 0;
	int len;

	ossl_fn.ERR_clear_error();
	len = ossl_fn.i2d_PUBKEY(pkey_of(key), &der);
	if (len > 0 && (size_t)len <= cap) {
		memcpy(out, der, (size_t)len);
		n = (size_t)len;
	}
	if (len > 0)
		ossl_fn.CRYPTO_free(der, __FILE__, __LINE__);
	ossl_drain_errors(errors);
	return n;
}

const char *ossl_key_provider(ossl_key *key)
{
	const OSSL_PROVIDER *p = ossl_fn.EVP_PKEY_get0_provider ? ossl_fn.EVP_PKEY_get0_provider(pkey_of(key)) : NULL;

	return p ? ossl_fn.OSSL_PROVIDER_get0_name(p) : NULL;
}

/* Ed25519 and ML-DSA sign messages only. */
static int sign_message(EVP_PKEY *key, const uint8_t *tbs, size_t tbs_len, uint8_t *sig, size_t *len)
{
	EVP_MD_CTX *ctx = ossl_fn.EVP_MD_CTX_new();
	int ok = ctx && ossl_fn.EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
		ossl_fn.EVP_DigestSign(ctx, sig, len, tbs, tbs_len) == 1;

	ossl_fn.EVP_MD_CTX_free(ctx);
	return ok;
}

static int set(EVP_PKEY_CTX *ctx, const char *what, const char *value)
{
	return !value || ossl_fn.EVP_PKEY_CTX_ctrl_str(ctx, what, value) == 1;
}

static int sign_digest(EVP_PKEY *key, int algorithm, const char *hash, const char *salt, const uint8_t *tbs, size_t tbs_len,
	uint8_t *sig, size_t *len)
{
	EVP_PKEY_CTX *ctx = ossl_fn.EVP_PKEY_CTX_new(key, NULL);
	int ok = ctx && ossl_fn.EVP_PKEY_sign_init(ctx) == 1;

	if (algorithm == SIGN_RSA_PKCS1) {
		ok = ok && set(ctx, "rsa_padding_mode", "pkcs1") && set(ctx, "digest", hash);
	} else if (algorithm == SIGN_RSA_PSS) {
		ok = ok && set(ctx, "rsa_padding_mode", "pss") && set(ctx, "digest", hash) && set(ctx, "rsa_mgf1_md", hash) &&
			set(ctx, "rsa_pss_saltlen", salt);
	} else {
		ok = ok && algorithm == SIGN_ECDSA;
	}
	ok = ok && ossl_fn.EVP_PKEY_sign(ctx, sig, len, tbs, tbs_len) == 1;
	ossl_fn.EVP_PKEY_CTX_free(ctx);
	return ok;
}

size_t ossl_key_sign(ossl_key *key, int algorithm, const char *hash, const char *salt, const uint8_t *tbs, size_t tbs_len,
	uint8_t *sig, size_t cap, unsigned long *errors)
{
	size_t len = cap;
	int ok;

	ossl_fn.ERR_clear_error();
	if (algorithm == SIGN_ED25519 || algorithm == SIGN_MLDSA)
		ok = sign_message(pkey_of(key), tbs, tbs_len, sig, &len);
	else
		ok = sign_digest(pkey_of(key), algorithm, hash, salt, tbs, tbs_len, sig, &len);
	ossl_drain_errors(errors);
	return ok && len <= cap ? len : 0;
}

ossl_cred *ossl_cred_new_key(const uint8_t *chain, size_t chain_len, ossl_key *key, const char *sigalgs,
	const uint8_t *staple, size_t staple_len, const uint8_t *scts, size_t scts_len, unsigned long *errors)
{
	ossl_cred *cred;

	ossl_fn.ERR_clear_error();
	cred = cred_of(NULL, chain, chain_len, sigalgs, staple, staple_len, scts, scts_len);
	if (cred && ossl_fn.EVP_PKEY_up_ref(pkey_of(key)) == 1) {
		cred->key = pkey_of(key);
	} else if (cred) {
		ossl_cred_free(cred);
		cred = NULL;
	}
	return cred_made(cred, errors);
}
