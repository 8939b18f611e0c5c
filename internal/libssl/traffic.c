/* Sealing and opening records: RFC 8446, section 5.2, and RFC 5246, section 6.2.3.3. */

#include "probe.h"
#include "provider.h"

#include <string.h>

/*
 * Below this length, copying the text next to its content type costs less than a separate call for
 * that one byte.
 */
enum { COPY_BELOW = 1024 };

void traffic_clear(traffic *t)
{
	ossl_fn.EVP_CIPHER_CTX_free(t->aead);
	ossl_fn.OPENSSL_cleanse(t, sizeof *t);
	t->dead = 1;
}

/* Makes the AEAD with its key, at its first use. */
static int prepare(const algorithms *a, traffic *t)
{
	const suite *s = t->suite;
	uint8_t key[32];
	int ok;

	if (t->dead || t->exported != KEY_HERE)
		return 0;
	if (t->aead)
		return 1;
	if (s->tls13) {
		ok = expand_label(a, s, t->secret, "key", 3, NULL, 0, key, s->key_len) &&
			expand_label(a, s, t->secret, "iv", 2, NULL, 0, t->iv, NONCE);
	} else {
		memcpy(key, t->secret, s->key_len);
		ossl_fn.OPENSSL_cleanse(t->secret, sizeof t->secret);
		ok = 1;
	}
	t->aead = ok ? ossl_fn.EVP_CIPHER_CTX_new() : NULL;
	ok = t->aead && ossl_fn.EVP_CipherInit_ex(t->aead, a->aead[s->aead], NULL, key, NULL, t->sealing) == 1;
	t->whole_nonce = a->whole_nonce[s->aead];
	ossl_fn.OPENSSL_cleanse(key, sizeof key);
	t->dead = !ok;
	return ok;
}

/* In a form that compilers turn into one instruction. */
static void put64(uint8_t *to, uint64_t v)
{
	to[0] = (uint8_t)(v >> 56);
	to[1] = (uint8_t)(v >> 48);
	to[2] = (uint8_t)(v >> 40);
	to[3] = (uint8_t)(v >> 32);
	to[4] = (uint8_t)(v >> 24);
	to[5] = (uint8_t)(v >> 16);
	to[6] = (uint8_t)(v >> 8);
	to[7] = (uint8_t)v;
}

int traffic_export(const algorithms *a, traffic *t, ossl_kernel_key *to)
{
	const suite *s = t->suite;

	memset(to, 0, sizeof *to);
	/* TLS 1.2's key is here until its first use. */
	if (!s || t->dead || t->exported == KEY_EXPORTED || (!s->tls13 && t->aead))
		return 0;
	to->suite = s->id;
	to->tls13 = s->tls13;
	to->key_len = s->key_len;
	put64(to->seq, t->seq);
	if (s->tls13) {
		if (expand_label(a, s, t->secret, "key", 3, NULL, 0, to->key, s->key_len) &&
			expand_label(a, s, t->secret, "iv", 2, NULL, 0, to->iv, NONCE))
			return 1;
		ossl_fn.OPENSSL_cleanse(to, sizeof *to);
		return 0;
	}
	memcpy(to->key, t->secret, s->key_len);
	memcpy(to->iv, t->iv, NONCE);
	if (s->explicit_nonce)
		put64(to->iv + NONCE - 8, t->nonce);
	return 1;
}

void traffic_exported(traffic *t)
{
	ossl_fn.EVP_CIPHER_CTX_free(t->aead);
	t->aead = NULL;
	t->exported = KEY_EXPORTED;
	ossl_fn.OPENSSL_cleanse(t->iv, sizeof t->iv);
	if (!t->suite->tls13)
		ossl_fn.OPENSSL_cleanse(t->secret, sizeof t->secret);
}

int traffic_update(const algorithms *a, traffic *t)
{
	uint8_t next[MAX_SECRET];
	size_t len;

	if (t->dead || !t->suite->tls13)
		return 0;
	len = hash_len(t->suite);
	ossl_fn.EVP_CIPHER_CTX_free(t->aead);
	t->aead = NULL;
	t->seq = 0;
	if (t->exported)
		t->exported = KEY_NEXT;
	t->dead = !expand_label(a, t->suite, t->secret, "traffic upd", 11, NULL, 0, next, len);
	memcpy(t->secret, next, len);
	ossl_fn.OPENSSL_cleanse(next, sizeof next);
	return !t->dead;
}

/* The nonce of the next record: RFC 8446, section 5.3; RFC 5288, section 3; RFC 7905, section 2. */
static void nonce_of(const traffic *t, const uint8_t *explicit, uint8_t *nonce)
{
	uint64_t iv, low;

	memcpy(nonce, t->iv, 4);
	if (explicit) {
		memcpy(nonce + 4, explicit, 8);
		return;
	}
	/* As words: reading as a word data that was written as bytes would wait for the writes. */
	put64((uint8_t *)&low, t->seq);
	memcpy(&iv, t->iv + 4, 8);
	low ^= iv;
	memcpy(nonce + 4, &low, 8);
}

/*
 * Sets the nonce and, for opening, the tag, with one call if possible: each call costs a search of
 * names.
 */
static int begin(traffic *t, const uint8_t *nonce, const uint8_t *tag)
{
	/* A length of -1 means the whole nonce, as for EVP_CTRL_GCM_SET_IV_FIXED: keys.c checks that it
	 * does. */
	OSSL_PARAM params[3] = {
		{"tlsivfixed", (unsigned)OSSL_OSSL_PARAM_OCTET_STRING, (void *)nonce, (size_t)-1, 0},
		{tag ? "tag" : NULL, (unsigned)OSSL_OSSL_PARAM_OCTET_STRING, (void *)tag, TAG, 0},
		{NULL, 0, NULL, 0, 0},
	};

	if (t->whole_nonce)
		return ossl_fn.EVP_CIPHER_CTX_set_params(t->aead, params) == 1;
	if (ossl_fn.EVP_CipherInit_ex2)
		return ossl_fn.EVP_CipherInit_ex2(t->aead, NULL, NULL, nonce, -1, tag ? params + 1 : NULL) == 1;
	return ossl_fn.EVP_CipherInit_ex(t->aead, NULL, NULL, NULL, nonce, -1) == 1 &&
		(!tag || ossl_fn.EVP_CIPHER_CTX_ctrl(t->aead, (int)OSSL_EVP_CTRL_AEAD_SET_TAG, TAG, (void *)tag) == 1);
}

static int get_tag(traffic *t, uint8_t *tag)
{
	OSSL_PARAM params[2] = {
		{"tag", (unsigned)OSSL_OSSL_PARAM_OCTET_STRING, tag, TAG, 0},
		{NULL, 0, NULL, 0, 0},
	};

	if (ossl_fn.EVP_CIPHER_CTX_get_params)
		return ossl_fn.EVP_CIPHER_CTX_get_params(t->aead, params) == 1;
	return ossl_fn.EVP_CIPHER_CTX_ctrl(t->aead, (int)OSSL_EVP_CTRL_AEAD_GET_TAG, TAG, tag) == 1;
}

/*
 * Starts a record: nonce and additional data. n: the text's length; tag: of a record to open, else
 * NULL.
 */
static int start(traffic *t, const uint8_t *header, const uint8_t *explicit, size_t n, const uint8_t *tag)
{
	uint8_t nonce[NONCE], aad[13];
	const uint8_t *additional = header;
	int len = RECORD_HEADER, got;

	nonce_of(t, explicit, nonce);
	if (!t->suite->tls13) { /* RFC 5246, section 6.2.3.3 */
		put64(aad, t->seq);
		memcpy(aad + 8, header, 3);
		aad[11] = (uint8_t)(n >> 8);
		aad[12] = (uint8_t)n;
		additional = aad;
		len = sizeof aad;
	}
	return begin(t, nonce, tag) && ossl_fn.EVP_CipherUpdate(t->aead, NULL, &got, additional, len) == 1;
}

static int text(traffic *t, uint8_t *to, const uint8_t *from, size_t n)
{
	int got;

	return n == 0 || (ossl_fn.EVP_CipherUpdate(t->aead, to, &got, from, (int)n) == 1 && got == (int)n);
}

size_t traffic_seal(const algorithms *a, traffic *t, uint8_t type, const uint8_t *from, size_t n, uint8_t *out)
{
	const suite *s = t->suite;
	uint8_t *p = out + RECORD_HEADER, *explicit = NULL, none[1];
	size_t len;
	int ok, got;

	/* RFC 5246, section 6.1, and RFC 8446, section 5.3: sequence numbers do not wrap. */
	if (n > RECORD_TEXT || t->seq == UINT64_MAX || !prepare(a, t))
		return 0;
	len = s->explicit_nonce + n + (s->tls13 ? 1 : 0) + TAG;
	out[0] = s->tls13 ? (uint8_t)OSSL_SSL3_RT_APPLICATION_DATA : type;
	out[1] = out[2] = 3;
	out[3] = (uint8_t)(len >> 8);
	out[4] = (uint8_t)len;
	if (s->explicit_nonce) {
		explicit = p;
		put64(explicit, t->nonce);
		p += s->explicit_nonce;
	}
	ok = start(t, out, explicit, n, NULL);
	if (s->tls13 && n < COPY_BELOW) {
		if (n > 0)
			memcpy(p, from, n);
		p[n] = type;
		ok = ok && text(t, p, p, n + 1);
		p += n + 1;
	} else {
		ok = ok && text(t, p, from, n);
		p += n;
		if (s->tls13) {
			ok = ok && text(t, p, &type, 1);
			p++;
		}
	}
	ok = ok && ossl_fn.EVP_CipherFinal_ex(t->aead, none, &got) == 1 && got == 0 && get_tag(t, p);
	if (!ok) { /* this nonce may have been used */
		ossl_fn.OPENSSL_cleanse(out, RECORD_HEADER + len);
		t->dead = 1;
		ossl_fn.EVP_CIPHER_CTX_free(t->aead);
		t->aead = NULL;
		return 0;
	}
	t->seq++;
	t->nonce++;
	return RECORD_HEADER + len;
}

static void refuse(ossl_opened *o, long alert)
{
	ossl_fn.ERR_clear_error();
	o->status = OSSL_FATAL;
	o->alert = (int32_t)alert;
}

/*
 * Opens the complete record at body, which has len bytes and a header that was checked. Its text
 * goes to dst as far as it fits in room, and the rest stays in place, in the input. Returns an
 * alert, or -1 with the text's type, its length and the length of the part in dst. On failure
 * nothing of the text is left anywhere.
 */
static long open_record(traffic *t, const uint8_t *header, uint8_t *body, size_t len, uint8_t *dst, size_t room, ossl_opened *o,
	size_t *split)
{
	const suite *s = t->suite;
	uint8_t *explicit = NULL, none[1];
	size_t n, head;
	long alert = -1;
	int got;

	if (len < (size_t)s->explicit_nonce + TAG || t->seq == UINT64_MAX)
		return OSSL_SSL_AD_BAD_RECORD_MAC;
	if (s->explicit_nonce) {
		explicit = body;
		body += s->explicit_nonce;
	}
	n = len - s->explicit_nonce - TAG;
	/* In TLS 1.2 the header has the text's type; in TLS 1.3 nearly all records are application
	 * data. */
	head = s->tls13 || header[0] == OSSL_SSL3_RT_APPLICATION_DATA ? (n < room ? n : room) : 0;
	if (n > RECORD_TEXT + (size_t)s->tls13)
		head = 0;
	if (!start(t, header, explicit, n, body + n) || !text(t, dst, body, head) ||
		!text(t, body + head, body + head, n - head) || ossl_fn.EVP_CipherFinal_ex(t->aead, none, &got) != 1)
		alert = OSSL_SSL_AD_BAD_RECORD_MAC;
	else if (s->tls13 && header[0] != OSSL_SSL3_RT_APPLICATION_DATA)
		alert = OSSL_SSL_AD_UNEXPECTED_MESSAGE;
	else if (n > RECORD_TEXT + (size_t)s->tls13)
		alert = OSSL_SSL_AD_RECORD_OVERFLOW;
	o->type = header[0];
	if (alert < 0 && s->tls13) { /* RFC 8446, section 5.4: padding, and the type before it */
		o->type = 0;
		while (n > 0 && o->type == 0) {
			n--;
			o->type = n < head ? dst[n] : body[n];
		}
		if (o->type == 0)
			alert = OSSL_SSL_AD_UNEXPECTED_MESSAGE;
	}
	if (alert >= 0) {
		if (head > 0)
			ossl_fn.OPENSSL_cleanse(dst, head);
		ossl_fn.OPENSSL_cleanse(body, len - s->explicit_nonce);
		t->dead = 1;
		return alert;
	}
	t->seq++;
	if (head > n)
		head = n;
	if (o->type != OSSL_SSL3_RT_APPLICATION_DATA && head > 0) { /* not user data: move all of it back to its place */
		memcpy(body, dst, head);
		ossl_fn.OPENSSL_cleanse(dst, head);
		head = 0;
	}
	o->at = (size_t)(body - header) + head; /* relative to the header, for now */
	o->len = n - head;
	*split = head;
	return -1;
}

int traffic_works(const algorithms *a, const suite *s)
{
	static const uint8_t text[] = "text";
	uint8_t record[sizeof text + SEALED_EXPANSION], dst[sizeof text + 1];
	traffic seal, open;
	ossl_opened o;
	size_t n, split = 0;
	int ok = 1, damaged;

	memset(&seal, 0, sizeof seal);
	memset(&open, 0, sizeof open);
	seal.suite = open.suite = s;
	seal.sealing = 1;
	for (damaged = 0; ok && damaged < 2; damaged++) {
		n = traffic_seal(a, &seal, (uint8_t)OSSL_SSL3_RT_APPLICATION_DATA, text, sizeof text, record);
		ok = n > 0 && prepare(a, &open);
		if (ok) {
			record[n - 1] ^= (uint8_t)damaged;
			ok = open_record(&open, record, record + RECORD_HEADER, n - RECORD_HEADER, dst, sizeof dst, &o, &split) ==
				(damaged ? OSSL_SSL_AD_BAD_RECORD_MAC : -1);
		}
		ok = ok && (damaged || (split == sizeof text && memcmp(dst, text, sizeof text) == 0));
	}
	traffic_clear(&seal);
	traffic_clear(&open);
	return ok;
}

int traffic_same(const algorithms *a, const algorithms *b, const suite *s)
{
	enum { RECORDS = 3 };
	static const uint8_t text[] = "text";
	uint8_t record[2][sizeof text + SEALED_EXPANSION], dst[sizeof text + 1];
	traffic seal[2], open;
	ossl_opened o;
	size_t n, split, i;
	int ok;

	memset(seal, 0, sizeof seal);
	memset(&open, 0, sizeof open);
	seal[0].suite = seal[1].suite = open.suite = s;
	seal[0].sealing = seal[1].sealing = 1;
	ok = prepare(b, &open);
	for (i = 0; ok && i < RECORDS; i++) {
		n = traffic_seal(a, &seal[0], (uint8_t)OSSL_SSL3_RT_APPLICATION_DATA, text, sizeof text, record[0]);
		ok = n > 0 && traffic_seal(b, &seal[1], (uint8_t)OSSL_SSL3_RT_APPLICATION_DATA, text, sizeof text, record[1]) == n &&
			memcmp(record[0], record[1], n) == 0 &&
			open_record(&open, record[0], record[0] + RECORD_HEADER, n - RECORD_HEADER, dst, sizeof dst, &o, &split) == -1 &&
			split == sizeof text && memcmp(dst, text, sizeof text) == 0;
	}
	if (ok) { /* and a damaged record is refused */
		n = traffic_seal(a, &seal[0], (uint8_t)OSSL_SSL3_RT_APPLICATION_DATA, text, sizeof text, record[0]);
		record[0][n - 1] ^= 1;
		ok = n > 0 && open_record(&open, record[0], record[0] + RECORD_HEADER, n - RECORD_HEADER, dst, sizeof dst, &o, &split) ==
			OSSL_SSL_AD_BAD_RECORD_MAC;
	}
	traffic_clear(&seal[0]);
	traffic_clear(&seal[1]);
	traffic_clear(&open);
	return ok;
}

void ossl_conn_open(ossl_traffic *pub, uint8_t *in, size_t in_len, uint8_t *dst, size_t dst_len, ossl_opened *o)
{
	conn *c = (conn *)pub;
	traffic *t = &c->read;
	const algorithms *a = &c->ctx->algorithms;
	size_t limit, len, split;
	long alert;

	o->status = OSSL_DONE;
	o->alert = 0;
	o->type = 0;
	o->consumed = o->n = o->at = o->len = 0;
	if (t->dead || !prepare(a, t)) {
		refuse(o, OSSL_SSL_AD_INTERNAL_ERROR);
		return;
	}
	/* RFC 8446, section 5.2, and RFC 5246, section 6.2.3 */
	limit = RECORD_TEXT + (t->suite->tls13 ? 256 : 2048);
	while (o->n < dst_len) {
		uint8_t *header = in + o->consumed;
		size_t left = in_len - o->consumed;

		if (left < RECORD_HEADER) {
			o->status = OSSL_WANT_READ;
			break;
		}
		if (header[1] != 3 || header[2] != 3) {
			refuse(o, OSSL_SSL_AD_PROTOCOL_VERSION);
			return;
		}
		len = (size_t)header[3] << 8 | header[4];
		if (len > limit) {
			refuse(o, OSSL_SSL_AD_RECORD_OVERFLOW);
			return;
		}
		if (left < RECORD_HEADER + len) {
			o->status = OSSL_WANT_READ;
			break;
		}
		if (t->suite->tls13 && header[0] == OSSL_SSL3_RT_CHANGE_CIPHER_SPEC) { /* never protected */
			o->status = OSSL_RECORD;
			o->type = header[0];
			o->at = o->consumed + RECORD_HEADER;
			o->len = len;
			o->consumed += RECORD_HEADER + len;
			break;
		}
		/* A record that would not fit is opened completely by the next call, instead of in two
		 * parts. */
		if (o->n > 0 && len > dst_len - o->n + t->suite->explicit_nonce + TAG + t->suite->tls13)
			break;
		alert = open_record(t, header, header + RECORD_HEADER, len, dst + o->n, dst_len - o->n, o, &split);
		if (alert >= 0) {
			refuse(o, alert);
			return;
		}
		o->n += split;
		o->at += o->consumed;
		o->consumed += RECORD_HEADER + len;
		if (o->type != OSSL_SSL3_RT_APPLICATION_DATA || o->len > 0 || split == 0) {
			o->status = OSSL_RECORD;
			break;
		}
	}
	if (o->n > 0)
		ossl_probe_read(c, dst, (int)o->n, c->pub.socket);
	if (o->status == OSSL_RECORD && o->type == OSSL_SSL3_RT_APPLICATION_DATA && o->len > 0)
		ossl_probe_read(c, in + o->at, (int)o->len, c->pub.socket);
}

void ossl_conn_seal(ossl_traffic *pub, uint8_t type, const uint8_t *src, size_t len, uint8_t *out, size_t out_cap,
	size_t payload, size_t first, size_t grown, ossl_step *step)
{
	conn *c = (conn *)pub;
	traffic *t = &c->write;
	size_t taken = 0, produced = 0, records = 0, limit, n;
	int status = OSSL_DONE;

	if (c->kept.data || c->keylog.data || c->trace.data) { /* Go has copied them by now */
		bytes_free(&c->kept);
		bytes_free(&c->keylog);
		bytes_free(&c->trace);
	}
	while (taken < len) {
		if (t->suite && t->suite->tls13 && type == OSSL_SSL3_RT_APPLICATION_DATA && t->seq >= OSSL_RECORDS_PER_KEY) {
			status = OSSL_NEED_UPDATE;
			break;
		}
		limit = RECORD_TEXT;
		if (payload && produced < grown && first + records <= OSSL_MAX_SIZED_RECORDS && payload * (first + records + 1) < limit)
			limit = payload * (first + records + 1);
		if (limit > len - taken)
			limit = len - taken;
		if (out_cap - produced < limit + SEALED_EXPANSION) {
			status = OSSL_WANT_WRITE;
			break;
		}
		n = t->dead ? 0 : traffic_seal(&c->ctx->algorithms, t, type, src + taken, limit, out + produced);
		if (n == 0) {
			status = OSSL_FATAL;
			ossl_fn.ERR_clear_error();
			break;
		}
		produced += n;
		taken += limit;
		records++;
	}
	if (taken > 0 && type == OSSL_SSL3_RT_APPLICATION_DATA)
		ossl_probe_write(c, src, (int)taken, c->pub.socket);
	/* Field by field, as Go reads it: reading two words at once that were written one by one would
	 * wait for the writes. */
	step->status = status;
	step->pending = step->taken_over = 0;
	step->consumed = 0;
	step->produced = produced;
	step->n = taken;
	step->records = records;
}

int ossl_conn_update(ossl_traffic *pub, int sealing)
{
	conn *c = (conn *)pub;
	int ok = traffic_update(&c->ctx->algorithms, sealing ? &c->write : &c->read);

	if (!ok)
		ossl_fn.ERR_clear_error();
	return ok;
}

int ossl_conn_kernel_key(ossl_traffic *pub, ossl_kernel_key *key)
{
	conn *c = (conn *)pub;
	int ok = traffic_export(&c->ctx->algorithms, &c->write, key);

	if (!ok)
		ossl_fn.ERR_clear_error();
	return ok;
}

void ossl_conn_kernel_seals(ossl_traffic *pub) { traffic_exported(&((conn *)pub)->write); }

int ossl_conn_skip(ossl_conn *pub, int sealing, uint64_t seq)
{
	conn *c = (conn *)pub;
	traffic *t = sealing ? &c->write : &c->read;

	if (!t->suite || t->dead || seq < t->seq)
		return 0;
	t->nonce += seq - t->seq;
	t->seq = seq;
	return 1;
}
