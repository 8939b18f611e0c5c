/*
 * FIPS mode: a separate library context, with the host's FIPS module and no other cryptography.
 * Conventions as in shim.h.
 */
#ifndef OSSL_FIPS_H
#define OSSL_FIPS_H

#include "config.h"
#include "shim.h"

/* The reason why FIPS mode is not available. */
enum {
	OSSL_FIPS_READY = 0,
	OSSL_FIPS_NOT_IN_LIBRARY = 1, /* 1.1.1 without a FIPS module, or not in FIPS mode */
	OSSL_FIPS_FAILED = 2,         /* the module is missing, not configured, or its self-test failed */
	OSSL_FIPS_NO_BASE = 3,        /* no base provider */
	OSSL_FIPS_NOT_CONFIGURED = 5, /* as 2, because the configuration has no checksum for the module */
	OSSL_FIPS_ANOTHER = 6,        /* the provider is not the module that it is named for */
	OSSL_FIPS_LEAKS = 4,          /* an algorithm came from elsewhere, or one that is not approved was available */
};

/* The files with the module's configuration: openssl.cnf, and fipsmodule.cnf beside it. Nullable, borrow. */
typedef struct {
	const ossl_config *host, *beside;
} ossl_fips_files;

/* Reports whether openssl.cnf has the module's section, so that the file beside it doesn't count: 1 or 0. */
int ossl_fips_in_config(const ossl_config *host);

/*
 * Makes the library context, once: later calls return OSSL_FIPS_READY at once. Must not be called
 * by two threads at a time. process: on 1.1.1, whether FIPS mode may be turned on for the whole
 * process. report: filled with the failure, 0-terminated. fips_module(7), OSSL_PROVIDER(3),
 * FIPS_mode_set(3).
 */
int ossl_fips_setup(const ossl_fips_files *from, int process, char *report, size_t size);

/*
 * Is like ossl_fips_setup with a library context that is freed again at once: reports whether FIPS
 * mode could be set up now.
 */
int ossl_fips_try(const ossl_fips_files *from, char *report, size_t size);

/*
 * Returns the configuration for a new library context: give (free), 0-terminated, or NULL. For
 * tests.
 */
char *ossl_fips_configuration(const ossl_fips_files *from);

/*
 * Returns the file that a new library context would load the module from, as a list of one:
 * modules.h. Give (free), or NULL if it is unknown, as on 1.1.1. OPENSSL_info(3), config(5).
 */
char *ossl_fips_module_file(const ossl_fips_files *from);

/*
 * Reports whether the host requires FIPS in the default library context, by its default properties
 * or on 1.1.1 by FIPS mode: 1 or 0. EVP_default_properties_is_fips_enabled(3).
 */
int ossl_fips_by_host(void);

/*
 * The module in use. Texts are borrowed and stay valid, or "". running: 1 if the module reports
 * that now. OSSL_PROVIDER_get_params(3).
 */
typedef struct {
	const char *name, *version, *build;
	int32_t running;
} ossl_fips_info;
int ossl_fips_module(ossl_fips_info *info);

/*
 * Returns the path of the file that the module's code was loaded from (borrow, static), or "".
 * dladdr(3).
 */
const char *ossl_fips_path(void);

/*
 * Returns the path of the library that is the validated module, if the provider only calls it
 * (borrow, static), or "". dlsym(3), dladdr(3).
 */
const char *ossl_fips_core_path(void);

/*
 * Returns the name of the provider that is in use or, before it is set up, of the one that would be
 * (borrow, static); "" on 1.1.1. from: nullable once it is set up.
 */
const char *ossl_fips_provider(const ossl_fips_files *from);

/*
 * Returns the providers that openssl.cnf activates and that are neither OpenSSL's nor known as FIPS
 * modules: give (free), their names, each with its 0, and another 0, or NULL if there are none.
 */
char *ossl_fips_unlisted(const ossl_config *conf);

/* Reports whether the module has a signature algorithm: 1 or 0. EVP_SIGNATURE_fetch(3). */
int ossl_fips_has_signature(const char *name);

/* Draws secret random bytes from the module's generator. Returns 1 or 0. RAND_priv_bytes_ex(3). */
int ossl_fips_random(uint8_t *to, size_t len);

/* A store of trusted certificates, for FIPS mode. */
typedef struct ossl_roots ossl_roots;

/*
 * Makes a store of trusted certificates. system: whether it includes those that OpenSSL is
 * configured to trust. Returns give (ossl_roots_free) or NULL with errors. X509_STORE_new(3),
 * X509_STORE_set_default_paths(3).
 */
ossl_roots *ossl_roots_new(int system, unsigned long *errors);
void ossl_roots_free(ossl_roots *roots);

/* Adds a certificate. der: borrow. Returns 1, or 0 with errors. X509_STORE_add_cert(3). */
int ossl_roots_add(ossl_roots *roots, const uint8_t *der, size_t len, unsigned long *errors);

/* The parameters of a chain's verification. */
typedef struct {
	int64_t time;       /* seconds since 1970 */
	int32_t of_server;  /* 1: the chain is a server's, 0: a client's */
	int32_t level;      /* the security level for keys and signatures in it */
	const char *host;   /* nullable: the name that it must be valid for */
	const uint8_t *ip;  /* nullable: the address, 4 or 16 bytes */
	size_t ip_len;
} ossl_roots_query;

/* The result of a chain's verification. */
typedef struct {
	int32_t error; /* X509_V_OK or the error; -1 if the chain can't be parsed */
	int32_t no_memory; /* 1 if memory was short, and error is not X509_V_OK: errors then reports it */
	unsigned long errors[OSSL_MAX_ERRORS];
	int32_t depth; /* of the certificate at fault */
	uint8_t *chain; /* give (free): the chain up to the root, packed as in ossl_cred_new, if error is X509_V_OK */
	size_t chain_len;
} ossl_roots_answer;

/*
 * Verifies a chain. packed: borrow, leaf first, each certificate preceded by its length. Several
 * threads may use roots. X509_verify_cert(3).
 */
ossl_roots_answer ossl_roots_verify(const ossl_roots *roots, const uint8_t *packed, size_t len, const ossl_roots_query *query);

/*
 * Verifies a signature by the module, with the key of a certificate. der, hash, signed_bytes, signature: borrow. hash:
 * OpenSSL's name, NULL for algorithms that sign messages. pss: 1 for RSA-PSS with a salt of the hash's length. Returns 1 if
 * it is right, 0 if it is wrong, or -1 with errors if that is not known. Not for 1.1.1. EVP_DigestVerify(3).
 */
int ossl_fips_verify(const uint8_t *der, size_t len, const char *hash, int pss, const uint8_t *signed_bytes, size_t signed_len,
	const uint8_t *signature, size_t signature_len, unsigned long *errors);

/* Returns the text for an X509_V_ERR (borrow, static). X509_verify_cert_error_string(3). */
const char *ossl_verify_error(long code);

#endif
