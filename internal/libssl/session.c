/*
 * Sessions and their resumption.
 *
 * A server's session contains, in libssl's field for an application's data:
 *
 *   binding  SHA-256 over the context's policy, the identity in the server's certificate, the server
 *            name that the client asked for and the chosen protocol, cut to BINDING bytes. A
 *            session is resumed only if all of them are the same.
 *   group    of the key exchange, which a resumed TLS 1.2 handshake doesn't have
 *   chain    of the client's certificates, packed, if it sent any: libssl itself keeps only the
 *            leaf.
 *
 * libssl verifies nothing when it resumes a session: if certificates are requested, Go verifies the
 * chain again.
 */

#include "private.h"
#include "provider.h"
#include "sha2.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* A session with a longer one is not resumed: a ticket has at most 2^16 bytes, and so has a ClientHello with it, as crypto/tls
	 * and ossl limit it. Three certificates with ML-DSA-87 have 23 KB. */
	MAX_KEPT_CHAIN = 1 << 15,
	MAX_SESSIONS = 1 << 18,
	MAX_ID = 32,
	PSK_DHE_KE = 1, /* RFC 8446, section 4.2.9 */
	MAX_CANDIDATES = 5,
};

const uint8_t sid_context[SID_CONTEXT] = {'o', 's', 's', 'l'};

struct ticket_ring {
	int refs; /* atomic: the contexts that share it */
	pthread_mutex_t lock;
	const EVP_CIPHER *aes[2]; /* AES-128-CBC, AES-256-CBC */
	size_t n;              /* guarded by lock */
	ossl_ticket_key *keys; /* guarded by lock; n of them */
};

/*
 * Reports whether another of a ClientHello's sessions may be examined. A ClientHello has room for
 * hundreds, and each may cost the verification of a chain; crypto/tls has the same limit.
 */
static int another(conn *c)
{
	if (c->psk || c->candidates == MAX_CANDIDATES)
		return 0;
	c->candidates++;
	return 1;
}

/* Finds the key with a name, or, if name is NULL, the one that seals. Returns its index, or -1. */
static int find_key(ticket_ring *r, const uint8_t *name, ossl_ticket_key *key)
{
	size_t i;
	int found = -1;

	pthread_mutex_lock(&r->lock);
	for (i = 0; i < r->n && found < 0; i++) {
		if (name && memcmp(r->keys[i].name, name, sizeof key->name) != 0)
			continue;
		*key = r->keys[i];
		found = (int)i;
	}
	pthread_mutex_unlock(&r->lock);
	return found;
}

/* Reports whether tickets can be sealed now: a ring may be empty temporarily. */
static int has_keys(const ossl_ctx *ctx)
{
	int has = 0;

	if (ctx->ring) {
		pthread_mutex_lock(&ctx->ring->lock);
		has = ctx->ring->n > 0;
		pthread_mutex_unlock(&ctx->ring->lock);
	}
	return has;
}

static void free_keys(ossl_ticket_key *keys, size_t n)
{
	if (keys)
		ossl_fn.OPENSSL_cleanse(keys, n * sizeof *keys);
	free(keys);
}

int ossl_ctx_set_ticket_keys(ossl_ctx *ctx, const ossl_ticket_key *keys, size_t n)
{
	ticket_ring *r = ctx->ring;
	ossl_ticket_key *own, *before;
	size_t n_before;

	if (!r)
		return 0;
	own = new_zeros((n ? n : 1) * sizeof *own);
	if (!own) {
		ossl_fn.ERR_clear_error();
		return 0;
	}
	if (n)
		memcpy(own, keys, n * sizeof *own);
	pthread_mutex_lock(&r->lock);
	before = r->keys;
	n_before = r->n;
	r->keys = own;
	r->n = n;
	pthread_mutex_unlock(&r->lock);
	free_keys(before, n_before);
	return 1;
}

static int random_bytes(const ossl_ctx *ctx, uint8_t *to, size_t len)
{
	if (ctx->lib)
		return ossl_fn.RAND_bytes_ex(ctx->lib, to, len, 0) == 1;
	return ossl_fn.RAND_bytes(to, (int)len) == 1;
}

/*
 * Prepares the cipher for a ticket. Returns the result for libssl: 1, 2 if the client should get a
 * new ticket, 0 if the key is unknown, -1 on failure.
 */
static int ticket_cipher(SSL *ssl, ossl_ticket_key *key, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
	int sealing)
{
	conn *c = conn_of(ssl);
	ticket_ring *r = c->ctx->ring;
	int at = sealing || another(c) ? find_key(r, sealing ? NULL : name, key) : -1;

	if (at < 0) /* no ticket; TLS 1.3 on 1.1.1 doesn't support this answer */
		return sealing && !ossl_fn.EVP_CIPHER_fetch && ossl_fn.SSL_version(ssl) == OSSL_TLS1_3_VERSION ? -1 : 0;
	if (sealing) {
		memcpy(name, key->name, sizeof key->name);
		if (!random_bytes(c->ctx, iv, 16))
			return -1;
	}
	if (ossl_fn.EVP_CipherInit_ex(cipher, r->aes[key->cipher_len == 32], NULL, key->cipher, iv, sealing) != 1)
		return -1;
	/* TLS 1.3's tickets are for one use: RFC 8446, appendix C.4. */
	return at > 0 || (!sealing && ossl_fn.SSL_version(ssl) == OSSL_TLS1_3_VERSION) ? 2 : 1;
}

/* SSL_CTX_set_tlsext_ticket_key_evp_cb(3). */
static int on_ticket_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int sealing)
{
	ossl_ticket_key key;
	int answer = ticket_cipher(ssl, &key, name, iv, cipher, sealing);

	if (answer > 0) {
		OSSL_PARAM params[] = {
			{"key", (unsigned)OSSL_OSSL_PARAM_OCTET_STRING, key.mac, key.mac_len, (size_t)-1},
			{"digest", (unsigned)OSSL_OSSL_PARAM_UTF8_STRING, "SHA256", 6, (size_t)-1},
			{NULL, 0, NULL, 0, 0},
		};
		if (ossl_fn.EVP_MAC_CTX_set_params(mac, params) != 1)
			answer = -1;
	}
	ossl_fn.OPENSSL_cleanse(&key, sizeof key);
	return answer;
}

/* Is like on_ticket_key, for 1.1.1. */
static int on_ticket_key_1_1_1(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, HMAC_CTX *mac,
	int sealing)
{
	ossl_ticket_key key;
	int answer = ticket_cipher(ssl, &key, name, iv, cipher, sealing);

	if (answer > 0 && ossl_fn.HMAC_Init_ex(mac, key.mac, key.mac_len, ossl_fn.EVP_sha256(), NULL) != 1)
		answer = -1;
	ossl_fn.OPENSSL_cleanse(&key, sizeof key);
	return answer;
}

uint16_t session_group(const conn *c)
{
	return c->group == 0 && session_resumed(c) ? c->offered_group : c->group;
}

/* Stores a session's binding, and the client's chain, in it. */
static int put_appdata(conn *c, SSL_SESSION *s)
{
	uint8_t data[BINDING + 2] = {0};
	uint16_t group = session_group(c);
	bytes all = {0};
	int ok;

	/* libssl stores a name that was acknowledged. The binding covers it, so it would only make
	 * tickets longer. */
	ossl_fn.SSL_SESSION_set1_hostname(s, NULL);
	/* A session that was acceptable may still not be resumed, and its client has proven nothing
	 * then, since its binder has not been checked. The session made instead must not inherit its
	 * chain. */
	if (c->chain_offered && !session_resumed(c))
		c->chain.len = 0;
	if (c->chain.len > MAX_KEPT_CHAIN) /* stores no binding */
		return ossl_fn.SSL_SESSION_set1_ticket_appdata(s, data, sizeof data) == 1;
	memcpy(data, c->binding, BINDING);
	data[BINDING] = (uint8_t)(group >> 8);
	data[BINDING + 1] = (uint8_t)group;
	if (c->chain.len == 0)
		return ossl_fn.SSL_SESSION_set1_ticket_appdata(s, data, sizeof data) == 1;
	ok = bytes_append(&all, data, sizeof data, MAX_SESSIONS) && bytes_append(&all, c->chain.data, c->chain.len, MAX_SESSIONS) &&
		ossl_fn.SSL_SESSION_set1_ticket_appdata(s, all.data, all.len) == 1;
	bytes_free(&all);
	return ok;
}

void session_chain(conn *c, const uint8_t *chain, size_t len)
{
	if (!c->ctx->tickets && !c->ctx->cached)
		return;
	c->chain_offered = 0;
	c->chain.len = 0;
	if (!bytes_append(&c->chain, chain, len, len) || len > MAX_KEPT_CHAIN)
		ossl_fn.SSL_set_num_tickets(c->ssl, 0); /* in TLS 1.2 the ticket was already announced */
}

/*
 * Reports whether the context still allows a TLS 1.2 session's suite, which a resumption must use.
 */
static int suite_allowed(conn *c, const SSL_SESSION *s, uint16_t *id)
{
	const SSL_CIPHER *cipher = ossl_fn.SSL_SESSION_get0_cipher(s);

	*id = cipher ? ossl_fn.SSL_CIPHER_get_protocol_id(cipher) : 0;
	return cipher && ossl_ctx_has_cipher(c->ctx, *id);
}

/*
 * Reports whether a session has the chosen version and, in TLS 1.2, a suite that both peers allow:
 * libssl doesn't check the server's list, and aborts the handshake if the client doesn't offer the
 * suite. TLS 1.3 chooses anew.
 */
static int fits(conn *c, const SSL_SESSION *s)
{
	uint8_t *offered = NULL;
	long i, len;
	uint16_t id;

	if (ossl_fn.SSL_SESSION_get_protocol_version(s) != ossl_fn.SSL_version(c->ssl))
		return 0;
	if (ossl_fn.SSL_version(c->ssl) == OSSL_TLS1_3_VERSION)
		return 1;
	if (!suite_allowed(c, s, &id))
		return 0;
	len = ossl_fn.SSL_ctrl(c->ssl, OSSL_SSL_CTRL_GET_RAW_CIPHERLIST, 0, &offered);
	for (i = 0; i + 2 <= len; i += 2)
		if (offered[i] == id >> 8 && offered[i + 1] == (id & 0xff))
			return 1;
	return 0;
}

/*
 * Reports whether this connection may resume a session: the binding is the same, and Go accepts the
 * client's certificates.
 */
static int acceptable(conn *c, SSL_SESSION *s)
{
	void *appdata = NULL;
	const uint8_t *data;
	size_t len = 0;

	if (ossl_fn.SSL_SESSION_get0_ticket_appdata(s, &appdata, &len) != 1 || len < BINDING + 2 ||
		memcmp(appdata, c->binding, BINDING) != 0 || !fits(c, s))
		return 0;
	data = (const uint8_t *)appdata + BINDING + 2;
	len -= BINDING + 2;
	if (c->ctx->client_auth == OSSL_SSL_VERIFY_NONE ? len > 0 : !ask_go(c, OSSL_NEED_RESUME, data, len) || c->pub.answer != 1)
		return 0;
	session_chain(c, data, len); /* for the next ticket, if this session is resumed */
	c->chain_offered = 1;
	c->offered_group = (uint16_t)(data[-2] << 8 | data[-1]);
	return 1;
}

/* SSL_CTX_set_session_ticket_cb(3): a ticket is about to be made. */
static int on_ticket(SSL *ssl, void *arg)
{
	(void)arg;
	return put_appdata(conn_of(ssl), ossl_fn.SSL_get_session(ssl));
}

/*
 * SSL_CTX_set_session_ticket_cb(3): a ticket was opened, or could not be. A ticket that is not used
 * is replaced by a new one.
 */
static int on_ticket_opened(SSL *ssl, SSL_SESSION *s, const unsigned char *name, size_t name_len, int status, void *arg)
{
	(void)name;
	(void)name_len;
	(void)arg;
	if (s && status == OSSL_SSL_TICKET_SUCCESS && acceptable(conn_of(ssl), s))
		return OSSL_SSL_TICKET_RETURN_USE;
	if (s && status == OSSL_SSL_TICKET_SUCCESS_RENEW && acceptable(conn_of(ssl), s))
		return OSSL_SSL_TICKET_RETURN_USE_RENEW;
	return OSSL_SSL_TICKET_RETURN_IGNORE_RENEW;
}

static int append_sized(bytes *b, const uint8_t *data, size_t len)
{
	uint8_t head[4] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};

	return bytes_append(b, head, 4, MAX_SESSIONS) && bytes_append(b, data, len, MAX_SESSIONS);
}

/* Collects a session for Go. One that there is no memory for is not resumed, with no other consequence. */
static void collect(conn *c, SSL_SESSION *s)
{
	size_t before = c->sessions.len;
	const uint8_t *id;
	unsigned int id_len = 0;
	uint8_t *to;
	int len;

	id = ossl_fn.SSL_SESSION_get_id(s, &id_len);
	len = ossl_fn.i2d_SSL_SESSION(s, NULL);
	if (len <= 0 || !append_sized(&c->sessions, id, id_len) || !append_sized(&c->sessions, NULL, (size_t)len))
		goto none;
	to = c->sessions.data + c->sessions.len - (size_t)len;
	if (ossl_fn.i2d_SSL_SESSION(s, &to) == len)
		return;
none:
	c->sessions.len = before;
	ossl_fn.ERR_clear_error(); /* libssl would take it for its own failure */
}

/* SSL_CTX_sess_set_new_cb(3). libssl keeps ownership of the session. */
static int on_new_session(SSL *ssl, SSL_SESSION *s)
{
	conn *c = conn_of(ssl);

	if (c->psk)
		return 0;
	if (!c->server) {
		if (c->ctx->keep_sessions)
			collect(c, s);
	} else if (c->ctx->cached && (ossl_fn.SSL_version(ssl) == OSSL_TLS1_3_VERSION ? c->stateful : put_appdata(c, s))) {
		collect(c, s); /* these sessions get no on_ticket in TLS 1.2 */
	}
	return 0;
}

void session_end(conn *c)
{
	/* A new ticket for a resumed session: in TLS 1.2 libssl has no callback for it. */
	if (c->new_ticket && c->ctx->keep_sessions && c->pub.resumed)
		collect(c, ossl_fn.SSL_get_session(c->ssl));
}

/* SSL_CTX_sess_set_get_cb(3). libssl takes ownership of the result. */
static SSL_SESSION *on_lookup(SSL *ssl, const unsigned char *id, int len, int *copy)
{
	conn *c = conn_of(ssl);
	const unsigned char *p = c->offered.data;
	const uint8_t *own;
	unsigned int own_len = 0;
	SSL_SESSION *s;

	*copy = 0;
	if (c->offered.len == 0 || len != c->offered_id_len || memcmp(id, c->offered_id, (size_t)len) != 0 || !another(c))
		return NULL;
	s = ossl_fn.d2i_SSL_SESSION(NULL, &p, (long)c->offered.len);
	if (!s) {
		ossl_fn.ERR_clear_error();
		return NULL;
	}
	own = ossl_fn.SSL_SESSION_get_id(s, &own_len);
	if ((int)own_len != len || memcmp(own, id, own_len) != 0 || !acceptable(c, s)) {
		ossl_fn.SSL_SESSION_free(s);
		return NULL;
	}
	return s;
}

int ossl_conn_offer_session(ossl_conn *pub, const uint8_t *session, size_t len)
{
	conn *c = (conn *)pub;

	c->offered.len = 0;
	return bytes_append(&c->offered, session, len, MAX_SESSIONS);
}

void ossl_conn_forget_sessions(ossl_conn *pub)
{
	conn *c = (conn *)pub;

	bytes_free(&c->sessions);
	pub->sessions = NULL;
	pub->sessions_len = 0;
}

/* Reads n bytes as a number, and advances. */
static int number(const uint8_t **p, size_t *left, size_t n, size_t *v)
{
	if (*left < n)
		return 0;
	for (*v = 0; n > 0; n--, (*left)--)
		*v = *v << 8 | *(*p)++;
	return 1;
}

/*
 * Keeps the first name in a server_name extension: RFC 6066, section 3. As in hellodot.go, a dot at
 * its end is no part of it. Returns 1, or 0 if memory is short.
 */
static int keep_name(conn *c)
{
	const uint8_t *p;
	size_t left, list, type, n;

	c->name.len = 0;
	if (ossl_fn.SSL_client_hello_get0_ext(c->ssl, OSSL_TLSEXT_TYPE_server_name, &p, &left) != 1 || !number(&p, &left, 2, &list) ||
		!number(&p, &left, 1, &type) || type != OSSL_TLSEXT_NAMETYPE_host_name || !number(&p, &left, 2, &n) || n > left || n == 0)
		return 1;
	c->dotted = p[n - 1] == '.' && (n == 1 || p[n - 2] == '.');
	if (p[n - 1] == '.' && !c->dotted)
		n--;
	return bytes_append(&c->name, p, n, n);
}

/* Computes the binding of this connection's sessions. */
static int bind(conn *c)
{
	static const uint8_t unset[OSSL_IDENTITY];
	uint8_t text[sizeof c->ctx->policy + OSSL_IDENTITY + 2 + 255 + 255], hash[MAX_SECRET], alpn_len = 0, *to = text;
	const ossl_cred *cred = c->cred ? c->cred : c->ctx->cred;
	const uint8_t *name = c->name.data, *p, *alpn = NULL;
	size_t name_len = c->name.len, left, list, i;

	if (name_len > 255) /* libssl refuses it */
		return 0;
	/* Before the pause the certificate has not been chosen, and no session is examined. */
	if (cred ? memcmp(cred->identity, unset, sizeof unset) == 0 : c->hello != ASK_NONE)
		return 0;
	memcpy(to, c->ctx->policy, sizeof c->ctx->policy);
	to += sizeof c->ctx->policy;
	memcpy(to, cred ? cred->identity : unset, OSSL_IDENTITY);
	to += OSSL_IDENTITY;
	*to++ = (uint8_t)name_len;
	for (i = 0; i < name_len; i++)
		*to++ = name[i] >= 'A' && name[i] <= 'Z' ? (uint8_t)(name[i] + 'a' - 'A') : name[i];
	if (ossl_fn.SSL_client_hello_get0_ext(c->ssl, OSSL_TLSEXT_TYPE_application_layer_protocol_negotiation, &p, &left) != 1 ||
		!number(&p, &left, 2, &list) || list > left || alpn_select(c->ctx, p, list, &alpn, &alpn_len) != 1)
		alpn_len = 0;
	*to++ = alpn_len;
	if (alpn_len > 0)
		memcpy(to, alpn, alpn_len);
	to += alpn_len;
	if (c->ctx->slim ? !sha2_digest(&sha2_hashes[0], text, (size_t)(to - text), hash)
			 : ossl_fn.EVP_Digest(text, (size_t)(to - text), hash, NULL, c->ctx->binding_hash, NULL) != 1)
		return 0;
	memcpy(c->binding, hash, BINDING);
	return 1;
}

/* Reports whether TLS 1.3 will be chosen. */
static int offers_tls13(const conn *c)
{
	const uint8_t *p;
	size_t left, list, v;

	if (!c->ctx->max_tls13 ||
		ossl_fn.SSL_client_hello_get0_ext(c->ssl, OSSL_TLSEXT_TYPE_supported_versions, &p, &left) != 1 ||
		!number(&p, &left, 1, &list))
		return 0;
	while (number(&p, &left, 2, &v))
		if (v == OSSL_TLS1_3_VERSION)
			return 1;
	return 0;
}

/*
 * Returns crypto/tls's alert for a ClientHello that libssl accepts, or -1: for a name that ends with
 * two dots, and for ec_point_formats (RFC 8422, section 5.1.2) that are malformed or, in TLS 1.2,
 * lack uncompressed points.
 */
int hello_fault(const conn *c)
{
	const uint8_t *p;
	size_t left, list;

	if (c->dotted)
		return OSSL_SSL_AD_DECODE_ERROR;
	if (ossl_fn.SSL_client_hello_get0_ext(c->ssl, OSSL_TLSEXT_TYPE_ec_point_formats, &p, &left) != 1)
		return -1;
	if (!number(&p, &left, 1, &list) || list == 0 || list != left)
		return OSSL_SSL_AD_DECODE_ERROR;
	return offers_tls13(c) || memchr(p, 0, list) ? -1 : OSSL_SSL_AD_MISSING_EXTENSION;
}

/*
 * Reports whether the client can use TLS 1.3 tickets: it must resume with a new key exchange.
 */
static int wants_tickets(const conn *c)
{
	const uint8_t *p;
	size_t left, list, v;

	if (ossl_fn.SSL_client_hello_get0_ext(c->ssl, OSSL_TLSEXT_TYPE_psk_kex_modes, &p, &left) != 1 || !number(&p, &left, 1, &list))
		return 0;
	while (number(&p, &left, 1, &v))
		if (v == PSK_DHE_KE)
			return 1;
	return 0;
}

void report_psks(conn *c)
{
	c->pub.offers_tls13 = offers_tls13(c);
	if (!c->pub.offers_tls13 ||
		ossl_fn.SSL_client_hello_get0_ext(c->ssl, OSSL_TLSEXT_TYPE_psk, &c->pub.psk_offer, &c->pub.psk_offer_len) != 1)
		c->pub.psk_offer = NULL;
}

int session_hello(conn *c)
{
	const uint8_t *p = NULL;
	size_t left = 0, list, len = 0;
	int named;

	c->candidates = 0;
	c->pub.lookup_len = 0;
	c->pub.single_use = 0;
	named = keep_name(c);
	if (!c->ctx->tickets && !c->ctx->cached)
		return 0;
	if (!named || !bind(c)) { /* no session is examined, and no session with this binding is ever resumed */
		c->candidates = MAX_CANDIDATES;
		memset(c->binding, 0, BINDING);
		return 0;
	}
	if (offers_tls13(c) && !wants_tickets(c))
		ossl_fn.SSL_set_num_tickets(c->ssl, 0);
	if (!c->ctx->cached)
		return 0;
	if (offers_tls13(c)) {
		if (c->ctx->tickets13 && !c->stateful)
			return 0;
		/* Sessions in the cache have IDs as their tickets. RFC 8446, section 4.2.11. */
		ossl_fn.SSL_set_options(c->ssl, OSSL_SSL_OP_NO_TICKET);
		c->stateful = 1;
		if (ossl_fn.SSL_client_hello_get0_ext(c->ssl, OSSL_TLSEXT_TYPE_psk, &p, &left) != 1 || !number(&p, &left, 2, &list) ||
			!number(&p, &left, 2, &len) || len != MAX_ID || len > left)
			return 0;
		c->pub.single_use = 1;
	} else {
		/* A ticket takes precedence over an ID: RFC 5077, section 3.4. */
		if (c->ctx->tickets && ossl_fn.SSL_client_hello_get0_ext(c->ssl, OSSL_TLSEXT_TYPE_session_ticket, &p, &left) == 1 && left > 0)
			return 0;
		len = ossl_fn.SSL_client_hello_get0_session_id(c->ssl, &p);
		if (len == 0 || len > MAX_ID)
			return 0;
	}
	memcpy(c->offered_id, p, len);
	c->offered_id_len = (uint8_t)len;
	c->pub.lookup = c->offered_id;
	c->pub.lookup_len = len;
	return 1;
}

void session_begin(conn *c, const uint8_t *session, size_t len)
{
	const unsigned char *p = session;
	SSL_SESSION *s;
	uint16_t id;

	if (c->server ? !has_keys(c->ctx) : !c->ctx->keep_sessions) {
		ossl_fn.SSL_set_options(c->ssl, OSSL_SSL_OP_NO_TICKET);
		c->stateful = 1;
		if (!c->ctx->cached)
			ossl_fn.SSL_set_num_tickets(c->ssl, 0);
	}
	if (c->server || len == 0)
		return;
	s = ossl_fn.d2i_SSL_SESSION(NULL, &p, (long)len);
	if (s && ossl_fn.SSL_SESSION_get_protocol_version(s) < OSSL_TLS1_3_VERSION && !suite_allowed(c, s, &id)) {
		ossl_fn.SSL_SESSION_free(s); /* the server would choose this suite, or end the handshake */
		return;
	}
	if (!s || ossl_fn.SSL_set_session(c->ssl, s) != 1) /* it is not resumed, with no other consequence */
		ossl_fn.ERR_clear_error();
	ossl_fn.SSL_SESSION_free(s);
}

static int make_ring(ossl_ctx *ctx, const ossl_ctx *before)
{
	ticket_ring *r;

	if (before && before->ring) {
		ctx->ring = before->ring;
		__atomic_add_fetch(&ctx->ring->refs, 1, __ATOMIC_RELAXED);
		return 1;
	}
	r = new_zeros(sizeof *r);
	if (!r)
		return 0;
	r->refs = 1;
	if (pthread_mutex_init(&r->lock, NULL) != 0) {
		free(r);
		return 0;
	}
	if (ossl_fn.EVP_CIPHER_fetch) {
		r->aes[0] = ossl_fn.EVP_CIPHER_fetch(ctx->lib, "AES-128-CBC", NULL);
		r->aes[1] = ossl_fn.EVP_CIPHER_fetch(ctx->lib, "AES-256-CBC", NULL);
	} else {
		r->aes[0] = ossl_fn.EVP_aes_128_cbc();
		r->aes[1] = ossl_fn.EVP_aes_256_cbc();
	}
	ctx->ring = r;
	return r->aes[0] && r->aes[1];
}

void ossl_ctx_free_sessions(ossl_ctx *ctx)
{
	ticket_ring *r = ctx->ring;

	if (ossl_fn.EVP_MD_free)
		ossl_fn.EVP_MD_free((EVP_MD *)ctx->binding_hash); /* takes NULL */
	ctx->binding_hash = NULL;
	ctx->ring = NULL;
	if (!r || __atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	if (ossl_fn.EVP_CIPHER_free) {
		ossl_fn.EVP_CIPHER_free((EVP_CIPHER *)r->aes[0]);
		ossl_fn.EVP_CIPHER_free((EVP_CIPHER *)r->aes[1]);
	}
	pthread_mutex_destroy(&r->lock);
	free_keys(r->keys, r->n);
	free(r);
}

const char *ossl_ctx_set_sessions(ossl_ctx *ctx, const ossl_ctx_params *p)
{
	SSL_CTX *s = ctx->ssl;
	long mode = OSSL_SSL_SESS_CACHE_NO_INTERNAL | OSSL_SSL_SESS_CACHE_NO_AUTO_CLEAR;

	if (ossl_fn.SSL_CTX_set_session_id_context(s, sid_context, SID_CONTEXT) != 1)
		return "session id context";
	if (ctx->cached)
		mode |= OSSL_SSL_SESS_CACHE_SERVER;
	if (ctx->keep_sessions)
		mode |= OSSL_SSL_SESS_CACHE_CLIENT;
	ossl_fn.SSL_CTX_ctrl(s, OSSL_SSL_CTRL_SET_SESS_CACHE_MODE, mode, NULL);
	/* One ticket per connection, as in crypto/tls; none if the host's policy forbids them
	 * (NumTickets). */
	if (ossl_fn.SSL_CTX_set_num_tickets(s, (ctx->tickets || ctx->cached) && ossl_fn.SSL_CTX_get_num_tickets(s) > 0 ? 1 : 0) != 1)
		return "tickets";
	if (p->session_timeout > 0)
		ossl_fn.SSL_CTX_set_timeout(s, p->session_timeout);
	ossl_fn.SSL_CTX_sess_set_new_cb(s, on_new_session);
	if (ctx->cached)
		ossl_fn.SSL_CTX_sess_set_get_cb(s, on_lookup);
	if (!ctx->tickets && !ctx->cached)
		return NULL;
	ctx->binding_hash = ossl_fn.EVP_MD_fetch ? ossl_fn.EVP_MD_fetch(ctx->lib, "SHA2-256", NULL) : ossl_fn.EVP_sha256();
	if (!ctx->binding_hash)
		return "SHA-256";
	if (ossl_fn.SSL_CTX_set_session_ticket_cb(s, on_ticket, on_ticket_opened, NULL) != 1)
		return "tickets";
	if (!ctx->tickets)
		return NULL;
	if (!make_ring(ctx, p->before))
		return "ticket keys";
	if (ossl_fn.SSL_CTX_set_tlsext_ticket_key_evp_cb)
		return ossl_fn.SSL_CTX_set_tlsext_ticket_key_evp_cb(s, on_ticket_key) == 1 ? NULL : "ticket keys";
	ossl_fn.SSL_CTX_callback_ctrl(s, OSSL_SSL_CTRL_SET_TLSEXT_TICKET_KEY_CB, (void (*)(void))on_ticket_key_1_1_1);
	return NULL;
}
