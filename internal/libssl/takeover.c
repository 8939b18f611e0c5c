/*
 * Taking an established connection over from libssl: its traffic keys and sequence numbers become
 * the conn's own, and the SSL is freed. There is no API for this, so each part is gathered while
 * the handshake runs:
 *
 * - TLS 1.3's traffic secrets and exporter secret are observed when they are derived, if schedule.c
 *   does that. Otherwise they come from the key-log callback, SSL_CTX_set_keylog_callback(3), for
 *   which 3.0 formats each byte with a separate sprintf. They stay in the conn. TLS 1.2's keys are
 *   derived again, from the session's master secret and the randoms.
 * - Sequence numbers are counts of the records since the keys changed, by the message callback,
 *   SSL_CTX_set_msg_callback(3): since Finished in TLS 1.3, since ChangeCipherSpec in TLS 1.2. The
 *   key-log callback is called at other moments. The same records pass through the window BIO,
 *   which counts them too.
 * - GCM's explicit nonces in TLS 1.2 start at any value: the last one sent is in the clear in its
 *   record.
 *
 * If anything is not as expected, the connection stays with libssl, which is not affected.
 */

#include "private.h"

#include <stdlib.h>
#include <string.h>

#include "faults.h" /* behind the declarations of the functions that it replaces */

static int nibble(char ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	if (ch >= 'a' && ch <= 'f')
		return ch - 'a' + 10;
	if (ch >= 'A' && ch <= 'F')
		return ch - 'A' + 10;
	return -1;
}

/*
 * Parses the secret in a key-log line after its label: "<client random> <secret>", in hexadecimal.
 * Returns its length, 0 on failure.
 */
static size_t secret_of(const char *line, uint8_t *to)
{
	size_t n;

	line = strchr(line, ' ');
	if (!line)
		return 0;
	for (n = 0, line++; n < MAX_SECRET && line[0] && line[1]; n++, line += 2) {
		int high = nibble(line[0]), low = nibble(line[1]);

		if (high < 0 || low < 0)
			return 0;
		to[n] = (uint8_t)(high << 4 | low);
	}
	return *line ? 0 : n;
}

/* The secrets that a takeover needs, by their names in the key log and in RFC 8446, section 7.1. */
static const struct {
	const char *line, *label;
	uint8_t bit;
} secrets[] = {
	{"CLIENT_TRAFFIC_SECRET_0 ", "c ap traffic", HAVE_CLIENT},
	{"SERVER_TRAFFIC_SECRET_0 ", "s ap traffic", HAVE_SERVER},
	{"EXPORTER_SECRET ", "exp master", HAVE_EXPORTER},
};

enum { SECRETS = sizeof secrets / sizeof secrets[0] };

/* Returns the place for the i-th of them. */
static uint8_t *place_of(conn *c, size_t i)
{
	if (secrets[i].bit == HAVE_EXPORTER)
		return c->exporter;
	return (secrets[i].bit == HAVE_SERVER) == c->server ? c->write.secret : c->read.secret;
}

static void have(conn *c, size_t i, size_t len)
{
	if (len == 0)
		return;
	c->secret_len[i] = (uint8_t)len;
	c->secrets |= secrets[i].bit;
}

void takeover_secret(conn *c, const char *line)
{
	static const char handshake[] = "CLIENT_HANDSHAKE_TRAFFIC_SECRET ";
	size_t i;

	if (!c->server && strncmp(line, handshake, sizeof handshake - 1) == 0)
		c->handshake_secret_len = (uint8_t)secret_of(line + sizeof handshake - 1, c->handshake_secret);
	for (i = 0; c->ctx->direct_records && i < SECRETS; i++)
		if (strncmp(line, secrets[i].line, strlen(secrets[i].line)) == 0)
			have(c, i, secret_of(line + strlen(secrets[i].line), place_of(c, i)));
}

static int is_label(const char *label, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(label, name, len) == 0;
}

void takeover_derived(conn *c, const char *label, size_t label_len, const uint8_t *secret, size_t len)
{
	size_t i;

	if (label_len == 0 || len > MAX_SECRET)
		return;
	if (!c->server && is_label(label, label_len, "c hs traffic")) {
		memcpy(c->handshake_secret, secret, len);
		c->handshake_secret_len = (uint8_t)len;
	}
	for (i = 0; c->ctx->direct_records && i < SECRETS; i++)
		if (is_label(label, label_len, secrets[i].label)) {
			memcpy(place_of(c, i), secret, len);
			have(c, i, len);
		}
}

int takeover_taps(const conn *c) { return c->ctx->direct_records && (!c->handshake_done || c->deferred); }

void takeover_tap(tap *t, const uint8_t *p, size_t n)
{
	while (n > 0) {
		size_t part;

		if (t->have >= RECORD_HEADER && t->left == 0)
			t->have = 0;
		if (t->have < RECORD_HEADER) {
			t->head[t->have++] = *p++;
			n--;
			if (t->have == RECORD_HEADER) {
				t->left = (size_t)t->head[3] << 8 | t->head[4];
				t->lengths[t->records++ % TAP_LENGTHS] = (uint16_t)t->left;
				t->since = t->head[0] == OSSL_SSL3_RT_CHANGE_CIPHER_SPEC ? 0 : t->since + 1;
			}
			continue;
		}
		if (t->have < sizeof t->head) {
			t->head[t->have++] = *p;
			part = 1;
		} else {
			part = n < t->left ? n : t->left;
		}
		p += part;
		n -= part;
		t->left -= part;
	}
}

/* Reports whether the part of a stream seen so far ends with a complete record. */
static int is_whole(const tap *t) { return t->have >= RECORD_HEADER && t->left == 0; }

/*
 * Reports whether the message callback has reported every record that passed the BIO: a count that
 * is too low would use a nonce twice.
 */
static int all_reported(const conn *c)
{
	return c->reported[0] == c->in_tap.records && c->reported[1] == c->out_tap.records;
}

/* Counts the records and messages that the message callback sees. */
void takeover_message(conn *c, int sent, int content_type, const uint8_t *p, size_t len)
{
	uint64_t *count = sent ? &c->sent : &c->received;

	sent = sent != 0;
	if (content_type == OSSL_SSL3_RT_HEADER) { /* of a record; its first byte is the type */
		if (c->miss[sent] > 0 && c->miss[sent] != OSSL_MISS_FINISHED && --c->miss[sent] == 0)
			return;
		c->reported[sent]++;
		if (p[0] != OSSL_SSL3_RT_CHANGE_CIPHER_SPEC)
			++*count;
		else if (!c->handshake_done)
			*count = 0;
		else /* it changes no key, anyone on the path can have inserted it, and 3.2 and later ignore it */
			c->updated = 1;
		if (!sent && len >= RECORD_HEADER)
			c->record = (uint32_t)p[3] << 8 | p[4];
		return;
	}
	if (content_type == OSSL_SSL3_RT_INNER_CONTENT_TYPE && !sent) {
		/* Padding is counted too: then the takeover waits for data, which can't come inside a
		 * message. */
		c->partial = p[0] == OSSL_SSL3_RT_HANDSHAKE && c->record > 1 + TAG ? c->partial + c->record - 1 - TAG : 0;
		return;
	}
	if (content_type != OSSL_SSL3_RT_HANDSHAKE || (p[0] == OSSL_SSL3_MT_FINISHED && c->miss[sent] == OSSL_MISS_FINISHED))
		return;
	if (sent)
		c->last = (uint32_t)len;
	else if (p[0] == OSSL_SSL3_MT_FINISHED) /* it is the last message of its record */
		c->partial = 0;
	else if (c->partial > 0)
		c->partial = c->partial > len ? c->partial - (uint32_t)len : 0;
	if (p[0] == OSSL_SSL3_MT_FINISHED && ossl_fn.SSL_version(c->ssl) == OSSL_TLS1_3_VERSION)
		*count = 0;
	else if (p[0] == OSSL_SSL3_MT_KEY_UPDATE)
		c->updated = 1;
}

/*
 * Reports whether all TLS 1.3 secrets are available, and libssl's records have the same form as
 * ours.
 */
static int complete13(const conn *c, const suite *s)
{
	const tap *t = &c->out_tap;
	size_t i;

	if (c->secrets != (HAVE_CLIENT | HAVE_SERVER | HAVE_EXPORTER) || !all_reported(c) || !is_whole(t))
		return 0;
	/* The counts begin after Finished: nothing was received since, and the record before the
	 * counted ones is, by its length, only a Finished. */
	if (c->received != 0 || c->sent >= TAP_LENGTHS || c->sent >= t->records ||
		t->lengths[(t->records - 1 - c->sent) % TAP_LENGTHS] != 4 + hash_len(s) + 1 + TAG)
		return 0;
	for (i = 0; i < sizeof c->secret_len; i++)
		if (c->secret_len[i] != hash_len(s))
			return 0;
	/* The last message that we sent, Finished or a NewSessionTicket, was alone in its record, or a
	 * long ticket's end was. If that is longer than necessary, the host's configuration requires
	 * padding (RecordPadding, SSL_CONF_cmd(3)), which only libssl does. */
	return c->last > 0 && t->lengths[(t->records - 1) % TAP_LENGTHS] == (size_t)(c->last - 1) % RECORD_TEXT + 1 + 1 + TAG;
}

static int secrets13(conn *c, const suite *s)
{
	if (!c->deferred && !complete13(c, s))
		return 0;
	c->write.seq = c->sent;
	c->read.seq = c->received;
	return !c->updated;
}

/* Derives the keys from the conn's master secret and randoms: RFC 5246, section 6.3. Returns 1 or 0. */
static int keys12(conn *c, const suite *s)
{
	uint8_t randoms[64], block[2 * (32 + NONCE)], *p = block, *key[2], *iv[2];
	size_t iv_len = s->explicit_nonce ? 4 : NONCE;
	int ok, i;

	memcpy(randoms, c->randoms + 32, 32);
	memcpy(randoms + 32, c->randoms, 32);
	ok = prf(&c->ctx->algorithms, s, c->exporter, MAX_SECRET, "key expansion", 13, randoms, sizeof randoms, block,
		2 * (s->key_len + iv_len));
	for (i = 0; i < 2; i++, p += s->key_len)
		key[i] = p;
	for (i = 0; i < 2; i++, p += iv_len)
		iv[i] = p;
	memcpy(c->write.secret, key[c->server], s->key_len);
	memcpy(c->write.iv, iv[c->server], iv_len);
	memcpy(c->read.secret, key[!c->server], s->key_len);
	memcpy(c->read.iv, iv[!c->server], iv_len);
	ossl_fn.OPENSSL_cleanse(block, sizeof block);
	return ok;
}

/* The conn's master secret and randoms stay for exporters: RFC 5705. */
static int secrets12(conn *c, const suite *s)
{
	const SSL_SESSION *session = ossl_fn.SSL_get_session(c->ssl);
	uint64_t nonce = 0;
	int i;

	/* Finished is the first record under the keys; nothing else was sent or received. */
	if (!session || c->sent != 1 || c->received != 1 || c->out_tap.since != 1 || c->in_tap.since != 1)
		return 0;
	if (s->explicit_nonce) {
		if (c->out_tap.have != sizeof c->out_tap.head || c->out_tap.head[0] != OSSL_SSL3_RT_HANDSHAKE)
			return 0;
		for (i = 0; i < 8; i++)
			nonce = nonce << 8 | c->out_tap.head[RECORD_HEADER + i];
	}
	c->write.seq = c->read.seq = 1;
	c->write.nonce = nonce + 1;
	return ossl_fn.SSL_SESSION_get_master_key(session, c->exporter, MAX_SECRET) == MAX_SECRET &&
		ossl_fn.SSL_get_client_random(c->ssl, c->randoms, 32) == 32 &&
		ossl_fn.SSL_get_server_random(c->ssl, c->randoms + 32, 32) == 32 && keys12(c, s);
}

/* Copies the data that facts points to from the SSL, which will be freed. */
static int keep(conn *c, ossl_facts *f)
{
	const uint8_t **part[] = {&f->alpn, &f->server_name, &f->ocsp, &f->scts};
	const size_t len[] = {f->alpn_len, f->server_name_len, f->ocsp_len, f->scts_len};
	size_t i, all = 0, at = 0;

	for (i = 0; i < 4; i++)
		all += len[i];
	if (all > 0 && !bytes_append(&c->kept, NULL, all, all))
		return 0;
	for (i = 0; i < 4; i++) {
		if (len[i] == 0)
			continue;
		memcpy(c->kept.data + at, *part[i], len[i]);
		*part[i] = c->kept.data + at;
		at += len[i];
	}
	return 1;
}

int takeover(conn *c, ossl_facts *f)
{
	const suite *s = suite_of(&c->ctx->algorithms, f->cipher);
	SSL_SESSION *session = ossl_fn.SSL_get_session(c->ssl);

	/* Only libssl handles a peer's max_fragment_length (RFC 6066, section 4), and input that it has
	 * read already. The header of a record alone doesn't count as pending: SSL_rstate_string(3)
	 * reports it. */
	if (!c->ctx->direct_records || !s || s->tls13 != (f->version == OSSL_TLS1_3_VERSION) || !session ||
		ossl_fn.SSL_SESSION_get_max_fragment_length(session) != 0 || ossl_fn.SSL_has_pending(c->ssl) ||
		strcmp(ossl_fn.SSL_rstate_string(c->ssl), "RH") != 0 ||
		ossl_fn.SSL_get_key_update_type(c->ssl) != OSSL_SSL_KEY_UPDATE_NONE || c->spill.len > 0 || ossl_fn.SSL_in_init(c->ssl))
		return 0;
	if (!all_reported(c) || !is_whole(&c->in_tap) || !is_whole(&c->out_tap))
		return 0;
	if (!(s->tls13 ? secrets13(c, s) : secrets12(c, s)) || !keep(c, f)) {
		ossl_fn.ERR_clear_error();
		return 0;
	}
	takeover_forget_handshake(c);
	c->read.suite = c->write.suite = s;
	c->write.sealing = 1;
	if (!s->tls13 && !f->extended_master_secret) /* there will be no exporter: RFC 7627, section 5.4 */
		ossl_fn.OPENSSL_cleanse(c->exporter, sizeof c->exporter);
	/* A session would not be resumed if its SSL were freed without being shut down:
	 * SSL_set_shutdown(3). */
	ossl_fn.SSL_set_shutdown(c->ssl, (int)(OSSL_SSL_SENT_SHUTDOWN | OSSL_SSL_RECEIVED_SHUTDOWN));
	ossl_fn.SSL_free(c->ssl);
	c->ssl = NULL;
	if (c->cred)
		ossl_cred_free(c->cred);
	c->cred = NULL;
	bytes_free(&c->name);
	bytes_free(&c->scts);
	return 1;
}

/*
 * Reports whether a connection's takeover must wait: TLS 1.3 tickets arrive after the handshake,
 * and only libssl can make sessions from them.
 */
int takeover_deferred(conn *c, const ossl_facts *f)
{
	const suite *s;

	if (c->server || c->psk || !c->ctx->keep_sessions || !c->ctx->direct_records || f->version != OSSL_TLS1_3_VERSION)
		return 0;
	s = suite_of(&c->ctx->algorithms, f->cipher);
	return s && complete13(c, s);
}

void takeover_forget_handshake(conn *c)
{
	ossl_fn.OPENSSL_cleanse(c->handshake_secret, sizeof c->handshake_secret);
	c->handshake_secret_len = 0;
}

void takeover_forget(conn *c)
{
	c->deferred = 0;
	traffic_clear(&c->read);
	traffic_clear(&c->write);
	ossl_fn.OPENSSL_cleanse(c->exporter, sizeof c->exporter);
	c->secrets = 0;
}

int takeover_later(conn *c)
{
	ossl_facts f;

	/* A reported record may not have passed the BIO yet. */
	if (c->updated || c->notified || c->reported[0] < c->in_tap.records || c->reported[1] < c->out_tap.records) {
		takeover_forget(c);
		return 0;
	}
	if (c->partial > 0)
		return 0;
	ossl_conn_facts(&c->pub, &f);
	f.alpn_len = f.server_name_len = f.ocsp_len = f.scts_len = 0; /* Go has them */
	if (!takeover(c, &f))
		return 0;
	c->deferred = 0;
	return 1;
}

/* RFC 8446, section 7.5. */
static int export13(conn *c, uint8_t *out, size_t len, const char *label, size_t label_len, const uint8_t *context,
	size_t context_len)
{
	const suite *s = c->write.suite;
	const EVP_MD *md = c->ctx->algorithms.hash[s->sha384];
	uint8_t nothing[MAX_SECRET], hash[MAX_SECRET], secret[MAX_SECRET];
	int ok;

	ok = ossl_fn.EVP_Digest("", 0, nothing, NULL, md, NULL) == 1 &&
		ossl_fn.EVP_Digest(context ? context : nothing, context_len, hash, NULL, md, NULL) == 1 &&
		expand_label(&c->ctx->algorithms, s, c->exporter, label, label_len, nothing, hash_len(s), secret, hash_len(s)) &&
		expand_label(&c->ctx->algorithms, s, secret, "exporter", 8, hash, hash_len(s), out, len);
	ossl_fn.OPENSSL_cleanse(secret, sizeof secret);
	return ok;
}

/* RFC 5705, section 4. */
static int export12(conn *c, uint8_t *out, size_t len, const char *label, size_t label_len, const uint8_t *context,
	size_t context_len, int use_context)
{
	size_t n = sizeof c->randoms + (use_context ? 2 + context_len : 0);
	uint8_t *seed = new_memory(n);
	int ok;

	if (!seed)
		return 0;
	memcpy(seed, c->randoms, sizeof c->randoms);
	if (use_context) {
		seed[sizeof c->randoms] = (uint8_t)(context_len >> 8);
		seed[sizeof c->randoms + 1] = (uint8_t)context_len;
		if (context_len > 0)
			memcpy(seed + sizeof c->randoms + 2, context, context_len);
	}
	ok = prf(&c->ctx->algorithms, c->write.suite, c->exporter, MAX_SECRET, label, label_len, seed, n, out, len);
	free(seed);
	return ok;
}

int takeover_export(conn *c, uint8_t *out, size_t len, const char *label, size_t label_len, const uint8_t *context,
	size_t context_len, int use_context)
{
	if (len == 0)
		return 1;
	if (c->write.suite->tls13)
		return export13(c, out, len, label, label_len, context, context_len);
	return export12(c, out, len, label, label_len, context, context_len, use_context);
}

int ossl_conn_secrets(const ossl_conn *pub, ossl_secrets *to)
{
	const conn *c = (const conn *)pub;
	const suite *s = c->write.suite;

	memset(to, 0, sizeof *to);
	if (c->ssl || !s || c->sides != (OSSL_READ | OSSL_WRITE) || c->read.dead || c->write.dead || c->write.exported == KEY_NEXT)
		return 0;
	to->suite = s->id;
	to->server = c->server;
	to->sides = OSSL_READ | OSSL_WRITE;
	to->kernel = c->write.exported == KEY_EXPORTED;
	if (s->tls13) {
		memcpy(to->read, c->read.secret, MAX_SECRET);
		memcpy(to->write, c->write.secret, MAX_SECRET);
	}
	memcpy(to->exporter, c->exporter, MAX_SECRET);
	memcpy(to->randoms, c->randoms, sizeof c->randoms);
	to->read_seq = c->read.seq;
	if (!to->kernel) {
		to->write_seq = c->write.seq;
		to->nonce = c->write.nonce;
	}
	return 1;
}

ossl_conn *ossl_conn_of_secrets(ossl_ctx *ctx, const ossl_secrets *from, unsigned long *errors)
{
	const suite *s = suite_of(&ctx->algorithms, from->suite);
	conn *c;
	int ok = 1;

	ossl_fn.ERR_clear_error();
	memset(errors, 0, OSSL_MAX_ERRORS * sizeof *errors);
	if (!s)
		return NULL;
	c = calloc(1, sizeof *c);
	if (!c) {
		errors[0] = memory_error();
		return NULL;
	}
	c->ctx = ctx;
	__atomic_add_fetch(&ctx->refs, 1, __ATOMIC_RELAXED);
	c->pub.socket = -1;
	c->sides = OSSL_READ | OSSL_WRITE;
	c->server = from->server != 0;
	c->read.suite = c->write.suite = s;
	c->write.sealing = 1;
	memcpy(c->exporter, from->exporter, MAX_SECRET);
	memcpy(c->randoms, from->randoms, sizeof c->randoms);
	if (s->tls13) {
		memcpy(c->read.secret, from->read, MAX_SECRET);
		memcpy(c->write.secret, from->write, MAX_SECRET);
	} else {
		ok = keys12(c, s);
	}
	c->read.seq = from->read_seq;
	c->write.seq = from->write_seq;
	c->write.nonce = from->nonce;
	if (from->kernel)
		c->write.exported = KEY_NEXT;
	c->read.dead = !(from->sides & OSSL_READ);
	c->write.dead = !(from->sides & OSSL_WRITE);
	if (!ok) {
		ossl_drain_errors(errors);
		if (errors[0] == 0)
			errors[0] = memory_error(); /* PRFs have no other reason to fail */
		ossl_conn_free(&c->pub, OSSL_READ | OSSL_WRITE, 0, NULL, 0);
		return NULL;
	}
	return &c->pub;
}

void ossl_conn_miss(ossl_conn *pub, int sent, uint8_t n) { ((conn *)pub)->miss[sent != 0] = n; }
