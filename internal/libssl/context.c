/* Contexts and credentials: the objects that connections share. */

#include "private.h"
#include "slim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int bytes_append(bytes *b, const void *data, size_t len, size_t max)
{
	uint8_t *grown;
	size_t cap;

	if (len > max || b->len > max - len)
		return 0;
	if (b->len + len > b->cap) {
		cap = b->cap * 2;
		if (cap < b->len + len)
			cap = b->len + len;
		grown = new_memory(cap);
		if (!grown)
			return 0;
		if (b->data) { /* not realloc: the moved data may be secret */
			memcpy(grown, b->data, b->len);
			ossl_fn.OPENSSL_cleanse(b->data, b->cap);
			free(b->data);
		}
		b->data = grown;
		b->cap = cap;
	}
	if (data)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	return 1;
}

void bytes_free(bytes *b)
{
	if (b->data) {
		ossl_fn.OPENSSL_cleanse(b->data, b->cap);
		free(b->data);
	}
	memset(b, 0, sizeof *b);
}

static void *copy_of(const void *data, size_t len)
{
	void *p = new_memory(len);

	if (p && len)
		memcpy(p, data, len);
	return p;
}

/* Copies a string, nullable. Returns 1 or 0. */
static int copy_text(char **to, const char *text)
{
	*to = text ? copy_of(text, strlen(text) + 1) : NULL;
	return !text || *to;
}

/*
 * Returns the length of a ClientHello that offers everything that an SSL_CTX has, 0 if it can't make
 * one: all algorithms are in it.
 */
static size_t offer_of(SSL_CTX *s)
{
	ossl_ctx all = {.refs = 2, .ssl = s}; /* on the stack: the connection doesn't free it */
	unsigned long errors[OSSL_MAX_ERRORS];
	ossl_conn *conn = ossl_conn_new(&all, 0, NULL, NULL, 0, NULL, 0, 0, errors);
	size_t len = 0;

	if (conn && ossl_conn_handshake(conn, NULL, 0, NULL, 0, NULL).status == OSSL_WANT_READ)
		len = conn->spill_len;
	if (conn)
		ossl_conn_free(conn, OSSL_READ | OSSL_WRITE, 0, NULL, 0);
	return len;
}

static SSL_CTX *bare(OSSL_LIB_CTX *lib)
{
	const SSL_METHOD *method = ossl_fn.TLS_method();

	return lib ? ossl_fn.SSL_CTX_new_ex(lib, NULL, method) : ossl_fn.SSL_CTX_new(method);
}

static size_t offer_in(OSSL_LIB_CTX *lib)
{
	SSL_CTX *s = bare(lib);
	size_t offer = s ? offer_of(s) : 0;

	ossl_fn.SSL_CTX_free(s); /* takes NULL */
	return offer;
}

/* The default library context is asked only if memory may have failed: that takes time. */
static int offers_all(OSSL_LIB_CTX *lib, OSSL_LIB_CTX *first)
{
	size_t offer = offer_in(lib);

	return offer && ((!first && !memory_may_have_failed()) || offer == offer_in(first));
}

#define HAS(type, lib, algorithm) \
	do { \
		type *p = ossl_fn.type##_fetch(lib, algorithm, NULL); \
\
		all &= p != NULL; \
		ossl_fn.type##_free(p); /* takes NULL */ \
	} while (0)

int slim_works(OSSL_LIB_CTX *lib, OSSL_LIB_CTX *holder, OSSL_LIB_CTX *first)
{
	static const uint8_t key[32];
	uint8_t mac[64];
	size_t n;
	int all = 1;

	HAS(EVP_SIGNATURE, lib, "ECDSA");
	HAS(EVP_KEYEXCH, lib, "ECDH");
	HAS(EVP_KEM, lib, "RSA");
	HAS(EVP_KDF, lib, "TLS13-KDF");
	HAS(EVP_MD, lib, "SHA2-256");
	HAS(EVP_MD, holder, "SHA2-256");
	HAS(OSSL_DECODER, lib, "EC");
	return all && ossl_fn.EVP_Q_mac(lib, "HMAC", NULL, "SHA2-256", NULL, key, sizeof key, key, sizeof key, mac, sizeof mac, &n) &&
		errno != ENOMEM && offers_all(lib, first) && errno != ENOMEM;
}

enum { DEFAULT, SLIM, FIPS, KINDS };

/*
 * If memory is short in SSL_CTX_new(3), it succeeds without the algorithm that it was trying then,
 * and drops the error. So if memory may have been short, the SSL_CTX must have as much as earlier
 * ones, or as another one for which it was not short. Takes s. Returns give or NULL.
 */
static SSL_CTX *whole(SSL_CTX *s, OSSL_LIB_CTX *lib, int kind)
{
	static size_t shown[KINDS]; /* atomic */
	size_t offer, before = 0, known = __atomic_load_n(&shown[kind], __ATOMIC_RELAXED);
	int i;

	for (i = 0; s && i < 3; i++) {
		offer = offer_of(s);
		if ((offer && offer == known) || (i > 0 && offer == before && errno != ENOMEM)) {
			__atomic_store_n(&shown[kind], offer, __ATOMIC_RELAXED);
			return s;
		}
		before = offer;
		ossl_fn.SSL_CTX_free(s);
		errno = 0;
		s = bare(lib);
	}
	if (s)
		raise_no_memory();
	ossl_fn.SSL_CTX_free(s); /* takes NULL */
	return NULL;
}

static uint64_t made; /* atomic; for ossl_ssl_ctxs_made */

SSL_CTX *ossl_new_ssl_ctx(int fips, int shard, OSSL_LIB_CTX **slim)
{
	OSSL_LIB_CTX *lib = NULL;
	int kind = DEFAULT;
	SSL_CTX *s;

	if (slim)
		*slim = NULL;
	if (fips && !fips_ready())
		return NULL;
	if (fips && (lib = fips_library()))
		kind = FIPS;
	else if ((lib = slim_library(shard)))
		kind = SLIM;
	if (slim && kind == SLIM)
		*slim = lib;
	errno = 0;
	s = bare(lib);
	if (memory_may_have_failed())
		s = whole(s, lib, kind);
	if (s && !fips)
		__atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
	return s;
}

uint64_t ossl_ssl_ctxs_made(void) { return __atomic_load_n(&made, __ATOMIC_RELAXED); }

/*
 * The SSL_CTX of the first ossl_has, for the first context: nothing was set in it but groups and
 * signature algorithms, which that context sets too. NULL if there is none. In the default library
 * context.
 */
static SSL_CTX *spare; /* atomic */

static SSL_CTX *take_spare(const ossl_ctx_params *p)
{
	if (p->fips || !p->groups || !p->sigalgs || ossl_slim_library())
		return NULL;
	return __atomic_exchange_n(&spare, NULL, __ATOMIC_ACQ_REL);
}

/*
 * The largest Certificate message, without its header: crypto/tls's maxHandshakeCertificateMsg.
 * libssl's default is 100 KB.
 */
enum { MAX_CERTIFICATE = 1 << 18 };

/* Applies p to the SSL_CTX. Returns NULL, or the name of the setting that libssl refused. */
static const char *configure(ossl_ctx *ctx, const ossl_ctx_params *p)
{
	SSL_CTX *s = ctx->ssl;

	if (p->without_policy)
		ossl_policy_lift(s);
	else if (!ossl_policy_apply(s, p->commands, p->commands_len, p->fips)) /* the FIPS module may lack algorithms in it */
		return "host policy";
	ossl_policy_narrow(s);
	ossl_fn.SSL_CTX_ctrl(s, OSSL_SSL_CTRL_MODE,
		OSSL_SSL_MODE_ENABLE_PARTIAL_WRITE | OSSL_SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | OSSL_SSL_MODE_AUTO_RETRY |
			OSSL_SSL_MODE_NO_AUTO_CHAIN | OSSL_SSL_MODE_RELEASE_BUFFERS,
		NULL);
	ossl_fn.SSL_CTX_set_options(s, (uint64_t)(OSSL_SSL_OP_NO_COMPRESSION | OSSL_SSL_OP_PRIORITIZE_CHACHA |
		OSSL_SSL_OP_CIPHER_SERVER_PREFERENCE | OSSL_SSL_OP_NO_RENEGOTIATION));
	ossl_fn.SSL_CTX_ctrl(s, OSSL_SSL_CTRL_SET_MAX_CERT_LIST, MAX_CERTIFICATE, NULL);
	/* RFC 8879: crypto/tls doesn't implement it, the host's zlib would do the decompression, and an
	 * empty list that is compressed is not seen by the callbacks. */
	if (ossl_fn.OpenSSL_version_num() >= OSSL_V3_2)
		ossl_fn.SSL_CTX_set_options(s, OSSL_SSL_OP_NO_TX_CERTIFICATE_COMPRESSION | OSSL_SSL_OP_NO_RX_CERTIFICATE_COMPRESSION);
	if (p->exact_level || p->security_level > ossl_fn.SSL_CTX_get_security_level(s))
		ossl_fn.SSL_CTX_set_security_level(s, p->security_level);
	if (!(p->as_host && ossl_fn.SSL_CTX_ctrl(s, OSSL_SSL_CTRL_GET_MIN_PROTO_VERSION, 0, NULL) >= p->min_version) &&
		ossl_fn.SSL_CTX_ctrl(s, OSSL_SSL_CTRL_SET_MIN_PROTO_VERSION, p->min_version, NULL) != 1)
		return "MinVersion";
	if (!p->as_host && ossl_fn.SSL_CTX_ctrl(s, OSSL_SSL_CTRL_SET_MAX_PROTO_VERSION, p->max_version, NULL) != 1)
		return "MaxVersion";
	if (p->cipher_suites && ossl_fn.SSL_CTX_set_ciphersuites(s, p->cipher_suites) != 1)
		return "TLS 1.3 cipher suites";
	/* Before the suites that stay. */
	if (p->psk_list && (!ossl_fn.SSL_set_psk_server_callback || ossl_fn.SSL_CTX_set_cipher_list(s, p->psk_list) != 1))
		return "pre-shared key suites";
	if (p->cipher_list && ossl_fn.SSL_CTX_set_cipher_list(s, p->cipher_list) != 1)
		return "CipherSuites";
	if (p->groups && ossl_fn.SSL_CTX_ctrl(s, OSSL_SSL_CTRL_SET_GROUPS_LIST, 0, (void *)p->groups) != 1)
		return "CurvePreferences";
	if (p->sigalgs && ossl_fn.SSL_CTX_ctrl(s, OSSL_SSL_CTRL_SET_SIGALGS_LIST, 0, (void *)p->sigalgs) != 1)
		return "signature algorithms";
	if (p->client_sigalgs && ossl_fn.SSL_CTX_ctrl(s, OSSL_SSL_CTRL_SET_CLIENT_SIGALGS_LIST, 0, (void *)p->client_sigalgs) != 1)
		return "signature algorithms";
	if (p->alpn_len && ossl_fn.SSL_CTX_set_alpn_protos(s, p->alpn, (unsigned)p->alpn_len) != 0) /* 0 is success here */
		return "NextProtos";
	if (!ossl_ctx_set_callbacks(ctx))
		return "callbacks";
	return ossl_ctx_set_sessions(ctx, p);
}

/*
 * The number of parts of contexts that are not their first. Each takes 20 to 25 KB, so a process with
 * thousands of contexts doesn't make one for each shard: their first parts are in different shards anyway.
 */
static int parts; /* atomic */
enum { MAX_PARTS = 2048 };

ossl_ctx *ossl_ctx_new(const ossl_ctx_params *p, unsigned long *errors, const char **failed)
{
	ossl_ctx *ctx;
	int fetched;

	*failed = NULL;
	ossl_fn.ERR_clear_error();
	ctx = new_zeros(sizeof *ctx);
	if (!ctx)
		goto failed;
	ctx->refs = 1;
	ctx->is_part = p->shard >= 0;
	if (ctx->is_part)
		__atomic_add_fetch(&parts, 1, __ATOMIC_RELAXED);
	ctx->shard = ctx->is_part ? p->shard : slim_shard(p->shards);
	if (!p->fips && !slim_ready(ctx->shard))
		goto failed;
	ctx->client_auth = p->client_auth;
	ctx->want_hello = p->want_hello;
	ctx->want_cert = p->want_cert;
	ctx->want_keylog = p->want_keylog;
	ctx->want_trace = p->want_trace;
	ctx->verify_pauses = p->verify_pauses;
	ctx->tickets = p->tickets;
	ctx->cached = p->cached;
	ctx->tickets13 = p->tickets13;
	ctx->keep_sessions = p->keep_sessions;
	ctx->max_tls13 = p->max_version >= OSSL_TLS1_3_VERSION;
	memcpy(ctx->policy, p->policy, sizeof ctx->policy);
	ctx->lib = p->fips ? fips_library() : NULL;
	fetched = p->seal_refusals ? algorithms_fetch(&ctx->algorithms, ctx->lib, ctx->shard, p->fips) : 0;
	ctx->seal_refusals = fetched > 0;
	ctx->direct_records = p->direct_records && ctx->seal_refusals;
	ctx->sigalgs = p->sigalgs ? copy_of(p->sigalgs, strlen(p->sigalgs) + 1) : NULL;
	ctx->client_sigalgs = p->client_sigalgs ? copy_of(p->client_sigalgs, strlen(p->client_sigalgs) + 1) : NULL;
	ctx->psk_hello = p->psk_hello;
	ctx->psk_without_dhe = p->psk_without_dhe;
	ctx->psk_narrows_clients = p->psk_narrows_clients;
	ctx->psk_narrows_servers = p->psk_narrows_servers;
	if (!copy_text(&ctx->psk_list, p->psk_list) ||
		!copy_text(&ctx->psk_suites[0], p->psk_suites[0]) || !copy_text(&ctx->psk_suites[1], p->psk_suites[1]))
		goto failed;
	ctx->alpn = copy_of(p->alpn, p->alpn_len);
	ctx->alpn_len = p->alpn_len;
	ctx->alpn_by_client = p->alpn_by_client;
	if (fetched < 0 || !ctx->alpn || (p->sigalgs && !ctx->sigalgs) || (p->client_sigalgs && !ctx->client_sigalgs))
		goto failed;
	ctx->ssl = take_spare(p);
	if (!ctx->ssl)
		ctx->ssl = ossl_new_ssl_ctx(p->fips, ctx->shard, &ctx->slim);
	if (!ctx->ssl)
		goto failed;
	ctx->shards = ctx->slim && !ctx->is_part ? p->shards : 1;
	ctx->parts[ctx->shard] = ctx;
	ctx->observes = ctx->slim && ctx->seal_refusals && !ctx->want_keylog;
	*failed = configure(ctx, p);
	if (!ossl_drain_errors(errors) && !*failed)
		return ctx;
	ossl_ctx_free(ctx);
	return NULL;

failed:
	ossl_drain_errors(errors);
	if (ctx)
		ossl_ctx_free(ctx);
	return NULL;
}

ossl_ctx *part_of(ossl_ctx *ctx, int as_is, int *shard)
{
	ossl_ctx *part;

	if (ctx->shards < 2)
		return ctx;
	if (!__atomic_load_n(&ctx->used, __ATOMIC_RELAXED)) { /* many contexts have only one connection */
		__atomic_store_n(&ctx->used, 1, __ATOMIC_RELAXED);
		return ctx;
	}
	*shard = slim_shard(ctx->shards);
	part = __atomic_load_n(&ctx->parts[*shard], __ATOMIC_ACQUIRE);
	if (part)
		return part;
	return as_is || __atomic_load_n(&parts, __ATOMIC_RELAXED) >= MAX_PARTS ? ctx : NULL;
}

void ossl_ctx_add_part(ossl_ctx *ctx, ossl_ctx *part)
{
	ossl_ctx *none = NULL;

	if (!__atomic_compare_exchange_n(&ctx->parts[part->shard], &none, part, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		ossl_ctx_free(part);
}

uint64_t ossl_ctx_parts(void) { return (uint64_t)__atomic_load_n(&parts, __ATOMIC_RELAXED); }

static void free_name(void *name) { ossl_fn.X509_NAME_free(name); }
static void free_cert(void *cert) { ossl_fn.X509_free(cert); }

void ossl_ctx_free(ossl_ctx *ctx)
{
	int i;

	if (__atomic_sub_fetch(&ctx->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	for (i = 0; i < ctx->shards; i++)
		if (ctx->parts[i] && i != ctx->shard)
			ossl_ctx_free(ctx->parts[i]);
	if (ctx->is_part)
		__atomic_sub_fetch(&parts, 1, __ATOMIC_RELAXED);
	ossl_fn.SSL_CTX_free(ctx->ssl);
	if (ctx->cred)
		ossl_cred_free(ctx->cred);
	if (ctx->cas)
		ossl_fn.OPENSSL_sk_pop_free(ctx->cas, free_name);
	algorithms_free(&ctx->algorithms);
	ossl_ctx_free_sessions(ctx);
	free(ctx->sigalgs);
	free(ctx->client_sigalgs);
	free(ctx->psk_list);
	free(ctx->psk_suites[0]);
	free(ctx->psk_suites[1]);
	free(ctx->alpn);
	free(ctx);
}

int ossl_ctx_set_cred(ossl_ctx *ctx, ossl_cred *cred, unsigned long *errors)
{
	ossl_fn.ERR_clear_error();
	if (ossl_fn.SSL_CTX_use_cert_and_key(ctx->ssl, cred->leaf, cred_key(cred, ctx), (struct stack_st_X509 *)cred->chain, 1) != 1)
		goto failed;
	/* Only to be refused early: each connection's role decides which list it goes to. */
	if (cred->sigalgs && ossl_fn.SSL_CTX_ctrl(ctx->ssl, OSSL_SSL_CTRL_SET_CLIENT_SIGALGS_LIST, 0, cred->sigalgs) != 1)
		goto failed;
	__atomic_add_fetch(&cred->refs, 1, __ATOMIC_RELAXED);
	ctx->cred = cred;
	return 1;

failed:
	ossl_drain_errors(errors);
	return 0;
}

int ossl_ctx_add_ca(ossl_ctx *ctx, const uint8_t *der, size_t len, unsigned long *errors)
{
	const unsigned char *p = der;
	X509_NAME *name;

	ossl_fn.ERR_clear_error();
	if (!ctx->cas)
		ctx->cas = ossl_fn.OPENSSL_sk_new_null();
	name = ossl_fn.d2i_X509_NAME(NULL, &p, (long)len);
	if (!ctx->cas || !name || ossl_fn.OPENSSL_sk_push(ctx->cas, name) <= 0) {
		ossl_fn.X509_NAME_free(name);
		ossl_drain_errors(errors);
		return 0;
	}
	return 1;
}

void ossl_ctx_seal_cas(ossl_ctx *ctx)
{
	if (ctx->cas)
		ossl_fn.SSL_CTX_set_client_CA_list(ctx->ssl, (struct stack_st_X509_NAME *)ctx->cas); /* takes ownership */
	ctx->cas = NULL;
}

int ossl_ctx_has_cipher(ossl_ctx *ctx, uint16_t id)
{
	OPENSSL_STACK *all = (OPENSSL_STACK *)ossl_fn.SSL_CTX_get_ciphers(ctx->ssl);
	int i, n = all ? ossl_fn.OPENSSL_sk_num(all) : 0;

	for (i = 0; i < n; i++)
		if (ossl_fn.SSL_CIPHER_get_protocol_id(ossl_fn.OPENSSL_sk_value(all, i)) == id)
			return 1;
	return 0;
}

int ossl_ctx_security_level(ossl_ctx *ctx) { return ossl_fn.SSL_CTX_get_security_level(ctx->ssl); }

int ossl_has(const char *names, size_t groups, size_t signatures, int fips, uint8_t *has, unsigned long *errors)
{
	OSSL_LIB_CTX *slim;
	SSL_CTX *s;
	size_t i;
	int ok;

	ossl_fn.ERR_clear_error();
	s = ossl_new_ssl_ctx(fips, 0, &slim);
	for (i = 0; s && i < groups + signatures; i++, names += strlen(names) + 1) {
		int control = (int)(i < groups ? OSSL_SSL_CTRL_SET_GROUPS_LIST : OSSL_SSL_CTRL_SET_SIGALGS_LIST);

		has[i] = ossl_fn.SSL_CTX_ctrl(s, control, 0, (void *)names) == 1;
	}
	ok = !ossl_drain_errors(errors) && s != NULL;
	if (ok && !fips && !slim)
		s = __atomic_exchange_n(&spare, s, __ATOMIC_ACQ_REL);
	ossl_fn.SSL_CTX_free(s); /* takes NULL */
	return ok;
}

X509 *cert_unread(OSSL_LIB_CTX *lib, const uint8_t *der, size_t len)
{
	const unsigned char *p = der;
	X509 *x;

	if (!lib)
		return ossl_fn.d2i_X509(NULL, &p, (long)len);
	x = ossl_fn.X509_new_ex(lib, NULL);
	if (x)
		ossl_fn.d2i_X509(&x, &p, (long)len); /* frees it on failure, and sets x to NULL */
	return x;
}

/* Reports whether a key is there, and libcrypto knows its strength, which it asks for only once. */
static int is_whole_key(const EVP_PKEY *key)
{
	return key && (!ossl_fn.EVP_PKEY_get_security_bits || ossl_fn.EVP_PKEY_get_security_bits(key) > 0);
}

/*
 * d2i_X509(3) succeeds if the public key can't be decoded, and a certificate remembers that its
 * extensions could not be read. Both are permanent, even if memory was short, which libcrypto
 * doesn't distinguish from an unknown or malformed key or extension. So such a certificate is
 * parsed again.
 */
X509 *cert_of(OSSL_LIB_CTX *lib, const uint8_t *der, size_t len)
{
	X509 *x = cert_unread(lib, der, len);

	if (x && (!is_whole_key(ossl_fn.X509_get0_pubkey(x)) || ossl_fn.X509_check_purpose(x, -1, 0) != 1)) {
		ossl_fn.X509_free(x);
		x = cert_unread(lib, der, len);
	}
	return x;
}

int cert_pack(bytes *to, X509 *x, size_t max)
{
	int len = ossl_fn.i2d_X509(x, NULL);
	uint8_t head[4], *der;

	if (len <= 0)
		return 0;
	head[0] = (uint8_t)(len >> 24);
	head[1] = (uint8_t)(len >> 16);
	head[2] = (uint8_t)(len >> 8);
	head[3] = (uint8_t)len;
	if (!bytes_append(to, head, sizeof head, max) || !bytes_append(to, NULL, (size_t)len, max))
		return 0;
	der = to->data + to->len - (size_t)len;
	return ossl_fn.i2d_X509(x, &der) == len;
}

int certs_unpack(OSSL_LIB_CTX *lib, const uint8_t *packed, size_t len, X509 **leaf, OPENSSL_STACK *rest)
{
	size_t n;
	X509 *x;

	*leaf = NULL;
	for (; len > 0; packed += n, len -= n) {
		if (len < 4)
			return 0;
		n = (size_t)packed[0] << 24 | (size_t)packed[1] << 16 | (size_t)packed[2] << 8 | packed[3];
		packed += 4;
		len -= 4;
		x = n <= len ? cert_of(lib, packed, n) : NULL;
		if (!x)
			return 0;
		if (!*leaf) {
			*leaf = x;
		} else if (ossl_fn.OPENSSL_sk_push(rest, x) <= 0) {
			ossl_fn.X509_free(x);
			return 0;
		}
	}
	return *leaf != NULL;
}

ossl_cred *cred_of(OSSL_LIB_CTX *lib, const uint8_t *chain, size_t chain_len, const char *sigalgs, const uint8_t *staple,
	size_t staple_len, const uint8_t *scts, size_t scts_len)
{
	ossl_cred *cred = new_zeros(sizeof *cred);

	if (!cred)
		return NULL;
	cred->refs = 1;
	cred->chain = ossl_fn.OPENSSL_sk_new_null();
	cred->sigalgs = sigalgs ? copy_of(sigalgs, strlen(sigalgs) + 1) : NULL;
	cred->staple = copy_of(staple, staple_len);
	cred->staple_len = staple_len;
	cred->scts = copy_of(scts, scts_len);
	cred->scts_len = scts_len;
	if (!cred->chain || (sigalgs && !cred->sigalgs) || !cred->staple || !cred->scts)
		goto failed;
	if (certs_unpack(lib, chain, chain_len, &cred->leaf, cred->chain) &&
		cred_unlisted(cred, lib, chain + 4, (size_t)chain[0] << 24 | (size_t)chain[1] << 16 | (size_t)chain[2] << 8 | chain[3]))
		return cred;
failed:
	ossl_cred_free(cred);
	return NULL;
}

/*
 * Parses the private key that belongs to a certificate. Before 3.2 libcrypto collects the decoders
 * of all types of keys if the type is not given to it, which takes most of the time.
 */
static EVP_PKEY *private_key(OSSL_LIB_CTX *lib, X509 *leaf, const uint8_t *key, size_t len)
{
	const unsigned char *p = key;
	EVP_PKEY *public, *private = NULL;
	int type;

	if (!ossl_fn.d2i_PrivateKey_ex)
		return ossl_fn.d2i_AutoPrivateKey(NULL, &p, (long)len);
	public = ossl_fn.X509_get_pubkey(leaf);
	type = public ? ossl_fn.EVP_PKEY_get_base_id(public) : 0;
	ossl_fn.EVP_PKEY_free(public); /* takes NULL */
	if (type > 0)
		private = ossl_fn.d2i_PrivateKey_ex(type, NULL, &p, (long)len, lib, NULL);
	if (is_whole_key(private))
		return private;
	ossl_fn.EVP_PKEY_free(private); /* takes NULL */
	p = key;
	return ossl_fn.d2i_AutoPrivateKey_ex(NULL, &p, (long)len, lib, NULL);
}

ossl_cred *ossl_cred_new(int fips, const uint8_t *chain, size_t chain_len, const uint8_t *key, size_t key_len,
	const char *sigalgs, const uint8_t *staple, size_t staple_len, const uint8_t *scts, size_t scts_len, unsigned long *errors)
{
	OSSL_LIB_CTX *lib = fips ? fips_library() : NULL;
	ossl_cred *cred;

	ossl_fn.ERR_clear_error();
	cred = cred_of(lib, chain, chain_len, sigalgs, staple, staple_len, scts, scts_len);
	if (cred) {
		cred->key = private_key(lib, cred->leaf, key, key_len);
		cred->movable = !fips;
		if (!fips && cred->key && ossl_slim_library()) {
			cred->key = slim_own_key(cred->key, 0);
			if (ossl_fn.EVP_PKEY_up_ref(cred->key) == 1)
				cred->moved[0] = cred->key;
		}
		if (!cred->key) {
			ossl_cred_free(cred);
			cred = NULL;
		}
	}
	return cred_made(cred, errors);
}

ossl_cred *cred_made(ossl_cred *cred, unsigned long *errors)
{
	if (!ossl_drain_errors(errors) || !cred)
		return cred;
	ossl_cred_free(cred);
	return NULL;
}

void ossl_cred_set_identity(ossl_cred *cred, const uint8_t *id) { memcpy(cred->identity, id, sizeof cred->identity); }

void ossl_cred_free(ossl_cred *cred)
{
	int i;

	if (__atomic_sub_fetch(&cred->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	ossl_fn.X509_free(cred->leaf);
	ossl_fn.X509_free(cred->unlisted);
	ossl_fn.EVP_PKEY_free(cred->key);
	for (i = 0; i < OSSL_MAX_SHARDS; i++)
		ossl_fn.EVP_PKEY_free(cred->moved[i]); /* takes NULL */
	if (cred->chain)
		ossl_fn.OPENSSL_sk_pop_free(cred->chain, free_cert);
	free(cred->sigalgs);
	free(cred->staple);
	free(cred->scts);
	free(cred);
}
