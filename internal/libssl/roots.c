/* Chains verified by libcrypto, for FIPS mode: fips.h. */

#include "fips.h"
#include "private.h"

#include <stdlib.h>
#include <string.h>

/* A store is not changed once it is in use. From then on any number of threads may use it. */
struct ossl_roots {
	X509_STORE *store;
	OSSL_LIB_CTX *lib;
};

static void free_cert(void *cert) { ossl_fn.X509_free(cert); }

ossl_roots *ossl_roots_new(int system, unsigned long *errors)
{
	ossl_roots *roots;
	int ok;

	ossl_fn.ERR_clear_error();
	roots = new_zeros(sizeof *roots);
	if (!roots || !fips_ready())
		goto failed;
	roots->lib = fips_library();
	roots->store = ossl_fn.X509_STORE_new();
	if (!roots->store)
		goto failed;
	if (system) {
		ok = roots->lib ? ossl_fn.X509_STORE_set_default_paths_ex(roots->store, roots->lib, NULL)
						: ossl_fn.X509_STORE_set_default_paths(roots->store);
		if (ok != 1)
			goto failed;
	}
	ossl_fn.ERR_clear_error();
	return roots;

failed:
	ossl_drain_errors(errors);
	ossl_roots_free(roots);
	return NULL;
}

void ossl_roots_free(ossl_roots *roots)
{
	if (!roots)
		return;
	ossl_fn.X509_STORE_free(roots->store); /* takes NULL */
	free(roots);
}

int ossl_roots_add(ossl_roots *roots, const uint8_t *der, size_t len, unsigned long *errors)
{
	X509 *x;
	int ok;

	ossl_fn.ERR_clear_error();
	x = cert_of(roots->lib, der, len);
	ok = x && ossl_fn.X509_STORE_add_cert(roots->store, x) == 1; /* takes a reference; adding a certificate twice is not an error */
	ossl_fn.X509_free(x);
	if (!ok)
		ossl_drain_errors(errors);
	return ok;
}

/*
 * Sets the rules of crypto/x509: every certificate in the store is an anchor, required policies
 * must be present, only subjectAltName has names, and a wildcard is a whole label.
 */
static int prepare(X509_STORE_CTX *ctx, const ossl_roots_query *q)
{
	X509_VERIFY_PARAM *param = ossl_fn.X509_STORE_CTX_get0_param(ctx);

	if (sizeof(time_t) < 8) /* libcrypto's may have another width: Debian's 32-bit ports since 13 */
		return 0;
	if (!param || ossl_fn.X509_STORE_CTX_set_purpose(ctx,
		(int)(q->of_server ? OSSL_X509_PURPOSE_SSL_SERVER : OSSL_X509_PURPOSE_SSL_CLIENT)) != 1)
		return 0;
	if (ossl_fn.X509_VERIFY_PARAM_set_flags(param,
		(unsigned long)(OSSL_X509_V_FLAG_PARTIAL_CHAIN | OSSL_X509_V_FLAG_POLICY_CHECK)) != 1)
		return 0;
	ossl_fn.X509_VERIFY_PARAM_set_time(param, (time_t)q->time);
	ossl_fn.X509_VERIFY_PARAM_set_auth_level(param, q->level);
	ossl_fn.X509_VERIFY_PARAM_set_hostflags(param,
		(unsigned)(OSSL_X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | OSSL_X509_CHECK_FLAG_NEVER_CHECK_SUBJECT));
	if (q->host && ossl_fn.X509_VERIFY_PARAM_set1_host(param, q->host, strlen(q->host)) != 1)
		return 0;
	return !q->ip || ossl_fn.X509_VERIFY_PARAM_set1_ip(param, q->ip, q->ip_len) == 1;
}

enum { MAX_CHAIN = 1 << 24 };

/* Packs the verified chain. Returns 1 or 0. */
static int pack(X509_STORE_CTX *ctx, ossl_roots_answer *answer)
{
	OPENSSL_STACK *chain = (OPENSSL_STACK *)ossl_fn.X509_STORE_CTX_get0_chain(ctx);
	int i, n = chain ? ossl_fn.OPENSSL_sk_num(chain) : 0;
	bytes packed = {0};

	for (i = 0; i < n; i++)
		if (!cert_pack(&packed, ossl_fn.OPENSSL_sk_value(chain, i), MAX_CHAIN)) {
			bytes_free(&packed);
			return 0;
		}
	answer->chain = packed.data;
	answer->chain_len = packed.len;
	return n > 0;
}

ossl_roots_answer ossl_roots_verify(const ossl_roots *roots, const uint8_t *packed, size_t len, const ossl_roots_query *query)
{
	ossl_roots_answer answer = {.error = -1};
	OPENSSL_STACK *untrusted;
	X509_STORE_CTX *ctx = NULL;
	X509 *leaf = NULL;

	ossl_fn.ERR_clear_error();
	untrusted = ossl_fn.OPENSSL_sk_new_null();
	if (!untrusted || !certs_unpack(roots->lib, packed, len, &leaf, untrusted))
		goto done;
	ctx = roots->lib ? ossl_fn.X509_STORE_CTX_new_ex(roots->lib, NULL) : ossl_fn.X509_STORE_CTX_new();
	if (!ctx || ossl_fn.X509_STORE_CTX_init(ctx, roots->store, leaf, (struct stack_st_X509 *)untrusted) != 1 || !prepare(ctx, query))
		goto done;
	/* Both the result and the error count: X509_verify_cert(3). */
	if (ossl_fn.X509_verify_cert(ctx) == 1) {
		if (ossl_fn.X509_STORE_CTX_get_error(ctx) == OSSL_X509_V_OK && pack(ctx, &answer))
			answer.error = (int32_t)OSSL_X509_V_OK;
	} else {
		if (ossl_fn.X509_STORE_CTX_get_error(ctx) == OSSL_X509_V_ERR_OUT_OF_MEM)
			raise_no_memory();
		answer.error = ossl_fn.X509_STORE_CTX_get_error(ctx);
		if (answer.error == OSSL_X509_V_OK)
			answer.error = -1;
		answer.depth = ossl_fn.X509_STORE_CTX_get_error_depth(ctx);
	}
done:
	ossl_fn.X509_STORE_CTX_free(ctx); /* takes NULL */
	if (untrusted)
		ossl_fn.OPENSSL_sk_pop_free(untrusted, free_cert);
	ossl_fn.X509_free(leaf); /* takes NULL */
	answer.no_memory = ossl_drain_errors(answer.errors) && answer.error != OSSL_X509_V_OK;
	return answer;
}

int ossl_fips_verify(const uint8_t *der, size_t len, const char *hash, int pss, const uint8_t *signed_bytes, size_t signed_len,
	const uint8_t *signature, size_t signature_len, unsigned long *errors)
{
	EVP_PKEY_CTX *key = NULL;
	EVP_MD_CTX *ctx = NULL;
	X509 *x = NULL;
	int result = -1;

	ossl_fn.ERR_clear_error();
	if (!fips_ready() || !fips_library())
		goto done;
	x = cert_of(fips_library(), der, len);
	ctx = ossl_fn.EVP_MD_CTX_new();
	if (!x || !ctx || ossl_fn.EVP_DigestVerifyInit_ex(ctx, &key, hash, fips_library(), NULL, ossl_fn.X509_get0_pubkey(x), NULL) != 1)
		goto done;
	if (pss && (ossl_fn.EVP_PKEY_CTX_ctrl_str(key, "rsa_padding_mode", "pss") != 1 ||
		ossl_fn.EVP_PKEY_CTX_ctrl_str(key, "rsa_pss_saltlen", "digest") != 1))
		goto done;
	/* Below 0 the signature may be malformed. */
	result = ossl_fn.EVP_DigestVerify(ctx, signature, signature_len, signed_bytes, signed_len) == 1;
done:
	ossl_fn.EVP_MD_CTX_free(ctx); /* takes NULL, and frees key */
	ossl_fn.X509_free(x); /* takes NULL */
	if (ossl_drain_errors(errors) && result != 1)
		result = -1; /* memory was short */
	return result;
}

const char *ossl_verify_error(long code) { return ossl_fn.X509_verify_cert_error_string(code); }
