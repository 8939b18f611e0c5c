/*
 * Records of an established connection, sealed and opened here instead of by libssl. Private to the
 * C files of this package.
 *
 * A traffic is one direction: its secret, its AEAD, its sequence number. It has one owner, a conn,
 * and is never copied: a nonce is made from the sequence number, and a repeated one would reveal
 * the key. Any failure while a record is sealed makes the traffic unusable.
 */
#ifndef OSSL_TRAFFIC_H
#define OSSL_TRAFFIC_H

#include "shim.h"
#include "table.h"

enum { MAX_SECRET = 48, NONCE = 12, TAG = 16, RECORD_HEADER = 5, RECORD_TEXT = 16384 };

/*
 * The algorithms fetched from libcrypto for a context: AEADs and key derivation functions, NULL if
 * libcrypto lacks them.
 */
typedef struct {
	const EVP_CIPHER *aead[3]; /* by suite.aead */
	EVP_KDF *expand, *prf;     /* TLS13-KDF and TLS1-PRF; 1.1.1 has neither, so HMAC is used */
	const EVP_MD *hash[2];     /* by suite.sha384: SHA-256 and SHA-384 */
	OSSL_LIB_CTX *lib;         /* the library context that they come from */
	int shard;                 /* of the slim library context, from which the key derivations come if it is used */
	uint8_t fips;              /* FIPS mode, or default properties that require it */
	uint8_t whole_nonce[3];    /* for each AEAD: its nonce can be set as one parameter, which is faster */
} algorithms;

int algorithms_fetch(algorithms *a, OSSL_LIB_CTX *lib, int shard, int fips);
void algorithms_free(algorithms *a);

/* A cipher suite whose records can be sealed and opened here. */
typedef struct {
	uint16_t id;
	uint8_t tls13, aead, sha384, key_len, explicit_nonce;
} suite;

/* Returns the suite, or NULL if its records are left to libssl. */
const suite *suite_of(const algorithms *a, uint16_t id);
static inline size_t hash_len(const suite *s) { return s->sha384 ? 48 : 32; }

/*
 * Who seals with this key: this process, the kernel, or nobody yet (the kernel's next key).
 */
enum { KEY_HERE, KEY_EXPORTED, KEY_NEXT };

typedef struct {
	const suite *suite;
	EVP_CIPHER_CTX *aead; /* with its key; NULL until it is needed */
	uint64_t seq;         /* of the next record */
	uint64_t nonce;       /* in TLS 1.2 with GCM: the explicit nonce of the next record to seal */
	uint8_t iv[NONCE];
	uint8_t secret[MAX_SECRET]; /* in TLS 1.3: the traffic secret; in TLS 1.2: the key, until aead has it */
	uint8_t sealing, dead, whole_nonce, exported; /* exported: KEY_… */
} traffic;

/* Ends a direction, and wipes its keys. */
void traffic_clear(traffic *t);

/*
 * Fills the kernel's description of the next record's key, nonces and number. Nothing changes: if
 * the kernel accepts it, traffic_exported must be called at once, otherwise not at all. Returns 0
 * if the key is gone, or the kernel has it.
 */
int traffic_export(const algorithms *a, traffic *t, ossl_kernel_key *to);

/*
 * Ends sealing here, because the kernel seals. In TLS 1.3 the secret stays, for traffic_update; all
 * else is wiped.
 */
void traffic_exported(traffic *t);

/* Advances to the next traffic secret: RFC 8446, section 7.2. Returns 1 or 0. */
int traffic_update(const algorithms *a, traffic *t);

/*
 * Seals n <= RECORD_TEXT bytes into a record at out, which has room for n + SEALED_EXPANSION.
 * Returns its length, 0 on failure.
 */
enum { SEALED_EXPANSION = RECORD_HEADER + 8 + 1 + TAG };
size_t traffic_seal(const algorithms *a, traffic *t, uint8_t type, const uint8_t *from, size_t n, uint8_t *out);

/*
 * Reports whether a suite's AEAD seals, opens, and refuses changed records, with the calls that are
 * used here.
 */
int traffic_works(const algorithms *a, const suite *s);

/*
 * Reports whether a suite's records are identical, with the same nonces, with both sets of
 * algorithms.
 */
int traffic_same(const algorithms *a, const algorithms *b, const suite *s);

/* HKDF-Expand-Label: RFC 8446, section 7.1. Returns 1 or 0. */
int expand_label(const algorithms *a, const suite *s, const uint8_t *secret, const char *label, size_t label_len,
	const uint8_t *context, size_t context_len, uint8_t *out, size_t len);

/* The TLS 1.2 PRF: RFC 5246, section 5. Returns 1 or 0. */
int prf(const algorithms *a, const suite *s, const uint8_t *secret, size_t secret_len, const char *label, size_t label_len,
	const uint8_t *seed, size_t seed_len, uint8_t *out, size_t len);

#endif
