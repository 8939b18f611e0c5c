/* Key derivation: with libcrypto's own functions on 3.0 and later, with HMAC on 1.1.1. */

#include "provider.h"
#include "slim.h"
#include "traffic.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305 };

static const suite suites[] = {
	{0x1301, 1, AES_128_GCM, 0, 16, 0},
	{0x1302, 1, AES_256_GCM, 1, 32, 0},
	{0x1303, 1, CHACHA20_POLY1305, 0, 32, 0},
	{0x009c, 0, AES_128_GCM, 0, 16, 8}, /* TLS_RSA_WITH_AES_128_GCM_SHA256 */
	{0x009d, 0, AES_256_GCM, 1, 32, 8},
	{0xc02b, 0, AES_128_GCM, 0, 16, 8}, /* TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 */
	{0xc02c, 0, AES_256_GCM, 1, 32, 8},
	{0xc02f, 0, AES_128_GCM, 0, 16, 8}, /* TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 */
	{0xc030, 0, AES_256_GCM, 1, 32, 8},
	{0xcca8, 0, CHACHA20_POLY1305, 0, 32, 0}, /* TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 */
	{0xcca9, 0, CHACHA20_POLY1305, 0, 32, 0},
	{0x00a8, 0, AES_128_GCM, 0, 16, 8}, /* TLS_PSK_WITH_AES_128_GCM_SHA256 */
	{0x00a9, 0, AES_256_GCM, 1, 32, 8},
	{0xccab, 0, CHACHA20_POLY1305, 0, 32, 0}, /* TLS_PSK_WITH_CHACHA20_POLY1305_SHA256 */
	{0xccac, 0, CHACHA20_POLY1305, 0, 32, 0}, /* TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256 */
};

const suite *suite_of(const algorithms *a, uint16_t id)
{
	size_t i;

	for (i = 0; i < sizeof suites / sizeof suites[0]; i++) {
		const suite *s = &suites[i];

		if (s->id != id)
			continue;
		/* A FIPS module must make these nonces itself: FIPS 140-3 IG C.H. libssl lets it do so. */
		if (s->explicit_nonce && a->fips)
			return NULL;
		return a->aead[s->aead] ? s : NULL;
	}
	return NULL;
}

/*
 * Drops the AEADs that don't seal and open correctly with the calls that are used here: an ENGINE's
 * cipher, or another provider's, may support only other calls.
 */
static void keep_working(algorithms *a)
{
	size_t i;

	for (i = 0; i < sizeof a->aead / sizeof a->aead[0]; i++) { /* the TLS 1.3 suites come first, one per AEAD */
		if (!a->aead[i] || traffic_works(a, &suites[i]))
			continue;
		if (ossl_fn.EVP_CIPHER_free)
			ossl_fn.EVP_CIPHER_free((EVP_CIPHER *)a->aead[i]);
		a->aead[i] = NULL;
	}
	ossl_fn.ERR_clear_error();
}

/*
 * Enables the faster way of setting nonces if it is equivalent. EVP_CipherInit_ex2 asks the cipher
 * for the nonce's length each time, in 3.0 by comparing names, which costs more than the AES of a
 * small record. libcrypto's GCM also accepts the whole nonce as its "fixed part". That is not
 * documented, so it is compared with the documented way, and not used if a byte differs.
 */
static void try_whole_nonce(algorithms *a)
{
	algorithms other = *a;
	size_t i;

	if (a->fips)
		return;
	for (i = 0; i <= AES_256_GCM; i++) {
		if (!a->aead[i])
			continue;
		other.whole_nonce[i] = 1;
		a->whole_nonce[i] = (uint8_t)traffic_same(a, &other, &suites[i]);
		other.whole_nonce[i] = a->whole_nonce[i];
	}
	ossl_fn.ERR_clear_error();
}

/* Fetches what there is. Returns 1, or 0 if a hash or a key derivation is missing. */
static int fetch_untried(algorithms *a, OSSL_LIB_CTX *lib, int shard, int fips)
{
	OSSL_LIB_CTX *kdfs;

	memset(a, 0, sizeof *a);
	a->lib = lib;
	a->shard = shard;
	if (!ossl_fn.EVP_CIPHER_fetch) {
		a->fips = (uint8_t)fips;
		a->hash[0] = ossl_fn.EVP_sha256();
		a->hash[1] = ossl_fn.EVP_sha384();
		a->aead[AES_128_GCM] = ossl_fn.EVP_aes_128_gcm();
		a->aead[AES_256_GCM] = ossl_fn.EVP_aes_256_gcm();
		a->aead[CHACHA20_POLY1305] = ossl_fn.EVP_chacha20_poly1305();
		return 1;
	}
	/* A missing algorithm (ChaCha20 in FIPS mode) is not negotiated, or libssl has it from
	 * elsewhere and keeps the records. */
	a->aead[AES_128_GCM] = ossl_fn.EVP_CIPHER_fetch(lib, "AES-128-GCM", NULL);
	a->aead[AES_256_GCM] = ossl_fn.EVP_CIPHER_fetch(lib, "AES-256-GCM", NULL);
	a->aead[CHACHA20_POLY1305] = ossl_fn.EVP_CIPHER_fetch(lib, "ChaCha20-Poly1305", NULL);
	kdfs = fips || lib ? lib : slim_library(shard);
	a->expand = ossl_fn.EVP_KDF_fetch(kdfs, "TLS13-KDF", NULL);
	a->prf = ossl_fn.EVP_KDF_fetch(kdfs, "TLS1-PRF", NULL);
	a->hash[0] = ossl_fn.EVP_MD_fetch(lib, "SHA2-256", NULL);
	a->hash[1] = ossl_fn.EVP_MD_fetch(lib, "SHA2-384", NULL);
	a->fips = fips || ossl_fn.EVP_default_properties_is_fips_enabled(lib) == 1;
	if (!a->expand || !a->prf || !a->hash[0] || !a->hash[1]) {
		algorithms_free(a);
		return 0;
	}
	return 1;
}

/*
 * For each shard, the last algorithms that all worked, outside of FIPS mode. References keep them, so no
 * others can have their addresses.
 */
static algorithms proven[OSSL_MAX_SHARDS]; /* guarded by lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int are_same(const algorithms *a, const algorithms *b)
{
	return memcmp(a->aead, b->aead, sizeof a->aead) == 0 && memcmp(a->hash, b->hash, sizeof a->hash) == 0 &&
		a->expand == b->expand && a->prf == b->prf && a->lib == b->lib;
}

/* Reports whether the algorithms have been tried, and completes them. */
static int is_proven(algorithms *a)
{
	int same;

	if (a->fips)
		return 0;
	pthread_mutex_lock(&lock);
	same = are_same(a, &proven[a->shard]);
	if (same)
		memcpy(a->whole_nonce, proven[a->shard].whole_nonce, sizeof a->whole_nonce);
	pthread_mutex_unlock(&lock);
	return same;
}

/* Remembers algorithms that were tried, unless some don't work. */
static void remember(algorithms *a)
{
	algorithms own, old;

	if (a->fips || !a->expand || !a->aead[0] || !a->aead[1] || !a->aead[2] || is_proven(a) ||
		!fetch_untried(&own, a->lib, a->shard, 0))
		return;
	memcpy(own.whole_nonce, a->whole_nonce, sizeof own.whole_nonce);
	pthread_mutex_lock(&lock);
	old = proven[a->shard];
	if (are_same(a, &own))
		proven[a->shard] = own;
	else
		old = own; /* they were replaced meanwhile */
	pthread_mutex_unlock(&lock);
	algorithms_free(&old);
}

static int fetch(algorithms *a, OSSL_LIB_CTX *lib, int shard, int fips)
{
	if (!fetch_untried(a, lib, shard, fips))
		return 0;
	if (!is_proven(a)) {
		keep_working(a);
		if (ossl_fn.EVP_CIPHER_fetch)
			try_whole_nonce(a);
	}
	return 1;
}

/* The result of fetch, with a bit for each part. */
static unsigned parts_of(const algorithms *a, int ok)
{
	unsigned parts = (unsigned)ok;
	size_t i;

	for (i = 0; i < sizeof a->aead / sizeof a->aead[0]; i++)
		parts = parts << 1 | (a->aead[i] != NULL);
	for (i = 0; i < sizeof a->whole_nonce / sizeof a->whole_nonce[0]; i++)
		parts = parts << 1 | a->whole_nonce[i];
	return parts;
}

/*
 * libcrypto doesn't always distinguish an algorithm that it lacks from one that it had no memory
 * for. So if an algorithm is missing that was there before, or memory may have been short, there
 * must be the same parts as before, or as the next time, when memory was not short.
 */
int algorithms_fetch(algorithms *a, OSSL_LIB_CTX *lib, int shard, int fips)
{
	static unsigned shown[2]; /* atomic; of FIPS mode is the second */
	unsigned parts, before = 0, known = __atomic_load_n(&shown[fips != 0], __ATOMIC_RELAXED);
	int ok, i;

	for (i = 0; i < 3; i++) {
		errno = 0;
		ok = fetch(a, lib, shard, fips);
		parts = parts_of(a, ok);
		if ((parts && parts == known) ||
			(i > 0 ? parts == before && errno != ENOMEM : !(known & ~parts) && !memory_may_have_failed())) {
			__atomic_store_n(&shown[fips != 0], parts, __ATOMIC_RELAXED);
			if (ok)
				remember(a);
			return ok;
		}
		before = parts;
		algorithms_free(a);
	}
	raise_no_memory();
	return -1;
}

void algorithms_free(algorithms *a)
{
	size_t i;

	if (ossl_fn.EVP_CIPHER_fetch) {
		for (i = 0; i < sizeof a->aead / sizeof a->aead[0]; i++)
			ossl_fn.EVP_CIPHER_free((EVP_CIPHER *)a->aead[i]);
		ossl_fn.EVP_KDF_free(a->expand);
		ossl_fn.EVP_KDF_free(a->prf);
		ossl_fn.EVP_MD_free((EVP_MD *)a->hash[0]);
		ossl_fn.EVP_MD_free((EVP_MD *)a->hash[1]);
	}
	memset(a, 0, sizeof *a);
}

static int derive(EVP_KDF *kdf, const OSSL_PARAM *params, uint8_t *out, size_t len)
{
	EVP_KDF_CTX *ctx = ossl_fn.EVP_KDF_CTX_new(kdf);
	int ok = ctx && ossl_fn.EVP_KDF_derive(ctx, out, len, params) == 1;

	ossl_fn.EVP_KDF_CTX_free(ctx);
	return ok;
}

static int hmac(const algorithms *a, const suite *s, const uint8_t *key, size_t key_len, const uint8_t *data, size_t len,
	uint8_t *out)
{
	if (ossl_fn.EVP_Q_mac)
		return ossl_fn.EVP_Q_mac(a->lib, "HMAC", NULL, s->sha384 ? "SHA2-384" : "SHA2-256", NULL, key, key_len, data, len, out,
			MAX_SECRET, NULL) != NULL;
	return ossl_fn.HMAC(a->hash[s->sha384], key, (int)key_len, data, len, out, NULL) != NULL;
}

/* HKDF-Expand (RFC 5869, section 2.3) on 1.1.1. */
static int hmac_expand(const algorithms *a, const suite *s, const uint8_t *secret, const uint8_t *info, size_t info_len,
	uint8_t *out, size_t len)
{
	uint8_t block[MAX_SECRET], input[MAX_SECRET + 2 + 1 + 255 + 1 + 255 + 1];
	size_t hash = hash_len(s), had = 0, n;
	uint8_t counter = 0;
	int ok = 1;

	while (ok && len > 0) {
		memcpy(input, block, had);
		memcpy(input + had, info, info_len);
		input[had + info_len] = ++counter;
		ok = counter != 0 && hmac(a, s, secret, hash, input, had + info_len + 1, block);
		if (!ok)
			break;
		had = hash;
		n = len < hash ? len : hash;
		memcpy(out, block, n);
		out += n;
		len -= n;
	}
	ossl_fn.OPENSSL_cleanse(block, sizeof block);
	ossl_fn.OPENSSL_cleanse(input, sizeof input);
	return ok;
}

int expand_label(const algorithms *a, const suite *s, const uint8_t *secret, const char *label, size_t label_len,
	const uint8_t *context, size_t context_len, uint8_t *out, size_t len)
{
	static const char prefix[] = "tls13 ";
	const size_t prefix_len = sizeof prefix - 1;
	uint8_t info[2 + 1 + 255 + 1 + 255];
	int mode = (int)OSSL_EVP_KDF_HKDF_MODE_EXPAND_ONLY;
	size_t n = 0;

	if (label_len > 255 - prefix_len || context_len > 255 || len > 255 * hash_len(s))
		return 0;
	if (a->expand) {
		OSSL_PARAM p[7], *next = p;

		*next++ = param("mode", OSSL_OSSL_PARAM_INTEGER, &mode, sizeof mode);
		*next++ = param("digest", OSSL_OSSL_PARAM_UTF8_STRING, s->sha384 ? "SHA384" : "SHA256", 6);
		*next++ = param("key", OSSL_OSSL_PARAM_OCTET_STRING, secret, hash_len(s));
		*next++ = param("prefix", OSSL_OSSL_PARAM_OCTET_STRING, prefix, prefix_len);
		*next++ = param("label", OSSL_OSSL_PARAM_OCTET_STRING, label, label_len);
		if (context_len > 0)
			*next++ = param("data", OSSL_OSSL_PARAM_OCTET_STRING, context, context_len);
		*next = param(NULL, 0, NULL, 0);
		return derive(a->expand, p, out, len);
	}
	info[n++] = (uint8_t)(len >> 8);
	info[n++] = (uint8_t)len;
	info[n++] = (uint8_t)(prefix_len + label_len);
	memcpy(info + n, prefix, prefix_len);
	n += prefix_len;
	memcpy(info + n, label, label_len);
	n += label_len;
	info[n++] = (uint8_t)context_len;
	if (context_len > 0)
		memcpy(info + n, context, context_len);
	n += context_len;
	return hmac_expand(a, s, secret, info, n, out, len);
}

/* P_hash: RFC 5246, section 5. Its seed is label followed by seed. */
static int hmac_prf(const algorithms *a, const suite *s, const uint8_t *secret, size_t secret_len, const char *label,
	size_t label_len, const uint8_t *seed, size_t seed_len, uint8_t *out, size_t len)
{
	size_t hash = hash_len(s), all = label_len + seed_len, n;
	uint8_t block[MAX_SECRET], *input = new_memory(hash + all);
	int ok;

	if (!input)
		return 0;
	memcpy(input + hash, label, label_len);
	if (seed_len > 0)
		memcpy(input + hash + label_len, seed, seed_len);
	/* A(1); then each block is HMAC(A(i) + seed), and A(i+1) is HMAC(A(i)). */
	ok = hmac(a, s, secret, secret_len, input + hash, all, input);
	while (ok && len > 0) {
		ok = hmac(a, s, secret, secret_len, input, hash + all, block);
		n = len < hash ? len : hash;
		if (ok)
			memcpy(out, block, n);
		out += n;
		len -= n;
		ok = ok && hmac(a, s, secret, secret_len, input, hash, block);
		memcpy(input, block, hash);
	}
	ossl_fn.OPENSSL_cleanse(block, sizeof block);
	ossl_fn.OPENSSL_cleanse(input, hash + all);
	free(input);
	return ok;
}

int prf(const algorithms *a, const suite *s, const uint8_t *secret, size_t secret_len, const char *label, size_t label_len,
	const uint8_t *seed, size_t seed_len, uint8_t *out, size_t len)
{
	/* In 3.0, TLS1-PRF accepts a seed of at most 1024 bytes; exporters have contexts of up to
	 * 65535. */
	if (a->prf && label_len + seed_len <= 1024) {
		OSSL_PARAM p[5];

		p[0] = param("digest", OSSL_OSSL_PARAM_UTF8_STRING, s->sha384 ? "SHA384" : "SHA256", 6);
		p[1] = param("secret", OSSL_OSSL_PARAM_OCTET_STRING, secret, secret_len);
		p[2] = param("seed", OSSL_OSSL_PARAM_OCTET_STRING, label, label_len);
		p[3] = param("seed", OSSL_OSSL_PARAM_OCTET_STRING, seed, seed_len);
		p[4] = param(NULL, 0, NULL, 0);
		return derive(a->prf, p, out, len);
	}
	return hmac_prf(a, s, secret, secret_len, label, label_len, seed, seed_len, out, len);
}
