/*
 * HMAC of the slim library context (slim.c): of Finished messages, and of tickets.
 *
 * For each message, libcrypto's own HMAC fetches the digest, copies the key twice and makes three
 * EVP_MD_CTXs, which takes several times as long as the hashing. This one has everything in one
 * object: sha2.c. Before the first use with a hash, its bytes are compared with the default
 * provider's HMAC. The default provider's HMAC is used if they differ, and for every other digest
 * and parameter: provider-mac(7), EVP_MAC-HMAC(7).
 */

#include "sha2.h"
#include "slim.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
	void *provider;     /* the default provider's context */
	void *theirs;       /* the default provider's HMAC, which does everything if it isn't NULL */
	const sha2_hash *h; /* NULL until the digest is known */
	int keyed;
	hmac m;
} mac;

static struct {
	void *(*new_ctx)(void *provider);
	void *(*dup_ctx)(void *ctx);
	void (*free_ctx)(void *ctx);
	int (*init)(void *ctx, const unsigned char *key, size_t len, const OSSL_PARAM *params);
	int (*update)(void *ctx, const unsigned char *data, size_t len);
	int (*final)(void *ctx, unsigned char *out, size_t *out_len, size_t out_cap);
	int (*get_params)(void *ctx, OSSL_PARAM *params);
	int (*set_params)(void *ctx, const OSSL_PARAM *params);
	const OSSL_PARAM *(*gettable)(void *ctx, void *provider);
	const OSSL_PARAM *(*settable)(void *ctx, void *provider);
} theirs;

static OSSL_PARAM digest_of(const sha2_hash *h)
{
	const char *name = h->sha384 ? "SHA2-384" : "SHA2-256";

	return param("digest", OSSL_OSSL_PARAM_UTF8_STRING, name, strlen(name));
}

/*
 * Reports whether both forms return the same bytes, for keys and messages that are shorter and longer
 * than a block.
 */
static int compare(const sha2_hash *h)
{
	static const size_t lengths[] = {1, 32, 48, 64, 127, 200};
	uint8_t text[200], ours[SHA2_MAX], default_one[64];
	size_t i, k, n = sizeof lengths / sizeof lengths[0], len;
	hmac m;

	for (i = 0; i < sizeof text; i++)
		text[i] = (uint8_t)(i * 7 + 1);
	for (i = 0; i < n; i++)
		for (k = 0; k < n; k++) {
			if (!hmac_key(&m, h, text, lengths[i]))
				return 0;
			hmac_begin(&m);
			if (!hmac_add(&m, text, lengths[k]) || !hmac_end(&m, ours) ||
				!ossl_fn.EVP_Q_mac(ossl_fn.OSSL_LIB_CTX_get0_global_default(), "HMAC", NULL, digest_of(h).data, NULL, text,
					lengths[i], text, lengths[k], default_one, sizeof default_one, &len) ||
				len != h->size || memcmp(ours, default_one, len) != 0)
				return 0;
		}
	return 1;
}

static sha2_verdict verdict;

static void *new_ctx(void *provider)
{
	mac *c = new_memory(sizeof *c);

	if (!c)
		return NULL;
	c->provider = provider;
	c->theirs = NULL;
	c->h = NULL;
	c->keyed = 0;
	return c;
}

static void unkey(mac *c)
{
	if (c->keyed)
		hmac_clear(&c->m);
	c->keyed = 0;
}

static void free_ctx(void *ctx)
{
	mac *c = ctx;

	if (!c)
		return;
	if (c->theirs)
		theirs.free_ctx(c->theirs);
	unkey(c);
	free(c);
}

static void *dup_ctx(void *ctx)
{
	const mac *from = ctx;
	mac *c = new_ctx(from->provider);

	if (!c)
		return NULL;
	c->h = from->h;
	if (from->keyed) {
		c->m = from->m;
		c->keyed = 1;
	}
	if (from->theirs && !(c->theirs = theirs.dup_ctx(from->theirs))) {
		free_ctx(c);
		return NULL;
	}
	return c;
}

/* Hands everything to the default provider's HMAC. The key, which is not kept, must not be set. */
static int give_up(mac *c)
{
	const OSSL_PARAM digest[] = {c->h ? digest_of(c->h) : param(NULL, 0, NULL, 0), param(NULL, 0, NULL, 0)};

	if (c->theirs)
		return 1;
	if (c->keyed)
		return 0;
	c->theirs = theirs.new_ctx(c->provider);
	return c->theirs && theirs.set_params(c->theirs, digest);
}

static int set_key(mac *c, const uint8_t *key, size_t len)
{
	if (!c->h)
		return 0;
	unkey(c);
	c->keyed = hmac_key(&c->m, c->h, key, len);
	if (c->keyed)
		hmac_begin(&c->m);
	return c->keyed;
}

static int set_params(void *ctx, const OSSL_PARAM *params)
{
	const OSSL_PARAM *p, *key = NULL;
	mac *c = ctx;
	int strange = c->theirs != NULL;

	for (p = params; !strange && p && p->key; p++) {
		if (strcmp(p->key, "digest") == 0 && p->data_type == OSSL_OSSL_PARAM_UTF8_STRING && p->data) {
			const sha2_hash *h = sha2_named(p->data);

			if (h && sha2_same(&verdict, h, compare)) {
				if (h != c->h)
					unkey(c);
				c->h = h;
			} else {
				strange = 1;
			}
		} else if (strcmp(p->key, "key") == 0 && p->data_type == OSSL_OSSL_PARAM_OCTET_STRING && (p->data || p->data_size == 0)) {
			key = p;
		} else {
			strange = 1;
		}
	}
	if (strange)
		return give_up(c) && theirs.set_params(c->theirs, params);
	return !key || set_key(c, key->data, key->data_size);
}

static int init(void *ctx, const unsigned char *key, size_t len, const OSSL_PARAM *params)
{
	mac *c = ctx;

	if (!set_params(c, params))
		return 0;
	if (c->theirs)
		return theirs.init(c->theirs, key, len, NULL);
	if (key)
		return set_key(c, key, len);
	if (c->keyed)
		hmac_begin(&c->m);
	return 1;
}

static int update(void *ctx, const unsigned char *data, size_t len)
{
	mac *c = ctx;

	return c->theirs ? theirs.update(c->theirs, data, len) : c->keyed && hmac_add(&c->m, data, len);
}

static int final(void *ctx, unsigned char *out, size_t *out_len, size_t out_cap)
{
	mac *c = ctx;

	if (c->theirs)
		return theirs.final(c->theirs, out, out_len, out_cap);
	if (!c->keyed || out_cap < c->h->size || !hmac_end(&c->m, out))
		return 0;
	*out_len = c->h->size;
	return 1;
}

static int get_params(void *ctx, OSSL_PARAM *p)
{
	mac *c = ctx;
	int ok = 1;

	if (c->theirs)
		return theirs.get_params(c->theirs, p);
	for (; ok && p && p->key; p++) {
		if (strcmp(p->key, "size") == 0)
			ok = param_put(p, c->h ? c->h->size : 0);
		else if (strcmp(p->key, "block-size") == 0)
			ok = param_put(p, c->h ? c->h->block : 0);
	}
	return ok;
}

static const OSSL_PARAM *gettable(void *ctx, void *provider)
{
	(void)ctx;
	return theirs.gettable(NULL, provider);
}

static const OSSL_PARAM *settable(void *ctx, void *provider)
{
	(void)ctx;
	return theirs.settable(NULL, provider);
}

/* Returns the function with this number in a table, or NULL. */
static void (*function_of(const OSSL_DISPATCH *table, int64_t id))(void)
{
	for (; table->function_id != 0; table++)
		if (table->function_id == id)
			return table->function;
	return NULL;
}

OSSL_DISPATCH slim_hmac[11];

/* The types of functions with ids are fixed: openssl/core_dispatch.h. */
#define TAKE(to, id) (theirs.to = (__typeof__(theirs.to))function_of(functions, OSSL_OSSL_FUNC_##id))

int slim_mac_setup(const OSSL_DISPATCH *functions)
{
	size_t n = 0;

	TAKE(new_ctx, MAC_NEWCTX);
	TAKE(dup_ctx, MAC_DUPCTX);
	TAKE(free_ctx, MAC_FREECTX);
	TAKE(init, MAC_INIT);
	TAKE(update, MAC_UPDATE);
	TAKE(final, MAC_FINAL);
	TAKE(get_params, MAC_GET_CTX_PARAMS);
	TAKE(set_params, MAC_SET_CTX_PARAMS);
	TAKE(gettable, MAC_GETTABLE_CTX_PARAMS);
	TAKE(settable, MAC_SETTABLE_CTX_PARAMS);
	if (!theirs.new_ctx || !theirs.dup_ctx || !theirs.free_ctx || !theirs.init || !theirs.update || !theirs.final ||
		!theirs.get_params || !theirs.set_params || !theirs.gettable || !theirs.settable)
		return 0;
	PUT(slim_hmac, n, MAC_NEWCTX, new_ctx);
	PUT(slim_hmac, n, MAC_DUPCTX, dup_ctx);
	PUT(slim_hmac, n, MAC_FREECTX, free_ctx);
	PUT(slim_hmac, n, MAC_INIT, init);
	PUT(slim_hmac, n, MAC_UPDATE, update);
	PUT(slim_hmac, n, MAC_FINAL, final);
	PUT(slim_hmac, n, MAC_GET_CTX_PARAMS, get_params);
	PUT(slim_hmac, n, MAC_SET_CTX_PARAMS, set_params);
	PUT(slim_hmac, n, MAC_GETTABLE_CTX_PARAMS, gettable);
	PUT(slim_hmac, n, MAC_SETTABLE_CTX_PARAMS, settable);
	return 1;
}

int slim_mac_same(void) { return sha2_same(&verdict, &sha2_hashes[0], compare) && sha2_same(&verdict, &sha2_hashes[1], compare); }

void slim_mac_distrust(int on) { sha2_distrust(&verdict, on); }

/* Computes an HMAC in two parts, and the second part with a copy too. Returns its length, or 0. */
static size_t in_parts(const char *digest, const uint8_t *key, size_t key_len, const uint8_t *data, size_t len, uint8_t *out)
{
	const OSSL_PARAM params[] = {param("digest", OSSL_OSSL_PARAM_UTF8_STRING, digest, strlen(digest)), param(NULL, 0, NULL, 0)};
	void *c = new_ctx(slim_host_ctx()), *copy = NULL;
	uint8_t again[64];
	size_t n = 0, m = 0;

	if (c && init(c, key, key_len, params) && update(c, data, len / 2))
		copy = dup_ctx(c);
	if (!copy || !update(c, data + len / 2, len - len / 2) || !final(c, out, &n, 64) ||
		!update(copy, data + len / 2, len - len / 2) || !final(copy, again, &m, 64) || n != m || memcmp(out, again, n) != 0)
		n = 0;
	free_ctx(c);
	free_ctx(copy);
	return n;
}

int ossl_slim_hmac(const char *digest, const uint8_t *key, size_t key_len, const uint8_t *data, size_t len, uint8_t *out)
{
	OSSL_LIB_CTX *lib = ossl_slim_library();
	uint8_t parts[64];
	size_t n = 0;

	ossl_fn.ERR_clear_error();
	if (!lib || !ossl_fn.EVP_Q_mac(lib, "HMAC", NULL, digest, NULL, key, key_len, data, len, out, 64, &n) ||
		in_parts(digest, key, key_len, data, len, parts) != n || memcmp(parts, out, n) != 0)
		n = 0;
	ossl_fn.ERR_clear_error();
	return (int)n;
}
