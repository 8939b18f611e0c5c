/*
 * External pre-shared keys: RFC 8446, section 4.2.11, and RFC 4279.
 *
 * In TLS 1.3, libssl asks for a server's key after it has chosen the suite, and goes on with a certificate,
 * without a word, if the suite has another hash than the key. So Go looks the key up at the ClientHello,
 * and the SSL then has no suites but those with the key's hash. In TLS 1.2 the identity comes after the
 * server's first flight: the step pauses there.
 *
 * A connection with a key offers and accepts no session, and makes none: a resumption would cost as much as
 * the key does, and would have to be bound to it.
 */

#include "private.h"

#include <string.h>

enum { MAX_IDENTITY = 1 << 16, MAX_KEY = 256 };

/* Makes the session by which libssl takes a TLS 1.3 key. Returns give or NULL. SSL_SESSION_new(3) */
static SSL_SESSION *session_of(const conn *c)
{
	/* The suites stand for their hashes. */
	const SSL_CIPHER *cipher = ossl_fn.SSL_CIPHER_find(c->ssl, (const uint8_t *)(c->psk_sha384 ? "\x13\x02" : "\x13\x01"));
	SSL_SESSION *s = ossl_fn.SSL_SESSION_new();

	if (s && cipher && ossl_fn.SSL_SESSION_set1_master_key(s, c->psk_key.data, c->psk_key.len) == 1 &&
		ossl_fn.SSL_SESSION_set1_id_context(s, sid_context, SID_CONTEXT) == 1 &&
		ossl_fn.SSL_SESSION_set_cipher(s, cipher) == 1 &&
		ossl_fn.SSL_SESSION_set_protocol_version(s, OSSL_TLS1_3_VERSION) == 1)
		return s;
	ossl_fn.SSL_SESSION_free(s); /* takes NULL */
	return NULL;
}

/* SSL_set_psk_find_session_callback(3). libssl takes ownership of the session. */
static int on_find(SSL *ssl, const unsigned char *identity, size_t len, SSL_SESSION **s)
{
	conn *c = conn_of(ssl);

	*s = NULL;
	if (len != c->psk_identity.len || memcmp(identity, c->psk_identity.data, len) != 0)
		return 1;
	*s = session_of(c);
	return *s != NULL;
}

/* SSL_set_psk_use_session_callback(3). libssl takes ownership of the session, and copies the identity. */
static int on_use(SSL *ssl, const EVP_MD *md, const unsigned char **identity, size_t *len, SSL_SESSION **s)
{
	conn *c = conn_of(ssl);

	(void)md; /* of the suite in a HelloRetryRequest, which is one of those that were offered */
	*s = session_of(c);
	*identity = c->psk_identity.data;
	*len = c->psk_identity.len;
	return *s != NULL;
}

static unsigned int copy_key(const conn *c, unsigned char *to, unsigned int max)
{
	if (c->psk_key.len > max)
		return 0;
	memcpy(to, c->psk_key.data, c->psk_key.len);
	return (unsigned int)c->psk_key.len;
}

/* SSL_set_psk_server_callback(3), for TLS 1.2. */
static unsigned int on_server(SSL *ssl, const char *identity, unsigned char *key, unsigned int max)
{
	conn *c = conn_of(ssl);

	if (ossl_fn.SSL_version(ssl) != OSSL_TLS1_2_VERSION || !ask_go(c, OSSL_NEED_PSK, (const uint8_t *)identity, strlen(identity)))
		return 0;
	return copy_key(c, key, max);
}

/* SSL_set_psk_client_callback(3), for TLS 1.2: libssl also calls it for the ClientHello, for a TLS 1.3 key. */
static unsigned int on_client(SSL *ssl, const char *hint, char *identity, unsigned int max_identity, unsigned char *key,
	unsigned int max)
{
	conn *c = conn_of(ssl);

	(void)hint;
	if (!c->pub.negotiated || ossl_fn.SSL_version(ssl) != OSSL_TLS1_2_VERSION || c->psk_identity.len > max_identity)
		return 0;
	memcpy(identity, c->psk_identity.data, c->psk_identity.len);
	identity[c->psk_identity.len] = 0;
	return copy_key(c, key, max);
}

/* Takes the identity and the key from the form in which Go has packed them: shim.h. */
static int take(conn *c, const uint8_t *packed, size_t len)
{
	size_t identity_len;

	if (len < 3 || (identity_len = (size_t)packed[1] << 8 | packed[2]) > len - 3)
		return 0;
	c->psk_sha384 = packed[0];
	c->psk_identity.len = c->psk_key.len = 0;
	return bytes_append(&c->psk_identity, packed + 3, identity_len, MAX_IDENTITY) &&
		bytes_append(&c->psk_key, packed + 3 + identity_len, len - 3 - identity_len, MAX_KEY);
}

static int use_client(conn *c)
{
	const ossl_ctx *ctx = c->ctx;

	if (ctx->psk_suites[c->psk_sha384]) {
		if (ossl_fn.SSL_set_ciphersuites(c->ssl, ctx->psk_suites[c->psk_sha384]) != 1)
			return 0;
		ossl_fn.SSL_set_psk_use_session_callback(c->ssl, on_use);
	}
	if (!ctx->psk_list)
		return 1;
	ossl_fn.SSL_set_psk_client_callback(c->ssl, on_client);
	return !ctx->psk_narrows_clients || ossl_fn.SSL_set_cipher_list(c->ssl, ctx->psk_list) == 1; /* which takes long */
}

static int use_server(conn *c)
{
	const ossl_ctx *ctx = c->ctx;

	if (c->psk_key.len > 0) {
		ossl_fn.SSL_set_psk_find_session_callback(c->ssl, on_find);
		return ctx->psk_suites[c->psk_sha384] && ossl_fn.SSL_set_ciphersuites(c->ssl, ctx->psk_suites[c->psk_sha384]) == 1;
	}
	if (!ctx->psk_list)
		return 0;
	ossl_fn.SSL_set_psk_server_callback(c->ssl, on_server);
	return !ctx->psk_narrows_servers || ossl_fn.SSL_set_cipher_list(c->ssl, ctx->psk_list) == 1;
}

int psk_use(conn *c, const uint8_t *packed, size_t len)
{
	if (!take(c, packed, len))
		return 0;
	if (c->question == OSSL_NEED_PSK)
		return c->psk_key.len > 0;
	c->psk = 1;
	ossl_fn.SSL_set_options(c->ssl, OSSL_SSL_OP_NO_TICKET | (c->ctx->psk_without_dhe ? OSSL_SSL_OP_ALLOW_NO_DHE_KEX : 0));
	if (!c->server)
		return use_client(c);
	return ossl_fn.SSL_set_num_tickets(c->ssl, 0) == 1 && use_server(c);
}

int ossl_conn_use_psk(ossl_conn *pub, const uint8_t *packed, size_t len)
{
	conn *c = (conn *)pub;

	if (c->question != OSSL_NEED_PSK) /* else the queue is that of the paused step */
		ossl_fn.ERR_clear_error();
	if (psk_use(c, packed, len))
		return 1;
	if (c->question != OSSL_NEED_PSK)
		ossl_drain_errors(c->pub.errors);
	return 0;
}

int psk_agreed(const conn *c)
{
	const SSL_CIPHER *cipher;

	if (!c->psk)
		return 0;
	if (ossl_fn.SSL_version(c->ssl) == OSSL_TLS1_3_VERSION)
		return ossl_fn.SSL_session_reused(c->ssl) == 1;
	cipher = ossl_fn.SSL_get_pending_cipher(c->ssl);
	if (!cipher)
		cipher = ossl_fn.SSL_get_current_cipher(c->ssl);
	return c->pub.negotiated && cipher && ossl_fn.SSL_CIPHER_get_auth_nid(cipher) == (int)OSSL_NID_auth_psk;
}

int session_resumed(const conn *c) { return !c->psk && ossl_fn.SSL_session_reused(c->ssl) == 1; }

void psk_forget(conn *c)
{
	static const uint8_t zeros[MAX_KEY];
	SSL_SESSION *s;

	/* In TLS 1.3, the key is in the session, which is not used any more. */
	if (c->ssl && c->psk_key.len > 0 && psk_agreed(c) && ossl_fn.SSL_version(c->ssl) == OSSL_TLS1_3_VERSION) {
		s = ossl_fn.SSL_get_session(c->ssl);
		if (s)
			ossl_fn.SSL_SESSION_set1_master_key(s, zeros, c->psk_key.len);
	}
	bytes_free(&c->psk_identity);
	bytes_free(&c->psk_key);
}
