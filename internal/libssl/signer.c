/* Credentials whose key only Go can use, and the call to Go for a signature. */

#include "signer.h"

size_t ossl_sign(uintptr_t signer, int algorithm, int hash, int form, const uint8_t *tbs, size_t tbs_len, uint8_t *sig,
	size_t cap)
{
	conn *c = occupant();
	size_t n;

	if (!c || !c->may_ask)
		return 0;
	c->pub.signer = signer;
	c->pub.sign_algorithm = algorithm;
	c->pub.sign_hash = hash;
	c->pub.sign_form = form;
	c->pub.signature = sig;
	c->pub.signature_cap = cap;
	n = ask_go(c, OSSL_NEED_SIGN, tbs, tbs_len) ? c->pub.answer : 0;
	c->pub.signature = NULL;
	return n <= cap ? n : 0;
}

ossl_cred *ossl_cred_new_signer(const uint8_t *chain, size_t chain_len, uintptr_t signer, const char *sigalgs,
	const uint8_t *staple, size_t staple_len, const uint8_t *scts, size_t scts_len, unsigned long *errors)
{
	ossl_cred *cred;
	EVP_PKEY *pub = NULL;

	ossl_fn.ERR_clear_error();
	cred = cred_of(NULL, chain, chain_len, sigalgs, staple, staple_len, scts, scts_len);
	if (cred) {
		pub = ossl_fn.X509_get_pubkey(cred->leaf);
		if (pub) {
			if (ossl_fn.OSSL_PROVIDER_add_builtin)
				cred->key = ossl_provider_key(pub, signer, 0);
			else
				cred->key = ossl_engine_key(pub, signer);
		}
		ossl_fn.EVP_PKEY_free(pub);
		cred->signer = signer;
		cred->in_go = 1;
		if (!cred->key) {
			ossl_cred_free(cred);
			cred = NULL;
		}
	}
	return cred_made(cred, errors);
}
