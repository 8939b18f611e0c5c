/* Connections: one function for each operation, one crossing for each call. */

#include "probe.h"
#include "schedule.h"
#include "slim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_PLAINTEXT = 16384,
	RECORD_EXPANSION = 128, /* more than the header, IV, MAC and padding of any suite */
};

static inline conn *of(ossl_conn *pub) { return (conn *)pub; }

/*
 * Makes the shard of a context the thread's default library context, in which libcrypto looks up, under a
 * lock, whether an object that it makes or frees has ex_data of the application: SSLs, BIOs, sessions and keys,
 * 14 to 28 times in a handshake. Returns the one before, for leave. Nothing is done in the first shard.
 */
static OSSL_LIB_CTX *enter(const ossl_ctx *ctx)
{
	return ctx->slim && ctx->shard > 0 ? ossl_fn.OSSL_LIB_CTX_set0_default(ctx->slim) : NULL;
}

static void leave(OSSL_LIB_CTX *before)
{
	if (before)
		ossl_fn.OSSL_LIB_CTX_set0_default(before);
}

/*
 * Begins a call: sets the windows, forgets the last call's output, and clears the thread's error
 * queue.
 */
static void begin_anew(conn *c, const uint8_t *in, size_t in_len, uint8_t *out, size_t out_cap)
{
	c->in = in;
	c->in_len = in_len;
	c->in_pos = 0;
	c->out = out;
	c->out_cap = out_cap;
	c->out_len = 0;
	c->spill.len = c->trace.len = 0;
	c->waits = 0;
	if (c->keylog.len) { /* Go has written the lines: the secrets are no longer needed */
		ossl_fn.OPENSSL_cleanse(c->keylog.data, c->keylog.len);
		c->keylog.len = 0;
	}
	if (ossl_fn.ERR_peek_error() != 0) /* clearing an empty queue walks all of its slots */
		ossl_fn.ERR_clear_error();
}

/*
 * Begins any call except a refusal. A refusal can only be the first call after the handshake:
 * later, Finished may have been sent.
 */
static void begin(conn *c, const uint8_t *in, size_t in_len, uint8_t *out, size_t out_cap)
{
	if (c->handshake_done && c->handshake_secret_len)
		takeover_forget_handshake(c);
	begin_anew(c, in, in_len, out, out_cap);
}

/* Finishes a call: no Go pointer is kept. */
static ossl_step end(conn *c, ossl_step step)
{
	step.consumed = c->in_pos;
	step.produced = c->out_len;
	c->pub.spill = c->spill.data;
	c->pub.spill_len = c->spill.len;
	c->pub.keylog = c->keylog.data;
	c->pub.keylog_len = c->keylog.len;
	c->pub.deferred = c->deferred;
	c->pub.trace = c->trace.data;
	c->pub.trace_len = c->trace.len;
	c->pub.sessions = c->sessions.data;
	c->pub.sessions_len = c->sessions.len;
	c->pub.server_name = c->name.data;
	c->pub.server_name_len = c->name.len;
	c->pub.message = step.status == OSSL_NEED_CERT ? c->request.data : c->question ? c->asked : c->message.data;
	c->pub.message_len = step.status == OSSL_NEED_CERT ? c->request.len : c->question ? c->asked_len : c->message.len;
	c->in = NULL;
	c->in_len = c->in_pos = 0;
	c->out = NULL;
	c->out_len = c->out_cap = 0;
	return step;
}

/*
 * SSL_get_error treats any error in the thread's queue as libssl's failure. A provider may leave
 * errors there that it recovered from: pkcs11-provider 1.0 does so if two threads need its login at
 * once. Providers' libraries are numbered from ERR_LIB_USER on, and libssl never fails without an
 * error of its own. So if the queue has no such error, the caller asks SSL_get_error with an empty
 * queue. Returns 1 if libssl did fail, with the queue moved into c->pub.errors.
 */
static int drop_foreign_errors(conn *c)
{
	unsigned long e, first = ossl_fn.ERR_peek_error();
	int n = 0, own = 0;

	if (!ossl_fn.OSSL_PROVIDER_do_all || (first >> OSSL_ERR_LIB_OFFSET & 0xff) < (unsigned long)OSSL_ERR_LIB_USER ||
		(first & (unsigned long)OSSL_ERR_SYSTEM_FLAG))
		return 0;
	memset(c->pub.errors, 0, sizeof c->pub.errors);
	while ((e = ossl_fn.ERR_get_error()) != 0) {
		own |= (e >> OSSL_ERR_LIB_OFFSET & 0xff) == (unsigned long)OSSL_ERR_LIB_SSL;
		if (n < OSSL_MAX_ERRORS)
			c->pub.errors[n++] = e;
	}
	if (!own)
		memset(c->pub.errors, 0, sizeof c->pub.errors);
	return own;
}

/*
 * Returns what libssl waits for, or OSSL_CLOSED, or OSSL_FATAL for anything else. Without an error in the
 * queue, for which there may be no memory, SSL_get_error returns what libssl waited for last. That counts
 * only if it has come to wait in this call.
 */
static int32_t wanted(const conn *c, int ret)
{
	int32_t status;

	switch (ossl_fn.SSL_get_error(c->ssl, ret)) {
	case OSSL_SSL_ERROR_WANT_READ:
		status = OSSL_WANT_READ;
		break;
	case OSSL_SSL_ERROR_WANT_WRITE:
		status = OSSL_WANT_WRITE;
		break;
	case OSSL_SSL_ERROR_WANT_X509_LOOKUP:
		status = OSSL_NEED_CERT;
		break;
	case OSSL_SSL_ERROR_WANT_CLIENT_HELLO_CB:
		status = OSSL_NEED_HELLO;
		break;
	case OSSL_SSL_ERROR_WANT_RETRY_VERIFY:
		status = OSSL_NEED_VERIFY;
		break;
	case OSSL_SSL_ERROR_ZERO_RETURN:
		return OSSL_CLOSED;
	default:
		return OSSL_FATAL;
	}
	return c->waits >> status & 1 ? status : OSSL_FATAL;
}

/* Turns a libssl return value of 0 or less into a status. A fatal one is permanent. */
static int32_t status_of(conn *c, int ret)
{
	int32_t status;

	if (drop_foreign_errors(c)) {
		c->failed = 1;
		return OSSL_FATAL;
	}
	if (c->pub.alert_out >> 8 == OSSL_SSL3_AL_FATAL) {
		c->failed = 1;
		ossl_drain_errors(c->pub.errors);
		return OSSL_FATAL;
	}
	status = wanted(c, ret);
	if (status != OSSL_FATAL)
		return status;
	/* After a user_canceled warning, 3.5 reads a close_notify but reports neither an error nor the
	 * end. */
	if ((ossl_fn.SSL_get_shutdown(c->ssl) & OSSL_SSL_RECEIVED_SHUTDOWN) && ossl_fn.ERR_peek_error() == 0 && c->pub.alert_out < 0)
		return OSSL_CLOSED;
	c->failed = 1;
	ossl_drain_errors(c->pub.errors);
	if (c->pub.errors[0] == 0 && c->pub.alert_in >> 8 != OSSL_SSL3_AL_FATAL)
		c->pub.errors[0] = memory_error(); /* libssl gives a reason if there is memory for it */
	return OSSL_FATAL;
}

/*
 * Limits the connection's own signatures to the credential's algorithms, and the peer's to the
 * context's.
 */
static int limit_signatures(conn *c, const ossl_cred *cred)
{
	if (!cred->sigalgs)
		return 1;
	/* A client signs with the algorithms of set1_client_sigalgs. A server signs with the algorithms
	 * of set1_sigalgs, and accepts the set1_client_sigalgs from clients. */
	if (!c->server)
		return ossl_fn.SSL_ctrl(c->ssl, OSSL_SSL_CTRL_SET_CLIENT_SIGALGS_LIST, 0, cred->sigalgs) == 1;
	return ossl_fn.SSL_ctrl(c->ssl, OSSL_SSL_CTRL_SET_CLIENT_SIGALGS_LIST, 0,
			c->ctx->client_sigalgs ? c->ctx->client_sigalgs : c->ctx->sigalgs) == 1 &&
		ossl_fn.SSL_ctrl(c->ssl, OSSL_SSL_CTRL_SET_SIGALGS_LIST, 0, cred->sigalgs) == 1;
}

ossl_conn *ossl_conn_new(ossl_ctx *ctx, int server, const char *server_name, const uint8_t *session, size_t session_len,
	const uint8_t *psk, size_t psk_len, int may_ask, unsigned long *errors)
{
	conn *c;
	BIO *bio;

	ossl_fn.ERR_clear_error();
	c = new_zeros(sizeof *c);
	if (!c) {
		ossl_drain_errors(errors);
		return NULL;
	}
	c->pub.alert_in = c->pub.alert_out = c->pub.hello_alert = -1;
	c->pub.verdict = OSSL_VERDICT_NONE;
	c->pub.refusal = -1;
	c->pub.socket = -1;
	c->server = server != 0;
	c->sides = OSSL_READ | OSSL_WRITE;
	c->may_ask = may_ask != 0;
	c->ctx = ctx;
	__atomic_add_fetch(&ctx->refs, 1, __ATOMIC_RELAXED);
	c->ssl = ossl_fn.SSL_new(ctx->ssl);
	bio = ossl_fn.BIO_new(ossl_window_bio);
	if (!c->ssl || !bio || ossl_fn.SSL_set_ex_data(c->ssl, 0, c) != 1)
		goto failed;
	ossl_fn.BIO_set_data(bio, c);
	ossl_fn.BIO_set_init(bio, 1);
	ossl_fn.SSL_set_bio(c->ssl, bio, bio); /* takes one reference for both directions */
	bio = NULL;
	/* Before the state: SSL_set_options(3) of 3.2 and later writes to the record layer, which the state has
	 * made, or for want of memory has not, without a word. Without one SSL_do_handshake(3) fails. */
	session_begin(c, session, session_len);
	if (psk_len > 0 && !psk_use(c, psk, psk_len))
		goto failed;
	if (server) {
		ossl_fn.SSL_set_accept_state(c->ssl);
		ossl_fn.SSL_set_verify(c->ssl, ctx->client_auth, NULL);
	} else {
		ossl_fn.SSL_set_connect_state(c->ssl);
		ossl_fn.SSL_set_verify(c->ssl, OSSL_SSL_VERIFY_PEER, NULL);
		if (ossl_fn.SSL_ctrl(c->ssl, OSSL_SSL_CTRL_SET_TLSEXT_STATUS_REQ_TYPE, OSSL_TLSEXT_STATUSTYPE_ocsp, NULL) != 1)
			goto failed;
		if (server_name && ossl_fn.SSL_ctrl(c->ssl, OSSL_SSL_CTRL_SET_TLSEXT_HOSTNAME, OSSL_TLSEXT_NAMETYPE_host_name,
							   (void *)server_name) != 1)
			goto failed;
	}
	if (ctx->cred && !limit_signatures(c, ctx->cred))
		goto failed;
	return &c->pub;

failed:
	ossl_drain_errors(errors);
	if (bio)
		ossl_fn.BIO_free(bio);
	ossl_fn.SSL_free(c->ssl);
	bytes_free(&c->psk_identity);
	bytes_free(&c->psk_key);
	ossl_ctx_free(ctx);
	free(c);
	return NULL;
}

void ossl_conn_hellos(ossl_conn *pub, ossl_hellos *hellos)
{
	conn *c = of(pub);

	hellos->client = c->facts.data;
	hellos->client_len = c->facts.len;
	hellos->version = c->hello_version;
	hellos->suite = c->hello_suite;
}

void ossl_conn_facts(ossl_conn *pub, ossl_facts *f)
{
	conn *c = of(pub);
	const SSL_CIPHER *cipher = ossl_fn.SSL_get_current_cipher(c->ssl);
	unsigned int alpn_len = 0;
	long ocsp_len;
	const char *name;

	if (!cipher) /* chosen, but not in use yet: a TLS 1.2 server before the client's Finished */
		cipher = ossl_fn.SSL_get_pending_cipher(c->ssl);
	memset(f, 0, sizeof *f);
	f->version = (uint16_t)ossl_fn.SSL_version(c->ssl);
	f->cipher = cipher ? ossl_fn.SSL_CIPHER_get_protocol_id(cipher) : 0;
	f->group = session_group(c);
	f->resumed = (uint8_t)session_resumed(c);
	f->psk = (uint8_t)psk_agreed(c);
	f->hello_retry = c->hello_retry;
	f->extended_master_secret = ossl_fn.SSL_ctrl(c->ssl, OSSL_SSL_CTRL_GET_EXTMS_SUPPORT, 0, NULL) == 1;
	ossl_fn.SSL_get0_alpn_selected(c->ssl, &f->alpn, &alpn_len);
	f->alpn_len = alpn_len;
	if (c->server) {
		name = ossl_fn.SSL_get_servername(c->ssl, OSSL_TLSEXT_NAMETYPE_host_name);
		f->server_name = (const uint8_t *)name;
		f->server_name_len = name ? strlen(name) : 0;
		if (c->name.len > 0) {
			f->server_name = c->name.data;
			f->server_name_len = c->name.len;
		}
	} else {
		ocsp_len = ossl_fn.SSL_ctrl(c->ssl, OSSL_SSL_CTRL_GET_TLSEXT_STATUS_REQ_OCSP_RESP, 0, (void *)&f->ocsp);
		f->ocsp_len = f->ocsp && ocsp_len > 0 ? (size_t)ocsp_len : 0;
	}
	f->scts = c->scts.data;
	f->scts_len = c->scts.len;
	if (f->version == OSSL_TLS1_2_VERSION) {
		/* Both return the full length, which may be larger than the buffer. */
		f->local_finished_len = (uint8_t)ossl_fn.SSL_get_finished(c->ssl, f->local_finished, OSSL_MAX_FINISHED);
		f->peer_finished_len = (uint8_t)ossl_fn.SSL_get_peer_finished(c->ssl, f->peer_finished, OSSL_MAX_FINISHED);
	}
}

/*
 * A TLS 1.3 client's refusal of a server's chain, or of its request for a certificate. libssl's own
 * alert would leave in the clear, because its clients take their sending keys with their own
 * flight, and many servers report an unprotected alert as damage. So libssl continues, without a
 * certificate, until the key-log callback has reported the keys. Its flight is discarded, except
 * for a ChangeCipherSpec, and only the alert is sealed: it is the first and only record under these
 * keys that ever leaves. The conn has failed then, as after any refused handshake.
 *
 * If the rest of the server's flight has not arrived when its chain is refused, the refusal doesn't
 * wait for it: the alert leaves in the clear. A request for a certificate is refused when the
 * flight is complete, as in crypto/tls.
 *
 * When a session is resumed there is no chain and no pause: Go refuses after libssl has made its
 * flight, and doesn't send it.
 */
static void refuse_begin(conn *c)
{
	int chain = c->verify == ASK_WAITING && c->pub.verdict != OSSL_VERDICT_OK;

	if (c->server || c->pub.refusal < 0 || !(chain || c->cert == ASK_WAITING) || !c->ctx->seal_refusals ||
		ossl_fn.SSL_version(c->ssl) != OSSL_TLS1_3_VERSION)
		return;
	ossl_fn.SSL_certs_clear(c->ssl);
	c->cert = ASK_ANSWERED;
	c->refused = 1;
	c->refused_late = !chain;
}

static ossl_step refuse(conn *c)
{
	const SSL_CIPHER *cipher = c->ssl ? ossl_fn.SSL_get_current_cipher(c->ssl) : NULL;
	const suite *s = cipher ? suite_of(&c->ctx->algorithms, ossl_fn.SSL_CIPHER_get_protocol_id(cipher)) : NULL;
	const uint8_t alert[] = {OSSL_SSL3_AL_FATAL, (uint8_t)c->pub.refusal};
	const uint8_t ccs[RECORD_HEADER + 1] = {OSSL_SSL3_RT_CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1};
	ossl_step step = {.status = OSSL_FATAL};
	traffic t = {.suite = s, .sealing = 1};

	c->failed = 1;
	ossl_fn.OPENSSL_cleanse(c->out, c->out_len);
	if (c->spill.len > 0)
		ossl_fn.OPENSSL_cleanse(c->spill.data, c->spill.len);
	c->out_len = c->spill.len = 0;
	ossl_drain_errors(c->pub.errors);
	if (s && s->tls13 && c->handshake_secret_len == hash_len(s) && c->out_cap >= sizeof ccs + sizeof alert + SEALED_EXPANSION) {
		/* For middleboxes (RFC 8446, appendix D.4), if the flight has one; after a
		 * HelloRetryRequest it was already sent. */
		size_t before = c->sent_ccs && !c->hello_retry ? sizeof ccs : 0;

		memcpy(t.secret, c->handshake_secret, hash_len(s));
		c->out_len = traffic_seal(&c->ctx->algorithms, &t, OSSL_SSL3_RT_ALERT, alert, sizeof alert, c->out + before);
		if (c->out_len > 0) {
			memcpy(c->out, ccs, before);
			c->out_len += before;
		}
	}
	traffic_clear(&t);
	takeover_forget_handshake(c);
	if (c->out_len == 0 && c->out_cap >= RECORD_HEADER + sizeof alert) {
		const uint8_t header[RECORD_HEADER] = {OSSL_SSL3_RT_ALERT, 3, 3, 0, sizeof alert};

		memcpy(c->out, header, sizeof header);
		memcpy(c->out + sizeof header, alert, sizeof alert);
		c->out_len = sizeof header + sizeof alert;
	}
	c->pub.alert_out = alert[0] << 8 | alert[1];
	return step;
}

/*
 * Not a thread-local variable: Go's own linker, which links builds without cgo, has no relocations
 * for these; and code that pauses could use the address of the variable of another thread.
 */
static pthread_key_t occupant_key;
static pthread_once_t occupant_once = PTHREAD_ONCE_INIT;
static int occupant_made;

static void occupant_make(void) { occupant_made = pthread_key_create(&occupant_key, NULL) == 0; }

int occupant_setup(void) { return pthread_once(&occupant_once, occupant_make) == 0 && occupant_made; }

conn *occupant(void) { return pthread_getspecific(occupant_key); }

/*
 * Records that this thread is in a connection's handshake, or, if c is NULL, in none. Returns 0 if
 * there is no memory; that can't happen if c is NULL.
 */
static int occupy(conn *c) { return pthread_setspecific(occupant_key, c) == 0; }

int ossl_occupied(void) { return occupant() != NULL; }

int ossl_pauses_hold_threads(void) { return coroutine_holds_thread(); }

void ossl_keep_stacks(size_t n) { coroutine_keep(n); }

int ask_go(conn *c, int32_t question, const uint8_t *data, size_t len)
{
	if (!c->step_under_way || c->abandoned)
		return 0;
	c->pub.version = ossl_fn.SSL_version(c->ssl);
	c->pub.resumed = session_resumed(c);
	c->pub.psk = psk_agreed(c);
	c->pub.answer = 0;
	c->question = question;
	c->asked = data;
	c->asked_len = len;
	occupy(NULL);
	coroutine_pause(c->step_under_way);
	if (!occupy(c)) { /* no more questions, and no secrets, so libssl fails */
		raise_no_memory();
		c->question = 0;
		return 0;
	}
	c->question = 0;
	if (c->abandoned && question == OSSL_NEED_RESUME) /* otherwise libssl would continue with a full handshake, and sign */
		ossl_fn.SSL_certs_clear(c->ssl);
	return !c->abandoned;
}

/* The part of a step from SSL_do_handshake on. */
static ossl_step handshake_step(conn *c, ossl_facts *facts)
{
	ossl_step step = {.status = OSSL_DONE};
	int ret;

	if (!occupy(c)) {
		raise_no_memory();
		step.status = OSSL_FATAL;
		ossl_drain_errors(c->pub.errors);
		return step;
	}
	ret = ossl_fn.SSL_do_handshake(c->ssl);
	occupy(NULL);
	if (c->abandoned)
		return step;
	if (c->may_ask) /* the facts of the call that finishes the step, which may not be the one that began it */
		facts = c->facts_to;
	if (c->refused && !(c->refused_late && ret != 1 && wanted(c, ret) == OSSL_WANT_READ))
		return refuse(c);
	if (c->left_out) { /* libssl found no signature algorithm for the certificate, and would continue without it: fail instead */
		c->pub.refusal = OSSL_SSL_AD_HANDSHAKE_FAILURE;
		c->pub.left_out = 1;
		return refuse(c);
	}
	if (ret != 1)
		step.status = status_of(c, ret);
	c->pub.version = ossl_fn.SSL_version(c->ssl);
	c->pub.resumed = session_resumed(c);
	c->pub.psk = psk_agreed(c);
	if (ret == 1) {
		int first = !c->handshake_done;

		c->handshake_done = 1;
		if (first)
			session_end(c);
		bytes_free(&c->message); /* large, and the peer's data, so not kept for the life of the connection */
		bytes_free(&c->request);
		bytes_free(&c->facts);
		bytes_free(&c->chain);
		bytes_free(&c->offered);
		if (facts && first) { /* a later handshake call only completes a message for libssl */
			ossl_conn_facts(&c->pub, facts);
			c->deferred = (uint8_t)takeover_deferred(c, facts);
			facts->deferred = c->deferred;
			facts->taken_over = (uint8_t)(first && !c->deferred && takeover(c, facts));
		}
		psk_forget(c);
		if (c->ssl && first && !c->deferred) /* libssl keeps the connection; its secrets are not needed here */
			takeover_forget(c);
		if (!c->ssl || !(c->pub.resumed || c->pub.psk)) /* otherwise it may still be refused by the next call: ossl_conn_refuse */
			takeover_forget_handshake(c);
	}
	return step;
}

static void step_in_coroutine(void *arg)
{
	conn *c = arg;

	c->step = handshake_step(c, NULL);
}

/* Begins a step that may ask Go, or continues one that has asked. */
static ossl_step resume_step(conn *c)
{
	ossl_step paused = {.status = OSSL_FATAL};

	if (!c->step_under_way)
		c->step_under_way = coroutine_new(step_in_coroutine, c);
	if (!c->step_under_way) {
		raise_no_memory(); /* for its stack */
		c->failed = 1;
		ossl_drain_errors(c->pub.errors);
		return paused;
	}
	if (coroutine_resume(c->step_under_way)) {
		paused.status = c->question;
		c->pub.paused = 1;
		return paused;
	}
	coroutine_free(c->step_under_way);
	c->step_under_way = NULL;
	c->pub.paused = 0;
	return c->step;
}

/*
 * Ends a step that has asked Go and gets no answer. Returns the number of bytes that libssl would
 * have sent: an alert.
 */
static size_t abandon_step(conn *c)
{
	c->abandoned = 1;
	coroutine_resume(c->step_under_way); /* makes libssl fail, and free its memory */
	coroutine_free(c->step_under_way);
	c->step_under_way = NULL;
	return c->spill.len;
}

/* The body of handshake. */
static ossl_step step(conn *c, const uint8_t *in, size_t in_len, uint8_t *out, size_t out_cap, ossl_facts *facts)
{
	ossl_step failed = {.status = OSSL_FATAL};

	begin(c, in, in_len, out, out_cap);
	if (c->failed)
		return end(c, failed);
	if (!c->step_under_way)
		refuse_begin(c);
	if (!c->may_ask)
		return end(c, handshake_step(c, facts));
	c->facts_to = facts;
	return end(c, resume_step(c));
}

static ossl_step handshake(conn *c, const uint8_t *in, size_t in_len, uint8_t *out, size_t out_cap, ossl_facts *facts)
{
	OSSL_LIB_CTX *before = enter(c->ctx);
	ossl_step result = step(c, in, in_len, out, out_cap, facts);

	leave(before);
	return result;
}

ossl_step ossl_conn_handshake(ossl_conn *pub, const uint8_t *in, size_t in_len, uint8_t *out, size_t out_cap,
	ossl_facts *facts)
{
	return handshake(of(pub), in, in_len, out, out_cap, facts);
}

ossl_step ossl_conn_refuse(ossl_conn *pub, uint8_t alert, uint8_t *out, size_t out_cap)
{
	conn *c = of(pub);

	begin_anew(c, NULL, 0, out, out_cap);
	c->pub.refusal = alert;
	return end(c, refuse(c));
}

ossl_step ossl_conn_start(ossl_ctx *ctx, int as_is, int server, const char *server_name, const uint8_t *session,
	size_t session_len, const uint8_t *psk, size_t psk_len, int may_ask, ossl_conn **pub, unsigned long *errors,
	const uint8_t *in, size_t in_len, uint8_t *out, size_t out_cap)
{
	ossl_step none = {.status = OSSL_FATAL};
	OSSL_LIB_CTX *before;
	ossl_ctx *part;
	int shard;

	*pub = NULL;
	part = part_of(ctx, as_is, &shard);
	if (!part) {
		none.status = OSSL_NEED_PART;
		none.n = (size_t)shard;
		return none;
	}
	before = enter(part);
	*pub = ossl_conn_new(part, server, server_name, session, session_len, psk, psk_len, may_ask, errors);
	leave(before);
	if (!*pub)
		return none;
	(*pub)->shard = part->shard;
	(*pub)->shards = ctx->shards;
	return handshake(of(*pub), in, in_len, out, out_cap, NULL); /* a first step is never the last */
}

int ossl_conn_use_cred(ossl_conn *pub, ossl_cred *cred)
{
	conn *c = of(pub);

	ossl_fn.ERR_clear_error();
	ossl_fn.SSL_certs_clear(c->ssl);
	if (!cred) {
		c->cert = ASK_ANSWERED;
		return 1;
	}
	if (ossl_fn.SSL_use_cert_and_key(c->ssl, leaf_for(c, cred), cred_key(cred, c->ctx), (struct stack_st_X509 *)cred->chain, 1) != 1)
		goto failed;
	if (!limit_signatures(c, cred))
		goto failed;
	__atomic_add_fetch(&cred->refs, 1, __ATOMIC_RELAXED);
	if (c->cred)
		ossl_cred_free(c->cred);
	c->cred = cred;
	c->cert = ASK_ANSWERED;
	return 1;

failed:
	ossl_drain_errors(c->pub.errors);
	return 0;
}

/*
 * libssl sends a key update only with the next write; an empty write is enough. Returns 1, or 0 if
 * that has failed for good. It may also have to wait for the rest of a message from the peer.
 */
static int send_key_update(conn *c)
{
	size_t n;

	return ossl_fn.SSL_write_ex(c->ssl, "", 0, &n) == 1 || status_of(c, 0) != OSSL_FATAL;
}

ossl_step ossl_conn_read(ossl_conn *pub, const uint8_t *in, size_t in_len, uint8_t *dst, size_t dst_len)
{
	conn *c = of(pub);
	ossl_step step = {.status = OSSL_DONE};
	size_t n;
	int ret;

	begin(c, in, in_len, NULL, 0);
	if (c->failed) {
		step.status = OSSL_FATAL;
		return end(c, step);
	}
	while (step.n < dst_len) {
		ret = ossl_fn.SSL_read_ex(c->ssl, dst + step.n, dst_len - step.n, &n);
		if (ret != 1) {
			step.status = status_of(c, ret);
			break;
		}
		step.n += n;
		if (c->pub.useless <= OSSL_MAX_USELESS)
			c->pub.useless = 0;
		if (c->in_pos == c->in_len && step.n < dst_len && ossl_fn.SSL_pending(c->ssl) == 0) {
			step.status = OSSL_WANT_READ; /* saves a further call that would find nothing */
			break;
		}
	}
	if (step.n > 0)
		ossl_probe_read(c, dst, (int)step.n, c->pub.socket);
	if (step.status != OSSL_FATAL && !c->notified && ossl_fn.SSL_get_key_update_type(c->ssl) != OSSL_SSL_KEY_UPDATE_NONE &&
		!send_key_update(c))
		step.status = OSSL_FATAL;
	if (step.status != OSSL_FATAL) {
		step.pending = ossl_fn.SSL_pending(c->ssl) > 0;
		/* The tickets come before the first data. Later reads handle the rest. */
		if (c->deferred && step.status != OSSL_CLOSED && (step.n > 0 || c->sessions.len > 0))
			step.taken_over = (uint16_t)takeover_later(c);
	}
	return end(c, step);
}

ossl_step ossl_conn_write(ossl_conn *pub, const uint8_t *src, size_t len, uint8_t *out, size_t out_cap, size_t payload,
	size_t first)
{
	conn *c = of(pub);
	ossl_step step = {.status = OSSL_DONE};
	size_t n, limit;
	int ret;

	begin(c, NULL, 0, out, out_cap);
	if (c->failed) {
		step.status = OSSL_FATAL;
		return end(c, step);
	}
	while (step.n < len) {
		limit = MAX_PLAINTEXT;
		if (payload && payload * (first + step.records + 1) < limit)
			limit = payload * (first + step.records + 1);
		if (limit > len - step.n)
			limit = len - step.n;
		/* A peer's max_fragment_length may split it further, down to 512 bytes: a write that may
		 * not fit must not begin. */
		if (step.n > 0 && out_cap - c->out_len < limit + (limit / 512 + 1) * RECORD_EXPANSION) {
			step.status = OSSL_WANT_WRITE;
			break;
		}
		ret = ossl_fn.SSL_write_ex(c->ssl, src + step.n, limit, &n);
		if (ret != 1) {
			step.status = status_of(c, ret);
			break;
		}
		step.n += n;
		step.records++;
	}
	if (step.n > 0)
		ossl_probe_write(c, src, (int)step.n, c->pub.socket);
	return end(c, step);
}

/* close_notify returns 0 if nothing was sealed. */
static int close_notify(conn *c)
{
	if (c->failed || c->notified || !c->handshake_done)
		return 1;
	c->notified = 1;
	/* 0 or 1: sent; below 0: the window was too small, or memory is short */
	return ossl_fn.SSL_shutdown(c->ssl) >= 0 || c->out_len > 0;
}

ossl_step ossl_conn_close_notify(ossl_conn *pub, uint8_t *out, size_t out_cap)
{
	conn *c = of(pub);
	ossl_step step = {.status = OSSL_DONE};

	begin(c, NULL, 0, out, out_cap);
	if (!c->failed && c->handshake_done && ossl_fn.SSL_in_init(c->ssl)) /* SSL_shutdown would refuse */
		step.status = OSSL_WANT_READ;
	else if (!close_notify(c)) {
		step.status = OSSL_FATAL;
		ossl_drain_errors(c->pub.errors);
	}
	return end(c, step);
}

ossl_step ossl_conn_key_update(ossl_conn *pub, int request)
{
	conn *c = of(pub);
	ossl_step step = {.status = OSSL_DONE};

	begin(c, NULL, 0, NULL, 0);
	if (c->failed || ossl_fn.SSL_key_update(c->ssl, request ? OSSL_SSL_KEY_UPDATE_REQUESTED : 0) != 1) {
		step.status = OSSL_FATAL;
		ossl_drain_errors(c->pub.errors);
		return end(c, step);
	}
	if (!send_key_update(c))
		step.status = OSSL_FATAL;
	return end(c, step);
}

int ossl_conn_export(ossl_conn *pub, uint8_t *out, size_t len, const char *label, size_t label_len, const uint8_t *context,
	size_t context_len, int use_context)
{
	conn *c = of(pub);
	int ok;

	ossl_fn.ERR_clear_error();
	if (c->ssl)
		ok = ossl_fn.SSL_export_keying_material(c->ssl, out, len, label, label_len, context, context_len, use_context) == 1;
	else
		ok = takeover_export(c, out, len, label, label_len, context, context_len, use_context);
	ossl_drain_errors(c->pub.errors);
	return ok;
}

ossl_step ossl_conn_free(ossl_conn *pub, int sides, int notify, uint8_t *out, size_t out_cap)
{
	static const uint8_t close_notify_alert[] = {1, 0}; /* a warning, RFC 8446, section 6.1 */
	conn *c = of(pub);
	ossl_step step = {.status = OSSL_DONE};
	OSSL_LIB_CTX *before = c->ssl ? enter(c->ctx) : NULL;

	if (c->step_under_way)
		step.n = abandon_step(c);
	if (c->ssl) {
		begin(c, NULL, 0, out, out_cap);
		if (notify)
			close_notify(c);
		step.produced = c->out_len;
		ossl_fn.SSL_free(c->ssl);
		ossl_fn.ERR_clear_error();
	}
	leave(before);
	if (sides & OSSL_WRITE) {
		if (notify && !c->ssl)
			ossl_conn_seal((ossl_traffic *)pub, (uint8_t)OSSL_SSL3_RT_ALERT, close_notify_alert, 2, out, out_cap, 0, 0, 0, &step);
		traffic_clear(&c->write);
		ossl_fn.OPENSSL_cleanse(c->exporter, sizeof c->exporter);
	}
	if (sides & OSSL_READ)
		traffic_clear(&c->read);
	if (__atomic_and_fetch(&c->sides, ~sides, __ATOMIC_ACQ_REL) != 0)
		return step;
	if (c->cred)
		ossl_cred_free(c->cred);
	bytes_free(&c->spill);
	bytes_free(&c->keylog);
	bytes_free(&c->trace);
	bytes_free(&c->message);
	bytes_free(&c->request);
	bytes_free(&c->facts);
	bytes_free(&c->scts);
	bytes_free(&c->name);
	bytes_free(&c->chain);
	bytes_free(&c->offered);
	bytes_free(&c->sessions);
	bytes_free(&c->kept);
	bytes_free(&c->psk_identity);
	bytes_free(&c->psk_key);
	ossl_ctx_free(c->ctx);
	ossl_fn.OPENSSL_cleanse(c, sizeof *c);
	free(c);
	return step;
}
