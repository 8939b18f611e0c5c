/* Which files libcrypto loads providers and engines from: modules.c. */
#ifndef OSSL_MODULES_H
#define OSSL_MODULES_H

/* The files that libcrypto loads as it reads the host's openssl.cnf. To be called between ossl_load and ossl_use, which has that
 * file read, and by nobody else at the time. Returns give (free): paths, each with its 0, and another 0 behind the last; or NULL
 * if there are none. CONF_modules_load(3), config(5). */
char *ossl_modules_of_config(void);

/* The file that OSSL_PROVIDER_load would load a provider from for the default library context. name: borrow.
 * Returns give (free), a list of one as above, or NULL: it is there already, or is libcrypto's own, or memory is short.
 * OSSL_PROVIDER_load(3). */
char *ossl_module_of_provider(const char *name);

#endif
