/*
 * libcrypto's SHA-2 over a state that the caller has, on the stack for example. EVP_MD and EVP_MAC
 * look up, copy and allocate; here nothing does. It is for the slim library context (slim.c) alone:
 * FIPS mode uses no cryptography but the module's.
 */

#include "sha2.h"

#include <pthread.h>
#include <string.h>

int sha2_available(void)
{
	return ossl_fn.SHA256_Init && ossl_fn.SHA256_Update && ossl_fn.SHA256_Final && ossl_fn.SHA384_Init &&
		ossl_fn.SHA384_Update && ossl_fn.SHA384_Final;
}

const sha2_hash sha2_hashes[2] = {{0, 32, 64, 112}, {1, 48, 128, 216}};

int sha2_begin(const sha2_hash *h, sha2_state *s)
{
	return (h->sha384 ? ossl_fn.SHA384_Init((SHA512_CTX *)s) : ossl_fn.SHA256_Init((SHA256_CTX *)s)) == 1;
}

int sha2_add(const sha2_hash *h, sha2_state *s, const void *data, size_t len)
{
	return len == 0 ||
		(h->sha384 ? ossl_fn.SHA384_Update((SHA512_CTX *)s, data, len) : ossl_fn.SHA256_Update((SHA256_CTX *)s, data, len)) == 1;
}

int sha2_end(const sha2_hash *h, sha2_state *s, uint8_t *out)
{
	return (h->sha384 ? ossl_fn.SHA384_Final(out, (SHA512_CTX *)s) : ossl_fn.SHA256_Final(out, (SHA256_CTX *)s)) == 1;
}

int sha2_digest(const sha2_hash *h, const void *data, size_t len, uint8_t *out)
{
	sha2_state s;

	return sha2_begin(h, &s) && sha2_add(h, &s, data, len) && sha2_end(h, &s, out);
}

int hmac_key(hmac *m, const sha2_hash *h, const uint8_t *key, size_t len)
{
	uint8_t block[SHA2_MAX_BLOCK] = {0};
	size_t i;
	int ok = 1;

	m->h = h;
	if (len > h->block)
		ok = sha2_begin(h, &m->running) && sha2_add(h, &m->running, key, len) && sha2_end(h, &m->running, block);
	else if (len > 0)
		memcpy(block, key, len);
	for (i = 0; i < h->block; i++)
		block[i] ^= 0x36;
	ok = ok && sha2_begin(h, &m->inner) && sha2_add(h, &m->inner, block, h->block);
	for (i = 0; i < h->block; i++)
		block[i] ^= 0x36 ^ 0x5c;
	ok = ok && sha2_begin(h, &m->outer) && sha2_add(h, &m->outer, block, h->block);
	ossl_fn.OPENSSL_cleanse(block, sizeof block);
	return ok;
}

void hmac_begin(hmac *m) { memcpy(&m->running, &m->inner, m->h->state); }

int hmac_add(hmac *m, const void *data, size_t len) { return sha2_add(m->h, &m->running, data, len); }

int hmac_end(hmac *m, uint8_t *out)
{
	if (!sha2_end(m->h, &m->running, out))
		return 0;
	memcpy(&m->running, &m->outer, m->h->state);
	return sha2_add(m->h, &m->running, out, m->h->size) && sha2_end(m->h, &m->running, out);
}

void hmac_clear(hmac *m)
{
	sha2_state *const states[] = {&m->inner, &m->outer, &m->running};
	size_t i;

	for (i = 0; i < 3; i++)
		ossl_fn.OPENSSL_cleanse(states[i], m->h->state); /* the part in use: a handshake clears some 20 */
}

const sha2_hash *sha2_named(const char *name)
{
	static const char *const names[][3] = {{"SHA2-256", "SHA256", "SHA-256"}, {"SHA2-384", "SHA384", "SHA-384"}};
	size_t i, k;

	for (i = 0; i < 2; i++)
		for (k = 0; k < 3; k++)
			if (strcmp(name, names[i][k]) == 0)
				return &sha2_hashes[i];
	return NULL;
}

enum { UNKNOWN, SAME, DIFFERENT };

int sha2_same(sha2_verdict *v, const sha2_hash *h, int (*compare)(const sha2_hash *h))
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int *verdict = &v->known[h->sha384];
	int known = __atomic_load_n(verdict, __ATOMIC_ACQUIRE);

	if (known == UNKNOWN) {
		pthread_mutex_lock(&lock);
		known = __atomic_load_n(verdict, __ATOMIC_ACQUIRE);
		if (known == UNKNOWN) {
			known = compare(h) ? SAME : DIFFERENT;
			__atomic_store_n(verdict, known, __ATOMIC_RELEASE);
		}
		pthread_mutex_unlock(&lock);
	}
	return known == SAME;
}

void sha2_distrust(sha2_verdict *v, int on)
{
	int i;

	for (i = 0; i < 2; i++)
		__atomic_store_n(&v->known[i], on ? DIFFERENT : UNKNOWN, __ATOMIC_RELEASE);
}
