/*
 * Keys and certificates by store URI, and operations of such keys: store.c. Crossings, as in
 * shim.h.
 */
#ifndef OSSL_STORE_H
#define OSSL_STORE_H

#include "shim.h"

/* A private key that OpenSSL or a provider holds. Any number of threads may use it. */
typedef struct ossl_key ossl_key;

/* The kind of objects to load. */
enum { OSSL_STORE_KEYS = 1, OSSL_STORE_CERTS = 2 };

/* The objects in a store. */
typedef struct {
	ossl_key *key;  /* give (ossl_key_free): the first one, nullable */
	int32_t keys;   /* the total number of keys */
	uint8_t *certs; /* give (ossl_loaded_free), nullable: DER, each preceded by its length in 4 bytes, big-endian */
	size_t certs_len;
	int32_t objects;  /* those that were read, of all types */
	int32_t names;    /* names of other stores: the URI names a folder */
	int32_t unserved; /* no active provider supports the URI's scheme */
} ossl_loaded;

/*
 * Loads keys or certificates. May call Go: osslGoPassphrase, with ask, once for each encrypted
 * object and for each login. uri: borrow. file: 1 or 0, whether it is a file's. loaded: filled, on
 * failure too. Returns 1, or 0 with errors. OSSL_STORE_open(3).
 */
int ossl_store_load(const char *uri, int file, int what, uintptr_t ask, ossl_loaded *loaded, unsigned long *errors);

/* Frees loaded's contents, except for the key. */
void ossl_loaded_free(ossl_loaded *loaded);

/*
 * Loads a provider into the process's default library context, where it stays. The providers that
 * are active without configuration stay active too. Returns 1 (also if it is already loaded), or 0
 * with errors. Not for 1.1.1. OSSL_PROVIDER_try_load(3).
 */
int ossl_provider_load(const char *name, unsigned long *errors);

/*
 * Prevents providers from asking for a PIN at the process's terminal, unless the process has chosen
 * its own way of asking. UI_set_default_method(3).
 */
void ossl_prompt_never(void);

/* Releases the key; credentials keep their own reference. EVP_PKEY_free(3). */
void ossl_key_free(ossl_key *key);

/*
 * Writes the key's SubjectPublicKeyInfo to out. Returns its length, or 0 with errors.
 * i2d_PUBKEY(3).
 */
size_t ossl_key_public(ossl_key *key, uint8_t *out, size_t cap, unsigned long *errors);

/*
 * Returns the name of the key's provider (borrow, valid as long as the key), NULL on 1.1.1.
 * EVP_PKEY_get0_provider(3).
 */
const char *ossl_key_provider(ossl_key *key);

/*
 * Signs a digest, or a message with Ed25519 and ML-DSA. algorithm: as in signer.h. hash: nullable,
 * OpenSSL's name. salt: PSS only, in the form of EVP_PKEY_CTX_ctrl_str. Returns the length of the
 * signature in sig, or 0 with errors. EVP_PKEY_sign(3).
 */
size_t ossl_key_sign(ossl_key *key, int algorithm, const char *hash, const char *salt, const uint8_t *tbs, size_t tbs_len,
	uint8_t *sig, size_t cap, unsigned long *errors);

/* Is like ossl_cred_new with key: borrow (a reference is taken). */
ossl_cred *ossl_cred_new_key(const uint8_t *chain, size_t chain_len, ossl_key *key, const char *sigalgs,
	const uint8_t *staple, size_t staple_len, const uint8_t *scts, size_t scts_len, unsigned long *errors);

#endif
