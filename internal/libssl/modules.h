/* The files that libcrypto loads providers and engines from: modules.c. */
#ifndef OSSL_MODULES_H
#define OSSL_MODULES_H

#include "config.h"

/*
 * Returns the files that libcrypto loads when it reads the host's openssl.cnf. It must be called
 * between ossl_load_begin and ossl_use, which reads that file. conf: borrow, NULL if it is unknown.
 * Returns give (free): paths, each with its 0, and another 0 after the last; or NULL if there are
 * none. CONF_modules_load(3), config(5).
 */
char *ossl_modules_of_config(const ossl_config *conf);

/*
 * Reports whether that file sets up nothing that the slim library context would lack, 1 or 0: slim.c.
 * It was read by ossl_modules_of_config.
 */
int modules_allow_slim(void);

/*
 * Returns the file from which OSSL_PROVIDER_load would load a provider for the default library
 * context. conf, name: borrow, conf nullable. Returns give (free), a list of one as above, or NULL:
 * it is loaded already, or part of libcrypto, or memory is short. OSSL_PROVIDER_load(3).
 */
char *ossl_module_of_provider(const ossl_config *conf, const char *name);

#endif
