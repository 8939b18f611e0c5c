/*
 * The host's policy: the section of openssl.cnf that the module ssl_conf calls system_default,
 * config(5). SSL_CTX_new executes it, and silently drops it if anything is wrong: if the file can't
 * be read; if a module before ssl_conf fails; before 3.2, from the first command on that libssl
 * refuses. And before 4.0 there is one such section per process: other code that loads another file
 * into its own library context changes it for all. So the commands are read here, from the same
 * file and with libcrypto's own parser (config.c), and executed on each SSL_CTX once more.
 *
 * Go derives the policy from the offer of such an SSL_CTX: its ClientHello. It needs the commands
 * themselves too, so that it doesn't mistake libssl's default for the host's policy.
 *
 * libcrypto's own list of the commands is not accessible: the functions that libssl reads it with
 * are in no public header, and 4.0 has other functions than 3.x under the same names.
 */

#include "policy.h"
#include "private.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_POLICY = 1 << 20 };

static int append_command(bytes *list, uint8_t done, const char *name, const char *value)
{
	return bytes_append(list, &done, 1, MAX_POLICY) && bytes_append(list, name, strlen(name) + 1, MAX_POLICY) &&
		bytes_append(list, value, strlen(value) + 1, MAX_POLICY);
}

/*
 * Makes a command context as SSL_CTX_new does: for a file's commands and both roles, but not for
 * commands that load certificates.
 */
static SSL_CONF_CTX *new_commander(SSL_CTX *s)
{
	SSL_CONF_CTX *conf = ossl_fn.SSL_CONF_CTX_new();

	if (conf) {
		ossl_fn.SSL_CONF_CTX_set_flags(conf,
			(unsigned)(OSSL_SSL_CONF_FLAG_FILE | OSSL_SSL_CONF_FLAG_CLIENT | OSSL_SSL_CONF_FLAG_SERVER));
		ossl_fn.SSL_CONF_CTX_set_ssl_ctx(conf, s);
	}
	return conf;
}

int ossl_policy_apply(SSL_CTX *s, const uint8_t *commands, size_t len, int tolerant)
{
	const char *p = (const char *)commands, *end = p + len, *value;
	SSL_CONF_CTX *conf;
	int ok = 1;

	if (len == 0)
		return 1;
	conf = new_commander(s);
	if (!conf)
		return 0;
	for (; p < end && ok; p = value + strlen(value) + 1) {
		value = p + strlen(p) + 1;
		ok = ossl_fn.SSL_CONF_cmd(conf, p, value) > 0 || tolerant;
	}
	ossl_fn.SSL_CONF_CTX_free(conf);
	return ok;
}

/* Finds the last entry of a section for a module. */
static const char *find_module(const CONF *conf, const char *section, const char *name, int *missing)
{
	OPENSSL_STACK *entries = (OPENSSL_STACK *)ossl_fn.NCONF_get_section(conf, section);
	const char *found = NULL;
	int i;

	*missing = !entries;
	for (i = 0; entries && i < ossl_fn.OPENSSL_sk_num(entries); i++) {
		const conf_value *entry = ossl_fn.OPENSSL_sk_value(entries, i);

		if (config_is_for(entry, name))
			found = entry->value;
	}
	return found;
}

/* Finds the commands. Returns NULL if there are none, or if there is a problem. */
static OPENSSL_STACK *find_commands(const CONF *conf, const char **problem)
{
	const char *section = ossl_fn.NCONF_get_string(conf, NULL, "openssl_conf");
	OPENSSL_STACK *commands = NULL;
	int missing = 0;

	if (section)
		section = find_module(conf, section, "ssl_conf", &missing);
	if (missing)
		*problem = "the section named by openssl_conf is missing";
	if (section)
		section = find_module(conf, section, "system_default", &missing);
	if (missing && !*problem)
		*problem = "the section named by ssl_conf is missing";
	if (section) {
		commands = (OPENSSL_STACK *)ossl_fn.NCONF_get_section(conf, section);
		if (!commands)
			*problem = "the section named by system_default is missing";
	}
	return commands;
}

static const char *read_commands(SSL_CTX *s, OPENSSL_STACK *commands, bytes *list)
{
	const char *problem = NULL;
	SSL_CONF_CTX *commander;
	int i;

	commander = new_commander(s);
	if (!commander)
		return "out of memory";
	for (i = 0; i < ossl_fn.OPENSSL_sk_num(commands) && !problem; i++) {
		const conf_value *command = ossl_fn.OPENSSL_sk_value(commands, i);
		const char *dot = strchr(command->name, '.'); /* the part before it only makes names unique */
		const char *name = dot ? dot + 1 : command->name;

		if (!append_command(list, ossl_fn.SSL_CONF_cmd(commander, name, command->value) > 0, name, command->value))
			problem = "out of memory";
	}
	ossl_fn.SSL_CONF_CTX_free(commander);
	return problem;
}

uint8_t *ossl_policy_read(const CONF *conf, size_t *len, const char **problem, unsigned long *errors)
{
	bytes list = {0};
	OPENSSL_STACK *commands;
	SSL_CTX *s = NULL;
	int ok;

	*problem = NULL;
	ossl_fn.ERR_clear_error();
	commands = find_commands(conf, problem);
	ok = !commands && ossl_ssl_ctxs_made() > 0; /* there is nothing to try with one */
	if (!ok) {
		s = ossl_new_ssl_ctx(0, 0, NULL);
		ok = s != NULL;
		if (!ok)
			*problem = NULL;
		else if (commands)
			*problem = read_commands(s, commands, &list);
	}
	if (ok && !*problem && !list.data && !(list.data = malloc(1))) /* NULL means failure */
		*problem = "out of memory";
	ossl_drain_errors(errors);
	if (*problem)
		bytes_free(&list);
	ossl_fn.SSL_CTX_free(s); /* takes NULL */
	ossl_fn.ERR_clear_error();
	*len = list.len;
	return list.data;
}

int ossl_ctx_no_tickets(ossl_ctx *ctx)
{
	return (ossl_fn.SSL_CTX_get_options(ctx->ssl) & (uint64_t)OSSL_SSL_OP_NO_TICKET) != 0;
}

void ossl_policy_narrow(SSL_CTX *s)
{
	/* TLS 1.3 resumption without a key exchange, and TLS 1.2 without the extended master secret. */
	ossl_fn.SSL_CTX_clear_options(s, (uint64_t)(OSSL_SSL_OP_ALLOW_NO_DHE_KEX | OSSL_SSL_OP_NO_EXTENDED_MASTER_SECRET));
}

void ossl_policy_lift(SSL_CTX *s)
{
	uint64_t on = (uint64_t)OSSL_SSL_OP_ENABLE_MIDDLEBOX_COMPAT;
	uint64_t off = (uint64_t)(OSSL_SSL_OP_NO_TLSv1_2 | OSSL_SSL_OP_NO_TLSv1_3 | OSSL_SSL_OP_NO_TICKET |
		OSSL_SSL_OP_NO_ENCRYPT_THEN_MAC | OSSL_SSL_OP_ALLOW_UNSAFE_LEGACY_RENEGOTIATION | OSSL_SSL_OP_DISABLE_TLSEXT_CA_NAMES);

	/* The default differs by version. */
	*(ossl_fn.OpenSSL_version_num() < OSSL_V3_0 ? &on : &off) |= (uint64_t)OSSL_SSL_OP_LEGACY_SERVER_CONNECT;
	ossl_fn.SSL_CTX_clear_options(s, off);
	ossl_fn.SSL_CTX_set_options(s, on);
	ossl_fn.SSL_CTX_ctrl(s, OSSL_SSL_CTRL_CLEAR_CERT_FLAGS,
		OSSL_SSL_CERT_FLAG_TLS_STRICT | OSSL_SSL_CERT_FLAG_SUITEB_128_LOS, NULL); /* the latter is all of Suite B's bits */
	ossl_fn.SSL_CTX_set_block_padding(s, 0);
	ossl_fn.SSL_CTX_set_num_tickets(s, 2);
}
