/*
 * libcrypto reads openssl.cnf once, when it is loaded, and ignores nearly every fault: a file that
 * .include names and that can't be opened, a read that fails, memory that is short, a module of the
 * configuration that fails, after which it does not carry out the rest. So the demands are found
 * here, in the text that hostconfig.go has read, with libcrypto's own parser, and compared with the
 * state of the library.
 */

#include "config.h"
#include "dl.h"
#include "private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_DROPPED = 1 << 16 };

CONF *ossl_config_parse(const uint8_t *text, size_t len, unsigned long *errors)
{
	CONF *conf;
	BIO *bio;
	int ok;

	ossl_fn.ERR_clear_error();
	conf = ossl_fn.NCONF_new(NULL);
	bio = conf ? ossl_fn.BIO_new_mem_buf(text, (int)len) : NULL;
	/* A fault that libcrypto ignores leaves an error too. */
	ok = bio && ossl_fn.NCONF_load_bio(conf, bio, NULL) == 1 && ossl_fn.ERR_peek_error() == 0;
	if (bio)
		ossl_fn.BIO_free(bio);
	ossl_drain_errors(errors);
	if (ok)
		return conf;
	ossl_fn.NCONF_free(conf); /* takes NULL */
	return NULL;
}

void ossl_config_free(CONF *conf) { ossl_fn.NCONF_free(conf); }

const char *ossl_config_value(const CONF *conf, const char *section, const char *name)
{
	const char *value = ossl_fn.NCONF_get_string(conf, section, name);

	ossl_fn.ERR_clear_error();
	return value;
}

char *ossl_config_file(void)
{
	char *file = ossl_fn.CONF_get1_default_config_file();
	char *copy = file ? strdup(file) : NULL;

	ossl_fn.CRYPTO_free(file, __FILE__, __LINE__);
	return copy;
}

OPENSSL_STACK *config_entries(const CONF *conf)
{
	return section_of(conf, ossl_fn.NCONF_get_string(conf, NULL, "openssl_conf"));
}

int config_is_for(const conf_value *entry, const char *module)
{
	const char *dot = strrchr(entry->name, '.');
	size_t len = dot ? (size_t)(dot - entry->name) : strlen(entry->name);

	return len == strlen(module) && memcmp(entry->name, module, len) == 0;
}

/* FIPS mode. */

/* Follows X509V3_get_value_bool. Returns 1, 0, or -1 for another word. */
static int says_yes(const char *value)
{
	static const char *const words[] = {"n", "y", "no", "yes", "false", "true"};
	int i;

	for (i = 0; i < (int)(sizeof words / sizeof words[0]); i++)
		if (strcasecmp(value, words[i]) == 0)
			return i % 2;
	return -1;
}

/*
 * Has libcrypto's own parser of properties read a line of alg_section, for a library context of its
 * own. Returns 1, or 0 if libcrypto refuses the line. A line with another name can't ask for FIPS
 * mode: a distribution's libcrypto may know it (Red Hat's rh-allow-sha1-signatures). If this one
 * doesn't, it has ignored the lines after it, and those are still asked for.
 */
static int set_algorithms(OSSL_LIB_CTX *lib, const conf_value *line)
{
	int yes = says_yes(line->value);

	if (strcmp(line->name, "fips_mode") == 0)
		return yes >= 0 && ossl_fn.EVP_default_properties_enable_fips(lib, yes) == 1;
	return strcmp(line->name, "default_properties") != 0 || ossl_fn.EVP_set_default_properties(lib, line->value) == 1;
}

/* 1.1.1 has no properties, and no module that a configuration could turn on. */
static int asks_old(const conf_value *line)
{
	const char *fips = strcmp(line->name, "default_properties") == 0 ? strstr(line->value, "fips=yes") : NULL;

	return (strcmp(line->name, "fips_mode") == 0 && says_yes(line->value) == 1) ||
		(fips && (fips == line->value || fips[-1] != '?')); /* property(7): that would be optional */
}

int ossl_config_asks_fips(const CONF *conf, char *problem, size_t size)
{
	OPENSSL_STACK *entries = config_entries(conf), *lines;
	OSSL_LIB_CTX *lib = NULL;
	int i, j, answer = OSSL_FIPS_NOT_ASKED;

	for (i = 0; entries && i < ossl_fn.OPENSSL_sk_num(entries); i++) {
		const conf_value *entry = ossl_fn.OPENSSL_sk_value(entries, i);

		if (!config_is_for(entry, "alg_section"))
			continue;
		lines = section_of(conf, entry->value);
		if (!lines) {
			snprintf(problem, size, "the section %s, named by %s, is missing", entry->value, entry->name);
			answer = OSSL_FIPS_UNKNOWN;
			break;
		}
		for (j = 0; j < ossl_fn.OPENSSL_sk_num(lines) && answer <= OSSL_FIPS_ASKED; j++) {
			const conf_value *line = ossl_fn.OPENSSL_sk_value(lines, j);

			if (!ossl_fn.OSSL_LIB_CTX_new) {
				answer = answer || asks_old(line);
			} else if (!lib && !(lib = ossl_fn.OSSL_LIB_CTX_new())) {
				answer = OSSL_FIPS_NO_MEMORY;
			} else if (!set_algorithms(lib, line)) {
				snprintf(problem, size, "OpenSSL does not carry out %s = %s", line->name, line->value);
				answer = OSSL_FIPS_UNKNOWN;
			}
		}
		if (answer > OSSL_FIPS_ASKED)
			break;
	}
	if (lib) {
		if (answer == OSSL_FIPS_NOT_ASKED && ossl_fn.EVP_default_properties_is_fips_enabled(lib) == 1)
			answer = OSSL_FIPS_ASKED;
		ossl_fn.OSSL_LIB_CTX_free(lib);
	}
	ossl_fn.ERR_clear_error();
	return answer;
}

/* Demands that were dropped. */

static int put_dropped(bytes *to, char kind, const char *name, const char *detail)
{
	return bytes_append(to, &kind, 1, MAX_DROPPED) && bytes_append(to, name, strlen(name) + 1, MAX_DROPPED) &&
		bytes_append(to, detail, strlen(detail) + 1, MAX_DROPPED);
}

/* Returns the value of the last line of a section for a command, or NULL. Borrow. */
static const char *command_in(OPENSSL_STACK *lines, const char *command)
{
	const char *value = NULL;
	int i;

	for (i = 0; lines && i < ossl_fn.OPENSSL_sk_num(lines); i++) {
		const conf_value *v = ossl_fn.OPENSSL_sk_value(lines, i);

		if (strcmp(module_command(v->name), command) == 0)
			value = v->value;
	}
	return value;
}

/* A provider or engine with soft_load may be missing. */
static int may_be_missing(OPENSSL_STACK *lines)
{
	const char *soft = command_in(lines, "soft_load");

	return soft && strcmp(soft, "0") != 0 && says_yes(soft) != 0;
}

static int check_provider(const CONF *conf, const conf_value *entry, bytes *to)
{
	OPENSSL_STACK *lines = section_of(conf, entry->value);
	provider_entry p = provider_of(conf, entry);
	bytes file = {0};
	int ok;

	if (!lines)
		return put_dropped(to, OSSL_DROPPED_SECTION, entry->name, entry->value);
	if (!p.activated || may_be_missing(lines) || ossl_fn.OSSL_PROVIDER_available(NULL, p.name) == 1)
		return 1;
	ok = module_is_builtin(p.name) ? bytes_append(&file, "", 1, MAX_DROPPED) : module_file(&file, p.name, p.module);
	ok = ok && put_dropped(to, OSSL_DROPPED_PROVIDER, p.name, (char *)file.data);
	bytes_free(&file);
	return ok;
}

static int check_engine(const CONF *conf, const conf_value *entry, bytes *to)
{
	OPENSSL_STACK *lines = section_of(conf, entry->value);
	const char *file = command_in(lines, "dynamic_path");

	if (!lines)
		return put_dropped(to, OSSL_DROPPED_SECTION, entry->name, entry->value);
	/* Only a path identifies the file. */
	if (!file || !strchr(file, '/') || may_be_missing(lines) || dl_is_loaded(file))
		return 1;
	return put_dropped(to, OSSL_DROPPED_ENGINE, module_command(entry->name), file);
}

static int check_each(const CONF *conf, const conf_value *entry, bytes *to,
	int (*check_one)(const CONF *, const conf_value *, bytes *))
{
	OPENSSL_STACK *entries = section_of(conf, entry->value);
	int i, ok = 1;

	if (!entries)
		return put_dropped(to, OSSL_DROPPED_SECTION, entry->name, entry->value);
	for (i = 0; ok && i < ossl_fn.OPENSSL_sk_num(entries); i++)
		ok = check_one(conf, ossl_fn.OPENSSL_sk_value(entries, i), to);
	return ok;
}

/*
 * Reports default properties that are behind a line at which OpenSSL stops. There is no way to ask
 * OpenSSL for them. Lines with the prefix rh- are taken for known, as they are to Red Hat's.
 */
static int check_algorithms(OPENSSL_STACK *lines, const char **stop, bytes *to)
{
	int i;

	for (i = 0; lines && i < ossl_fn.OPENSSL_sk_num(lines); i++) {
		const conf_value *line = ossl_fn.OPENSSL_sk_value(lines, i);

		if (strcmp(line->name, "default_properties") == 0 && *stop)
			return put_dropped(to, OSSL_DROPPED_BEHIND, line->name, *stop);
		if (!*stop && strcmp(line->name, "default_properties") != 0 && strcmp(line->name, "fips_mode") != 0 &&
			strncmp(line->name, "rh-", 3) != 0)
			*stop = line->name;
	}
	return 1;
}

/* Reports whether OpenSSL stops at an entry: it doesn't know the module, or the section is missing. */
static int stops_at(const CONF *conf, const conf_value *entry)
{
	static const char *const modules[] = {
		"providers", "ssl_conf", "oid_section", "stbl_section", "random", "alg_section", "engines", /* the last one until 4.0 */
	};
	size_t i, n = sizeof modules / sizeof modules[0] - (ossl_fn.OpenSSL_version_num() >= OSSL_V4_0);

	for (i = 0; i < n; i++)
		if (config_is_for(entry, modules[i]))
			return !section_of(conf, entry->value);
	return 1;
}

char *ossl_config_dropped(const CONF *conf)
{
	OPENSSL_STACK *entries = config_entries(conf);
	unsigned long version = ossl_fn.OpenSSL_version_num();
	const char *stop = NULL;
	bytes list = {0};
	int i, ok = 1;

	for (i = 0; entries && ok && i < ossl_fn.OPENSSL_sk_num(entries); i++) {
		const conf_value *entry = ossl_fn.OPENSSL_sk_value(entries, i);

		if (config_is_for(entry, "providers") && version >= OSSL_V3_0)
			ok = check_each(conf, entry, &list, check_provider);
		else if (config_is_for(entry, "engines") && version < OSSL_V4_0)
			ok = check_each(conf, entry, &list, check_engine);
		else if (config_is_for(entry, "alg_section") && version >= OSSL_V3_0)
			ok = check_algorithms(section_of(conf, entry->value), &stop, &list);
		if (!stop && stops_at(conf, entry))
			stop = entry->name;
	}
	if (!ok || !bytes_append(&list, "", 1, MAX_DROPPED))
		bytes_free(&list);
	ossl_fn.ERR_clear_error();
	return (char *)list.data;
}
