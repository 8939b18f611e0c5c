/* The slim library context of OpenSSL 3.0 and 3.1: slim.c. */
#ifndef OSSL_SLIM_H
#define OSSL_SLIM_H

/* Makes the slim library context, if this library gains by it and the host's configuration allows it. Called once the library is
 * loaded and before anything else. Returns 1, or 0 if it is not used. OSSL_LIB_CTX(3), OSSL_PROVIDER(3). */
int ossl_slim_setup(void);

#endif
