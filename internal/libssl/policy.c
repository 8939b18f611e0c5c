/*
 * The host's policy: the section of openssl.cnf that the module ssl_conf calls system_default. SSL_CTX_new carries it out, so
 * every SSL_CTX begins with it, in whatever library context: config(5), "SSL Configuration".
 *
 * What comes of it is decided above, in Go, from two things. One is what such an SSL_CTX would offer: its ClientHello. The other
 * is which commands there are, so that a default of libssl's is not taken for the host's word. The file can't tell the latter for
 * sure: another part of the process may have loaded another one, or have changed it since. libcrypto can, by the three functions
 * through which libssl itself reads the commands; where they are missing, all counts as the host's word.
 */

#include "policy.h"
#include "private.h"

#include <stdlib.h>
#include <string.h>

static int append_command(bytes *list, uint8_t done, const char *name, const char *value)
{
	enum { MAX_POLICY = 1 << 20 };

	return bytes_append(list, &done, 1, MAX_POLICY) && bytes_append(list, name, strlen(name) + 1, MAX_POLICY) &&
		bytes_append(list, value, strlen(value) + 1, MAX_POLICY);
}

/* Carries the commands out on s once more, to see which of them libssl takes: before 3.2 it leaves out, without a word, the first
 * that it doesn't and all behind it, and later versions just that one. */
static int read_commands(SSL_CTX *s, bytes *list)
{
	const struct ssl_conf_cmd_st *commands;
	SSL_CONF_CTX *conf;
	const char *section;
	size_t i, at, n = 0;
	int ok = 1;

	if (!ossl_fn.conf_ssl_name_find("system_default", &at))
		return 1;
	commands = ossl_fn.conf_ssl_get(at, &section, &n);
	conf = ossl_fn.SSL_CONF_CTX_new();
	if (!conf)
		return 0;
	ossl_fn.SSL_CONF_CTX_set_flags(conf,
		(unsigned)(OSSL_SSL_CONF_FLAG_FILE | OSSL_SSL_CONF_FLAG_CLIENT | OSSL_SSL_CONF_FLAG_SERVER));
	ossl_fn.SSL_CONF_CTX_set_ssl_ctx(conf, s);
	for (i = 0; i < n && ok; i++) {
		char *name, *value;

		ossl_fn.conf_ssl_get_cmd(commands, i, &name, &value);
		ok = append_command(list, ossl_fn.SSL_CONF_cmd(conf, name, value) > 0, name, value);
	}
	ossl_fn.SSL_CONF_CTX_free(conf);
	return ok;
}

uint8_t *ossl_policy_read(size_t *len, int *known, unsigned long *errors)
{
	bytes list = {0};
	SSL_CTX *s;
	int ok;

	ossl_fn.ERR_clear_error();
	*known = ossl_fn.conf_ssl_name_find && ossl_fn.conf_ssl_get && ossl_fn.conf_ssl_get_cmd;
	s = ossl_new_ssl_ctx();
	ossl_drain_errors(errors);
	ok = s && (!*known || read_commands(s, &list));
	ossl_fn.SSL_CTX_free(s);
	ossl_fn.ERR_clear_error();
	if (!ok) {
		bytes_free(&list);
		return NULL;
	}
	*len = list.len;
	return list.data ? list.data : malloc(1);
}

char *ossl_policy_file(void)
{
	char *file = ossl_fn.CONF_get1_default_config_file();
	char *copy = file ? strdup(file) : NULL;

	ossl_fn.CRYPTO_free(file, __FILE__, __LINE__);
	return copy;
}

int ossl_ctx_no_tickets(ossl_ctx *ctx)
{
	return (ossl_fn.SSL_CTX_get_options(ctx->ssl) & (uint64_t)OSSL_SSL_OP_NO_TICKET) != 0;
}

void ossl_policy_narrow(SSL_CTX *s)
{
	/* Resumption of TLS 1.3 without a key exchange, and TLS 1.2 without the extended master secret. */
	ossl_fn.SSL_CTX_clear_options(s, (uint64_t)(OSSL_SSL_OP_ALLOW_NO_DHE_KEX | OSSL_SSL_OP_NO_EXTENDED_MASTER_SECRET));
}

void ossl_policy_lift(SSL_CTX *s)
{
	uint64_t on = (uint64_t)OSSL_SSL_OP_ENABLE_MIDDLEBOX_COMPAT;
	uint64_t off = (uint64_t)(OSSL_SSL_OP_NO_TLSv1_2 | OSSL_SSL_OP_NO_TLSv1_3 | OSSL_SSL_OP_NO_TICKET |
		OSSL_SSL_OP_NO_ENCRYPT_THEN_MAC | OSSL_SSL_OP_ALLOW_UNSAFE_LEGACY_RENEGOTIATION | OSSL_SSL_OP_DISABLE_TLSEXT_CA_NAMES);

	/* Each version's own default. */
	*(ossl_fn.OpenSSL_version_num() < OSSL_V3_0 ? &on : &off) |= (uint64_t)OSSL_SSL_OP_LEGACY_SERVER_CONNECT;
	off |= (uint64_t)3 << 32; /* SSL_OP_NO_TX_ and NO_RX_CERTIFICATE_COMPRESSION, of 3.2; a long may have no such bits */
	ossl_fn.SSL_CTX_clear_options(s, off);
	ossl_fn.SSL_CTX_set_options(s, on);
	ossl_fn.SSL_CTX_ctrl(s, OSSL_SSL_CTRL_CLEAR_CERT_FLAGS,
		OSSL_SSL_CERT_FLAG_TLS_STRICT | OSSL_SSL_CERT_FLAG_SUITEB_128_LOS, NULL); /* the latter is all of Suite B's */
	ossl_fn.SSL_CTX_set_block_padding(s, 0);
	ossl_fn.SSL_CTX_set_num_tickets(s, 2);
}
