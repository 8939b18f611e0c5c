/* Credentials whose key only Go can use, and the way into Go to sign with it. */

#include "schedule.h"
#include "signer.h"

_Thread_local conn *ossl_signing_for;

occupation ossl_set_aside(void)
{
	occupation o = {ossl_signing_for, schedule_observe(NULL)};

	ossl_signing_for = NULL;
	return o;
}

void ossl_put_back(occupation o)
{
	ossl_signing_for = o.signing;
	schedule_observe(o.observed);
}

int ossl_occupied(void)
{
	occupation o = ossl_set_aside();

	ossl_put_back(o);
	return o.signing || o.observed;
}

/* A callback into Go: signer_cgo.go. tbs is borrowed. Returns the length of the signature in sig, 0 for none. */
extern size_t osslGoSign(uintptr_t go, uintptr_t signer, int32_t algorithm, int32_t hash, int32_t form, const uint8_t *tbs,
	size_t tbs_len, uint8_t *sig, size_t cap);

size_t ossl_sign(uintptr_t signer, int algorithm, int hash, int form, const uint8_t *tbs, size_t tbs_len, uint8_t *sig,
	size_t cap)
{
	conn *c = ossl_signing_for;
	occupation o;
	size_t n;

	/* Every other crossing is marked nocallback: a call into Go from it would end the process. */
	if (!c || !c->go)
		return 0;
	c->pub.version = ossl_fn.SSL_version(c->ssl); /* a failure's error depends on it */
	o = ossl_set_aside();
	n = osslGoSign(c->go, signer, algorithm, hash, form, tbs, tbs_len, sig, cap);
	ossl_put_back(o);
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
				cred->key = ossl_provider_key(pub, signer);
			else
				cred->key = ossl_engine_key(pub, signer);
		}
		ossl_fn.EVP_PKEY_free(pub);
		if (!cred->key) {
			ossl_cred_free(cred);
			cred = NULL;
		}
	}
	ossl_drain_errors(errors);
	return cred;
}
