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

#endif
