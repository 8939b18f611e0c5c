/*
 * The libssl and libcrypto symbols that the floor needs in addition to internal/libssl/api.h, in
 * that list's form. ci/headers checks both.
 */
#ifndef FLOOR_API_H
#define FLOOR_API_H

#include "../../../../../internal/libssl/api.h"

typedef struct asn1_string_st ASN1_INTEGER;
typedef struct asn1_string_st ASN1_TIME;
typedef struct X509_extension_st X509_EXTENSION;
typedef struct v3_ext_ctx X509V3_CTX;

#define FLOOR_API(X) \
	/* Certificates and keys: EVP_PKEY_Q_keygen(3), X509_sign(3), X509_set1_notBefore(3), X509V3_EXT_nconf_nid(3) and the page of \
	 * each name */ \
	X(CRYPTO, OSSL_V3_0, REQUIRED, EVP_PKEY *, EVP_PKEY_Q_keygen, \
		(OSSL_LIB_CTX *libctx, const char *propq, const char *type, ...)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_set_version, (X509 *x, long version)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, ASN1_INTEGER *, X509_get_serialNumber, (X509 *x)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, ASN1_INTEGER_set, (ASN1_INTEGER *a, long v)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, X509_NAME *, X509_NAME_new, (void)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_NAME_add_entry_by_txt, (X509_NAME *name, const char *field, int type, \
		const unsigned char *bytes, int len, int loc, int set)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_set_issuer_name, (X509 *x, OSSL_CONST_SINCE_3_0 X509_NAME *name)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_set_subject_name, (X509 *x, OSSL_CONST_SINCE_3_0 X509_NAME *name)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, ASN1_TIME *, X509_gmtime_adj, (ASN1_TIME *s, long adj)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, ASN1_TIME_free, (ASN1_TIME *a)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_set1_notBefore, (X509 *x, const ASN1_TIME *tm)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_set1_notAfter, (X509 *x, const ASN1_TIME *tm)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_set_pubkey, (X509 *x, EVP_PKEY *pkey)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, X509_EXTENSION *, X509V3_EXT_nconf_nid, \
		(CONF *conf, X509V3_CTX *ctx, int ext_nid, const char *value)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_add_ext, (X509 *x, OSSL_CONST_SINCE_4_0 X509_EXTENSION *ex, int loc)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, X509_EXTENSION_free, (X509_EXTENSION *a)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_sign, (X509 *x, EVP_PKEY *pkey, const EVP_MD *md)) \
	/* Contexts and connections: the page of each name */ \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_CTX_set_verify, (SSL_CTX *ctx, int mode, int (*cb)(int, X509_STORE_CTX *))) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_set_fd, (SSL *s, int fd)) \
	X(SSL, OSSL_V3_0, REQUIRED, X509 *, SSL_get0_peer_certificate, (const SSL *s)) \
	/* A program's start: SSL_CTX_use_certificate(3), SSL_CTX_load_verify_locations(3), SSL_set1_host(3) */ \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_CTX_use_certificate_chain_file, (SSL_CTX *ctx, const char *file)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_CTX_use_PrivateKey_file, (SSL_CTX *ctx, const char *file, int type)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_CTX_load_verify_locations, (SSL_CTX *ctx, const char *CAfile, const char *CApath)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_set1_host, (SSL *s, const char *hostname)) \
	/* The transport of a lockstep: BIO_s_bio(3), BIO_new(3) */ \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, BIO_new_bio_pair, (BIO **bio1, size_t writebuf1, BIO **bio2, size_t writebuf2)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, BIO_up_ref, (BIO *a))

#define FLOOR_CONSTANTS(K) \
	K(OSSL_V3_0, SSL_CTRL_GET_NEGOTIATED_GROUP, 134) \
	K(OSSL_V1_1_1, MBSTRING_ASC, 0x1001) \
	K(OSSL_V1_1_1, X509_FILETYPE_PEM, 1) \
	K(OSSL_V1_1_1, NID_key_usage, 83) \
	K(OSSL_V1_1_1, NID_subject_alt_name, 85) \
	K(OSSL_V1_1_1, NID_authority_key_identifier, 90) \
	K(OSSL_V1_1_1, NID_ext_key_usage, 126) \
	K(OSSL_V1_1_1, NID_X25519, 1034) \
	K(OSSL_V1_1_1, TLS1_3_CK_AES_128_GCM_SHA256, 0x03001301) \
	K(OSSL_V1_1_1, TLS1_CK_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, 0x0300C02B) \
	K(OSSL_V1_1_1, TLS1_CK_ECDHE_RSA_WITH_AES_128_GCM_SHA256, 0x0300C02F)

#define FLOOR_DECLARE_CONSTANT(since, name, value) static const int64_t FLOOR_##name __attribute__((unused)) = value;
FLOOR_CONSTANTS(FLOOR_DECLARE_CONSTANT)
#undef FLOOR_DECLARE_CONSTANT

#endif
