/*
 * Peers' public keys, decoded once: decoders of the slim library context (slim.c).
 *
 * libcrypto decodes the key of a certificate whenever it parses one, and for an elliptic curve it
 * makes the curve's group anew each time: 4 to 9 % of a handshake, and for RSA also the values that
 * a first verification computes. A client meets the same servers again, and a server behind a
 * proxy, or in a mesh, the same clients. So the key that the default provider's decoder made from
 * some bytes is kept, and returned again for exactly the same bytes: decoding is a function of
 * them. The keys are public, hold no data of a connection, and aren't changed once they are made;
 * libcrypto itself lets threads share a certificate's key. A peer that can present a certificate
 * can learn, from some microseconds, whether its key was met lately.
 *
 * SETS * WAYS keys of at most LONGEST bytes are kept, approximately the most recently used ones: a
 * peer with ever new keys can only evict others.
 *
 * A decoder returns a reference to the provider's own object: provider-object(7). The default
 * provider's objects for EC and RSA are an EC_KEY and an RSA, which count their references. This is
 * so from 3.0 to 4.0; later versions don't use this cache.
 */

#include "slim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 32, WAYS = 2, LONGEST = 600 }; /* RSA-4096 needs 550 */

/* A kind is a type of key, with the default provider's functions for it. */
typedef struct {
	const char *name;
	int (*up_ref)(void *key);
	void (*free)(void *key);
	int (*decode)(void *ctx, OSSL_CORE_BIO *in, int selection, OSSL_CALLBACK *cb, void *cb_arg, OSSL_PASSPHRASE_CALLBACK *pw,
		void *pw_arg);
} kind;

static int ec_up_ref(void *key) { return ossl_fn.EC_KEY_up_ref(key); }
static void ec_free(void *key) { ossl_fn.EC_KEY_free(key); }
static int rsa_up_ref(void *key) { return ossl_fn.RSA_up_ref(key); }
static void rsa_free(void *key) { ossl_fn.RSA_free(key); }

static kind ec = {.name = "EC", .up_ref = ec_up_ref, .free = ec_free};
static kind rsa = {.name = "RSA", .up_ref = rsa_up_ref, .free = rsa_free};

typedef struct {
	const kind *k; /* NULL if there is none */
	void *key;     /* a reference */
	size_t len;
	uint8_t der[LONGEST];
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for the next three variables */
static entry entries[SETS][WAYS];
static uint8_t newest[SETS]; /* the way used last */
static uint64_t found;

/* The functions that libcrypto offers a provider for reading. */
static int (*bio_read)(OSSL_CORE_BIO *bio, void *data, size_t len, size_t *n);
static int (*bio_ctrl)(OSSL_CORE_BIO *bio, int cmd, long num, void *ptr);

/*
 * Returns the set of a key, from its last bytes: the end of an EC point, or the exponent and the
 * end of the modulus.
 */
static size_t set_of(const uint8_t *der, size_t len)
{
	size_t i, n = 0;

	for (i = len > 16 ? len - 16 : 0; i < len; i++)
		n = n * 31 + der[i];
	return n % SETS;
}

static int is_of(const entry *e, const kind *k, const uint8_t *der, size_t len)
{
	return e->k == k && e->len == len && memcmp(e->der, der, len) == 0;
}

/* Returns a kept key, with a new reference, or NULL. */
static void *find(const kind *k, const uint8_t *der, size_t len)
{
	size_t set = set_of(der, len), way;
	void *key = NULL;

	pthread_mutex_lock(&lock);
	for (way = 0; !key && way < WAYS; way++) {
		entry *e = &entries[set][way];

		if (is_of(e, k, der, len) && k->up_ref(e->key) == 1) {
			key = e->key;
			newest[set] = (uint8_t)way;
			found++;
		}
	}
	pthread_mutex_unlock(&lock);
	return key;
}

/*
 * Keeps a key, with a new reference, in the place of the least recently used one. Threads that
 * first meet a key at the same time may keep it twice, which does no harm.
 */
static void keep(const kind *k, const uint8_t *der, size_t len, void *key)
{
	size_t set = set_of(der, len);
	const kind *old;
	void *old_key;
	entry *e;

	if (k->up_ref(key) != 1)
		return;
	pthread_mutex_lock(&lock);
	newest[set] = (uint8_t)((newest[set] + 1) % WAYS);
	e = &entries[set][newest[set]];
	old = e->k;
	old_key = e->key;
	e->k = k;
	e->key = key;
	e->len = len;
	memcpy(e->der, der, len);
	pthread_mutex_unlock(&lock);
	if (old)
		old->free(old_key);
}

/*
 * Passes a key to libcrypto as the default provider's decoders do: provider-object(7). Consumes the
 * reference.
 */
static int offer(const kind *k, void *key, OSSL_CALLBACK *cb, void *cb_arg)
{
	int type = (int)OSSL_OSSL_OBJECT_PKEY, ok;
	OSSL_PARAM params[] = {
		param("type", OSSL_OSSL_PARAM_INTEGER, &type, sizeof type),
		param("data-type", OSSL_OSSL_PARAM_UTF8_STRING, k->name, strlen(k->name)),
		param("reference", OSSL_OSSL_PARAM_OCTET_STRING, &key, sizeof key),
		{NULL, 0, NULL, 0, 0},
	};

	ok = cb(params, cb_arg);
	if (key) /* a caller that takes it sets it to NULL */
		k->free(key);
	return ok;
}

/* Observes the default provider's decoder as it passes on the key that it made. */
typedef struct {
	const kind *k;
	OSSL_CORE_BIO *in;
	OSSL_CALLBACK *cb;
	void *cb_arg;
	size_t len;
	uint8_t der[LONGEST];
} witness;

static int see(const OSSL_PARAM *params, void *arg)
{
	const OSSL_PARAM *p;
	const char *rest;
	witness *w = arg;
	void *key = NULL;
	int named = 0;

	for (p = params; p && p->key; p++) {
		if (strcmp(p->key, "data-type") == 0)
			named = p->data_type == OSSL_OSSL_PARAM_UTF8_STRING && p->data && strcmp(p->data, w->k->name) == 0;
		else if (strcmp(p->key, "reference") == 0 && p->data_type == OSSL_OSSL_PARAM_OCTET_STRING && p->data_size == sizeof key)
			memcpy(&key, p->data, sizeof key);
	}
	if (key && named && bio_ctrl(w->in, (int)OSSL_BIO_CTRL_INFO, 0, &rest) == 0) /* it consumed all the bytes */
		keep(w->k, w->der, w->len, key);
	return w->cb(params, w->cb_arg);
}

static int decode(const kind *k, void *ctx, OSSL_CORE_BIO *in, int selection, OSSL_CALLBACK *cb, void *cb_arg,
	OSSL_PASSPHRASE_CALLBACK *pw, void *pw_arg)
{
	const uint8_t *der = NULL;
	witness w;
	size_t n = 0;
	void *key;
	int len;

	if (selection != OSSL_EVP_PKEY_PUBLIC_KEY)
		return k->decode(ctx, in, selection, cb, cb_arg, pw, pw_arg);
	len = bio_ctrl(in, (int)OSSL_BIO_CTRL_INFO, 0, &der); /* the whole input, if it is in memory */
	if (len <= 0 || len > LONGEST || !der)
		return k->decode(ctx, in, selection, cb, cb_arg, pw, pw_arg);
	w.k = k;
	w.in = in;
	w.cb = cb;
	w.cb_arg = cb_arg;
	w.len = (size_t)len;
	memcpy(w.der, der, w.len);
	key = find(k, w.der, w.len);
	if (!key)
		return k->decode(ctx, in, selection, see, &w, pw, pw_arg);
	if (bio_read(in, w.der, w.len, &n) != 1 || n != w.len) { /* decoding counts as successful only if nothing is left */
		k->free(key);
		return 0;
	}
	return offer(k, key, cb, cb_arg);
}

static int ec_decode(void *ctx, OSSL_CORE_BIO *in, int selection, OSSL_CALLBACK *cb, void *cb_arg, OSSL_PASSPHRASE_CALLBACK *pw,
	void *pw_arg)
{
	return decode(&ec, ctx, in, selection, cb, cb_arg, pw, pw_arg);
}

static int rsa_decode(void *ctx, OSSL_CORE_BIO *in, int selection, OSSL_CALLBACK *cb, void *cb_arg, OSSL_PASSPHRASE_CALLBACK *pw,
	void *pw_arg)
{
	return decode(&rsa, ctx, in, selection, cb, cb_arg, pw, pw_arg);
}

/*
 * Copies a decoder's functions and replaces the one that decodes; the table keeps the copy. Returns
 * 1 or 0.
 */
static int wrap(kind *k, OSSL_ALGORITHM *a, void (*ours)(void))
{
	OSSL_DISPATCH *functions;
	size_t i, n;

	for (n = 0; a->functions[n].function_id != 0; n++)
		;
	functions = calloc(n + 1, sizeof *functions);
	if (!functions)
		return 0;
	for (i = 0; i < n; i++) {
		functions[i] = a->functions[i];
		if (a->functions[i].function_id == OSSL_OSSL_FUNC_DECODER_DECODE) {
			k->decode = (int (*)(void *, OSSL_CORE_BIO *, int, OSSL_CALLBACK *, void *, OSSL_PASSPHRASE_CALLBACK *, void *))
				a->functions[i].function;
			functions[i].function = ours;
		}
	}
	a->functions = functions;
	return k->decode != NULL;
}

int slim_keys_setup(OSSL_ALGORITHM *decoders, const OSSL_DISPATCH *core)
{
	static int done;
	OSSL_ALGORITHM *a;

	if (done) /* another shard comes to the same table, which is in use */
		return 1;
	for (; core && core->function_id != 0; core++) {
		if (core->function_id == OSSL_OSSL_FUNC_BIO_READ_EX)
			bio_read = (int (*)(OSSL_CORE_BIO *, void *, size_t, size_t *))core->function;
		else if (core->function_id == OSSL_OSSL_FUNC_BIO_CTRL)
			bio_ctrl = (int (*)(OSSL_CORE_BIO *, int, long, void *))core->function;
	}
	if (ossl_fn.OpenSSL_version_num() >= OSSL_V4_1 || !bio_read || !bio_ctrl || !ossl_fn.EC_KEY_up_ref || !ossl_fn.EC_KEY_free ||
		!ossl_fn.RSA_up_ref || !ossl_fn.RSA_free)
		return done = 1;
	for (a = decoders; a->names; a++) {
		if (!slim_is_public_key(a))
			continue;
		if (!ec.decode && slim_is_named(a, ec.name) && !wrap(&ec, a, (void (*)(void))ec_decode))
			return 0;
		if (!rsa.decode && slim_is_named(a, rsa.name) && !wrap(&rsa, a, (void (*)(void))rsa_decode))
			return 0;
	}
	return done = 1;
}

uint64_t ossl_slim_keys_found(void)
{
	uint64_t n;

	pthread_mutex_lock(&lock);
	n = found;
	pthread_mutex_unlock(&lock);
	return n;
}

int ossl_slim_keys_kept(void) { return ec.decode && rsa.decode; }
