/*
 * The TLS 1.3 key schedule (RFC 8446, section 7.1) and the TLS 1.2 key schedule (RFC 5246, section
 * 5), as the slim library context offers them to libssl (slim.c).
 *
 * A TLS 1.3 handshake derives some 15 secrets at each end, each with an EVP_KDF. In libcrypto's
 * own, finding and loading the digest, copying every input, and an EVP_MAC over an HMAC over three
 * EVP_MD_CTXs cost ten times as much as the hashing. Here an HMAC is libcrypto's SHA-2 over a state
 * on the stack: nothing is looked up, copied or allocated. The derived bytes are the same: see
 * is_same, which compares them before the first use of an algorithm with a hash. If they differ, the
 * default provider's algorithm derives.
 *
 * Nothing is kept between calls: libssl passes all inputs to EVP_KDF_derive, and parameters that
 * are set before it are refused.
 */

#include "schedule.h"
#include "sha2.h"
#include "slim.h"

#include <string.h>

enum { MAX_SEEDS = 8, NO_MODE = -1 };

/* A parameter's bytes. */
typedef struct {
	const uint8_t *data; /* NULL if absent */
	size_t len;
} input;

typedef struct {
	const sha2_hash *h;
	int mode;
	input key, salt, prefix, label, data, seeds[MAX_SEEDS];
	size_t n_seeds;
} inputs;

/* Reads the parameters that have a meaning here; the others are for other modules. */
static int read_inputs(inputs *in, const OSSL_PARAM *p)
{
	memset(in, 0, sizeof *in);
	in->mode = NO_MODE;
	for (; p && p->key; p++) {
		input value = {p->data, p->data_size};
		input *to = NULL;

		if (strcmp(p->key, "digest") == 0) {
			if (p->data_type != OSSL_OSSL_PARAM_UTF8_STRING || !p->data || !(in->h = sha2_named(p->data)))
				return 0;
			continue;
		}
		if (strcmp(p->key, "mode") == 0) {
			if (p->data_type != OSSL_OSSL_PARAM_INTEGER || p->data_size != sizeof in->mode)
				return 0;
			memcpy(&in->mode, p->data, sizeof in->mode);
			continue;
		}
		if (strcmp(p->key, "key") == 0 || strcmp(p->key, "secret") == 0)
			to = &in->key;
		else if (strcmp(p->key, "salt") == 0)
			to = &in->salt;
		else if (strcmp(p->key, "prefix") == 0)
			to = &in->prefix;
		else if (strcmp(p->key, "label") == 0)
			to = &in->label;
		else if (strcmp(p->key, "data") == 0)
			to = &in->data;
		else if (strcmp(p->key, "seed") == 0) {
			if (in->n_seeds == MAX_SEEDS)
				return 0;
			to = &in->seeds[in->n_seeds++];
		} else
			continue;
		if (p->data_type != OSSL_OSSL_PARAM_OCTET_STRING || (!value.data && value.len > 0))
			return 0;
		*to = value;
	}
	return in->h != NULL;
}

/*
 * HKDF-Expand-Label: RFC 8446, section 7.1. context is the transcript's hash, or an exporter's
 * context.
 */
static int expand(const sha2_hash *h, input key, input prefix, input label, input context, uint8_t *out, size_t len)
{
	uint8_t head[3], context_len = (uint8_t)context.len, counter = 0, block[SHA2_MAX];
	size_t n;
	int ok;
	hmac m;

	if (len > 255 * h->size || len > 0xffff || prefix.len > 255 || label.len > 255 - prefix.len || context.len > 255)
		return 0;
	head[0] = (uint8_t)(len >> 8);
	head[1] = (uint8_t)len;
	head[2] = (uint8_t)(prefix.len + label.len);
	ok = hmac_key(&m, h, key.data, key.len);
	while (ok && len > 0) { /* RFC 5869, section 2.3 */
		hmac_begin(&m);
		ok = counter == 0 || hmac_add(&m, block, h->size);
		counter++;
		ok = ok && hmac_add(&m, head, sizeof head) && hmac_add(&m, prefix.data, prefix.len) && hmac_add(&m, label.data, label.len) &&
			hmac_add(&m, &context_len, 1) && hmac_add(&m, context.data, context.len) && hmac_add(&m, &counter, 1) &&
			hmac_end(&m, block);
		n = len < h->size ? len : h->size;
		if (ok)
			memcpy(out, block, n);
		out += n;
		len -= n;
	}
	hmac_clear(&m);
	ossl_fn.OPENSSL_cleanse(block, sizeof block);
	return ok;
}

/*
 * Derives the next of the three secrets: HKDF-Extract of the input, salted with the "derived"
 * secret of the previous one. RFC 8446, section 7.1, the left column of the diagram. A missing
 * previous secret, or a missing input, is replaced by zeros.
 */
static int extract(const inputs *in, uint8_t *out, size_t len)
{
	static const uint8_t zeros[SHA2_MAX];
	uint8_t salt[SHA2_MAX] = {0}, empty[SHA2_MAX];
	const sha2_hash *h = in->h;
	input context = {empty, h->size};
	int ok = len == h->size;
	sha2_state s;
	hmac m;

	if (ok && in->salt.data)
		ok = sha2_begin(h, &s) && sha2_end(h, &s, empty) && expand(h, in->salt, in->prefix, in->label, context, salt, h->size);
	ok = ok && hmac_key(&m, h, salt, h->size);
	if (ok) {
		hmac_begin(&m);
		ok = (in->key.data ? hmac_add(&m, in->key.data, in->key.len) : hmac_add(&m, zeros, h->size)) && hmac_end(&m, out);
		hmac_clear(&m);
	}
	ossl_fn.OPENSSL_cleanse(salt, sizeof salt);
	return ok;
}

static int is_expand(const inputs *in) { return in->mode == OSSL_EVP_KDF_HKDF_MODE_EXPAND_ONLY && in->key.data; }

static int tls13_kdf(const inputs *in, uint8_t *out, size_t len)
{
	if (is_expand(in))
		return expand(in->h, in->key, in->prefix, in->label, in->data, out, len);
	return in->mode == OSSL_EVP_KDF_HKDF_MODE_EXTRACT_ONLY && extract(in, out, len);
}

/* P_hash: RFC 5246, section 5. */
static int tls1_prf(const inputs *in, uint8_t *out, size_t len)
{
	uint8_t a[SHA2_MAX], block[SHA2_MAX];
	size_t i, n, seeded = 0;
	int ok;
	hmac m;

	if (!in->key.data || len == 0)
		return 0;
	for (i = 0; i < in->n_seeds; i++)
		seeded += in->seeds[i].len;
	if (seeded == 0)
		return 0;
	ok = hmac_key(&m, in->h, in->key.data, in->key.len);
	if (ok) { /* A(1) */
		hmac_begin(&m);
		for (i = 0; ok && i < in->n_seeds; i++)
			ok = hmac_add(&m, in->seeds[i].data, in->seeds[i].len);
		ok = ok && hmac_end(&m, a);
	}
	while (ok) {
		hmac_begin(&m);
		ok = hmac_add(&m, a, in->h->size);
		for (i = 0; ok && i < in->n_seeds; i++)
			ok = hmac_add(&m, in->seeds[i].data, in->seeds[i].len);
		ok = ok && hmac_end(&m, block);
		n = len < in->h->size ? len : in->h->size;
		if (ok)
			memcpy(out, block, n);
		out += n;
		len -= n;
		if (len == 0)
			break;
		hmac_begin(&m); /* A(i+1) */
		ok = ok && hmac_add(&m, a, in->h->size) && hmac_end(&m, a);
	}
	hmac_clear(&m);
	ossl_fn.OPENSSL_cleanse(a, sizeof a);
	ossl_fn.OPENSSL_cleanse(block, sizeof block);
	return ok;
}

/* The rest of the interface: provider-kdf(7). There is no state, so all contexts are one object. */

static void *new_ctx(void *provider)
{
	static char none;

	(void)provider;
	return &none;
}

static void free_ctx(void *ctx) { (void)ctx; }

static void reset_ctx(void *ctx) { (void)ctx; }

static int set_params(void *ctx, const OSSL_PARAM *params)
{
	(void)ctx;
	return !params || !params->key;
}

/* An algorithm, in the two forms that must derive the same bytes. */
typedef struct {
	const char *name; /* the default provider's */
	int (*ours)(const inputs *in, uint8_t *out, size_t len);
	int (*compare)(const sha2_hash *h);
	sha2_verdict verdict;
} algorithm;

static int same_tls13_kdf(const sha2_hash *h);
static int same_tls1_prf(const sha2_hash *h);

static algorithm tls13 = {"TLS13-KDF", tls13_kdf, same_tls13_kdf, {{0}}};
static algorithm tls1 = {"TLS1-PRF", tls1_prf, same_tls1_prf, {{0}}};

/* Derives with the default library context's algorithm. */
static int derive_by_default(const algorithm *a, uint8_t *out, size_t len, const OSSL_PARAM *params)
{
	EVP_KDF *kdf = ossl_fn.EVP_KDF_fetch(ossl_fn.OSSL_LIB_CTX_get0_global_default(), a->name, NULL);
	EVP_KDF_CTX *ctx = kdf ? ossl_fn.EVP_KDF_CTX_new(kdf) : NULL;
	int ok = ctx && ossl_fn.EVP_KDF_derive(ctx, out, len, params) == 1;

	ossl_fn.EVP_KDF_CTX_free(ctx);
	ossl_fn.EVP_KDF_free(kdf);
	return ok;
}

/* Reports whether an algorithm with a hash derives the same bytes as the default provider's. */
static int is_same(algorithm *a, const sha2_hash *h) { return sha2_same(&a->verdict, h, a->compare); }

static int derive(algorithm *a, const inputs *in, uint8_t *out, size_t len, const OSSL_PARAM *params)
{
	return is_same(a, in->h) ? a->ours(in, out, len) : derive_by_default(a, out, len, params);
}

static int tls13_derive(void *ctx, unsigned char *out, size_t len, const OSSL_PARAM *params)
{
	inputs in;
	conn *c;
	int ok;

	(void)ctx;
	if (!read_inputs(&in, params))
		return 0;
	ok = derive(&tls13, &in, out, len, params);
	c = ok && is_expand(&in) ? occupant() : NULL;
	if (c && c->ctx->observes)
		takeover_derived(c, (const char *)in.label.data, in.label.len, out, len);
	return ok;
}

static int tls1_derive(void *ctx, unsigned char *out, size_t len, const OSSL_PARAM *params)
{
	inputs in;

	(void)ctx;
	return read_inputs(&in, params) && derive(&tls1, &in, out, len, params);
}

OSSL_DISPATCH schedule_tls13_kdf[6];
OSSL_DISPATCH schedule_tls1_prf[6];

static void make_table(OSSL_DISPATCH *table, int (*derive)(void *, unsigned char *, size_t, const OSSL_PARAM *))
{
	size_t n = 0;

	PUT(table, n, KDF_NEWCTX, new_ctx);
	PUT(table, n, KDF_FREECTX, free_ctx);
	PUT(table, n, KDF_RESET, reset_ctx);
	PUT(table, n, KDF_SET_CTX_PARAMS, set_params);
	PUT(table, n, KDF_DERIVE, derive);
}

/* Reports whether both forms of an algorithm return the same bytes. */
static int same(const algorithm *a, const OSSL_PARAM *params, size_t len)
{
	uint8_t ours[256], theirs[256];
	inputs in;

	return derive_by_default(a, theirs, len, params) && read_inputs(&in, params) && a->ours(&in, ours, len) &&
		memcmp(ours, theirs, len) == 0;
}

static const size_t lengths[] = {12, 16, 32, 48, 100};

/* Makes inputs that stand for secrets. */
static void fill(uint8_t *secret, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		secret[i] = (uint8_t)(i * 7 + 1);
}

static OSSL_PARAM digest_of(const sha2_hash *h)
{
	const char *name = h->sha384 ? "SHA2-384" : "SHA2-256";

	return param("digest", OSSL_OSSL_PARAM_UTF8_STRING, name, strlen(name));
}

static int same_tls13_kdf(const sha2_hash *h)
{
	int modes[] = {(int)OSSL_EVP_KDF_HKDF_MODE_EXPAND_ONLY, (int)OSSL_EVP_KDF_HKDF_MODE_EXTRACT_ONLY};
	uint8_t secret[200];
	OSSL_PARAM p[8];
	size_t i, n;
	int ok = 1, with;

	fill(secret, sizeof secret);
	for (i = 0; ok && i < sizeof lengths / sizeof lengths[0]; i++)
		for (with = 0; ok && with < 2; with++) { /* with a context */
			n = 0;
			p[n++] = param("mode", OSSL_OSSL_PARAM_INTEGER, &modes[0], sizeof modes[0]);
			p[n++] = digest_of(h);
			p[n++] = param("key", OSSL_OSSL_PARAM_OCTET_STRING, secret, h->size);
			p[n++] = param("prefix", OSSL_OSSL_PARAM_OCTET_STRING, "tls13 ", 6);
			p[n++] = param("label", OSSL_OSSL_PARAM_OCTET_STRING, "c hs traffic", 12);
			if (with)
				p[n++] = param("data", OSSL_OSSL_PARAM_OCTET_STRING, secret + 100, h->size);
			p[n] = param(NULL, 0, NULL, 0);
			ok = same(&tls13, p, lengths[i]);
		}
	for (with = 0; ok && with < 4; with++) { /* with and without a previous secret, and an input */
		n = 0;
		p[n++] = param("mode", OSSL_OSSL_PARAM_INTEGER, &modes[1], sizeof modes[1]);
		p[n++] = digest_of(h);
		if (with & 1)
			p[n++] = param("key", OSSL_OSSL_PARAM_OCTET_STRING, secret, 32);
		if (with & 2)
			p[n++] = param("salt", OSSL_OSSL_PARAM_OCTET_STRING, secret + 100, h->size);
		p[n++] = param("prefix", OSSL_OSSL_PARAM_OCTET_STRING, "tls13 ", 6);
		p[n++] = param("label", OSSL_OSSL_PARAM_OCTET_STRING, "derived", 7);
		p[n] = param(NULL, 0, NULL, 0);
		ok = same(&tls13, p, h->size);
	}
	return ok;
}

static int same_tls1_prf(const sha2_hash *h)
{
	uint8_t secret[200];
	OSSL_PARAM p[8];
	size_t i, n;
	int ok = 1, with;

	fill(secret, sizeof secret);
	for (i = 0; ok && i < sizeof lengths / sizeof lengths[0]; i++)
		for (with = 1; ok && with < 4; with++) { /* short keys and keys longer than a block */
			n = 0;
			p[n++] = digest_of(h);
			p[n++] = param("secret", OSSL_OSSL_PARAM_OCTET_STRING, secret, (size_t)with * 48);
			p[n++] = param("seed", OSSL_OSSL_PARAM_OCTET_STRING, "key expansion", 13);
			p[n++] = param("seed", OSSL_OSSL_PARAM_OCTET_STRING, secret + 20, 32);
			p[n++] = param("seed", OSSL_OSSL_PARAM_OCTET_STRING, secret + 60, 32);
			p[n] = param(NULL, 0, NULL, 0);
			ok = same(&tls1, p, lengths[i]);
		}
	return ok;
}

int schedule_setup(void)
{
	if (!sha2_available())
		return 0;
	make_table(schedule_tls13_kdf, tls13_derive);
	make_table(schedule_tls1_prf, tls1_derive);
	return 1;
}

int ossl_schedule_all_same(void)
{
	return slim_mac_same() && is_same(&tls13, &sha2_hashes[0]) && is_same(&tls13, &sha2_hashes[1]) &&
		is_same(&tls1, &sha2_hashes[0]) && is_same(&tls1, &sha2_hashes[1]);
}

void ossl_schedule_distrust(int on)
{
	sha2_distrust(&tls13.verdict, on);
	sha2_distrust(&tls1.verdict, on);
	slim_mac_distrust(on);
}
