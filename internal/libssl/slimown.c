/*
 * Own private keys in the slim library context (slim.c).
 *
 * libssl signs with a copy that libcrypto makes of a key of the default library context. But the
 * key still belongs to the default context: when libssl asks for its type, libcrypto 3.0 searches
 * the whole table of that context's names, which nothing else of a handshake uses. So the key
 * itself is moved.
 *
 * That is done with EC and RSA keys, of which both contexts have the same implementation. A key
 * that can't be exported, or is of another type, stays where it is, and serves all shards. A
 * credential that was made before the slim context also has its first key, which connections may
 * use, and moves a copy; each further shard gets a copy when it first needs one.
 */

#include "provider.h"
#include "signer.h"
#include "slim.h"

typedef struct {
	OSSL_LIB_CTX *library;
	const char *type;
	EVP_PKEY *key; /* the result, or NULL */
} move;

/* EVP_PKEY_export(3) calls it with the key's numbers. */
static int import(const OSSL_PARAM *params, void *arg)
{
	move *m = arg;
	EVP_PKEY_CTX *ctx = ossl_fn.EVP_PKEY_CTX_new_from_name(m->library, m->type, NULL);
	int ok = ctx && ossl_fn.EVP_PKEY_fromdata_init(ctx) == 1 &&
		ossl_fn.EVP_PKEY_fromdata(ctx, &m->key, (int)OSSL_EVP_PKEY_KEYPAIR, (OSSL_PARAM *)params) == 1;

	ossl_fn.EVP_PKEY_CTX_free(ctx);
	return ok;
}

EVP_PKEY *slim_own_key(EVP_PKEY *key, int shard)
{
	move m = {slim_library(shard), NULL, NULL};

	if (!m.library)
		return key;
	switch (ossl_fn.EVP_PKEY_get_base_id(key)) {
	case OSSL_EVP_PKEY_EC:
		m.type = "EC";
		break;
	case OSSL_EVP_PKEY_RSA:
		m.type = "RSA";
		break;
	default:
		return key;
	}
	if (ossl_fn.EVP_PKEY_export(key, (int)OSSL_EVP_PKEY_KEYPAIR, import, &m) == 1 && m.key && ossl_fn.EVP_PKEY_eq(m.key, key) == 1) {
		ossl_fn.EVP_PKEY_free(key);
		return m.key;
	}
	ossl_fn.EVP_PKEY_free(m.key); /* takes NULL */
	return key; /* the errors are left to the caller, who doesn't keep it if memory was short */
}

/* Returns a key for a shard: a copy, another key for the same signer in Go, or the same key. Give, or NULL. */
static EVP_PKEY *key_in(ossl_cred *cred, int shard)
{
	EVP_PKEY *key, *pub;

	if (!cred->in_go)
		return ossl_fn.EVP_PKEY_up_ref(cred->key) == 1 ? slim_own_key(cred->key, shard) : NULL;
	pub = ossl_fn.X509_get_pubkey(cred->leaf);
	key = pub ? ossl_provider_key(pub, cred->signer, shard) : NULL;
	ossl_fn.EVP_PKEY_free(pub); /* takes NULL */
	return key;
}

EVP_PKEY *cred_key(ossl_cred *cred, const ossl_ctx *ctx)
{
	unsigned long errors[OSSL_MAX_ERRORS];
	EVP_PKEY *moved, *none = NULL;

	if (!ctx->slim || !(cred->movable || (cred->in_go && ctx->shard > 0)))
		return cred->key;
	moved = __atomic_load_n(&cred->moved[ctx->shard], __ATOMIC_ACQUIRE);
	if (moved)
		return moved;
	moved = key_in(cred, ctx->shard);
	if (ossl_drain_errors(errors) || !moved) { /* the key as it is serves too, and the next connection tries again */
		ossl_fn.EVP_PKEY_free(moved); /* takes NULL */
		return cred->key;
	}
	if (__atomic_compare_exchange_n(&cred->moved[ctx->shard], &none, moved, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return moved;
	ossl_fn.EVP_PKEY_free(moved); /* another thread was quicker */
	return none;
}
