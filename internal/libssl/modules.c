/*
 * Which files libcrypto loads providers and engines from. A truncated file crashes the process when
 * it is loaded, since neither libcrypto nor the program loader checks: elf.go. So Go checks first:
 * the files that openssl.cnf activates, before libcrypto reads that, and those that a program
 * names. libcrypto's own parser reads openssl.cnf (config.c); the interpretation by its providers
 * and engines modules is reproduced here, and pinned by TestModulesCutShort:
 * crypto/provider_conf.c, crypto/provider_core.c and crypto/engine/eng_cnf.c in OpenSSL 3.0 to 4.0.
 *
 * Libraries that these files load themselves, such as a token's own library, are not known here.
 * Nor are a search path that a program has set, OSSL_PROVIDER_set_default_search_path(3), or
 * another openssl.cnf that it has loaded.
 */

#include "modules.h"
#include "dl.h"
#include "private.h"
#include "provider.h"
#include "slim.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 1 << 20 };

static int put(bytes *b, const char *text) { return bytes_append(b, text, strlen(text), MAX_FILES); }
static int put_end(bytes *b) { return bytes_append(b, "", 1, MAX_FILES); }

/* Follows provider_init and DSO_merge. */
int module_file(bytes *to, const char *name, const char *module)
{
	const char *folder = dl_privileged() ? NULL : getenv("OPENSSL_MODULES"), *suffix;

	if (!folder)
		folder = ossl_fn.OPENSSL_info((int)OSSL_OPENSSL_INFO_MODULES_DIR);
	suffix = ossl_fn.OPENSSL_info((int)OSSL_OPENSSL_INFO_DSO_EXTENSION);
	if (!module && strchr(name, '/'))
		module = name;
	if (module && *module == '/')
		return put(to, module) && put_end(to);
	if (!folder || !suffix || !put(to, folder) || !put(to, "/"))
		return 0;
	return (module ? put(to, module) : put(to, name) && put(to, suffix)) && put_end(to);
}

const char *module_command(const char *name)
{
	const char *dot = strchr(name, '.');

	return dot ? dot + 1 : name;
}

OPENSSL_STACK *section_of(const CONF *conf, const char *name)
{
	return name ? (OPENSSL_STACK *)ossl_fn.NCONF_get_section(conf, name) : NULL;
}

/* Before 3.3 every value of activate activates. */
static int says_no(const char *value)
{
	static const char *const no[] = {"0", "no", "NO", "false", "FALSE", "off", "OFF"};
	size_t i;

	for (i = 0; i < sizeof no / sizeof no[0]; i++)
		if (strcmp(value, no[i]) == 0)
			return ossl_fn.OpenSSL_version_num() >= OSSL_V3_3;
	return 0;
}

provider_entry provider_of(const CONF *conf, const conf_value *entry)
{
	provider_entry p = {.name = module_command(entry->name)};
	OPENSSL_STACK *commands = section_of(conf, entry->value);
	int i;

	for (i = 0; commands && i < ossl_fn.OPENSSL_sk_num(commands); i++) {
		const conf_value *v = ossl_fn.OPENSSL_sk_value(commands, i);
		const char *command = module_command(v->name);

		if (strcmp(command, "identity") == 0)
			p.name = v->value;
		else if (strcmp(command, "module") == 0)
			p.module = v->value;
		else if (strcmp(command, "activate") == 0)
			p.activated = !says_no(v->value);
	}
	return p;
}

int module_is_builtin(const char *name)
{
	return strcmp(name, "default") == 0 || strcmp(name, "base") == 0 || strcmp(name, "null") == 0;
}

static int put_engine(const CONF *conf, const conf_value *entry, bytes *to)
{
	OPENSSL_STACK *commands = section_of(conf, entry->value);
	int i, ok = 1;

	/* Only a path identifies the file; a name is looked up by the program loader. */
	for (i = 0; commands && ok && i < ossl_fn.OPENSSL_sk_num(commands); i++) {
		const conf_value *v = ossl_fn.OPENSSL_sk_value(commands, i);

		if (strcmp(module_command(v->name), "dynamic_path") == 0 && strchr(v->value, '/'))
			ok = put(to, v->value) && put_end(to);
	}
	return ok;
}

static int put_provider(const CONF *conf, const conf_value *entry, bytes *to)
{
	provider_entry p = provider_of(conf, entry);

	return !p.activated || module_is_builtin(p.name) || module_file(to, p.name, p.module);
}

static int put_each(const CONF *conf, const char *section, bytes *to, int (*put_one)(const CONF *, const conf_value *, bytes *))
{
	OPENSSL_STACK *entries = section_of(conf, section);
	int i, ok = 1;

	for (i = 0; entries && ok && i < ossl_fn.OPENSSL_sk_num(entries); i++)
		ok = put_one(conf, ossl_fn.OPENSSL_sk_value(entries, i), to);
	return ok;
}

/* For modules_allow_slim. */
static int allow_slim;

int modules_allow_slim(void) { return allow_slim; }

char *ossl_modules_of_config(const CONF *conf)
{
	OPENSSL_STACK *entries = conf ? config_entries(conf) : NULL;
	bytes list = {0};
	int i, ok = 1;

	allow_slim = conf && slim_is_plain_config(conf);
	for (i = 0; entries && ok && i < ossl_fn.OPENSSL_sk_num(entries); i++) {
		const conf_value *entry = ossl_fn.OPENSSL_sk_value(entries, i);

		if (ossl_fn.OPENSSL_info && config_is_for(entry, "providers"))
			ok = put_each(conf, entry->value, &list, put_provider);
		else if (config_is_for(entry, "engines") && ossl_fn.OpenSSL_version_num() < OSSL_V4_0)
			ok = put_each(conf, entry->value, &list, put_engine);
	}
	ok = ok && list.len > 0 && put_end(&list);
	if (!ok)
		bytes_free(&list);
	ossl_fn.ERR_clear_error();
	return (char *)list.data;
}

/*
 * Returns the module in openssl.cnf for a provider that the file doesn't activate: the module in
 * the first section with this name that is not empty.
 */
static const char *module_in(const CONF *conf, const char *name)
{
	OPENSSL_STACK *entries = config_entries(conf), *providers;
	int i, j;

	for (i = 0; entries && i < ossl_fn.OPENSSL_sk_num(entries); i++) {
		const conf_value *entry = ossl_fn.OPENSSL_sk_value(entries, i);

		providers = config_is_for(entry, "providers") ? section_of(conf, entry->value) : NULL;
		for (j = 0; providers && j < ossl_fn.OPENSSL_sk_num(providers); j++) {
			const conf_value *v = ossl_fn.OPENSSL_sk_value(providers, j);
			provider_entry p = provider_of(conf, v);
			OPENSSL_STACK *commands = section_of(conf, v->value);

			if (!p.activated && strcmp(p.name, name) == 0 && commands && ossl_fn.OPENSSL_sk_num(commands) > 0)
				return p.module;
		}
	}
	return NULL;
}

char *ossl_module_of_provider(const CONF *conf, const char *name)
{
	bytes file = {0};

	if (module_is_builtin(name) || ossl_fn.OSSL_PROVIDER_available(NULL, name) == 1)
		return NULL;
	if (!module_file(&file, name, conf ? module_in(conf, name) : NULL) || !put_end(&file))
		bytes_free(&file);
	ossl_fn.ERR_clear_error();
	return (char *)file.data;
}
