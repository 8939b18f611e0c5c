/*
 * The client and the server of connections: their keys, certificates and configurations, and the
 * part of each in an operation.
 */

#include "floor.h"

#include <stdlib.h>
#include <string.h>

/* As in package bench. */
static const char server_name[] = "bench.example";
static const char ping[] = "PING\n", pong[] = "PONG\n";
enum { ECHO = 5 };

/* Keys and certificates. */

typedef struct {
	X509 *cert;
	EVP_PKEY *key;
} identity;

static X509_NAME *new_name(const char *common_name)
{
	X509_NAME *name = floor_fn.X509_NAME_new();

	must(name && floor_fn.X509_NAME_add_entry_by_txt(name, "CN", (int)FLOOR_MBSTRING_ASC, (const unsigned char *)common_name, -1, -1,
		0) == 1, "X509_NAME_add_entry_by_txt");
	return name;
}

static void add_extension(X509 *x, int64_t nid, const char *value)
{
	X509_EXTENSION *extension = floor_fn.X509V3_EXT_nconf_nid(NULL, NULL, (int)nid, value);

	must(extension && floor_fn.X509_add_ext(x, extension, -1) == 1, "X509_add_ext");
	floor_fn.X509_EXTENSION_free(extension);
}

static void set_time(X509 *x, int (*set)(X509 *, const ASN1_TIME *), long seconds)
{
	ASN1_TIME *t = floor_fn.X509_gmtime_adj(NULL, seconds);

	must(t && set(x, t) == 1, "a certificate's time");
	floor_fn.ASN1_TIME_free(t);
}

static const char issuer_name[] = "ossl bench CA";

/*
 * Makes a leaf in the form and size of package bench's leaves. It is signed by its own key; neither
 * side verifies that.
 */
static identity new_identity(const char *kind, int server)
{
	identity id = {ossl_fn.X509_new_ex(NULL, NULL), NULL};
	X509_NAME *subject = new_name(server_name), *issuer = new_name(issuer_name);
	EVP_MD *digest = ossl_fn.EVP_MD_fetch(NULL, "SHA2-256", NULL);

	if (strcmp(kind, "P256") == 0)
		id.key = floor_fn.EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	else
		id.key = floor_fn.EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
	must(id.cert && id.key, "EVP_PKEY_Q_keygen");
	must(floor_fn.X509_set_version(id.cert, 2) == 1, "X509_set_version"); /* 2 is v3 */
	must(floor_fn.ASN1_INTEGER_set(floor_fn.X509_get_serialNumber(id.cert), server ? 2 : 3) == 1, "ASN1_INTEGER_set");
	must(floor_fn.X509_set_issuer_name(id.cert, issuer) == 1, "X509_set_issuer_name");
	must(floor_fn.X509_set_subject_name(id.cert, subject) == 1, "X509_set_subject_name");
	set_time(id.cert, floor_fn.X509_set1_notBefore, -3600);
	set_time(id.cert, floor_fn.X509_set1_notAfter, 24 * 3600);
	must(floor_fn.X509_set_pubkey(id.cert, id.key) == 1, "X509_set_pubkey");
	add_extension(id.cert, FLOOR_NID_key_usage, "critical,digitalSignature");
	add_extension(id.cert, FLOOR_NID_ext_key_usage, server ? "serverAuth" : "clientAuth");
	add_extension(id.cert, FLOOR_NID_authority_key_identifier, "DER:30168014000102030405060708090A0B0C0D0E0F10111213"); /* any */
	add_extension(id.cert, FLOOR_NID_subject_alt_name, "DNS:bench.example");
	must(digest && floor_fn.X509_sign(id.cert, id.key, digest) > 0, "X509_sign");
	ossl_fn.EVP_MD_free(digest);
	ossl_fn.X509_NAME_free(subject);
	ossl_fn.X509_NAME_free(issuer);
	return id;
}

/*
 * Returns the process's certificate of a kind, which is kept, so that rows that are compared have
 * the same.
 */
static identity identity_of(const char *kind, int server)
{
	static identity kept[2][2];
	identity *id = &kept[strcmp(kind, "P256") == 0][server];

	if (!id->cert)
		*id = new_identity(kind, server);
	return *id;
}

/* Configurations. */

/*
 * Accepts any chain: the row measures only the proofs of the TLS protocol itself, as if ossl finds
 * the chain in its cache.
 */
static int accept_chain(X509_STORE_CTX *x, void *arg)
{
	(void)x;
	(void)arg;
	return 1;
}

/* Keeps a client's newest session; the return value 1 takes ownership. */
static int keep_session(SSL *ssl, SSL_SESSION *session)
{
	ends *e = ossl_fn.SSL_get_ex_data(ssl, 0);

	if (e->session)
		ossl_fn.SSL_SESSION_free(e->session);
	e->session = session;
	return 1;
}

static void set_verify(SSL_CTX *s, int mode)
{
	floor_fn.SSL_CTX_set_verify(s, mode, NULL);
	ossl_fn.SSL_CTX_set_cert_verify_callback(s, accept_chain, NULL);
}

/* Sets the authorities that a server names when it requests certificates. */
static void set_issuers(SSL_CTX *s)
{
	OPENSSL_STACK *names = ossl_fn.OPENSSL_sk_new_null();

	must(names && ossl_fn.OPENSSL_sk_push(names, new_name(issuer_name)) > 0, "OPENSSL_sk_push");
	ossl_fn.SSL_CTX_set_client_CA_list(s, (struct stack_st_X509_NAME *)names); /* takes ownership */
}

/* Returns TLS 1.2's suite that crypto/tls and libssl agree on by default, by OpenSSL's name. */
static const char *suite_1_2(const row *r)
{
	return strcmp(r->cert, "P256") == 0 ? "ECDHE-ECDSA-AES128-GCM-SHA256" : "ECDHE-RSA-AES128-GCM-SHA256";
}

/* The same settings as in internal/libssl/context.c and session.c. */
static SSL_CTX *new_ctx(const row *r, int server)
{
	static const unsigned char sid_context[] = "floor";
	SSL_CTX *s = ossl_fn.SSL_CTX_new(ossl_fn.TLS_method());
	/* For TLS 1.2, libssl takes the group of ECDSA certificates from the same list. */
	const char *groups = r->version == OSSL_TLS1_2_VERSION && strcmp(r->cert, "P256") == 0 ? "X25519:P-256" : "X25519";
	long cache = (long)(OSSL_SSL_SESS_CACHE_NO_INTERNAL | OSSL_SSL_SESS_CACHE_NO_AUTO_CLEAR);

	must(s != NULL, "SSL_CTX_new");
	ossl_fn.SSL_CTX_ctrl(s, (int)OSSL_SSL_CTRL_MODE,
		(long)(OSSL_SSL_MODE_AUTO_RETRY | OSSL_SSL_MODE_NO_AUTO_CHAIN | OSSL_SSL_MODE_RELEASE_BUFFERS), NULL);
	ossl_fn.SSL_CTX_set_options(s, (uint64_t)(OSSL_SSL_OP_NO_COMPRESSION | OSSL_SSL_OP_PRIORITIZE_CHACHA |
		OSSL_SSL_OP_CIPHER_SERVER_PREFERENCE | OSSL_SSL_OP_NO_RENEGOTIATION));
	if (ossl_fn.OpenSSL_version_num() >= OSSL_V3_2) /* neither ossl nor crypto/tls compresses certificates */
		ossl_fn.SSL_CTX_set_options(s, OSSL_SSL_OP_NO_TX_CERTIFICATE_COMPRESSION | OSSL_SSL_OP_NO_RX_CERTIFICATE_COMPRESSION);
	must(ossl_fn.SSL_CTX_ctrl(s, (int)OSSL_SSL_CTRL_SET_MIN_PROTO_VERSION, r->version, NULL) == 1, "minimum version");
	must(ossl_fn.SSL_CTX_ctrl(s, (int)OSSL_SSL_CTRL_SET_MAX_PROTO_VERSION, r->version, NULL) == 1, "maximum version");
	must(ossl_fn.SSL_CTX_set_ciphersuites(s, "TLS_AES_128_GCM_SHA256") == 1, "SSL_CTX_set_ciphersuites");
	must(ossl_fn.SSL_CTX_set_cipher_list(s, suite_1_2(r)) == 1, "SSL_CTX_set_cipher_list");
	must(ossl_fn.SSL_CTX_ctrl(s, (int)OSSL_SSL_CTRL_SET_GROUPS_LIST, 0, (void *)groups) == 1, "groups");
	must(ossl_fn.SSL_CTX_set_session_id_context(s, sid_context, sizeof sid_context - 1) == 1, "SSL_CTX_set_session_id_context");
	must(ossl_fn.SSL_CTX_set_num_tickets(s, r->resume ? 1 : 0) == 1, "SSL_CTX_set_num_tickets");
	if (!r->resume)
		ossl_fn.SSL_CTX_set_options(s, (uint64_t)OSSL_SSL_OP_NO_TICKET);
	if (r->resume && !server) {
		cache |= (long)OSSL_SSL_SESS_CACHE_CLIENT;
		ossl_fn.SSL_CTX_sess_set_new_cb(s, keep_session);
	}
	ossl_fn.SSL_CTX_ctrl(s, (int)OSSL_SSL_CTRL_SET_SESS_CACHE_MODE, cache, NULL);
	if (!server)
		set_verify(s, (int)OSSL_SSL_VERIFY_PEER);
	if (server && r->mutual) {
		set_verify(s, (int)(OSSL_SSL_VERIFY_PEER | OSSL_SSL_VERIFY_FAIL_IF_NO_PEER_CERT));
		set_issuers(s);
	}
	if (server || r->mutual) {
		identity id = identity_of(r->cert, server);

		must(ossl_fn.SSL_CTX_use_cert_and_key(s, id.cert, id.key, NULL, 1) == 1, "SSL_CTX_use_cert_and_key");
	}
	return s;
}

ends *ends_new(const row *r)
{
	ends *e = calloc(1, sizeof *e);

	must(e != NULL, "calloc");
	e->row = r;
	e->server = new_ctx(r, 1);
	e->client = new_ctx(r, 0);
	return e;
}

void ends_free(ends *e)
{
	if (e->session)
		ossl_fn.SSL_SESSION_free(e->session);
	ossl_fn.SSL_CTX_free(e->server);
	ossl_fn.SSL_CTX_free(e->client);
	free(e);
}

/* Connections. */

enum { HANDSHAKE, READ, WRITE, DONE };

end end_open(ends *e, int server)
{
	end new = {ossl_fn.SSL_new(server ? e->server : e->client), e->row, server, HANDSHAKE};

	must(new.ssl != NULL, "SSL_new");
	if (server) {
		ossl_fn.SSL_set_accept_state(new.ssl);
		return new;
	}
	ossl_fn.SSL_set_connect_state(new.ssl);
	must(ossl_fn.SSL_ctrl(new.ssl, (int)OSSL_SSL_CTRL_SET_TLSEXT_HOSTNAME, (long)OSSL_TLSEXT_NAMETYPE_host_name,
		(void *)server_name) == 1, "server name");
	must(ossl_fn.SSL_set_ex_data(new.ssl, 0, e) == 1, "SSL_set_ex_data");
	if (e->session)
		must(ossl_fn.SSL_set_session(new.ssl, e->session) == 1, "SSL_set_session");
	return new;
}

/* Returns the stage after e's current one, which is done. */
static int next_stage(const end *e)
{
	if (e->stage == HANDSHAKE && e->row->connection)
		return e->server ? READ : WRITE;
	if (e->stage == (e->server ? READ : WRITE))
		return e->server ? WRITE : READ;
	return DONE;
}

int end_turn(end *e)
{
	const char *mine = e->server ? pong : ping, *peers = e->server ? ping : pong;

	while (e->stage != DONE) {
		char buf[ECHO];
		size_t n = 0;
		int ret;

		ossl_fn.ERR_clear_error();
		if (e->stage == HANDSHAKE)
			ret = ossl_fn.SSL_do_handshake(e->ssl);
		else if (e->stage == READ)
			ret = ossl_fn.SSL_read_ex(e->ssl, buf, sizeof buf, &n);
		else
			ret = ossl_fn.SSL_write_ex(e->ssl, mine, ECHO, &n);
		if (ret != 1) {
			if (ossl_fn.SSL_get_error(e->ssl, ret) == OSSL_SSL_ERROR_WANT_READ)
				return 0;
			fail(e->server ? "server" : "client");
		}
		if (e->stage != HANDSHAKE)
			must(n == ECHO, "a message was cut");
		if (e->stage == READ)
			must(memcmp(buf, peers, ECHO) == 0, "the peer sent something else");
		e->stage = next_stage(e);
	}
	return 1;
}

int end_check(const end *e)
{
	const row *r = e->row;
	const SSL_CIPHER *cipher = ossl_fn.SSL_get_current_cipher(e->ssl);
	int64_t suite = r->version == OSSL_TLS1_3_VERSION ? FLOOR_TLS1_3_CK_AES_128_GCM_SHA256
		: strcmp(r->cert, "P256") == 0 ? FLOOR_TLS1_CK_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
		: FLOOR_TLS1_CK_ECDHE_RSA_WITH_AES_128_GCM_SHA256;
	int resumed = ossl_fn.SSL_session_reused(e->ssl);

	must(e->stage == DONE, "an end is not done");
	must(ossl_fn.SSL_version(e->ssl) == r->version, "another version was negotiated");
	must(cipher && ossl_fn.SSL_CIPHER_get_protocol_id(cipher) == (suite & 0xffff), "another cipher suite was negotiated");
	/* TLS 1.2 resumes without a key exchange. */
	if (!resumed || r->version == OSSL_TLS1_3_VERSION)
		must(ossl_fn.SSL_ctrl(e->ssl, (int)FLOOR_SSL_CTRL_GET_NEGOTIATED_GROUP, 0, NULL) == FLOOR_NID_X25519,
			"another group was negotiated");
	must((floor_fn.SSL_get0_peer_certificate(e->ssl) != NULL) == (!e->server || r->mutual),
		e->server ? "the client's certificate" : "the server's certificate");
	return resumed;
}

void check_resumed(int wanted, int client, int server)
{
	must(client == wanted && server == wanted, wanted ? "a session was not resumed" : "a session was resumed");
}

void check_session(const ends *e) { must(!e->row->resume || e->session, "the first connection made no session"); }

void end_shutdown(end *e)
{
	char buf[1];
	size_t n;
	int ret;

	ossl_fn.ERR_clear_error();
	if (e->server) {
		ret = ossl_fn.SSL_read_ex(e->ssl, buf, sizeof buf, &n);
		must(ret != 1 && ossl_fn.SSL_get_error(e->ssl, ret) == OSSL_SSL_ERROR_ZERO_RETURN, "the client did not close");
	}
	must(ossl_fn.SSL_shutdown(e->ssl) == e->server, "SSL_shutdown"); /* 1 means that both have sent their close_notify */
}

void end_close(end *e)
{
	/* Otherwise libssl would forbid the resumption of its session. */
	ossl_fn.SSL_set_shutdown(e->ssl, (int)(OSSL_SSL_SENT_SHUTDOWN | OSSL_SSL_RECEIVED_SHUTDOWN));
	ossl_fn.SSL_free(e->ssl);
	e->ssl = NULL;
}
