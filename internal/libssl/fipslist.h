/* The modules that FIPS mode may use: fipslist.c. */
#ifndef OSSL_FIPSLIST_H
#define OSSL_FIPSLIST_H

#include "private.h"

/* A module that is known, and the marks by which it is recognized once it is loaded. */
typedef struct {
	const char *name;     /* the provider's name, in openssl.cnf and for OSSL_PROVIDER_load(3) */
	const char *title;    /* the provider's own name for itself, nullable */
	const char *property; /* its algorithms are defined with this property */
	const char *core;     /* a function of the library that is the validated module, or NULL if the provider is */
} fips_listed;

/* OpenSSL's own module, which is the first of the list. */
extern const fips_listed *const fips_own;

/*
 * Returns the other module that the configuration of the host activates, or NULL. section: set to
 * the name of the provider's section (borrowed from conf).
 */
const fips_listed *fips_other(const CONF *conf, const char **section);

/*
 * Reports whether a provider that was loaded under a name of the list is that module: 1, or 0 with
 * the reason in report. Its algorithms must be the only ones that the library context has.
 * OSSL_PROVIDER_get_params(3), property(7).
 */
int fips_is_listed(const fips_listed *l, OSSL_LIB_CTX *lib, OSSL_PROVIDER *p, char *report, size_t size);

/*
 * Reports whether the module and "base" are the only providers of a library context, an approved
 * digest comes from the module, and algorithms that aren't approved are not available: 1 or 0.
 * Modules other than OpenSSL's own have MD5, and declare it fips=yes; neither libssl nor ossl uses
 * it in FIPS mode. OSSL_PROVIDER_do_all(3), EVP_MD_fetch(3).
 */
int fips_is_tight(const fips_listed *l, OSSL_LIB_CTX *lib);

/*
 * Writes the path of a provider's file, and of the library that is the validated module, if that is
 * another one. provider, core: PATH_MAX bytes each, "" if unknown. dladdr(3).
 */
void fips_paths(const fips_listed *l, OSSL_PROVIDER *p, char *provider, char *core);

#endif
