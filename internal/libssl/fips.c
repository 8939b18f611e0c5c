/*
 * FIPS mode: fips.h.
 *
 * All cryptography of FIPS contexts happens in a library context whose providers are the FIPS
 * module and "base", which has no cryptography, and whose default properties are fips=yes. So there
 * is no fallback, and the default library context, which the rest of the process uses, is
 * unchanged.
 *
 * The module checks itself against a checksum that "openssl fipsinstall" has written into a
 * configuration file. A library context that is made at run time reads no configuration, so the
 * module's section is taken from the host's openssl.cnf, or from the fipsmodule.cnf beside it, and
 * given to the new context. Distributions whose module knows its checksum (Red Hat) need neither.
 * If openssl.cnf doesn't name OpenSSL's module, but activates another known module, that one is
 * used: fipslist.c.
 */

#include "dl.h"
#include "fips.h"
#include "fipslist.h"
#include "provider.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Written only by ossl_fips_setup, never freed: contexts and certificates refer to it. */
static OSSL_LIB_CTX *library;
static OSSL_PROVIDER *module;
static const fips_listed *listed; /* the entry in the list for module */
static int whole_process; /* 1.1.1 in FIPS mode */
static char module_path[PATH_MAX], core_path[PATH_MAX];

OSSL_LIB_CTX *fips_library(void) { return library; }

int fips_ready(void) { return library != NULL || whole_process; }

/* The module's configuration. */

enum { MAX_CONFIG = 1 << 16 };

/* The configuration for a new library context. Zeroed before it is filled. */
typedef struct {
	const fips_listed *listed;
	bytes text;       /* of a configuration file */
	bytes section;    /* the lines of the module's section */
	bytes module;     /* the module's file, 0-terminated, or empty for the default one */
	int has_checksum; /* it has the module's checksum */
} config;

static void config_free(config *c)
{
	bytes_free(&c->text);
	bytes_free(&c->section);
	bytes_free(&c->module);
}

static int put(bytes *b, const char *text) { return bytes_append(b, text, strlen(text), MAX_CONFIG); }

/*
 * Appends a value so that it is parsed back unchanged: config(5). A value with a control character,
 * such as a line break, is refused: it is neither needed nor trusted.
 */
static int put_value(bytes *b, const char *value)
{
	for (; *value; value++)
		if ((unsigned char)*value < ' ' || (strchr("\\$#\"'`; ", *value) && !put(b, "\\")) || !bytes_append(b, value, 1, MAX_CONFIG))
			return 0;
	return 1;
}

static int asks_for(const conf_value *v, const char *what) { return strcmp(module_command(v->name), what) == 0; }

/* Copies the module's section. Returns 1, 0 if there is none, or -1 if it can't be copied whole. */
static int copy_section(const CONF *conf, const char *name, config *to)
{
	OPENSSL_STACK *section = section_of(conf, name);
	int i;

	if (!section)
		return 0;
	for (i = 0; i < ossl_fn.OPENSSL_sk_num(section); i++) {
		const conf_value *v = ossl_fn.OPENSSL_sk_value(section, i);

		/* The host's activation doesn't matter, and we choose the name. */
		if (asks_for(v, "activate") || asks_for(v, "soft_load") || asks_for(v, "identity"))
			continue;
		if (strcmp(v->name, "module-mac") == 0)
			to->has_checksum = 1;
		if (asks_for(v, "module")) { /* the last one counts */
			bytes_free(&to->module);
			if (!bytes_append(&to->module, v->value, strlen(v->value) + 1, MAX_CONFIG))
				return -1;
		}
		if (!put(&to->section, v->name) || !put(&to->section, " = ") || !put_value(&to->section, v->value) ||
			!put(&to->section, "\n"))
			return -1;
	}
	return 1;
}

/*
 * Looks for the module's section in openssl.cnf: under the name there, the name of another module
 * that the file activates, or the name that fipsinstall writes. Returns as copy_section does.
 */
static int section_in(const CONF *conf, config *to)
{
	const char *name = ossl_fn.NCONF_get_string(conf, NULL, "openssl_conf");
	const fips_listed *other;
	int found;

	name = name ? ossl_fn.NCONF_get_string(conf, name, "providers") : NULL;
	name = name ? ossl_fn.NCONF_get_string(conf, name, "fips") : NULL;
	found = name ? copy_section(conf, name, to) : 0;
	other = found ? NULL : fips_other(conf, &name);
	if (other) {
		to->listed = other;
		found = copy_section(conf, name, to);
	}
	return found ? found : copy_section(conf, "fips_sect", to);
}

/*
 * Finds the configuration for the new library context. Returns 1 or 0; the caller calls config_free
 * in both cases.
 */
static int config_find(const ossl_fips_files *from, config *to)
{
	int found, ok;

	to->listed = fips_own;
	found = from->host ? section_in(from->host, to) : 0;
	if (!found && from->beside)
		found = copy_section(from->beside, "fips_sect", to);
	ossl_fn.ERR_clear_error();
	ok = found >= 0 && put(&to->text, "openssl_conf = ossl_fips_mode\n[ossl_fips_mode]\nproviders = ossl_fips_mode_providers\n"
		"[ossl_fips_mode_providers]\nbase = ossl_fips_mode_base\n") &&
		put(&to->text, to->listed->name) && put(&to->text, " = ossl_fips_mode_module\n[ossl_fips_mode_base]\nactivate = 1\n"
		"[ossl_fips_mode_module]\nactivate = 1\n");
	return ok && (!to->section.len || bytes_append(&to->text, to->section.data, to->section.len, MAX_CONFIG));
}

int ossl_fips_in_config(const CONF *conf)
{
	config c = {0};
	int found = section_in(conf, &c) != 0;

	config_free(&c);
	ossl_fn.ERR_clear_error();
	return found;
}

static int config_apply(const config *c, OSSL_LIB_CTX *lib)
{
	CONF *conf = ossl_fn.NCONF_new_ex(lib, NULL);
	BIO *bio = conf ? ossl_fn.BIO_new_mem_buf(c->text.data, (int)c->text.len) : NULL;
	int ok = bio && ossl_fn.NCONF_load_bio(conf, bio, NULL) == 1 && ossl_fn.CONF_modules_load(conf, NULL, 0) == 1;

	if (bio)
		ossl_fn.BIO_free(bio);
	ossl_fn.NCONF_free(conf);
	return ok;
}

/* Returns a copy with a terminating 0: give (free), or NULL. */
static char *text_of(const bytes *b)
{
	char *copy = malloc(b->len + 1);

	if (copy) {
		memcpy(copy, b->data, b->len);
		copy[b->len] = 0;
	}
	return copy;
}

char *ossl_fips_configuration(const ossl_fips_files *from)
{
	config c = {0};
	char *text = config_find(from, &c) ? text_of(&c.text) : NULL;

	config_free(&c);
	return text;
}

char *ossl_fips_module_file(const ossl_fips_files *from)
{
	config c = {0};
	bytes file = {0};

	if (!ossl_fn.OPENSSL_info || !config_find(from, &c) ||
		!module_file(&file, c.listed->name, c.module.len ? (char *)c.module.data : NULL) || !bytes_append(&file, "", 1, MAX_CONFIG))
		bytes_free(&file);
	config_free(&c);
	return (char *)file.data;
}

/* Writes the error queue as one line. */
static void report_errors(char *report, size_t size)
{
	size_t used = 0;
	unsigned long e;
	const char *reason, *last = NULL;

	report[0] = 0;
	while ((e = ossl_fn.ERR_get_error()) != 0) {
		reason = ossl_fn.ERR_reason_error_string(e);
		if (reason && reason != last && used < size)
			used += (size_t)snprintf(report + used, size - used, "%s%s", used ? ", " : "", reason);
		last = reason;
	}
}

static int running(const OSSL_PROVIDER *p)
{
	int status = 0;
	OSSL_PARAM params[] = {
		{"status", (unsigned)OSSL_OSSL_PARAM_INTEGER, &status, sizeof status, (size_t)-1},
		{NULL, 0, NULL, 0, 0},
	};

	return ossl_fn.OSSL_PROVIDER_get_params(p, params) == 1 && status == 1;
}

/* A library context in FIPS mode, and its module. */
typedef struct {
	OSSL_LIB_CTX *lib;
	OSSL_PROVIDER *module;
	const fips_listed *listed;
} fips_context;

static void context_free(fips_context *c)
{
	if (c->module)
		ossl_fn.OSSL_PROVIDER_unload(c->module);
	ossl_fn.OSSL_LIB_CTX_free(c->lib); /* takes NULL */
}

/* Checks a context whose module is loaded. Returns OSSL_FIPS_READY or the failure. */
static int check_context(const fips_context *c, char *report, size_t size)
{
	OSSL_PROVIDER *base = ossl_fn.OSSL_PROVIDER_load(c->lib, "base"); /* a reference: the configuration's remains */

	if (!base)
		return OSSL_FIPS_NO_BASE;
	ossl_fn.OSSL_PROVIDER_unload(base);
	if (ossl_fn.EVP_default_properties_enable_fips(c->lib, 1) != 1)
		return OSSL_FIPS_LEAKS;
	if (c->listed != fips_own && !fips_is_listed(c->listed, c->lib, c->module, report, size))
		return OSSL_FIPS_ANOTHER;
	return fips_is_tight(c->listed, c->lib) ? OSSL_FIPS_READY : OSSL_FIPS_LEAKS;
}

/* Fills made and returns OSSL_FIPS_READY, or returns the failure. */
static int make(const ossl_fips_files *from, fips_context *made, char *report, size_t size)
{
	fips_context c = {ossl_fn.OSSL_LIB_CTX_new(), NULL, NULL};
	config conf = {0};
	int status;

	ossl_fn.ERR_clear_error();
	if (c.lib && config_find(from, &conf) && config_apply(&conf, c.lib))
		c.module = ossl_fn.OSSL_PROVIDER_load(c.lib, conf.listed->name); /* a reference: it is already active */
	c.listed = conf.listed;
	status = conf.has_checksum || c.listed != fips_own ? OSSL_FIPS_FAILED : OSSL_FIPS_NOT_CONFIGURED;
	config_free(&conf);
	if (c.module && running(c.module))
		status = check_context(&c, report, size);
	if (status == OSSL_FIPS_READY)
		*made = c;
	else
		context_free(&c);
	if (status == OSSL_FIPS_READY || status == OSSL_FIPS_ANOTHER)
		ossl_fn.ERR_clear_error();
	else
		report_errors(report, size);
	return status;
}

/* Stores the path that the module was loaded from, while the module can be queried. */
static void note_path(void)
{
	if (whole_process)
		dl_path(*(void **)&ossl_fn.OpenSSL_version_num, module_path, sizeof module_path);
	else
		fips_paths(listed, module, module_path, core_path);
}

int ossl_fips_setup(const ossl_fips_files *from, int process, char *report, size_t size)
{
	fips_context c;
	int status;

	report[0] = 0;
	if (fips_ready())
		return OSSL_FIPS_READY;
	if (!ossl_fn.OSSL_LIB_CTX_new) {
		if (process && ossl_fn.FIPS_mode() != 1)
			ossl_fn.FIPS_mode_set(1);
		whole_process = ossl_fn.FIPS_mode() == 1;
		report_errors(report, size);
		if (whole_process)
			note_path();
		return whole_process ? OSSL_FIPS_READY : OSSL_FIPS_NOT_IN_LIBRARY;
	}
	status = make(from, &c, report, size);
	if (status == OSSL_FIPS_READY) {
		library = c.lib;
		module = c.module;
		listed = c.listed;
		note_path();
	}
	return status;
}

int ossl_fips_try(const ossl_fips_files *from, char *report, size_t size)
{
	fips_context c;
	int status;

	report[0] = 0;
	if (!ossl_fn.OSSL_LIB_CTX_new)
		return ossl_fn.FIPS_mode() == 1 ? OSSL_FIPS_READY : OSSL_FIPS_NOT_IN_LIBRARY;
	status = make(from, &c, report, size);
	if (status == OSSL_FIPS_READY)
		context_free(&c);
	return status;
}

int ossl_fips_by_host(void)
{
	if (!ossl_fn.OSSL_LIB_CTX_new)
		return ossl_fn.FIPS_mode() == 1;
	return ossl_fn.EVP_default_properties_is_fips_enabled(NULL) == 1;
}

int ossl_fips_module(ossl_fips_info *info)
{
	char *name = NULL, *version = NULL, *build = NULL;
	OSSL_PARAM params[] = {
		{"name", (unsigned)OSSL_OSSL_PARAM_UTF8_PTR, &name, sizeof name, (size_t)-1},
		{"version", (unsigned)OSSL_OSSL_PARAM_UTF8_PTR, &version, sizeof version, (size_t)-1},
		{"buildinfo", (unsigned)OSSL_OSSL_PARAM_UTF8_PTR, &build, sizeof build, (size_t)-1},
		{NULL, 0, NULL, 0, 0},
	};

	if (whole_process) { /* the module is part of libcrypto */
		info->name = "FIPS mode of libcrypto";
		info->version = info->build = ossl_fn.OpenSSL_version((int)OSSL_OPENSSL_VERSION);
		info->running = ossl_fn.FIPS_mode() == 1;
		return 1;
	}
	if (!module || ossl_fn.OSSL_PROVIDER_get_params(module, params) != 1)
		return 0;
	info->name = name ? name : "";
	info->version = version ? version : "";
	info->build = build ? build : "";
	info->running = running(module);
	return 1;
}

const char *ossl_fips_path(void) { return module_path; }

const char *ossl_fips_core_path(void) { return core_path; }

const char *ossl_fips_provider(const ossl_fips_files *from)
{
	const fips_listed *l = listed;
	config c = {0};

	if (!ossl_fn.OSSL_LIB_CTX_new)
		return "";
	if (!l && from && config_find(from, &c))
		l = c.listed;
	config_free(&c);
	return l ? l->name : "";
}

int ossl_fips_has_signature(const char *name)
{
	EVP_SIGNATURE *s;

	if (whole_process)
		return strcmp(name, "ED25519") != 0;
	s = library ? ossl_fn.EVP_SIGNATURE_fetch(library, name, NULL) : NULL;
	ossl_fn.EVP_SIGNATURE_free(s); /* takes NULL */
	ossl_fn.ERR_clear_error();
	return s != NULL;
}

int ossl_fips_random(uint8_t *to, size_t len)
{
	if (whole_process)
		return ossl_fn.RAND_priv_bytes(to, (int)len) == 1;
	return library && ossl_fn.RAND_priv_bytes_ex(library, to, len, 0) == 1;
}
