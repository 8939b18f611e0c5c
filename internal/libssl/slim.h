/* The slim library context: slim.c. */
#ifndef OSSL_SLIM_H
#define OSSL_SLIM_H

#include "provider.h"

/* Makes the slim library context, if the host's configuration allows it. Called once the library is loaded and before anything
 * else. Returns 1, or 0 if it is not used. OSSL_LIB_CTX(3), OSSL_PROVIDER(3). */
int ossl_slim_setup(void);

/* The slim library context, or NULL if it is not used, or not now. Borrow. */
OSSL_LIB_CTX *ossl_slim_library(void);

/* A table in the place of a DRBG's, which slim_random_setup fills: slimrand.c. provider-rand(7). */
extern OSSL_DISPATCH slim_random[];
void slim_random_setup(void);

/* Whether an entry of a table has this name; its names are separated by colons. */
int slim_is_named(const OSSL_ALGORITHM *a, const char *name);

/* Whether an entry of a table of decoders is for a DER SubjectPublicKeyInfo. */
int slim_is_public_key(const OSSL_ALGORITHM *a);

/* Puts decoders that keep what they decode in the place of a table's for EC and RSA keys in certificates: slimkey.c. Nothing
 * changes with versions that it isn't known for. core is what provider_init is given. Returns 1, or 0 if memory is short.
 * provider-decoder(7). */
int slim_keys_setup(OSSL_ALGORITHM *decoders, const OSSL_DISPATCH *core);

/* How many keys of certificates didn't have to be decoded, and whether any are kept, 1 or 0. For tests. */
uint64_t ossl_slim_keys_found(void);
int ossl_slim_keys_kept(void);

#endif
