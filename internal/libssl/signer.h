/*
 * Keys that only Go can use: declarations shared by signer.c, signer_provider.c and
 * signer_engine.c.
 */
#ifndef OSSL_SIGNER_H
#define OSSL_SIGNER_H

#include "private.h"

/* The signature algorithms at OSSL_NEED_SIGN. */
enum { SIGN_RSA_PKCS1 = 1, SIGN_RSA_PSS = 2, SIGN_ECDSA = 3, SIGN_ED25519 = 4, SIGN_MLDSA = 5 };

/* The form of the input: the message or its digest. */
enum { SIGN_MESSAGE = 0, SIGN_DIGEST = 1 };

/* Hash functions by Go's numbers, crypto.Hash. */
enum { GO_NO_HASH = 0, GO_SHA1 = 3, GO_SHA224 = 4, GO_SHA256 = 5, GO_SHA384 = 6, GO_SHA512 = 7 };

/*
 * Asks Go to sign tbs for the connection whose handshake this thread is in. Returns the length of
 * the signature in sig, at most cap, or 0 if signing failed or there is no such connection.
 */
size_t ossl_sign(uintptr_t signer, int algorithm, int hash, int form, const uint8_t *tbs, size_t tbs_len, uint8_t *sig,
	size_t cap);

/*
 * Make a private key for pub (borrow) that signs with signer: a provider's on 3.0 and later, an
 * engine's on 1.1.1. shard: that of the connections that use it. Return give (EVP_PKEY_free) or NULL,
 * also for unsupported kinds of keys.
 */
EVP_PKEY *ossl_provider_key(EVP_PKEY *pub, uintptr_t signer, int shard);
EVP_PKEY *ossl_engine_key(EVP_PKEY *pub, uintptr_t signer);

#endif
