/*
 * The functions that libssl calls: the window BIO and the callbacks of a handshake. If Go has to
 * decide, a callback pauses and the crossing returns to Go. If libssl can't pause there by itself,
 * the coroutine in which the step runs does (ask_go).
 */

#include "private.h"

#include <string.h>

BIO_METHOD *ossl_window_bio;

/* The longest ClientHello that crypto/tls accepts. libssl's limit is twice as large. */
enum { MESSAGE_HEADER = 4, MAX_HELLO = 1 << 16 };

/*
 * A packed chain may be larger than the message that contained it: in TLS 1.2 by a byte for each
 * certificate.
 */
enum {
	MAX_MESSAGE = 1 << 18,
	MAX_CHAIN = 1 << 19,
	MAX_SPILL = 1 << 18,
	MAX_KEYLOG = 1 << 14,
	MAX_TRACE = 1 << 19,
	USUAL_FACTS = 256,
};

/* A Certificate message without certificates: header, context length in TLS 1.3, list length. */
enum { EMPTY_CERTIFICATE = 4 + 1 + 3 };

/* The BIO: reads from the input window, writes to the output window and then to spill. */

static int window_read(BIO *b, char *to, int len)
{
	conn *c = ossl_fn.BIO_get_data(b);
	size_t n = c->in_len - c->in_pos;

	ossl_fn.BIO_clear_flags(b, OSSL_BIO_FLAGS_RWS | OSSL_BIO_FLAGS_SHOULD_RETRY);
	if (len <= 0)
		return 0;
	if (n == 0) {
		c->waits |= 1 << OSSL_WANT_READ;
		ossl_fn.BIO_set_flags(b, OSSL_BIO_FLAGS_READ | OSSL_BIO_FLAGS_SHOULD_RETRY);
		return -1;
	}
	if (n > (size_t)len)
		n = (size_t)len;
	if (takeover_taps(c))
		takeover_tap(&c->in_tap, c->in + c->in_pos, n);
	memcpy(to, c->in + c->in_pos, n);
	c->in_pos += n;
	return (int)n;
}

static int window_write(BIO *b, const char *from, int len)
{
	conn *c = ossl_fn.BIO_get_data(b);
	size_t n = c->out_cap - c->out_len;

	ossl_fn.BIO_clear_flags(b, OSSL_BIO_FLAGS_RWS | OSSL_BIO_FLAGS_SHOULD_RETRY);
	if (len <= 0)
		return 0;
	if (!c->out) { /* no window: a read's alert or key update */
		if (!bytes_append(&c->spill, from, (size_t)len, MAX_SPILL))
			return -1;
		if (takeover_taps(c))
			takeover_tap(&c->out_tap, (const uint8_t *)from, (size_t)len);
		return len;
	}
	if (n == 0) {
		c->waits |= 1 << OSSL_WANT_WRITE;
		ossl_fn.BIO_set_flags(b, OSSL_BIO_FLAGS_WRITE | OSSL_BIO_FLAGS_SHOULD_RETRY);
		return -1;
	}
	if (n > (size_t)len)
		n = (size_t)len;
	if (takeover_taps(c))
		takeover_tap(&c->out_tap, (const uint8_t *)from, n);
	memcpy(c->out + c->out_len, from, n);
	c->out_len += n;
	return (int)n;
}

static long window_ctrl(BIO *b, int cmd, long num, void *ptr)
{
	(void)b;
	(void)num;
	(void)ptr;
	return cmd == OSSL_BIO_CTRL_FLUSH;
}

int ossl_bio_setup(void)
{
	BIO_METHOD *m;

	if (ossl_window_bio)
		return 1;
	m = ossl_fn.BIO_meth_new(ossl_fn.BIO_get_new_index() | OSSL_BIO_TYPE_SOURCE_SINK, "ossl window");
	if (!m)
		return 0;
	if (!ossl_fn.BIO_meth_set_write(m, window_write) || !ossl_fn.BIO_meth_set_read(m, window_read) ||
		!ossl_fn.BIO_meth_set_ctrl(m, window_ctrl)) {
		ossl_fn.BIO_meth_free(m);
		return 0;
	}
	ossl_window_bio = m;
	return 1;
}

/* SSL_CTX_set_info_callback(3): the one exact source of alerts, in both directions. */
static void on_info(const SSL *ssl, int where, int value)
{
	conn *c;

	if (where != OSSL_SSL_CB_READ_ALERT && where != OSSL_SSL_CB_WRITE_ALERT)
		return;
	c = conn_of(ssl);
	if (where == OSSL_SSL_CB_READ_ALERT)
		c->pub.alert_in = value & 0xffff; /* level << 8 | description */
	else
		c->pub.alert_out = value & 0xffff;
}

/* RFC 8446, section 4.1.3: a HelloRetryRequest is a ServerHello with this random. */
static const uint8_t hello_retry_random[32] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65,
	0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};

/*
 * Reads a ServerHello: the group from its key_share, because libssl returns a NID or nothing
 * (1.1.1), and for errors the version and the suite, which libssl may refuse.
 */
static void note_server_hello(conn *c, const uint8_t *p, size_t len)
{
	size_t at, end;

	if (len < 4 + 2 + 32 + 1)
		return;
	if (memcmp(p + 6, hello_retry_random, 32) == 0)
		c->hello_retry = 1;
	else
		c->pub.negotiated = 1;
	c->hello_version = (uint16_t)(p[4] << 8 | p[5]);
	at = 38 + 1 + (size_t)p[38] + 2 + 1; /* session id, suite, compression */
	if (at > len)
		return;
	c->hello_suite = (uint16_t)(p[at - 3] << 8 | p[at - 2]);
	if (at + 2 > len)
		return;
	end = at + 2 + (size_t)(p[at] << 8 | p[at + 1]);
	at += 2;
	if (end > len)
		return;
	while (at + 4 <= end) {
		size_t type = (size_t)(p[at] << 8 | p[at + 1]), n = (size_t)(p[at + 2] << 8 | p[at + 3]);
		at += 4;
		if (at + n > end)
			return;
		if (type == OSSL_TLSEXT_TYPE_extended_master_secret)
			c->pub.extended_master_secret = 1;
		if (type == 51 && n >= 2)
			c->group = (uint16_t)(p[at] << 8 | p[at + 1]);
		at += n;
	}
}

/* Asks Go for its verdict on a chain, and returns it. */
static int32_t verdict_of(conn *c, const uint8_t *chain, size_t len)
{
	c->pub.verdict = OSSL_VERDICT_NONE;
	return ask_go(c, OSSL_NEED_VERIFY, chain, len) ? c->pub.verdict : OSSL_VERDICT_NONE;
}

/* Keeps a message for Go to print: sent, content type, length in 4 bytes, and the message. */
static void trace_message(conn *c, int sent, int content_type, const uint8_t *p, size_t len)
{
	const uint8_t head[] = {sent != 0, (uint8_t)content_type, (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8),
		(uint8_t)len};

	if (content_type != OSSL_SSL3_RT_HANDSHAKE && content_type != OSSL_SSL3_RT_ALERT &&
		content_type != OSSL_SSL3_RT_CHANGE_CIPHER_SPEC)
		return; /* a record's header, for example */
	if (bytes_append(&c->trace, head, sizeof head, MAX_TRACE) && !bytes_append(&c->trace, p, len, MAX_TRACE))
		c->trace.len -= sizeof head;
}

/* Counts a message of the peer that brings no data. libssl itself accepts any number of them. */
static void count_useless(conn *c)
{
	if (c->pub.useless <= OSSL_MAX_USELESS)
		c->pub.useless++;
}

/* SSL_CTX_set_msg_callback(3): complete messages, in both directions. */
static void on_message(int write_p, int version, int content_type, const void *data, size_t len, SSL *ssl, void *arg)
{
	const uint8_t *p = data;
	size_t at;
	conn *c;

	(void)version;
	(void)arg;
	c = conn_of(ssl);
	if (c->ctx->direct_records && len > 0)
		takeover_message(c, write_p, content_type, p, len);
	if (content_type == OSSL_SSL3_RT_CHANGE_CIPHER_SPEC && write_p)
		c->sent_ccs = 1;
	if (c->ctx->want_trace)
		trace_message(c, write_p, content_type, p, len);
	if (content_type != OSSL_SSL3_RT_HANDSHAKE || len < 4)
		return;
	switch (p[0]) {
	case OSSL_SSL3_MT_CLIENT_HELLO:
		if (c->server && len > MESSAGE_HEADER + MAX_HELLO) {
			c->pub.hello_len = (int32_t)(len - MESSAGE_HEADER);
			break;
		}
		if (c->server && c->ctx->want_hello && c->hello == ASK_NONE) {
			c->message.len = 0;
			bytes_append(&c->message, p, len, MAX_MESSAGE);
		}
		break;
	case OSSL_SSL3_MT_SERVER_HELLO:
		if (write_p == c->server)
			note_server_hello(c, p, len);
		break;
	case OSSL_SSL3_MT_CERTIFICATE:
		if (!c->server && write_p && len <= EMPTY_CERTIFICATE && c->cred)
			c->left_out = 1;
		/* Without a chain on_verify is not called, but the connection as a whole must still be
		 * verified. After a refusal, libssl requires the missing certificate: certificate_required,
		 * or handshake_failure in TLS 1.2. */
		if (!c->server || write_p || len > EMPTY_CERTIFICATE || !c->may_ask)
			break;
		if (verdict_of(c, NULL, 0) != OSSL_VERDICT_OK)
			ossl_fn.SSL_set_verify(ssl, OSSL_SSL_VERIFY_PEER | OSSL_SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
		break;
	case OSSL_SSL3_MT_SERVER_KEY_EXCHANGE: /* RFC 8422, section 5.4: named_curve(3), group; RFC 5489, section 2: behind a hint */
		at = MESSAGE_HEADER;
		if (len >= at + 2 && psk_agreed(c))
			at += 2 + ((size_t)p[at] << 8 | p[at + 1]);
		if (len >= at + 3 && p[at] == 3)
			c->group = (uint16_t)(p[at + 1] << 8 | p[at + 2]);
		break;
	case OSSL_SSL3_MT_KEY_UPDATE:
		if (!write_p)
			count_useless(c);
		break;
	case OSSL_SSL3_MT_NEWSESSION_TICKET: /* RFC 5077, section 3.3: lifetime, length, ticket */
		if (!write_p)
			count_useless(c);
		if (!c->server && !write_p && len > 4 + 4 + 2 && ossl_fn.SSL_version(ssl) == OSSL_TLS1_2_VERSION)
			c->new_ticket = 1;
		break;
	case OSSL_SSL3_MT_CERTIFICATE_REQUEST:
		if (!c->server && !write_p)
			unlisted_request(c, p, len);
		if (!c->server && !write_p && c->ctx->want_cert) {
			c->request.len = 0;
			bytes_append(&c->request, p, len, MAX_MESSAGE);
		}
		break;
	}
}

/*
 * Appends the data that a server's decisions depend on: the version, the suites and these
 * extensions. hello.go parses it.
 */
static int hello_facts(SSL *ssl, bytes *facts)
{
	/* server_name, supported_groups, ec_point_formats, signature_algorithms, ALPN,
	 * supported_versions, psk_key_exchange_modes, signature_algorithms_cert */
	static const uint8_t types[] = {0, 10, 11, 13, 16, 43, 45, 50};
	const uint8_t *p;
	size_t i, len = ossl_fn.SSL_client_hello_get0_ciphers(ssl, &p);
	/* Every part is preceded by its length. Otherwise suites could be mistaken for extensions, and
	 * two hellos could look the same. */
	unsigned version = ossl_fn.SSL_client_hello_get0_legacy_version(ssl);
	uint8_t start[] = {(uint8_t)(version >> 8), (uint8_t)version, (uint8_t)(len >> 8), (uint8_t)len};

	if (!bytes_append(facts, NULL, USUAL_FACTS, MAX_MESSAGE)) /* reserves room for most hellos at once */
		return 0;
	facts->len = 0;
	if (!bytes_append(facts, start, sizeof start, MAX_MESSAGE) || !bytes_append(facts, p, len, MAX_MESSAGE))
		return 0;
	for (i = 0; i < sizeof types; i++) {
		uint8_t head[] = {types[i], 0, 0};

		if (ossl_fn.SSL_client_hello_get0_ext(ssl, types[i], &p, &len) != 1)
			continue;
		head[1] = (uint8_t)(len >> 8);
		head[2] = (uint8_t)len;
		if (!bytes_append(facts, head, sizeof head, MAX_MESSAGE) || !bytes_append(facts, p, len, MAX_MESSAGE))
			return 0;
	}
	return 1;
}

/*
 * Reports whether a ClientHello after a HelloRetryRequest is still the first one, as RFC 8446,
 * section 4.1.2, requires. libssl uses the name and the protocols of the second, but configuration
 * and certificate have been chosen by the first.
 */
static int same_hello(conn *c)
{
	bytes second = {0};
	int same;

	if (!c->hello_retry)
		return c->facts.len > 0 || hello_facts(c->ssl, &c->facts);
	same = hello_facts(c->ssl, &second) && second.len == c->facts.len && memcmp(second.data, c->facts.data, second.len) == 0;
	bytes_free(&second);
	return same;
}

/* SSL_CTX_set_client_hello_cb(3). Called again after resuming and after a HelloRetryRequest. */
static int on_client_hello(SSL *ssl, int *alert, void *arg)
{
	conn *c = conn_of(ssl);
	int look, fault;

	(void)arg;
	if (c->pub.hello_len > 0) {
		*alert = OSSL_SSL_AD_INTERNAL_ERROR;
		return OSSL_SSL_CLIENT_HELLO_ERROR;
	}
	if (!same_hello(c)) {
		*alert = OSSL_SSL_AD_ILLEGAL_PARAMETER;
		return OSSL_SSL_CLIENT_HELLO_ERROR;
	}
	look = session_hello(c);
	fault = hello_fault(c);
	if (fault >= 0) {
		*alert = fault;
		return OSSL_SSL_CLIENT_HELLO_ERROR;
	}
	if (c->ctx->want_hello && c->hello == ASK_NONE && c->message.len == 0) { /* on_message had no memory, and can't fail */
		raise_no_memory();
		*alert = OSSL_SSL_AD_INTERNAL_ERROR;
		return OSSL_SSL_CLIENT_HELLO_ERROR;
	}
	if (c->hello == ASK_NONE && c->ctx->psk_hello)
		report_psks(c);
	if (c->hello == ASK_NONE && (c->ctx->want_hello || look)) {
		c->hello = ASK_WAITING;
		c->waits |= 1 << OSSL_NEED_HELLO;
		return OSSL_SSL_CLIENT_HELLO_RETRY;
	}
	c->hello = ASK_ANSWERED;
	if (c->pub.hello_alert >= 0) {
		*alert = c->pub.hello_alert;
		return OSSL_SSL_CLIENT_HELLO_ERROR;
	}
	if (!unlisted_hello(c)) {
		*alert = OSSL_SSL_AD_INTERNAL_ERROR;
		return OSSL_SSL_CLIENT_HELLO_ERROR;
	}
	return OSSL_SSL_CLIENT_HELLO_SUCCESS;
}

/*
 * SSL_CTX_set_cert_cb(3). Servers choose at the ClientHello; clients pause here when a server
 * requests a certificate.
 */
static int on_cert(SSL *ssl, void *arg)
{
	conn *c = conn_of(ssl);

	(void)arg;
	if (c->server || c->cert == ASK_ANSWERED)
		return 1;
	if (c->request.len == 0) { /* as in on_client_hello */
		raise_no_memory();
		return 0;
	}
	c->cert = ASK_WAITING;
	c->waits |= 1 << OSSL_NEED_CERT;
	return -1;
}

/* Reports whether a certificate has the parts that libssl will ask it for: a TLS 1.2 client looks at extensions. */
static int has_parts(const conn *c, X509 *x)
{
	return ossl_fn.X509_get0_pubkey(x) && (c->server || ossl_fn.SSL_version(c->ssl) != OSSL_TLS1_2_VERSION ||
		ossl_fn.X509_check_purpose(x, -1, 0) == 1);
}

/*
 * Reports whether libssl has the peer's leaf without a part for which memory was short: it would
 * report that as a fault of the certificate. packed: the leaf.
 */
static int lost_parts(const conn *c, X509 *leaf, const bytes *packed)
{
	X509 *again;
	int lost;

	if (has_parts(c, leaf))
		return 0;
	/* Where libssl has it: other library contexts know other keys. */
	again = cert_of(c->ctx->slim ? c->ctx->slim : c->ctx->lib, packed->data + 4, packed->len - 4);
	lost = !again || has_parts(c, again);
	ossl_fn.X509_free(again); /* takes NULL */
	if (!lost)
		ossl_fn.ERR_clear_error(); /* SSL_get_error(3) would take them for the reason of the pause */
	return lost;
}

/*
 * SSL_CTX_set_cert_verify_callback(3), SSL_set_retry_verify(3).
 *
 * Only a client of 3.0 or later pauses when this returns 1 after SSL_set_retry_verify; in all other
 * cases that 1 means accepted. So the pause is used only if it is known to work, the control's own
 * result is checked, and every other path is a refusal.
 */
static int on_verify(X509_STORE_CTX *store, void *arg)
{
	SSL *ssl = ossl_fn.X509_STORE_CTX_get_ex_data(store, ossl_fn.SSL_get_ex_data_X509_STORE_CTX_idx());
	conn *c = ssl ? conn_of(ssl) : NULL;
	OPENSSL_STACK *chain;
	X509 *leaf;
	int i, n;

	(void)arg;
	if (!c)
		return 0;
	if (c->verify == ASK_ANSWERED) /* one chain per connection: a verdict is never used twice */
		goto internal;
	if (c->verify == ASK_NONE) {
		leaf = ossl_fn.X509_STORE_CTX_get0_cert(store);
		chain = (OPENSSL_STACK *)ossl_fn.X509_STORE_CTX_get0_untrusted(store);
		c->message.len = 0;
		n = chain ? ossl_fn.OPENSSL_sk_num(chain) : 0;
		if (!leaf || !cert_pack(&c->message, leaf, MAX_CHAIN))
			goto internal;
		if (lost_parts(c, leaf, &c->message)) {
			raise_no_memory();
			goto internal;
		}
		/* untrusted is the peer's whole list: its first entry is the leaf again. */
		for (i = 0; i < n; i++) {
			X509 *x = ossl_fn.OPENSSL_sk_value(chain, i);
			if (x != leaf && !cert_pack(&c->message, x, MAX_CHAIN))
				goto internal;
		}
		c->pub.verdict = OSSL_VERDICT_NONE;
		c->pub.version = ossl_fn.SSL_version(ssl);
		if (!c->server && c->ctx->verify_pauses) {
			if (ossl_fn.SSL_ctrl(ssl, OSSL_SSL_CTRL_SET_RETRY_VERIFY, 0, NULL) <= 0)
				goto internal;
			c->verify = ASK_WAITING;
			c->waits |= 1 << OSSL_NEED_VERIFY;
			return 1;
		}
		if (!c->may_ask)
			goto internal;
		c->pub.verdict = verdict_of(c, c->message.data, c->message.len);
	}
	c->verify = ASK_ANSWERED;
	if (c->pub.verdict == OSSL_VERDICT_OK || c->refused) { /* refused: conn.c aborts the handshake */
		if (c->server)
			session_chain(c, c->message.data, c->message.len);
		ossl_fn.X509_STORE_CTX_set_error(store, OSSL_X509_V_OK);
		return 1;
	}
	ossl_fn.X509_STORE_CTX_set_error(store, c->pub.verdict > 0 ? c->pub.verdict : OSSL_X509_V_ERR_UNSPECIFIED);
	return 0;

internal:
	c->verify = ASK_ANSWERED;
	ossl_fn.X509_STORE_CTX_set_error(store, OSSL_X509_V_ERR_UNSPECIFIED);
	return 0;
}

/*
 * Returns the position in prefs of the first protocol that is also in known; len if there is none.
 * One of the lists comes from a client, the other from the configuration; only the total length of
 * each was checked.
 */
static size_t first_common(const uint8_t *prefs, size_t len, const uint8_t *known, size_t known_len)
{
	size_t p, k;

	for (p = 0; p < len && p + 1 + prefs[p] <= len; p += 1 + (size_t)prefs[p])
		for (k = 0; k < known_len && k + 1 + known[k] <= known_len; k += 1 + (size_t)known[k])
			if (known[k] == prefs[p] && memcmp(known + k + 1, prefs + p + 1, prefs[p]) == 0)
				return p;
	return len;
}

static int contains(const uint8_t *list, size_t len, const char *protocol)
{
	uint8_t one[256];
	size_t n = strlen(protocol);

	one[0] = (uint8_t)n;
	memcpy(one + 1, protocol, n);
	return first_common(one, n + 1, list, len) == 0;
}

/*
 * Follows crypto/tls's rules, unless alpn_by_client is set: the server's order decides. If there is no
 * common protocol, a client that offers http/1.1 is served without ALPN by a server that has h2.
 */
int alpn_select(const ossl_ctx *ctx, const uint8_t *in, size_t in_len, const uint8_t **out, uint8_t *out_len)
{
	const uint8_t *prefs = ctx->alpn_by_client ? in : ctx->alpn, *known = ctx->alpn_by_client ? ctx->alpn : in;
	size_t len = ctx->alpn_by_client ? in_len : ctx->alpn_len, known_len = ctx->alpn_by_client ? ctx->alpn_len : in_len, at;

	if (ctx->alpn_len == 0)
		return 0;
	at = first_common(prefs, len, known, known_len);
	if (at < len) {
		*out = prefs + at + 1;
		*out_len = prefs[at];
		return 1;
	}
	return contains(ctx->alpn, ctx->alpn_len, "h2") && contains(in, in_len, "http/1.1") ? 0 : -1;
}

/* SSL_CTX_set_alpn_select_cb(3). */
static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in, unsigned int in_len,
	void *arg)
{
	(void)arg;
	switch (alpn_select(conn_of(ssl)->ctx, in, in_len, out, out_len)) {
	case 1:
		return OSSL_SSL_TLSEXT_ERR_OK;
	case 0:
		return OSSL_SSL_TLSEXT_ERR_NOACK;
	}
	return OSSL_SSL_TLSEXT_ERR_ALERT_FATAL;
}

/*
 * SSL_CTX_set_tlsext_servername_callback(3): acknowledges the client's name, if it sent one (RFC
 * 6066, section 3). Decisions that depend on the name were made at the ClientHello. As in
 * crypto/tls, a resumed handshake doesn't acknowledge a name.
 */
static int on_server_name(SSL *ssl, int *alert, void *arg)
{
	(void)alert;
	(void)arg;
	return session_resumed(conn_of(ssl)) ? OSSL_SSL_TLSEXT_ERR_NOACK : OSSL_SSL_TLSEXT_ERR_OK;
}

/*
 * SSL_CTX_set_tlsext_status_cb(3). One callback for both roles, with different codes: 0 is a
 * server's success and a client's failure.
 */
static int on_status(SSL *ssl, void *arg)
{
	conn *c = conn_of(ssl);
	const ossl_cred *cred = c->cred ? c->cred : c->ctx->cred;
	void *copy;

	(void)arg;
	if (!c->server)
		return 1;
	if (!cred || !cred->staple_len)
		return OSSL_SSL_TLSEXT_ERR_NOACK;
	copy = ossl_fn.CRYPTO_malloc(cred->staple_len, __FILE__, __LINE__);
	if (!copy)
		return OSSL_SSL_TLSEXT_ERR_ALERT_FATAL;
	memcpy(copy, cred->staple, cred->staple_len);
	/* Takes copy, unless it returns 0: 3.6 and later, if memory is short. */
	if (ossl_fn.SSL_ctrl(ssl, OSSL_SSL_CTRL_SET_TLSEXT_STATUS_REQ_OCSP_RESP, (long)cred->staple_len, copy) <= 0) {
		ossl_fn.CRYPTO_free(copy, __FILE__, __LINE__);
		return OSSL_SSL_TLSEXT_ERR_ALERT_FATAL;
	}
	return OSSL_SSL_TLSEXT_ERR_OK;
}

/*
 * SSL_CTX_add_custom_ext(3) for RFC 6962, section 3.3.1. Requests have an empty body; the leaf's
 * answer has the list.
 */
static int on_sct_add(SSL *ssl, unsigned int type, unsigned int context, const unsigned char **out, size_t *out_len, X509 *x,
	size_t index, int *alert, void *arg)
{
	conn *c = conn_of(ssl);
	const ossl_cred *cred = c->cred || !c->server ? c->cred : c->ctx->cred;

	(void)type;
	(void)x;
	(void)alert;
	(void)arg;
	*out = NULL;
	*out_len = 0;
	if (context & (unsigned)(OSSL_SSL_EXT_CLIENT_HELLO | OSSL_SSL_EXT_TLS1_3_CERTIFICATE_REQUEST))
		return 1;
	if (!cred || !cred->scts_len || ((context & (unsigned)OSSL_SSL_EXT_TLS1_3_CERTIFICATE) && index != 0))
		return 0;
	*out = cred->scts;
	*out_len = cred->scts_len;
	return 1;
}

/*
 * Reports whether a SignedCertificateTimestampList is well-formed (RFC 6962, section 3.3): neither
 * the list nor an entry may be empty.
 */
static int is_sct_list(const uint8_t *p, size_t len)
{
	size_t n;

	if (len <= 2 || ((size_t)p[0] << 8 | p[1]) != len - 2)
		return 0;
	for (p += 2, len -= 2; len > 0; p += n, len -= n) {
		if (len < 2)
			return 0;
		n = (size_t)p[0] << 8 | p[1];
		p += 2;
		len -= 2;
		if (n == 0 || n > len)
			return 0;
	}
	return 1;
}

static int on_sct_parse(SSL *ssl, unsigned int type, unsigned int context, const unsigned char *in, size_t len, X509 *x,
	size_t index, int *alert, void *arg)
{
	conn *c = conn_of(ssl);

	(void)type;
	(void)x;
	(void)arg;
	if (context & (unsigned)(OSSL_SSL_EXT_CLIENT_HELLO | OSSL_SSL_EXT_TLS1_3_CERTIFICATE_REQUEST))
		return 1;
	if ((context & (unsigned)OSSL_SSL_EXT_TLS1_3_CERTIFICATE) && index != 0)
		return 1;
	c->scts.len = 0;
	if (!is_sct_list(in, len)) {
		*alert = OSSL_SSL_AD_DECODE_ERROR;
		return 0;
	}
	if (!bytes_append(&c->scts, in, len, MAX_MESSAGE)) {
		*alert = OSSL_SSL_AD_INTERNAL_ERROR;
		return 0;
	}
	return 1;
}

/* SSL_CTX_set_keylog_callback(3). */
static void on_keylog(const SSL *ssl, const char *line)
{
	conn *c = conn_of(ssl);

	if (c->ctx->seal_refusals)
		takeover_secret(c, line);
	if (!c->ctx->want_keylog)
		return;
	if (bytes_append(&c->keylog, line, strlen(line), MAX_KEYLOG))
		bytes_append(&c->keylog, "\n", 1, MAX_KEYLOG);
}

int ossl_ctx_set_callbacks(ossl_ctx *ctx)
{
	ossl_fn.SSL_CTX_set_info_callback(ctx->ssl, on_info);
	ossl_fn.SSL_CTX_set_msg_callback(ctx->ssl, on_message);
	ossl_fn.SSL_CTX_set_cert_verify_callback(ctx->ssl, on_verify, NULL);
	ossl_fn.SSL_CTX_set_client_hello_cb(ctx->ssl, on_client_hello, NULL);
	if (ctx->want_cert)
		ossl_fn.SSL_CTX_set_cert_cb(ctx->ssl, on_cert, NULL);
	if (ctx->want_keylog || (ctx->seal_refusals && !ctx->observes))
		ossl_fn.SSL_CTX_set_keylog_callback(ctx->ssl, on_keylog);
	ossl_fn.SSL_CTX_set_alpn_select_cb(ctx->ssl, on_alpn, NULL);
	ossl_fn.SSL_CTX_callback_ctrl(ctx->ssl, OSSL_SSL_CTRL_SET_TLSEXT_SERVERNAME_CB, (void (*)(void))on_server_name);
	ossl_fn.SSL_CTX_callback_ctrl(ctx->ssl, OSSL_SSL_CTRL_SET_TLSEXT_STATUS_REQ_CB, (void (*)(void))on_status);
	return ossl_fn.SSL_CTX_add_custom_ext(ctx->ssl, OSSL_TLSEXT_TYPE_signed_certificate_timestamp,
			   (unsigned)(OSSL_SSL_EXT_CLIENT_HELLO | OSSL_SSL_EXT_TLS1_2_SERVER_HELLO | OSSL_SSL_EXT_TLS1_3_CERTIFICATE |
					   OSSL_SSL_EXT_TLS1_3_CERTIFICATE_REQUEST),
			   on_sct_add, NULL, NULL, on_sct_parse, NULL) == 1;
}
