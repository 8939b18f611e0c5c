/*
 * Certificates that are signed with ML-DSA, for peers that don't list it for certificates.
 *
 * A peer's signature_algorithms_cert should be honoured if the sender has a choice, and a sender
 * without one should send the certificate that it has: RFC 8446, sections 4.4.2.2 and 4.4.2.3. A
 * peer may trust it anyway: crypto/tls in Go 1.27 verifies ML-DSA, but omits it from that list,
 * because of middleboxes. libssl (t1_lib.c, check_cert_usable, up to 4.0) doesn't use such a
 * certificate at all, and has no setting for that. It compares the list with the algorithm that
 * X509_get_signature_info(3) returns, which libcrypto takes from the certificate once, when it
 * reads the extensions, and keeps.
 *
 * So such a credential has its leaf twice. The second one has another algorithm while its
 * extensions are read: ECDSA with a hash of the same strength, which peers that send a list have in
 * it. Then it gets its own algorithm back: both encode to the same bytes. It is used if the peer
 * sends a list that lacks the leaf's own algorithm. If the list lacks the other one too, libssl
 * refuses, as without this. Which certificate is sent is not a matter of security: its receiver
 * decides.
 */

#include "private.h"

#include <string.h>

/* X509_ALGOR of openssl/x509.h. */
struct X509_algor_st {
	ASN1_OBJECT *algorithm;
	void *parameter;
};

/* The signatures: the NID and TLS's code point, and the NID of the other one. */
static const struct {
	const int64_t *nid, *other;
	uint16_t scheme;
} signatures[] = {
	{&OSSL_NID_ML_DSA_44, &OSSL_NID_ecdsa_with_SHA256, 0x0904},
	{&OSSL_NID_ML_DSA_65, &OSSL_NID_ecdsa_with_SHA384, 0x0905},
	{&OSSL_NID_ML_DSA_87, &OSSL_NID_ecdsa_with_SHA512, 0x0906},
};

enum { KINDS = sizeof signatures / sizeof signatures[0] };

int cred_unlisted(ossl_cred *cred, OSSL_LIB_CTX *lib, const uint8_t *der, size_t len)
{
	const X509_ALGOR *signature = NULL;
	ASN1_OBJECT *own;
	size_t i = 0;
	int nid, read;
	X509 *x;

	if (ossl_fn.OpenSSL_version_num() < OSSL_V3_5) /* which has no ML-DSA, nor its NIDs */
		return 1;
	nid = ossl_fn.X509_get_signature_nid(cred->leaf);
	while (i < KINDS && *signatures[i].nid != nid)
		i++;
	if (i == KINDS)
		return 1;
	x = cert_unread(lib, der, len);
	if (!x)
		return 0;
	ossl_fn.X509_get0_signature(NULL, &signature, x);
	own = signature->algorithm;
	/* The pointer is const, but the object is not, and nobody else has it yet. Objects of libcrypto's
	 * own table are never freed. */
	((X509_ALGOR *)signature)->algorithm = ossl_fn.OBJ_nid2obj((int)*signatures[i].other);
	read = ossl_fn.X509_check_purpose(x, -1, 0); /* reads the extensions */
	((X509_ALGOR *)signature)->algorithm = own;
	if (read != 1 || (!ossl_fn.X509_get0_pubkey(x) && ossl_fn.X509_get0_pubkey(cred->leaf))) {
		ossl_fn.X509_free(x);
		if (ossl_fn.X509_check_purpose(cred->leaf, -1, 0) == 1) {
			raise_no_memory();
			return 0;
		}
		ossl_fn.ERR_clear_error(); /* they are malformed: without it, libssl reports that */
		return 1;
	}
	cred->unlisted = x;
	cred->leaf_scheme = signatures[i].scheme;
	return 1;
}

/* Notes which ML-DSA signatures a SignatureSchemeList has: RFC 8446, section 4.2.3. */
static void note_list(conn *c, const uint8_t *list, size_t len)
{
	size_t i, k;

	c->cert_list = LIST_SENT;
	if (len < 2 || (size_t)(list[0] << 8 | list[1]) != len - 2) /* libssl refuses it */
		return;
	for (i = 2; i + 1 < len; i += 2)
		for (k = 0; k < KINDS; k++)
			if ((list[i] << 8 | list[i + 1]) == signatures[k].scheme)
				c->cert_list |= (uint8_t)(1 << k);
}

X509 *leaf_for(const conn *c, const ossl_cred *cred)
{
	size_t k;

	if (!cred->unlisted || !(c->cert_list & LIST_SENT))
		return cred->leaf;
	for (k = 0; k < KINDS; k++)
		if (signatures[k].scheme == cred->leaf_scheme && (c->cert_list & 1 << k))
			return cred->leaf;
	return cred->unlisted;
}

/* Has the connection use the leaf that the peer's list asks for. Returns 1 or 0. */
static int use_leaf(conn *c, const ossl_cred *cred)
{
	X509 *leaf = leaf_for(c, cred);

	return leaf == cred->leaf ||
		ossl_fn.SSL_use_cert_and_key(c->ssl, leaf, cred->key, (struct stack_st_X509 *)cred->chain, 1) == 1;
}

int unlisted_hello(conn *c)
{
	const ossl_cred *cred = c->cred ? c->cred : c->ctx->cred;
	const uint8_t *list;
	size_t len;

	if (!cred || !cred->unlisted ||
		ossl_fn.SSL_client_hello_get0_ext(c->ssl, (unsigned)OSSL_TLSEXT_TYPE_signature_algorithms_cert, &list, &len) != 1)
		return 1;
	note_list(c, list, len);
	return use_leaf(c, cred);
}

/* Returns the first n bytes of what is left, or NULL if that has fewer. */
static const uint8_t *take(const uint8_t **p, size_t *left, size_t n)
{
	const uint8_t *taken = *p;

	if (n > *left)
		return NULL;
	*p += n;
	*left -= n;
	return taken;
}

void unlisted_request(conn *c, const uint8_t *message, size_t len)
{
	const uint8_t *p = message, *head, *body;
	size_t n;

	/* The message's header, a context, and extensions: RFC 8446, section 4.3.2. libssl refuses a
	 * malformed message. */
	if (ossl_fn.SSL_version(c->ssl) < OSSL_TLS1_3_VERSION || !take(&p, &len, 4) || !(head = take(&p, &len, 1)) ||
		!take(&p, &len, head[0]) || !take(&p, &len, 2))
		return;
	while ((head = take(&p, &len, 4))) {
		n = (size_t)(head[2] << 8 | head[3]);
		body = take(&p, &len, n);
		if (!body)
			return;
		if ((head[0] << 8 | head[1]) == OSSL_TLSEXT_TYPE_signature_algorithms_cert)
			note_list(c, body, n);
	}
	/* If this fails, the leaf as it is stays in use. Without a static credential Go chooses one. */
	if (c->ctx->cred && !c->cred)
		use_leaf(c, c->ctx->cred);
}
