/* SHA-256 and SHA-384, and HMAC with them, by libcrypto's functions: sha2.c. */
#ifndef OSSL_SHA2_H
#define OSSL_SHA2_H

#include "private.h"

enum { SHA2_MAX = 48, SHA2_MAX_BLOCK = 128 };

/* SHA256_CTX has 112 bytes and SHA512_CTX, which SHA-384 uses, 216; neither has ever changed. */
typedef union {
	uint64_t align;
	uint8_t sha256[112], sha512[216];
} sha2_state;

typedef struct {
	int sha384;
	size_t size, block, state;
} sha2_hash;

/* SHA-256 and SHA-384. */
extern const sha2_hash sha2_hashes[2];

/* Reports whether libcrypto has the functions, 1 or 0. Nothing here may be used if not. */
int sha2_available(void);

/* Returns the hash with this name, which may be any of libcrypto's names for it, or NULL. */
const sha2_hash *sha2_named(const char *name);

/* They return 1, or 0 on failure. SHA256_Init(3). */
int sha2_begin(const sha2_hash *h, sha2_state *s);
int sha2_add(const sha2_hash *h, sha2_state *s, const void *data, size_t len);
int sha2_end(const sha2_hash *h, sha2_state *s, uint8_t *out);
int sha2_digest(const sha2_hash *h, const void *data, size_t len, uint8_t *out);

/* HMAC: RFC 2104. A key's two states serve for any number of messages. */
typedef struct {
	const sha2_hash *h;
	sha2_state inner, outer, running;
} hmac;

int hmac_key(hmac *m, const sha2_hash *h, const uint8_t *key, size_t len);
void hmac_begin(hmac *m);
int hmac_add(hmac *m, const void *data, size_t len);
int hmac_end(hmac *m, uint8_t *out);
void hmac_clear(hmac *m);

/*
 * The result of comparing an algorithm that is written anew here: for each hash, whether it returns
 * the same bytes as the default provider's algorithm. UNKNOWN until the first use; atomic.
 */
typedef struct {
	int known[2];
} sha2_verdict;

/*
 * Reports whether compare returns 1 for a hash. It is called once. If it returns 0, the default
 * provider's algorithm must be used.
 */
int sha2_same(sha2_verdict *v, const sha2_hash *h, int (*compare)(const sha2_hash *h));

/* Sets the verdict that the bytes differ, or forgets the verdict. For tests. */
void sha2_distrust(sha2_verdict *v, int on);

#endif
