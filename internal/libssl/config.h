/* The host's openssl.cnf, parsed, and its demands on the library: config.c. */
#ifndef OSSL_CONFIG_H
#define OSSL_CONFIG_H

#include <stddef.h>
#include <stdint.h>

/* CONF, which NCONF_load_bio(3) fills. */
typedef struct conf_st ossl_config;

/*
 * Parses a configuration. text: borrow, not empty, and without .include. Returns give
 * (ossl_config_free), or NULL with errors; with none if memory is short. May be called between
 * ossl_load_begin and ossl_use. config(5), NCONF_load_bio(3).
 */
ossl_config *ossl_config_parse(const uint8_t *text, size_t len, unsigned long *errors);
void ossl_config_free(ossl_config *conf); /* takes NULL */

/*
 * Returns a value in a section, or NULL: borrow, while conf exists. May be called when
 * ossl_config_parse may. NCONF_get_string(3).
 */
const char *ossl_config_value(const ossl_config *conf, const char *section, const char *name);

enum { OSSL_FIPS_NOT_ASKED, OSSL_FIPS_ASKED, OSSL_FIPS_UNKNOWN, OSSL_FIPS_NO_MEMORY };

/*
 * Reports whether the configuration asks for FIPS mode, in the module alg_section. problem: filled
 * with the reason for OSSL_FIPS_UNKNOWN, 0-terminated. config(5), EVP_set_default_properties(3).
 */
int ossl_config_asks_fips(const ossl_config *conf, char *problem, size_t size);

/* The kinds of demands that the library did not carry out. */
enum {
	OSSL_DROPPED_PROVIDER = 'p', /* it isn't active. name: its name; detail: its file, or "" */
	OSSL_DROPPED_ENGINE = 'e',   /* it isn't loaded. name: its name; detail: its file */
	OSSL_DROPPED_SECTION = 's',  /* a section is missing. name: of the line that names it; detail: its name */
	OSSL_DROPPED_BEHIND = 'b',   /* OpenSSL stops at a line. name: default_properties; detail: the name of the line */
};

/*
 * Returns the demands of the configuration that the library, which has read it, did not carry out:
 * give (free), for each its kind, its name, 0, its detail, 0; and another 0. NULL if memory is short.
 * Those on TLS (ssl_conf) and for FIPS mode are not among them. config(5), OSSL_PROVIDER_available(3).
 */
char *ossl_config_dropped(const ossl_config *conf);

/*
 * Returns the file that libcrypto reads its configuration from by default: give (free), or NULL.
 * May be called when ossl_config_parse may. CONF_get1_default_config_file(3).
 */
char *ossl_config_file(void);

#endif
