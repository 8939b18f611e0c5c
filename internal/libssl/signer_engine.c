/*
 * Keys in Go for OpenSSL 1.1.1, which has no providers: an engine whose methods for RSA and EC keys
 * are libcrypto's own except for signing. It is never registered, so only keys that name it use it.
 * An Ed25519 key has no ex_data for its signer, and 1.1.1 up to d has no method to replace
 * (EVP_PKEY_meth_set_digestsign); this kind is refused.
 */

#include "signer.h"

#include <pthread.h>
#include <stdlib.h>

static struct {
	ENGINE *engine;
	EVP_PKEY_METHOD *rsa, *ec;
	int rsa_index, ec_index; /* the ex_data with the keys' signers */
} made; /* guarded by made_mu; fixed once engine is set */
static pthread_mutex_t made_mu = PTHREAD_MUTEX_INITIALIZER;

/* Returns Go's number of the context's hash function, GO_NO_HASH if TLS doesn't sign with it. */
static int hash_of(EVP_PKEY_CTX *ctx)
{
	const EVP_MD *md = NULL;
	int type;

	if (ossl_fn.EVP_PKEY_CTX_ctrl(ctx, -1, -1, (int)OSSL_EVP_PKEY_CTRL_GET_MD, 0, &md) != 1 || !md)
		return GO_NO_HASH;
	type = ossl_fn.EVP_MD_type(md);
	if (type == OSSL_NID_sha256)
		return GO_SHA256;
	if (type == OSSL_NID_sha384)
		return GO_SHA384;
	if (type == OSSL_NID_sha512)
		return GO_SHA512;
	if (type == OSSL_NID_sha224)
		return GO_SHA224;
	return type == OSSL_NID_sha1 ? GO_SHA1 : GO_NO_HASH;
}

static int sign(EVP_PKEY_CTX *ctx, int algorithm, void *signer, unsigned char *sig, size_t *len, const unsigned char *digest,
	size_t digest_len)
{
	size_t max = (size_t)ossl_fn.EVP_PKEY_size(ossl_fn.EVP_PKEY_CTX_get0_pkey(ctx));
	int hash = hash_of(ctx);

	if (!sig) {
		*len = max;
		return 1;
	}
	if (hash == GO_NO_HASH || !signer)
		return 0;
	*len = ossl_sign((uintptr_t)signer, algorithm, hash, SIGN_DIGEST, digest, digest_len, sig, *len < max ? *len : max);
	return *len > 0;
}

/* EVP_PKEY_meth_set_sign(3). */

static int sign_rsa(EVP_PKEY_CTX *ctx, unsigned char *sig, size_t *len, const unsigned char *digest, size_t digest_len)
{
	RSA *rsa = ossl_fn.EVP_PKEY_get0_RSA(ossl_fn.EVP_PKEY_CTX_get0_pkey(ctx));
	int padding = 0, salt = 0, algorithm = SIGN_RSA_PKCS1;

	if (ossl_fn.EVP_PKEY_CTX_ctrl(ctx, -1, -1, (int)OSSL_EVP_PKEY_CTRL_GET_RSA_PADDING, 0, &padding) != 1)
		return 0;
	if (padding == OSSL_RSA_PKCS1_PSS_PADDING) {
		/* TLS uses one length of salt: RFC 8446, section 4.2.3. */
		if (ossl_fn.EVP_PKEY_CTX_ctrl(ctx, -1, -1, (int)OSSL_EVP_PKEY_CTRL_GET_RSA_PSS_SALTLEN, 0, &salt) != 1 ||
			salt != OSSL_RSA_PSS_SALTLEN_DIGEST)
			return 0;
		algorithm = SIGN_RSA_PSS;
	} else if (padding != OSSL_RSA_PKCS1_PADDING) {
		return 0;
	}
	return sign(ctx, algorithm, ossl_fn.RSA_get_ex_data(rsa, made.rsa_index), sig, len, digest, digest_len);
}

static int sign_ec(EVP_PKEY_CTX *ctx, unsigned char *sig, size_t *len, const unsigned char *digest, size_t digest_len)
{
	EC_KEY *ec = ossl_fn.EVP_PKEY_get0_EC_KEY(ossl_fn.EVP_PKEY_CTX_get0_pkey(ctx));

	return sign(ctx, SIGN_ECDSA, ossl_fn.EC_KEY_get_ex_data(ec, made.ec_index), sig, len, digest, digest_len);
}

/* ENGINE_set_pkey_meths: if method is NULL, it lists the kinds. */
static int methods(ENGINE *e, EVP_PKEY_METHOD **method, const int **kinds, int kind)
{
	static int all[2];

	(void)e;
	if (!method) {
		all[0] = (int)OSSL_EVP_PKEY_RSA;
		all[1] = (int)OSSL_EVP_PKEY_EC;
		*kinds = all;
		return 2;
	}
	*method = kind == OSSL_EVP_PKEY_RSA ? made.rsa : kind == OSSL_EVP_PKEY_EC ? made.ec : NULL;
	return *method != NULL;
}

/* Returns libcrypto's own method for a kind of key, with sign for signatures. */
static EVP_PKEY_METHOD *method_of(int kind,
	int (*sign)(EVP_PKEY_CTX *, unsigned char *, size_t *, const unsigned char *, size_t))
{
	const EVP_PKEY_METHOD *own = ossl_fn.EVP_PKEY_meth_find(kind);
	EVP_PKEY_METHOD *m = own ? ossl_fn.EVP_PKEY_meth_new(kind, 0) : NULL;

	if (!m)
		return NULL;
	ossl_fn.EVP_PKEY_meth_copy(m, own);
	ossl_fn.EVP_PKEY_meth_set_sign(m, NULL, sign);
	ossl_fn.EVP_PKEY_meth_set_decrypt(m, NULL, NULL); /* there is no private half */
	return m;
}

/*
 * Makes the engine at first use. It is kept, since keys may outlive all other users. Returns it or
 * NULL.
 */
static ENGINE *signer_engine(void)
{
	ENGINE *e;

	pthread_mutex_lock(&made_mu);
	if (!made.engine) {
		if (!made.rsa_index) /* these can't be released; 0 is libcrypto's own */
			made.rsa_index = ossl_fn.CRYPTO_get_ex_new_index((int)OSSL_CRYPTO_EX_INDEX_RSA, 0, NULL, NULL, NULL, NULL);
		if (!made.ec_index)
			made.ec_index = ossl_fn.CRYPTO_get_ex_new_index((int)OSSL_CRYPTO_EX_INDEX_EC_KEY, 0, NULL, NULL, NULL, NULL);
		if (!made.rsa)
			made.rsa = method_of((int)OSSL_EVP_PKEY_RSA, sign_rsa);
		if (!made.ec)
			made.ec = method_of((int)OSSL_EVP_PKEY_EC, sign_ec);
		e = made.rsa_index > 0 && made.ec_index > 0 && made.rsa && made.ec ? ossl_fn.ENGINE_new() : NULL;
		if (e && ossl_fn.ENGINE_set_id(e, "ossl-signer") == 1 && ossl_fn.ENGINE_set_pkey_meths(e, methods) == 1)
			made.engine = e;
		else if (e)
			ossl_fn.ENGINE_free(e);
	}
	e = made.engine;
	pthread_mutex_unlock(&made_mu);
	return e;
}

EVP_PKEY *ossl_engine_key(EVP_PKEY *pub, uintptr_t signer)
{
	ENGINE *engine = signer_engine();
	EVP_PKEY *key = NULL;
	const unsigned char *p;
	unsigned char *der = NULL;
	int kind = ossl_fn.EVP_PKEY_id(pub), len, ok = 0;

	if (!engine || (kind != OSSL_EVP_PKEY_RSA && kind != OSSL_EVP_PKEY_EC))
		return NULL;
	/* A copy: pub belongs to the certificate, and others verify with it. */
	len = ossl_fn.i2d_PUBKEY(pub, &der);
	p = der;
	key = len > 0 ? ossl_fn.d2i_PUBKEY(NULL, &p, len) : NULL;
	if (der)
		ossl_fn.CRYPTO_free(der, __FILE__, __LINE__);
	if (!key)
		return NULL;
	if (kind == OSSL_EVP_PKEY_RSA)
		ok = ossl_fn.RSA_set_ex_data(ossl_fn.EVP_PKEY_get0_RSA(key), made.rsa_index, (void *)signer);
	else
		ok = ossl_fn.EC_KEY_set_ex_data(ossl_fn.EVP_PKEY_get0_EC_KEY(key), made.ec_index, (void *)signer);
	if (ok == 1 && ossl_fn.EVP_PKEY_set1_engine(key, engine) == 1)
		return key;
	ossl_fn.EVP_PKEY_free(key);
	return NULL;
}
