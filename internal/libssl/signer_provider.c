/*
 * Keys in Go for OpenSSL 3.0 and later: a provider inside this program that only has private keys
 * and signs.
 *
 * Its keys hold the certificate's public key, made by the provider that the host prefers, which
 * answers all queries about a key; signatures are made in Go. The provider lives in a library
 * context of its own: there it can't be chosen for any other key, no configuration of the host
 * keeps it from loading, and the default context doesn't see it. libssl still reaches it, since an
 * EVP_PKEY knows its provider and EVP_DigestSignInit_ex(3) falls back on that one if no other can
 * import the key: this provider refuses to export the private half, which it doesn't have.
 */

#include "provider.h"
#include "signer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char provider_name[] = "ossl-signer", properties[] = "provider=ossl-signer";
static const char pad_mode_param[] = "pad-mode", salt_param[] = "saltlen", secret_param[] = "ossl-signer";

static const OSSL_PARAM *find(const OSSL_PARAM *p, const char *key)
{
	for (; p && p->key; p++)
		if (strcmp(p->key, key) == 0)
			return p;
	return NULL;
}

/* Reports whether p is this number or this word; callers of OpenSSL may use either. */
static int is(const OSSL_PARAM *p, int number, const char *word)
{
	int value;

	if (p->data_type == OSSL_OSSL_PARAM_INTEGER && p->data_size == sizeof value) {
		memcpy(&value, p->data, sizeof value);
		return value == number;
	}
	return p->data_type == OSSL_OSSL_PARAM_UTF8_STRING && p->data && strncmp(p->data, word, strlen(word) + 1) == 0;
}

/* Key management: provider-keymgmt(7). */

typedef struct {
	int algorithm; /* SIGN_RSA_PKCS1 for all RSA algorithms */
	EVP_PKEY *pub;
	uintptr_t signer;
	size_t max_size;
} signer_key;

/* The contents of secret_param, from ossl_provider_key. */
typedef struct {
	EVP_PKEY *pub;
	uintptr_t signer;
} secret;

static void *key_new(int algorithm)
{
	signer_key *key = new_zeros(sizeof *key);

	if (key)
		key->algorithm = algorithm;
	return key;
}

static void *key_new_rsa(void *provider) { return (void)provider, key_new(SIGN_RSA_PKCS1); }
static void *key_new_ec(void *provider) { return (void)provider, key_new(SIGN_ECDSA); }
static void *key_new_ed25519(void *provider) { return (void)provider, key_new(SIGN_ED25519); }
static void *key_new_mldsa(void *provider) { return (void)provider, key_new(SIGN_MLDSA); }

static void key_free(void *p)
{
	signer_key *key = p;

	if (key)
		ossl_fn.EVP_PKEY_free(key->pub);
	free(key);
}

static int key_has(const void *p, int selection)
{
	const signer_key *key = p;

	(void)selection;
	return key && key->pub;
}

static int key_match(const void *a, const void *b, int selection)
{
	const signer_key *x = a, *y = b;

	(void)selection;
	return x->pub && y->pub && ossl_fn.EVP_PKEY_eq(x->pub, y->pub) == 1;
}

static int key_get_params(void *p, OSSL_PARAM params[])
{
	signer_key *key = p;

	return key->pub && ossl_fn.EVP_PKEY_get_params(key->pub, params) == 1;
}

/* These lists of parameters are only for queries; libcrypto passes on other parameters too. */
static const OSSL_PARAM *key_gettable(void *provider)
{
	static const OSSL_PARAM none[] = {{0}};

	(void)provider;
	return none;
}

/* Makes a key in lib, NULL for the host's library context, from params. */
static EVP_PKEY *key_of(OSSL_LIB_CTX *lib, const char *type, int64_t selection, const OSSL_PARAM params[])
{
	EVP_PKEY_CTX *ctx = ossl_fn.EVP_PKEY_CTX_new_from_name(lib, type, NULL);
	EVP_PKEY *key = NULL;

	if (ctx && ossl_fn.EVP_PKEY_fromdata_init(ctx) == 1 &&
		ossl_fn.EVP_PKEY_fromdata(ctx, &key, (int)selection, (OSSL_PARAM *)params) != 1) {
		ossl_fn.EVP_PKEY_free(key);
		key = NULL;
	}
	ossl_fn.EVP_PKEY_CTX_free(ctx);
	return key;
}

/* By algorithm: names of types. */
static const struct {
	int algorithm;
	const char *name;
} types[] = {{SIGN_RSA_PKCS1, "RSA"}, {SIGN_ECDSA, "EC"}, {SIGN_ED25519, "ED25519"}, {SIGN_MLDSA, "ML-DSA-44"},
	{SIGN_MLDSA, "ML-DSA-65"}, {SIGN_MLDSA, "ML-DSA-87"}};

enum { KINDS = sizeof types / sizeof types[0] };

static EVP_PKEY *public_key(int algorithm, const OSSL_PARAM params[])
{
	size_t i;

	for (i = 0; i < KINDS; i++)
		if (types[i].algorithm == algorithm)
			return key_of(NULL, types[i].name, OSSL_EVP_PKEY_PUBLIC_KEY, params);
	return NULL;
}

/*
 * Imports a key from ossl_provider_key, and before 3.0.8 from other providers too, for a comparison
 * with ours: there libcrypto would otherwise export our whole key to compare it, including the
 * private half, which key_export refuses.
 */
static int key_import(void *p, int selection, const OSSL_PARAM params[])
{
	signer_key *key = p;
	const OSSL_PARAM *param = find(params, secret_param);
	secret s;

	(void)selection;
	if (!param && !key->pub && ossl_fn.OpenSSL_version_num() < OSSL_V3_0_8) {
		key->pub = public_key(key->algorithm, params);
		return key->pub != NULL;
	}
	if (!param || param->data_size != sizeof s || key->pub)
		return 0;
	memcpy(&s, param->data, sizeof s);
	if (ossl_fn.EVP_PKEY_up_ref(s.pub) != 1)
		return 0;
	key->pub = s.pub;
	key->signer = s.signer;
	key->max_size = (size_t)ossl_fn.EVP_PKEY_get_size(s.pub);
	return 1;
}

static int key_export(void *p, int selection, int (*callback)(const OSSL_PARAM[], void *), void *arg)
{
	signer_key *key = p;

	if (!key->pub || (selection & OSSL_OSSL_KEYMGMT_SELECT_PRIVATE_KEY))
		return 0;
	return ossl_fn.EVP_PKEY_export(key->pub, selection, callback, arg);
}

static const OSSL_PARAM *key_types(int selection)
{
	(void)selection;
	return key_gettable(NULL);
}

static const char *operation_rsa(int operation) { return (void)operation, "RSA"; }
static const char *operation_ec(int operation) { return (void)operation, "ECDSA"; }
static const char *operation_ed25519(int operation) { return (void)operation, "ED25519"; }
static const char *operation_mldsa44(int operation) { return (void)operation, "ML-DSA-44"; }
static const char *operation_mldsa65(int operation) { return (void)operation, "ML-DSA-65"; }
static const char *operation_mldsa87(int operation) { return (void)operation, "ML-DSA-87"; }

/*
 * Signatures: provider-signature(7). libssl signs with one call, so there is no update and final.
 */

typedef struct {
	const signer_key *key; /* borrowed: the caller that signs holds the EVP_PKEY */
	int hash, pss;
} signature;

static void *signature_new(void *provider, const char *properties)
{
	(void)provider;
	(void)properties;
	return new_zeros(sizeof(signature));
}

static void signature_free(void *p) { free(p); }

static void *signature_dup(void *p)
{
	signature *copy = new_memory(sizeof *copy);

	if (copy)
		*copy = *(signature *)p;
	return copy;
}

/*
 * Returns Go's number of a hash function for any of libcrypto's names for it, -1 if TLS doesn't
 * sign with it.
 */
static int hash_of(const char *name)
{
	static const struct {
		int hash;
		const char *names[3];
	} known[] = {
		{GO_SHA256, {"SHA2-256", "SHA256", "SHA-256"}},
		{GO_SHA384, {"SHA2-384", "SHA384", "SHA-384"}},
		{GO_SHA512, {"SHA2-512", "SHA512", "SHA-512"}},
		{GO_SHA224, {"SHA2-224", "SHA224", "SHA-224"}},
		{GO_SHA1, {"SHA1", "SHA-1", "SSL3-SHA1"}},
	};
	size_t i, k;

	if (!name || !*name)
		return GO_NO_HASH;
	for (i = 0; i < sizeof known / sizeof known[0]; i++)
		for (k = 0; k < 3; k++)
			if (strcasecmp(name, known[i].names[k]) == 0)
				return known[i].hash;
	return -1;
}

static int signature_set(void *p, const OSSL_PARAM params[])
{
	signature *s = p;
	const OSSL_PARAM *param;

	param = find(params, pad_mode_param);
	if (param) {
		if (is(param, (int)OSSL_RSA_PKCS1_PSS_PADDING, "pss"))
			s->pss = 1;
		else if (is(param, (int)OSSL_RSA_PKCS1_PADDING, "pkcs1"))
			s->pss = 0;
		else
			return 0;
	}
	/* TLS uses one length of salt: RFC 8446, section 4.2.3. */
	param = find(params, salt_param);
	return !param || is(param, (int)OSSL_RSA_PSS_SALTLEN_DIGEST, "digest");
}

/* Unlike the lists above, controls are checked against this one. */
static const OSSL_PARAM *signature_settable(void *context, void *provider)
{
	static OSSL_PARAM types[] = {{.key = pad_mode_param}, {.key = salt_param}, {0}};

	(void)context;
	(void)provider;
	return types;
}

static int signature_init(void *p, const char *digest, void *key, const OSSL_PARAM params[])
{
	signature *s = p;

	if (key)
		s->key = key;
	s->pss = 0;
	s->hash = hash_of(digest);
	if (!s->key || !s->key->signer || s->hash < 0 ||
		(s->hash == GO_NO_HASH) != (s->key->algorithm == SIGN_ED25519 || s->key->algorithm == SIGN_MLDSA))
		return 0;
	return signature_set(s, params);
}

/* EVP_DigestSign(3): if sig is NULL, it returns the longest length of a signature. */
static int signature_sign(void *p, unsigned char *sig, size_t *len, size_t cap, const unsigned char *tbs, size_t tbs_len)
{
	const signature *s = p;
	int algorithm = s->key->algorithm;

	if (!sig) {
		*len = s->key->max_size;
		return 1;
	}
	if (algorithm == SIGN_RSA_PKCS1 && s->pss)
		algorithm = SIGN_RSA_PSS;
	if (cap > s->key->max_size)
		cap = s->key->max_size;
	*len = ossl_sign(s->key->signer, algorithm, s->hash, SIGN_MESSAGE, tbs, tbs_len, sig, cap);
	return *len > 0;
}

/*
 * The provider: provider(7). Its tables are filled at run time, since constants of api.h are not
 * constant expressions.
 */

enum { KEY_FUNCTIONS = 11, SIGNATURE_FUNCTIONS = 7 };

/* EVP_PKEY-ML-DSA(7), from 3.5 on; no certificate has such a key before. */
#define MLDSA_44 "ML-DSA-44:MLDSA44:2.16.840.1.101.3.4.3.17:id-ml-dsa-44"
#define MLDSA_65 "ML-DSA-65:MLDSA65:2.16.840.1.101.3.4.3.18:id-ml-dsa-65"
#define MLDSA_87 "ML-DSA-87:MLDSA87:2.16.840.1.101.3.4.3.19:id-ml-dsa-87"

static const struct {
	const char *key_names, *signature_names;
	void *(*make)(void *provider);
	const char *(*operation)(int operation);
} kinds[KINDS] = {
	{"RSA:rsaEncryption:1.2.840.113549.1.1.1", "RSA:rsaEncryption:1.2.840.113549.1.1.1", key_new_rsa, operation_rsa},
	{"EC:id-ecPublicKey:1.2.840.10045.2.1", "ECDSA", key_new_ec, operation_ec},
	{"ED25519:1.3.101.112", "ED25519:1.3.101.112", key_new_ed25519, operation_ed25519},
	{MLDSA_44, MLDSA_44, key_new_mldsa, operation_mldsa44},
	{MLDSA_65, MLDSA_65, key_new_mldsa, operation_mldsa65},
	{MLDSA_87, MLDSA_87, key_new_mldsa, operation_mldsa87},
};

static OSSL_DISPATCH key_functions[KINDS][KEY_FUNCTIONS + 1], signature_functions[SIGNATURE_FUNCTIONS + 1], provider_functions[2];
static OSSL_ALGORITHM key_algorithms[KINDS + 1], signature_algorithms[KINDS + 1];

static const OSSL_ALGORITHM *provider_query(void *provider, int operation, int *no_cache)
{
	(void)provider;
	*no_cache = 0;
	if (operation == OSSL_OSSL_OP_KEYMGMT)
		return key_algorithms;
	return operation == OSSL_OSSL_OP_SIGNATURE ? signature_algorithms : NULL;
}

static void fill_tables(void)
{
	size_t i, n;

	for (i = 0; i < KINDS; i++) {
		n = 0;
		PUT(key_functions[i], n, KEYMGMT_NEW, kinds[i].make);
		PUT(key_functions[i], n, KEYMGMT_FREE, key_free);
		PUT(key_functions[i], n, KEYMGMT_HAS, key_has);
		PUT(key_functions[i], n, KEYMGMT_MATCH, key_match);
		PUT(key_functions[i], n, KEYMGMT_GET_PARAMS, key_get_params);
		PUT(key_functions[i], n, KEYMGMT_GETTABLE_PARAMS, key_gettable);
		PUT(key_functions[i], n, KEYMGMT_IMPORT, key_import);
		PUT(key_functions[i], n, KEYMGMT_IMPORT_TYPES, key_types);
		PUT(key_functions[i], n, KEYMGMT_EXPORT, key_export);
		PUT(key_functions[i], n, KEYMGMT_EXPORT_TYPES, key_types);
		PUT(key_functions[i], n, KEYMGMT_QUERY_OPERATION_NAME, kinds[i].operation);
		key_algorithms[i] = (OSSL_ALGORITHM){kinds[i].key_names, properties, key_functions[i], NULL};
		signature_algorithms[i] = (OSSL_ALGORITHM){kinds[i].signature_names, properties, signature_functions, NULL};
	}
	n = 0;
	PUT(signature_functions, n, SIGNATURE_NEWCTX, signature_new);
	PUT(signature_functions, n, SIGNATURE_FREECTX, signature_free);
	PUT(signature_functions, n, SIGNATURE_DUPCTX, signature_dup);
	PUT(signature_functions, n, SIGNATURE_DIGEST_SIGN_INIT, signature_init);
	PUT(signature_functions, n, SIGNATURE_DIGEST_SIGN, signature_sign);
	PUT(signature_functions, n, SIGNATURE_SET_CTX_PARAMS, signature_set);
	PUT(signature_functions, n, SIGNATURE_SETTABLE_CTX_PARAMS, signature_settable);
	n = 0;
	PUT(provider_functions, n, PROVIDER_QUERY_OPERATION, provider_query);
}

static int provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out, void **provider)
{
	(void)in;
	*out = provider_functions;
	*provider = (void *)handle; /* never used, but not NULL */
	return 1;
}

/*
 * Returns the library context for a shard whose only provider is this one. It is made at first use and
 * kept: keys may outlive all other users.
 */
static OSSL_LIB_CTX *signer_library(int shard)
{
	static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
	static OSSL_LIB_CTX *made[OSSL_MAX_SHARDS]; /* guarded by mu */
	static int filled;                          /* guarded by mu; libcrypto reads the tables from any thread */
	OSSL_LIB_CTX *lib;

	pthread_mutex_lock(&mu);
	if (!filled) {
		fill_tables();
		filled = 1;
	}
	if (!made[shard]) {
		lib = ossl_fn.OSSL_LIB_CTX_new();
		if (lib && ossl_fn.OSSL_PROVIDER_add_builtin(lib, provider_name, provider_init) == 1 &&
			ossl_fn.OSSL_PROVIDER_load(lib, provider_name))
			made[shard] = lib;
		else
			ossl_fn.OSSL_LIB_CTX_free(lib); /* takes NULL; a failure is not remembered */
	}
	lib = made[shard];
	pthread_mutex_unlock(&mu);
	return lib;
}

EVP_PKEY *ossl_provider_key(EVP_PKEY *pub, uintptr_t signer, int shard)
{
	OSSL_LIB_CTX *lib = signer_library(shard);
	secret s = {pub, signer};
	OSSL_PARAM params[] = {{secret_param, (unsigned)OSSL_OSSL_PARAM_OCTET_STRING, &s, sizeof s, 0}, {0}};
	size_t i = 0;

	while (i < KINDS && ossl_fn.EVP_PKEY_is_a(pub, types[i].name) != 1)
		i++;
	return lib && i < KINDS ? key_of(lib, types[i].name, OSSL_OSSL_KEYMGMT_SELECT_KEYPAIR, params) : NULL;
}
