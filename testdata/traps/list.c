/*
 * Lists where libcrypto's own cryptography begins, for ci/fips-traps: on each line a kind, an offset in the library and a name.
 * usage: list LIBCRYPTO
 *
 *  - the functions by which the default provider's algorithms work, from the tables that libcrypto itself goes by, whether or not
 *    they have a symbol. What the provider "base" has as well is none: it takes part in FIPS mode, and has no cryptography;
 *  - the low-level functions that libcrypto exports, and those behind its RSA, ECDSA and ECDH methods.
 *
 * Not among them are functions without a symbol that only these call, such as the processor's AES: who is kept from the callers
 * doesn't get there. Nor are the functions that make, copy, free and describe, parse keys or write them.
 *
 * The numbers are openssl/core_dispatch.h's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	int id;
	void *f;
} dispatch;

typedef struct {
	const char *names, *properties;
	const dispatch *functions;
	const char *description;
} algorithm;

static const struct {
	int operation;
	const char *kind;
	int functions[24];
} operations[] = {
	{1, "digest", {2, 3, 4, 5, 14}},                                    /* init, update, final, digest, squeeze */
	{2, "cipher", {2, 3, 4, 5, 6, 15, 16, 17, 18, 19, 20}},             /* inits, update, final, cipher; pipelines; with keys */
	{3, "mac", {4, 5, 6, 13}},                                          /* init, update, final */
	{4, "kdf", {5, 13}},                                                /* derive */
	{5, "rand", {3, 5, 6, 7}},                                          /* instantiate, generate, reseed, nonce */
	{10, "keygen", {6}},                                                /* gen */
	{11, "keyexch", {2, 3, 11}},                                        /* init, derive */
	{12, "signature", {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 27, 28, 29, 30, 31, 32}}, /* all that signs or verifies */
	{13, "asymcipher", {2, 3, 4, 5}},                                   /* encrypt, decrypt */
	{14, "kem", {2, 3, 4, 5, 12, 13}},                                  /* encapsulate, decapsulate */
};

static const char *const exported[] = {
	"SHA1", "SHA1_Init", "SHA1_Update", "SHA1_Final", "SHA1_Transform", "SHA224", "SHA224_Init", "SHA224_Update", "SHA224_Final",
	"SHA256", "SHA256_Init", "SHA256_Update", "SHA256_Final", "SHA256_Transform", "SHA384", "SHA384_Init", "SHA384_Update",
	"SHA384_Final", "SHA512", "SHA512_Init", "SHA512_Update", "SHA512_Final", "SHA512_Transform", "MD5", "MD5_Init", "MD5_Update",
	"MD5_Final", "MD5_Transform", "HMAC", "HMAC_Init_ex", "HMAC_Update", "HMAC_Final", "CMAC_Init", "CMAC_Update", "CMAC_Final",
	"AES_encrypt", "AES_decrypt", "AES_set_encrypt_key", "AES_set_decrypt_key", "AES_cbc_encrypt", "AES_ecb_encrypt",
	"CRYPTO_gcm128_init", "CRYPTO_gcm128_setiv", "CRYPTO_gcm128_aad", "CRYPTO_gcm128_encrypt", "CRYPTO_gcm128_decrypt",
	"CRYPTO_gcm128_encrypt_ctr32", "CRYPTO_gcm128_decrypt_ctr32", "CRYPTO_gcm128_finish", "CRYPTO_gcm128_tag",
	"CRYPTO_ccm128_encrypt", "CRYPTO_ccm128_decrypt", "CRYPTO_cbc128_encrypt", "CRYPTO_cbc128_decrypt", "CRYPTO_ctr128_encrypt",
	"CRYPTO_ctr128_encrypt_ctr32", "DES_set_key_unchecked", "DES_encrypt1", "DES_encrypt3", "RC4", "RC4_set_key",
	"EC_KEY_generate_key", "EC_POINT_mul", "ECDH_compute_key", "ECDSA_sign", "ECDSA_do_sign", "ECDSA_verify", "ECDSA_do_verify",
	"RSA_public_encrypt", "RSA_public_decrypt", "RSA_private_encrypt", "RSA_private_decrypt", "RSA_sign", "RSA_verify",
	"RSA_generate_key_ex", "RSA_padding_add_PKCS1_PSS_mgf1", "RSA_verify_PKCS1_PSS_mgf1", "DH_generate_key", "DH_compute_key",
	"DSA_do_sign", "DSA_do_verify", "BN_mod_exp", "BN_mod_exp_mont", "BN_mod_exp_mont_consttime", "BN_mod_exp2_mont",
	"BN_rand_ex", "BN_priv_rand_ex", "BN_generate_prime_ex2", "BN_check_prime", "PKCS5_PBKDF2_HMAC",
	"EVP_PBE_scrypt_ex",
};

static void *crypto;
static uintptr_t base;

static void *symbol(const char *name)
{
	void *p = dlsym(crypto, name);

	if (!p) {
		fprintf(stderr, "no symbol %s\n", name);
		exit(1);
	}
	return p;
}

static void print(const char *kind, void *f, const char *name, int id)
{
	Dl_info info;

	/* Another library's, as after an indirect call, is none of ours. */
	if (f && dladdr(f, &info) != 0 && (uintptr_t)info.dli_fbase == base)
		printf("%s %#lx %.*s/%d\n", kind, (unsigned long)((uintptr_t)f - base), (int)strcspn(name, ": "), name, id);
}

static const algorithm *(*query)(const void *, int, int *);

static int in_base(const void *provider, const void *f)
{
	int operation, no_cache;
	const algorithm *a;
	const dispatch *d;

	for (operation = 1; operation <= 22; operation++)
		for (a = query(provider, operation, &no_cache); a && a->names; a++)
			for (d = a->functions; d->id; d++)
				if (d->f == f)
					return 1;
	return 0;
}

static void list_provider(const void *provider, const void *other)
{
	size_t i, k;
	int no_cache;

	for (i = 0; i < sizeof operations / sizeof operations[0]; i++) {
		const algorithm *a = query(provider, operations[i].operation, &no_cache);
		const dispatch *d;

		for (; a && a->names; a++)
			for (d = a->functions; d->id; d++)
				for (k = 0; operations[i].functions[k]; k++)
					if (d->id == operations[i].functions[k] && !in_base(other, d->f))
						print(operations[i].kind, d->f, a->names, d->id);
	}
}

/* What a method's getter returns for a method. */
static void list_method(const void *method, const char *getter)
{
	void *(*get)(const void *);

	*(void **)&get = symbol(getter);
	print("method", get(method), getter, 0);
}

int main(int argc, char **argv)
{
	static const char *const of_rsa[] = {
		"RSA_meth_get_pub_enc", "RSA_meth_get_pub_dec", "RSA_meth_get_priv_enc", "RSA_meth_get_priv_dec", "RSA_meth_get_mod_exp",
		"RSA_meth_get_bn_mod_exp",
	};
	const void *(*load)(void *, const char *), *(*method)(void);
	void (*ec_sign)(const void *, void **, void **, void **);
	void (*ec_two)(const void *, void **, void **), (*ec_one)(const void *, void **);
	const void *provider, *other, *ec;
	void *f[3] = {0};
	Dl_info info;
	size_t i;

	crypto = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!crypto || dladdr(symbol("OPENSSL_init_crypto"), &info) == 0) {
		fprintf(stderr, "usage: list LIBCRYPTO\n");
		return 1;
	}
	base = (uintptr_t)info.dli_fbase;
	*(void **)&load = symbol("OSSL_PROVIDER_load");
	*(void **)&query = symbol("OSSL_PROVIDER_query_operation");
	provider = load(NULL, "default");
	other = load(NULL, "base");
	if (!provider || !other)
		return 1;
	list_provider(provider, other);
	for (i = 0; i < sizeof exported / sizeof exported[0]; i++)
		print("exported", symbol(exported[i]), exported[i], 0);
	*(void **)&method = symbol("RSA_PKCS1_OpenSSL");
	for (i = 0; i < sizeof of_rsa / sizeof of_rsa[0]; i++)
		list_method(method(), of_rsa[i]);
	*(void **)&method = symbol("EC_KEY_OpenSSL");
	ec = method();
	*(void **)&ec_sign = symbol("EC_KEY_METHOD_get_sign");
	ec_sign(ec, &f[0], &f[1], &f[2]);
	for (i = 0; i < 3; i++)
		print("method", f[i], "EC_KEY_METHOD_get_sign", (int)i);
	*(void **)&ec_two = symbol("EC_KEY_METHOD_get_verify");
	ec_two(ec, &f[0], &f[1]);
	for (i = 0; i < 2; i++)
		print("method", f[i], "EC_KEY_METHOD_get_verify", (int)i);
	*(void **)&ec_one = symbol("EC_KEY_METHOD_get_keygen");
	ec_one(ec, &f[0]);
	print("method", f[0], "EC_KEY_METHOD_get_keygen", 0);
	*(void **)&ec_one = symbol("EC_KEY_METHOD_get_compute_key");
	ec_one(ec, &f[0]);
	print("method", f[0], "EC_KEY_METHOD_get_compute_key", 0);
	return fflush(stdout) != 0;
}
