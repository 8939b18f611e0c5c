/*
 * Records of an established connection, sealed and opened here instead of by libssl. Private to the C files of this package.
 *
 * A traffic is one direction: its secret, its AEAD, its sequence number. It has one owner, a conn, and is never copied: a nonce
 * is made of the sequence number, and two of a kind would give the key away. Whatever fails while a record is sealed ends it.
 */
#ifndef OSSL_TRAFFIC_H
#define OSSL_TRAFFIC_H

#include "shim.h"
#include "table.h"

enum { MAX_SECRET = 48, NONCE = 12, TAG = 16, RECORD_HEADER = 5, RECORD_TEXT = 16384 };

/* What is fetched of libcrypto for a context: the AEADs and the key derivation functions, NULL where it has none. */
typedef struct {
	const EVP_CIPHER *aead[3]; /* by suite.aead */
	EVP_KDF *expand, *prf;     /* TLS13-KDF and TLS1-PRF; 1.1.1 has neither and does with HMAC */
	const EVP_MD *hash[2];     /* by suite.sha384: SHA-256 and SHA-384 */
	OSSL_LIB_CTX *lib;         /* what they come from */
	uint8_t fips;              /* FIPS mode, or default properties that ask for it */
	uint8_t whole_nonce[3];    /* of the AEADs: their nonce can be set as one parameter, which is faster */
} algorithms;

int algorithms_fetch(algorithms *a, OSSL_LIB_CTX *lib, int fips);
void algorithms_free(algorithms *a);

/* A cipher suite whose records can be sealed and opened here. */
typedef struct {
	uint16_t id;
	uint8_t tls13, aead, sha384, key_len, explicit_nonce;
} suite;

/* The suite, or NULL if its records are left to libssl. */
const suite *suite_of(const algorithms *a, uint16_t id);
static inline size_t hash_len(const suite *s) { return s->sha384 ? 48 : 32; }

/* Who has the key that seals: this process; the kernel; nobody yet of the next one, which is for the kernel too. */
enum { KEY_HERE, KEY_EXPORTED, KEY_NEXT };

typedef struct {
	const suite *suite;
	EVP_CIPHER_CTX *aead; /* with its key; NULL until it is needed */
	uint64_t seq;         /* of the next record */
	uint64_t nonce;       /* TLS 1.2 with GCM: the explicit nonce of the next record to seal */
	uint8_t iv[NONCE];
	uint8_t secret[MAX_SECRET]; /* TLS 1.3: the traffic secret; TLS 1.2: the key, until aead has it */
	uint8_t sealing, dead, whole_nonce, exported; /* exported: KEY_… */
} traffic;

/* Ends a direction: nothing of its keys is left. */
void traffic_clear(traffic *t);

/* Gives the key of the next record, its nonces and its number to the kernel's description of them. Nothing changes: if the
 * kernel takes them, traffic_exported must follow at once, and else nothing. Returns 0 if the key is gone, or the kernel's. */
int traffic_export(const algorithms *a, traffic *t, ossl_kernel_key *to);

/* From now on the kernel seals. In TLS 1.3 the secret stays, for traffic_update; nothing else does. */
void traffic_exported(traffic *t);

/* Goes on to the next traffic secret: RFC 8446, section 7.2. Returns 1 or 0. */
int traffic_update(const algorithms *a, traffic *t);

/* Seals n <= RECORD_TEXT bytes into a record at out, which has room for n + SEALED_EXPANSION. Returns its length, 0 on
 * failure. */
enum { SEALED_EXPANSION = RECORD_HEADER + 8 + 1 + TAG };
size_t traffic_seal(const algorithms *a, traffic *t, uint8_t type, const uint8_t *from, size_t n, uint8_t *out);

/* Whether a suite's AEAD seals, opens, and refuses what was changed, by the calls that are made of it here. */
int traffic_works(const algorithms *a, const suite *s);

/* Whether a suite's records are the same byte by byte, nonce for nonce, with both sets of algorithms. */
int traffic_same(const algorithms *a, const algorithms *b, const suite *s);

/* HKDF-Expand-Label: RFC 8446, section 7.1. Returns 1 or 0. */
int expand_label(const algorithms *a, const suite *s, const uint8_t *secret, const char *label, size_t label_len,
	const uint8_t *context, size_t context_len, uint8_t *out, size_t len);

/* The PRF of TLS 1.2: RFC 5246, section 5. Returns 1 or 0. */
int prf(const algorithms *a, const suite *s, const uint8_t *secret, size_t secret_len, const char *label, size_t label_len,
	const uint8_t *seed, size_t seed_len, uint8_t *out, size_t len);

#endif
