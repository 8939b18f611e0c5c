/* The slim library context: slim.c. */
#ifndef OSSL_SLIM_H
#define OSSL_SLIM_H

#include "provider.h"

/* Reports whether the library's version and the host's configuration allow the slim library context: 1 or 0. */
int ossl_slim_allowed(void);

/*
 * Makes the slim library context, the first shard, if the host's configuration allows it. processors: the
 * number of those that the process uses. Called after the library is loaded, by one thread at a time, and no
 * more once it has returned 1 or 0. Returns 1, 0 if the slim context is not used, or -1 if memory is short.
 * OSSL_LIB_CTX(3), OSSL_PROVIDER(3).
 */
int ossl_slim_setup(int processors);

/* Reports whether a thread can know its processor, without which only the first shard is used: 1 or 0. */
int ossl_shard_known(void);

/* Makes all connections start in one shard, or if it is -1 in that of the processor. For tests. */
void ossl_shard_pin(int shard);

/*
 * Reports whether openssl.cnf sets up nothing that would be missing in another library context:
 * config(5). Providers are checked once they are loaded; ssl_conf and oid_section apply to the whole
 * process. An empty section has no effect. conf: borrow.
 */
int slim_is_plain_config(const CONF *conf);

/* Returns the slim library context, or NULL if it is not used, or not now. Borrow. */
OSSL_LIB_CTX *ossl_slim_library(void);

/*
 * The shards, numbered from 0, which is ossl_slim_library's. slim_shard returns the one for the
 * processor that runs this thread if there are n. slim_ready makes a shard that is missing: 1, or 0 with
 * an error if memory is short. slim_library then returns it, NULL as above. Borrow.
 */
int slim_shard(int n);
int slim_ready(int shard);
OSSL_LIB_CTX *slim_library(int shard);

/* A table that replaces a DRBG's. slim_random_setup fills it: slimrand.c. provider-rand(7). */
extern OSSL_DISPATCH slim_random[];
void slim_random_setup(void);

/*
 * Moves a private key to a shard of the slim library context, if that is used and has keys of its type,
 * and returns it there; otherwise returns key. Consumes key: slimown.c.
 */
EVP_PKEY *slim_own_key(EVP_PKEY *key, int shard);

/* Returns the key of a credential for the connections of ctx. Borrow (cred's): slimown.c. */
EVP_PKEY *cred_key(ossl_cred *cred, const ossl_ctx *ctx);

/*
 * A table that replaces HMAC's. slim_mac_setup fills it: slimmac.c. functions are the default
 * provider's own, on which the table falls back. Returns 1, or 0 if any function is missing.
 * provider-mac(7).
 */
extern OSSL_DISPATCH slim_hmac[];
int slim_mac_setup(const OSSL_DISPATCH *functions);

/*
 * For tests. The first reports whether slim_hmac returns the same bytes as the default provider's
 * HMAC, 1 or 0. The second sets or clears the result that it doesn't.
 */
int slim_mac_same(void);
void slim_mac_distrust(int on);

/* Returns the default provider's context, which algorithms of the first shard get when they are used. Borrow. */
void *slim_host_ctx(void);

/* Returns the library context that a context of the default provider belongs to. Borrow. */
OSSL_LIB_CTX *slim_holder(const void *host_ctx);

/*
 * Returns the length of an HMAC by the slim library context, computed at once and in parts, or 0 on
 * failure. out: room for 64 bytes. For tests. EVP_Q_mac(3).
 */
int ossl_slim_hmac(const char *digest, const uint8_t *key, size_t key_len, const uint8_t *data, size_t len, uint8_t *out);

/* Reports whether an entry of a table has this name; its names are separated by colons. */
int slim_is_named(const OSSL_ALGORITHM *a, const char *name);

/* Reports whether an entry of a table of decoders is for a DER SubjectPublicKeyInfo. */
int slim_is_public_key(const OSSL_ALGORITHM *a);

/*
 * Replaces a table's decoders for EC and RSA keys in certificates by ones that keep the decoded
 * keys: slimkey.c. Does nothing with untested versions. core: the argument of provider_init.
 * Returns 1, or 0 if memory is short. provider-decoder(7).
 */
int slim_keys_setup(OSSL_ALGORITHM *decoders, const OSSL_DISPATCH *core);

/*
 * Return the number of certificates' keys that did not have to be decoded, and whether any are
 * kept, 1 or 0. For tests.
 */
uint64_t ossl_slim_keys_found(void);
int ossl_slim_keys_kept(void);

#endif
