/*
 * Every symbol of libssl and libcrypto that this package calls, once.
 *
 *   X(LIB, SINCE, NEED, RETURN, NAME, PARAMETERS)
 *
 * LIB    SSL or CRYPTO, the library that exports it.
 * SINCE  the first version that has it, as OPENSSL_VERSION_NUMBER.
 * NEED   REQUIRED: loading fails without it, from SINCE on. OPTIONAL: callers check the table's
 *        entry for NULL. ONLY_1_1_1: required by 1.1.1 and not used with later versions, which may
 *        lack it or declare it differently.
 *
 * The list makes the function table and the loader (load.c), and ci/headers compiles it against the
 * real headers of every supported version, so that a build needs no headers and yet can't drift.
 * Only real functions belong here: functions that OpenSSL declares as macros are control calls
 * below, with their numbers in OSSL_CONSTANTS.
 */
#ifndef OSSL_API_H
#define OSSL_API_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct stack_st_X509;
struct stack_st_X509_NAME;
struct stack_st_SSL_CIPHER;
struct stack_st_CONF_VALUE;
typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_method_st SSL_METHOD;
typedef struct ssl_cipher_st SSL_CIPHER;
typedef struct bio_st BIO;
typedef struct bio_method_st BIO_METHOD;
typedef struct x509_st X509;
typedef struct X509_algor_st X509_ALGOR;
typedef struct asn1_object_st ASN1_OBJECT;
typedef struct asn1_string_st ASN1_BIT_STRING;
typedef struct X509_name_st X509_NAME;
typedef struct x509_store_st X509_STORE;
typedef struct x509_store_ctx_st X509_STORE_CTX;
typedef struct X509_VERIFY_PARAM_st X509_VERIFY_PARAM;
typedef struct evp_pkey_st EVP_PKEY;
typedef struct stack_st OPENSSL_STACK;
typedef struct ossl_init_settings_st OPENSSL_INIT_SETTINGS;
typedef struct ossl_lib_ctx_st OSSL_LIB_CTX;
typedef struct ossl_core_handle_st OSSL_CORE_HANDLE;
typedef struct ossl_dispatch_st OSSL_DISPATCH;
typedef struct ossl_param_st OSSL_PARAM;
typedef struct evp_pkey_ctx_st EVP_PKEY_CTX;
typedef struct evp_pkey_method_st EVP_PKEY_METHOD;
typedef struct evp_md_st EVP_MD;
typedef struct evp_cipher_st EVP_CIPHER;
typedef struct evp_cipher_ctx_st EVP_CIPHER_CTX;
typedef struct evp_kdf_st EVP_KDF;
typedef struct evp_signature_st EVP_SIGNATURE;
typedef struct evp_keyexch_st EVP_KEYEXCH;
typedef struct evp_kem_st EVP_KEM;
typedef struct ossl_decoder_st OSSL_DECODER;
typedef struct evp_kdf_ctx_st EVP_KDF_CTX;
typedef struct ssl_session_st SSL_SESSION;
typedef struct evp_mac_ctx_st EVP_MAC_CTX;
typedef struct hmac_ctx_st HMAC_CTX;
typedef struct engine_st ENGINE;
typedef struct rsa_st RSA;
typedef struct ec_key_st EC_KEY;
typedef struct crypto_ex_data_st CRYPTO_EX_DATA;
typedef struct ossl_provider_st OSSL_PROVIDER;
typedef struct ossl_algorithm_st OSSL_ALGORITHM;
typedef struct conf_st CONF;
typedef struct conf_method_st CONF_METHOD;
typedef struct ssl_conf_ctx_st SSL_CONF_CTX;
typedef struct ossl_store_ctx_st OSSL_STORE_CTX;
typedef struct ossl_store_info_st OSSL_STORE_INFO;
typedef struct ossl_store_loader_st OSSL_STORE_LOADER;
typedef struct ui_method_st UI_METHOD;
typedef struct evp_md_ctx_st EVP_MD_CTX;
typedef struct SHA256state_st SHA256_CTX;
typedef struct SHA512state_st SHA512_CTX;

/*
 * 1.1.1 lacks some consts that 3.0 added; calls are the same. ci/headers defines this as empty for
 * 1.1.1.
 */
#ifndef OSSL_CONST_SINCE_3_0
#define OSSL_CONST_SINCE_3_0 const
#endif

/* The same for 4.0. */
#ifndef OSSL_CONST_SINCE_4_0
#define OSSL_CONST_SINCE_4_0 const
#endif

#define OSSL_V1_1_1 0x10101000L
#define OSSL_V3_0 0x30000000L
#define OSSL_V3_0_8 0x30000080L
#define OSSL_V3_2 0x30200000L
#define OSSL_V3_3 0x30300000L
#define OSSL_V3_4 0x30400000L
#define OSSL_V3_5 0x30500000L
#define OSSL_V4_0 0x40000000L
#define OSSL_V4_1 0x40100000L
#define OSSL_V5_0 0x50000000L

#define OSSL_API(X) \
	/* The libraries: OPENSSL_init_ssl(3), OPENSSL_init_crypto(3), OpenSSL_version(3) */ \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, OPENSSL_init_ssl, (uint64_t opts, const OPENSSL_INIT_SETTINGS *settings)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, OPENSSL_init_crypto, (uint64_t opts, const OPENSSL_INIT_SETTINGS *settings)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, unsigned long, OpenSSL_version_num, (void)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, const char *, OpenSSL_version, (int type)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void *, CRYPTO_malloc, (size_t num, const char *file, int line)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, CRYPTO_get_mem_functions, (void *(**m)(size_t, const char *, int), \
		void *(**r)(void *, size_t, const char *, int), void (**f)(void *, const char *, int))) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, CRYPTO_free, (void *ptr, const char *file, int line)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, OPENSSL_cleanse, (void *ptr, size_t len)) \
	/* Not called: symbols that versions added, by which load.c detects a libssl of another version than its libcrypto */ \
	X(SSL, OSSL_V3_2, REQUIRED, const char *, SSL_get0_group_name, (SSL *s)) \
	X(SSL, OSSL_V3_3, REQUIRED, time_t, SSL_SESSION_get_time_ex, (const SSL_SESSION *s)) \
	X(SSL, OSSL_V3_4, REQUIRED, void, SSL_CTX_flush_sessions_ex, (SSL_CTX *ctx, time_t tm)) \
	X(SSL, OSSL_V3_5, REQUIRED, int, SSL_CTX_set_domain_flags, (SSL_CTX *ctx, uint64_t domain_flags)) \
	X(SSL, OSSL_V4_0, REQUIRED, int, SSL_CTX_is_server, (const SSL_CTX *ctx)) \
	/* Errors: ERR_get_error(3), ERR_clear_error(3), ERR_error_string(3) */ \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, ERR_clear_error, (void)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, unsigned long, ERR_get_error, (void)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, unsigned long, ERR_peek_error, (void)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, const char *, ERR_reason_error_string, (unsigned long e)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, void, ERR_new, (void)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, void, ERR_set_error, (int lib, int reason, const char *fmt, ...)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, void, ERR_put_error, (int lib, int func, int reason, const char *file, int line)) \
	/* The window BIO: BIO_meth_new(3), BIO_new(3), BIO_set_data(3), BIO_set_flags(3) */ \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, BIO_get_new_index, (void)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, BIO_METHOD *, BIO_meth_new, (int type, const char *name)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, BIO_meth_free, (BIO_METHOD *m)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, BIO_meth_set_write, (BIO_METHOD *m, int (*write)(BIO *, const char *, int))) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, BIO_meth_set_read, (BIO_METHOD *m, int (*read)(BIO *, char *, int))) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, BIO_meth_set_ctrl, (BIO_METHOD *m, long (*ctrl)(BIO *, int, long, void *))) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, BIO *, BIO_new, (const BIO_METHOD *type)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, BIO_free, (BIO *a)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, BIO_set_data, (BIO *b, void *ptr)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void *, BIO_get_data, (BIO *b)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, BIO_set_init, (BIO *b, int init)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, BIO_set_flags, (BIO *b, int flags)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, BIO_clear_flags, (BIO *b, int flags)) \
	/* Certificates and keys: d2i_X509(3), d2i_AutoPrivateKey(3), DEFINE_STACK_OF(3) */ \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, X509 *, d2i_X509, (X509 **a, const unsigned char **in, long len)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, i2d_X509, (OSSL_CONST_SINCE_3_0 X509 *a, unsigned char **out)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, X509_free, (X509 *a)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, X509_NAME *, d2i_X509_NAME, (X509_NAME **a, const unsigned char **in, long len)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, X509_NAME_free, (X509_NAME *a)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, EVP_PKEY *, d2i_AutoPrivateKey, (EVP_PKEY **a, const unsigned char **in, long len)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, EVP_PKEY_free, (EVP_PKEY *a)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, OPENSSL_STACK *, OPENSSL_sk_new_null, (void)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, OPENSSL_sk_push, (OPENSSL_STACK *st, const void *data)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, OPENSSL_sk_num, (const OPENSSL_STACK *st)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void *, OPENSSL_sk_value, (const OPENSSL_STACK *st, int i)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, OPENSSL_sk_pop_free, (OPENSSL_STACK *st, void (*func)(void *))) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, X509 *, X509_STORE_CTX_get0_cert, (OSSL_CONST_SINCE_3_0 X509_STORE_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, struct stack_st_X509 *, X509_STORE_CTX_get0_untrusted, \
		(OSSL_CONST_SINCE_3_0 X509_STORE_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, X509_STORE_CTX_set_error, (X509_STORE_CTX *ctx, int s)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void *, X509_STORE_CTX_get_ex_data, (OSSL_CONST_SINCE_3_0 X509_STORE_CTX *ctx, int idx)) \
	/* Providers: OSSL_LIB_CTX(3), OSSL_PROVIDER(3) */ \
	X(CRYPTO, OSSL_V3_0, REQUIRED, OSSL_LIB_CTX *, OSSL_LIB_CTX_new, (void)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, void, OSSL_LIB_CTX_free, (OSSL_LIB_CTX *ctx)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, OSSL_LIB_CTX *, OSSL_LIB_CTX_get0_global_default, (void)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, OSSL_LIB_CTX *, OSSL_LIB_CTX_set0_default, (OSSL_LIB_CTX *ctx)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, OSSL_PROVIDER *, OSSL_PROVIDER_load, (OSSL_LIB_CTX *ctx, const char *name)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, OSSL_PROVIDER_unload, (OSSL_PROVIDER *prov)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, char *, CONF_get1_default_config_file, (void)) \
	/* Contexts: SSL_CTX_new(3) and the page of each name */ \
	X(SSL, OSSL_V1_1_1, REQUIRED, const SSL_METHOD *, TLS_method, (void)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *meth)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_CTX_free, (SSL_CTX *ctx)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, long, SSL_CTX_ctrl, (SSL_CTX *ctx, int cmd, long larg, void *parg)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, long, SSL_CTX_callback_ctrl, (SSL_CTX *ctx, int cmd, void (*fp)(void))) \
	X(SSL, OSSL_V1_1_1, REQUIRED, uint64_t, SSL_CTX_set_options, (SSL_CTX *ctx, uint64_t op)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, uint64_t, SSL_CTX_clear_options, (SSL_CTX *ctx, uint64_t op)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_CTX_set_cipher_list, (SSL_CTX *ctx, const char *str)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_CTX_set_ciphersuites, (SSL_CTX *ctx, const char *str)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, struct stack_st_SSL_CIPHER *, SSL_CTX_get_ciphers, (const SSL_CTX *ctx)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, uint16_t, SSL_CIPHER_get_protocol_id, (const SSL_CIPHER *c)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_CTX_set_security_level, (SSL_CTX *ctx, int level)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_CTX_get_security_level, (const SSL_CTX *ctx)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_CTX_set_num_tickets, (SSL_CTX *ctx, size_t num_tickets)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_CTX_set_session_id_context, \
		(SSL_CTX *ctx, const unsigned char *sid_ctx, unsigned int sid_ctx_len)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_CTX_set_cert_verify_callback, \
		(SSL_CTX *ctx, int (*cb)(X509_STORE_CTX *, void *), void *arg)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_CTX_set_cert_cb, (SSL_CTX *ctx, int (*cb)(SSL *, void *), void *arg)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_CTX_set_client_hello_cb, (SSL_CTX *ctx, int (*cb)(SSL *, int *, void *), void *arg)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_CTX_set_alpn_select_cb, \
		(SSL_CTX *ctx, int (*cb)(SSL *, const unsigned char **, unsigned char *, const unsigned char *, unsigned int, void *), \
		void *arg)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_CTX_set_alpn_protos, (SSL_CTX *ctx, const unsigned char *protos, unsigned int len)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_CTX_set_info_callback, (SSL_CTX *ctx, void (*cb)(const SSL *, int, int))) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_CTX_set_msg_callback, \
		(SSL_CTX *ctx, void (*cb)(int, int, int, const void *, size_t, SSL *, void *))) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_CTX_set_keylog_callback, (SSL_CTX *ctx, void (*cb)(const SSL *, const char *))) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_CTX_set_client_CA_list, (SSL_CTX *ctx, struct stack_st_X509_NAME *name_list)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_CTX_use_cert_and_key, \
		(SSL_CTX *ctx, X509 *x509, EVP_PKEY *key, struct stack_st_X509 *chain, int override)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_CTX_add_custom_ext, (SSL_CTX *ctx, unsigned int type, unsigned int context, \
		int (*add)(SSL *, unsigned int, unsigned int, const unsigned char **, size_t *, X509 *, size_t, int *, void *), \
		void (*free)(SSL *, unsigned int, unsigned int, const unsigned char *, void *), void *add_arg, \
		int (*parse)(SSL *, unsigned int, unsigned int, const unsigned char *, size_t, X509 *, size_t, int *, void *), \
		void *parse_arg)) \
	/* Connections: SSL_new(3) and the page of each name */ \
	X(SSL, OSSL_V1_1_1, REQUIRED, SSL *, SSL_new, (SSL_CTX *ctx)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_free, (SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_set_ex_data, (SSL *s, int idx, void *data)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void *, SSL_get_ex_data, (const SSL *s, int idx)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_get_ex_data_X509_STORE_CTX_idx, (void)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_set_bio, (SSL *s, BIO *rbio, BIO *wbio)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_set_accept_state, (SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_set_connect_state, (SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_set_verify, (SSL *s, int mode, int (*cb)(int, X509_STORE_CTX *))) \
	X(SSL, OSSL_V1_1_1, REQUIRED, long, SSL_ctrl, (SSL *s, int cmd, long larg, void *parg)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_certs_clear, (SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_use_cert_and_key, \
		(SSL *s, X509 *x509, EVP_PKEY *key, struct stack_st_X509 *chain, int override)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_do_handshake, (SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_read_ex, (SSL *s, void *buf, size_t num, size_t *readbytes)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_write_ex, (SSL *s, const void *buf, size_t num, size_t *written)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_shutdown, (SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_get_error, (const SSL *s, int ret)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_get_shutdown, (const SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_pending, (const SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_version, (const SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, const SSL_CIPHER *, SSL_get_current_cipher, (const SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, const SSL_CIPHER *, SSL_get_pending_cipher, (const SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_get0_alpn_selected, (const SSL *s, const unsigned char **data, unsigned int *len)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, const char *, SSL_get_servername, (const SSL *s, const int type)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_session_reused, (const SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, size_t, SSL_get_finished, (const SSL *s, void *buf, size_t count)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, size_t, SSL_get_peer_finished, (const SSL *s, void *buf, size_t count)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_export_keying_material, (SSL *s, unsigned char *out, size_t olen, const char *label, \
		size_t llen, const unsigned char *context, size_t contextlen, int use_context)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_get_key_update_type, (const SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_key_update, (SSL *s, int updatetype)) \
	/* Taking over from libssl: SSL_get_session(3), SSL_get_client_random(3), SSL_has_pending(3), SSL_rstate_string(3),
	 * SSL_set_shutdown(3) */ \
	X(SSL, OSSL_V1_1_1, REQUIRED, SSL_SESSION *, SSL_get_session, (const SSL *ssl)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, size_t, SSL_SESSION_get_master_key, (const SSL_SESSION *sess, unsigned char *out, size_t outlen)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, uint8_t, SSL_SESSION_get_max_fragment_length, (const SSL_SESSION *sess)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, size_t, SSL_get_client_random, (const SSL *ssl, unsigned char *out, size_t outlen)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, size_t, SSL_get_server_random, (const SSL *ssl, unsigned char *out, size_t outlen)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_has_pending, (const SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, const char *, SSL_rstate_string, (const SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_set_shutdown, (SSL *ssl, int mode)) \
	/* Sessions: SSL_CTX_set_session_ticket_cb(3), SSL_CTX_sess_set_get_cb(3), SSL_CTX_set_tlsext_ticket_key_cb(3),
	 * SSL_CTX_set_client_hello_cb(3), d2i_SSL_SESSION(3), SSL_set_session(3), SSL_CTX_set_timeout(3), SSL_in_init(3) */ \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_CTX_set_session_ticket_cb, (SSL_CTX *ctx, int (*gen)(SSL *, void *), \
		int (*dec)(SSL *, SSL_SESSION *, const unsigned char *, size_t, int, void *), void *arg)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_SESSION_set1_ticket_appdata, (SSL_SESSION *ss, const void *data, size_t len)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_SESSION_get0_ticket_appdata, (SSL_SESSION *ss, void **data, size_t *len)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_SESSION_set1_hostname, (SSL_SESSION *s, const char *hostname)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, const SSL_CIPHER *, SSL_SESSION_get0_cipher, (const SSL_SESSION *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_SESSION_get_protocol_version, (const SSL_SESSION *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_CTX_sess_set_new_cb, (SSL_CTX *ctx, int (*cb)(SSL *, SSL_SESSION *))) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_CTX_sess_set_get_cb, \
		(SSL_CTX *ctx, SSL_SESSION *(*cb)(SSL *, const unsigned char *, int, int *))) \
	X(SSL, OSSL_V3_0, REQUIRED, int, SSL_CTX_set_tlsext_ticket_key_evp_cb, (SSL_CTX *ctx, \
		int (*cb)(SSL *, unsigned char *, unsigned char *, EVP_CIPHER_CTX *, EVP_MAC_CTX *, int))) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_client_hello_get0_ext, \
		(SSL *s, unsigned int type, const unsigned char **out, size_t *outlen)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, unsigned int, SSL_client_hello_get0_legacy_version, (SSL *s)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, size_t, SSL_client_hello_get0_session_id, (SSL *s, const unsigned char **out)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, size_t, SSL_client_hello_get0_ciphers, (SSL *s, const unsigned char **out)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, uint64_t, SSL_set_options, (SSL *s, uint64_t op)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_set_num_tickets, (SSL *s, size_t num_tickets)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_set_session, (SSL *to, SSL_SESSION *session)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_in_init, (const SSL *s)) \
	/* Pre-shared keys: SSL_CTX_set_psk_find_session_callback(3), SSL_CTX_set_psk_use_session_callback(3),
	 * SSL_CTX_set_psk_client_callback(3), SSL_SESSION_set1_id(3) */ \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_set_psk_find_session_callback, \
		(SSL *s, int (*cb)(SSL *, const unsigned char *, size_t, SSL_SESSION **))) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_set_psk_use_session_callback, \
		(SSL *s, int (*cb)(SSL *, const EVP_MD *, const unsigned char **, size_t *, SSL_SESSION **))) \
	X(SSL, OSSL_V1_1_1, OPTIONAL, void, SSL_set_psk_client_callback, \
		(SSL *s, unsigned int (*cb)(SSL *, const char *, char *, unsigned int, unsigned char *, unsigned int))) \
	X(SSL, OSSL_V1_1_1, OPTIONAL, void, SSL_set_psk_server_callback, \
		(SSL *s, unsigned int (*cb)(SSL *, const char *, unsigned char *, unsigned int))) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_set_ciphersuites, (SSL *s, const char *str)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_set_cipher_list, (SSL *s, const char *str)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, const SSL_CIPHER *, SSL_CIPHER_find, (SSL *ssl, const unsigned char *ptr)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_CIPHER_get_auth_nid, (const SSL_CIPHER *c)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, SSL_SESSION *, SSL_SESSION_new, (void)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_SESSION_set1_master_key, (SSL_SESSION *sess, const unsigned char *in, size_t len)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_SESSION_set1_id_context, \
		(SSL_SESSION *s, const unsigned char *sid_ctx, unsigned int sid_ctx_len)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_SESSION_set_cipher, (SSL_SESSION *s, const SSL_CIPHER *cipher)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_SESSION_set_protocol_version, (SSL_SESSION *s, int version)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, long, SSL_CTX_set_timeout, (SSL_CTX *ctx, long t)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_SESSION_free, (SSL_SESSION *ses)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, const unsigned char *, SSL_SESSION_get_id, (const SSL_SESSION *s, unsigned int *len)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, i2d_SSL_SESSION, (OSSL_CONST_SINCE_3_0 SSL_SESSION *in, unsigned char **pp)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, SSL_SESSION *, d2i_SSL_SESSION, (SSL_SESSION **a, const unsigned char **pp, long length)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_MAC_CTX_set_params, (EVP_MAC_CTX *ctx, const OSSL_PARAM *params)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, int, HMAC_Init_ex, \
		(HMAC_CTX *ctx, const void *key, int len, const EVP_MD *md, ENGINE *impl)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, const EVP_CIPHER *, EVP_aes_128_cbc, (void)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, const EVP_CIPHER *, EVP_aes_256_cbc, (void)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, RAND_bytes, (unsigned char *buf, int num)) \
	/* Records: EVP_EncryptInit(3), EVP_KDF(3), EVP_KDF-TLS13_KDF(7), EVP_KDF-TLS1_PRF(7), EVP_DigestInit(3), HMAC(3) */ \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, EVP_CIPHER_CTX *, EVP_CIPHER_CTX_new, (void)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, EVP_CIPHER_CTX_free, (EVP_CIPHER_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, EVP_CIPHER_CTX_ctrl, (EVP_CIPHER_CTX *ctx, int type, int arg, void *ptr)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, EVP_CipherInit_ex, (EVP_CIPHER_CTX *ctx, const EVP_CIPHER *cipher, ENGINE *impl, \
		const unsigned char *key, const unsigned char *iv, int enc)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, EVP_CipherUpdate, \
		(EVP_CIPHER_CTX *ctx, unsigned char *out, int *outl, const unsigned char *in, int inl)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, EVP_CipherFinal_ex, (EVP_CIPHER_CTX *ctx, unsigned char *outm, int *outl)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_CipherInit_ex2, (EVP_CIPHER_CTX *ctx, const EVP_CIPHER *cipher, \
		const unsigned char *key, const unsigned char *iv, int enc, const OSSL_PARAM *params)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_CIPHER_CTX_set_params, (EVP_CIPHER_CTX *ctx, const OSSL_PARAM *params)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_CIPHER_CTX_get_params, (EVP_CIPHER_CTX *ctx, OSSL_PARAM *params)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, EVP_CIPHER *, EVP_CIPHER_fetch, \
		(OSSL_LIB_CTX *ctx, const char *algorithm, const char *properties)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, void, EVP_CIPHER_free, (EVP_CIPHER *cipher)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, const EVP_CIPHER *, EVP_aes_128_gcm, (void)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, const EVP_CIPHER *, EVP_aes_256_gcm, (void)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, const EVP_CIPHER *, EVP_chacha20_poly1305, (void)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, EVP_KDF *, EVP_KDF_fetch, \
		(OSSL_LIB_CTX *libctx, const char *algorithm, const char *properties)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, void, EVP_KDF_free, (EVP_KDF *kdf)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, EVP_KDF_CTX *, EVP_KDF_CTX_new, (EVP_KDF *kdf)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, void, EVP_KDF_CTX_free, (EVP_KDF_CTX *ctx)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_KDF_derive, \
		(EVP_KDF_CTX *ctx, unsigned char *key, size_t keylen, const OSSL_PARAM *params)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, const EVP_MD *, EVP_sha256, (void)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, const EVP_MD *, EVP_sha384, (void)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, EVP_Digest, (const void *data, size_t count, unsigned char *md, unsigned int *size, \
		const EVP_MD *type, ENGINE *impl)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, unsigned char *, HMAC, (const EVP_MD *evp_md, const void *key, int key_len, \
		const unsigned char *data, size_t data_len, unsigned char *md, unsigned int *md_len)) \
	X(CRYPTO, OSSL_V3_4, OPTIONAL, int, OSSL_LIB_CTX_get_conf_diagnostics, (OSSL_LIB_CTX *ctx)) \
	X(CRYPTO, OSSL_V3_4, OPTIONAL, void, OSSL_LIB_CTX_set_conf_diagnostics, (OSSL_LIB_CTX *ctx, int value)) \
	X(CRYPTO, OSSL_V1_1_1, OPTIONAL, int, EC_KEY_up_ref, (EC_KEY *key)) \
	X(CRYPTO, OSSL_V1_1_1, OPTIONAL, void, EC_KEY_free, (EC_KEY *key)) \
	X(CRYPTO, OSSL_V1_1_1, OPTIONAL, int, RSA_up_ref, (RSA *r)) \
	X(CRYPTO, OSSL_V1_1_1, OPTIONAL, void, RSA_free, (RSA *r)) \
	X(CRYPTO, OSSL_V1_1_1, OPTIONAL, int, SHA256_Init, (SHA256_CTX *c)) \
	X(CRYPTO, OSSL_V1_1_1, OPTIONAL, int, SHA256_Update, (SHA256_CTX *c, const void *data, size_t len)) \
	X(CRYPTO, OSSL_V1_1_1, OPTIONAL, int, SHA256_Final, (unsigned char *md, SHA256_CTX *c)) \
	X(CRYPTO, OSSL_V1_1_1, OPTIONAL, int, SHA384_Init, (SHA512_CTX *c)) \
	X(CRYPTO, OSSL_V1_1_1, OPTIONAL, int, SHA384_Update, (SHA512_CTX *c, const void *data, size_t len)) \
	X(CRYPTO, OSSL_V1_1_1, OPTIONAL, int, SHA384_Final, (unsigned char *md, SHA512_CTX *c)) \
	/* The slim library context: OSSL_PROVIDER(3), provider-base(7), SSL_CTX_new(3), NCONF_load(3), EVP_MD_fetch(3) */ \
	X(SSL, OSSL_V3_0, REQUIRED, SSL_CTX *, SSL_CTX_new_ex, (OSSL_LIB_CTX *libctx, const char *propq, const SSL_METHOD *meth)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, OSSL_PROVIDER_do_all, \
		(OSSL_LIB_CTX *ctx, int (*cb)(OSSL_PROVIDER *, void *), void *cbdata)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, const char *, OSSL_PROVIDER_get0_name, (const OSSL_PROVIDER *prov)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, OSSL_PROVIDER *, OSSL_PROVIDER_try_load, \
		(OSSL_LIB_CTX *ctx, const char *name, int retain_fallbacks)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, void *, OSSL_PROVIDER_get0_provider_ctx, (const OSSL_PROVIDER *prov)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, const OSSL_ALGORITHM *, OSSL_PROVIDER_query_operation, \
		(const OSSL_PROVIDER *prov, int operation_id, int *no_cache)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, OSSL_PROVIDER_get_capabilities, \
		(const OSSL_PROVIDER *prov, const char *capability, int (*cb)(const OSSL_PARAM *, void *), void *arg)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_default_properties_is_fips_enabled, (OSSL_LIB_CTX *libctx)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, EVP_MD *, EVP_MD_fetch, (OSSL_LIB_CTX *ctx, const char *algorithm, const char *properties)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, void, EVP_MD_free, (EVP_MD *md)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, CONF *, NCONF_new, (CONF_METHOD *meth)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, NCONF_free, (CONF *conf)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, char *, NCONF_get_string, (const CONF *conf, const char *group, const char *name)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, struct stack_st_CONF_VALUE *, NCONF_get_section, (const CONF *conf, const char *section)) \
	/* FIPS mode: fips_module(7), OSSL_PROVIDER(3), CONF_modules_load(3), EVP_set_default_properties(3), RAND_bytes(3),
	 * OPENSSL_info(3) */ \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, int, FIPS_mode, (void)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, int, FIPS_mode_set, (int onoff)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, const char *, OPENSSL_info, (int type)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, CONF *, NCONF_new_ex, (OSSL_LIB_CTX *libctx, CONF_METHOD *meth)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, NCONF_load_bio, (CONF *conf, BIO *bp, long *eline)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, CONF_modules_load, (const CONF *cnf, const char *appname, unsigned long flags)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, BIO *, BIO_new_mem_buf, (const void *buf, int len)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_default_properties_enable_fips, (OSSL_LIB_CTX *libctx, int enable)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_set_default_properties, (OSSL_LIB_CTX *libctx, const char *propq)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, const OSSL_PROVIDER *, EVP_MD_get0_provider, (const EVP_MD *md)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, OSSL_PROVIDER_get_params, (const OSSL_PROVIDER *prov, OSSL_PARAM *params)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, EVP_SIGNATURE *, EVP_SIGNATURE_fetch, \
		(OSSL_LIB_CTX *ctx, const char *algorithm, const char *properties)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, void, EVP_SIGNATURE_free, (EVP_SIGNATURE *signature)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, EVP_KEYEXCH *, EVP_KEYEXCH_fetch, \
		(OSSL_LIB_CTX *ctx, const char *algorithm, const char *properties)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, void, EVP_KEYEXCH_free, (EVP_KEYEXCH *exchange)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, EVP_KEM *, EVP_KEM_fetch, (OSSL_LIB_CTX *ctx, const char *algorithm, const char *properties)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, void, EVP_KEM_free, (EVP_KEM *wrap)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, OSSL_DECODER *, OSSL_DECODER_fetch, \
		(OSSL_LIB_CTX *libctx, const char *name, const char *properties)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, void, OSSL_DECODER_free, (OSSL_DECODER *decoder)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, RAND_bytes_ex, \
		(OSSL_LIB_CTX *ctx, unsigned char *buf, size_t num, unsigned int strength)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, RAND_priv_bytes_ex, \
		(OSSL_LIB_CTX *ctx, unsigned char *buf, size_t num, unsigned int strength)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, RAND_priv_bytes, (unsigned char *buf, int num)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, X509 *, X509_new_ex, (OSSL_LIB_CTX *libctx, const char *propq)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, EVP_PKEY *, d2i_AutoPrivateKey_ex, (EVP_PKEY **a, const unsigned char **in, long len, \
		OSSL_LIB_CTX *libctx, const char *propq)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, EVP_PKEY *, d2i_PrivateKey_ex, (int type, EVP_PKEY **a, const unsigned char **in, long len, \
		OSSL_LIB_CTX *libctx, const char *propq)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_PKEY_get_base_id, (const EVP_PKEY *pkey)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_PKEY_get_security_bits, (const EVP_PKEY *pkey)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, unsigned char *, EVP_Q_mac, (OSSL_LIB_CTX *libctx, const char *name, const char *propq, \
		const char *subalg, const OSSL_PARAM *params, const void *key, size_t keylen, const unsigned char *data, \
		size_t datalen, unsigned char *out, size_t outsize, size_t *outlen)) \
	/* Chains verified by libcrypto: X509_STORE_new(3), X509_STORE_CTX_new(3), X509_VERIFY_PARAM_set_flags(3),
	 * X509_verify_cert(3) */ \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, X509_STORE *, X509_STORE_new, (void)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, X509_STORE_free, (X509_STORE *xs)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_STORE_add_cert, (X509_STORE *xs, OSSL_CONST_SINCE_4_0 X509 *x)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_STORE_set_default_paths, (X509_STORE *xs)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, X509_STORE_set_default_paths_ex, \
		(X509_STORE *xs, OSSL_LIB_CTX *libctx, const char *propq)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, X509_STORE_CTX *, X509_STORE_CTX_new, (void)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, X509_STORE_CTX *, X509_STORE_CTX_new_ex, (OSSL_LIB_CTX *libctx, const char *propq)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, X509_STORE_CTX_free, (X509_STORE_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_STORE_CTX_init, \
		(X509_STORE_CTX *ctx, X509_STORE *trust_store, OSSL_CONST_SINCE_4_0 X509 *target, \
		struct stack_st_X509 *untrusted)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_STORE_CTX_set_purpose, (X509_STORE_CTX *ctx, int purpose)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, X509_VERIFY_PARAM *, X509_STORE_CTX_get0_param, (OSSL_CONST_SINCE_3_0 X509_STORE_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_VERIFY_PARAM_set_flags, (X509_VERIFY_PARAM *param, unsigned long flags)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, X509_VERIFY_PARAM_set_time, (X509_VERIFY_PARAM *param, time_t t)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, X509_VERIFY_PARAM_set_auth_level, (X509_VERIFY_PARAM *param, int auth_level)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, X509_VERIFY_PARAM_set_hostflags, (X509_VERIFY_PARAM *param, unsigned int flags)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_VERIFY_PARAM_set1_host, \
		(X509_VERIFY_PARAM *param, const char *name, size_t namelen)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_VERIFY_PARAM_set1_ip, \
		(X509_VERIFY_PARAM *param, const unsigned char *ip, size_t iplen)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_verify_cert, (X509_STORE_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_STORE_CTX_get_error, (OSSL_CONST_SINCE_3_0 X509_STORE_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_STORE_CTX_get_error_depth, (OSSL_CONST_SINCE_3_0 X509_STORE_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, struct stack_st_X509 *, X509_STORE_CTX_get0_chain, \
		(OSSL_CONST_SINCE_3_0 X509_STORE_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, const char *, X509_verify_cert_error_string, (long n)) \
	/* The host's policy: SSL_CONF_CTX_new(3), SSL_CONF_cmd(3), SSL_CTX_set_options(3), SSL_CTX_set_record_padding_callback(3),
	 * SSL_CTX_set_num_tickets(3) */ \
	X(SSL, OSSL_V1_1_1, REQUIRED, SSL_CONF_CTX *, SSL_CONF_CTX_new, (void)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_CONF_CTX_free, (SSL_CONF_CTX *cctx)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, unsigned int, SSL_CONF_CTX_set_flags, (SSL_CONF_CTX *cctx, unsigned int flags)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, void, SSL_CONF_CTX_set_ssl_ctx, (SSL_CONF_CTX *cctx, SSL_CTX *ctx)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_CONF_cmd, (SSL_CONF_CTX *cctx, const char *cmd, const char *value)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, uint64_t, SSL_CTX_get_options, (const SSL_CTX *ctx)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, size_t, SSL_CTX_get_num_tickets, (const SSL_CTX *ctx)) \
	X(SSL, OSSL_V1_1_1, REQUIRED, int, SSL_CTX_set_block_padding, (SSL_CTX *ctx, size_t block_size)) \
	/* Certificates with ML-DSA signatures: X509_get0_signature(3), OBJ_nid2obj(3), X509_check_purpose(3) */ \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_get_signature_nid, (const X509 *x)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, X509_get0_signature, \
		(const ASN1_BIT_STRING **psig, const X509_ALGOR **palg, const X509 *x)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, ASN1_OBJECT *, OBJ_nid2obj, (int n)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, X509_check_purpose, (OSSL_CONST_SINCE_4_0 X509 *x, int id, int ca)) \
	/* Signers: provider-keymgmt(7), provider-signature(7), EVP_PKEY_fromdata(3), OSSL_PROVIDER_add_builtin(3) */ \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, EVP_PKEY *, X509_get_pubkey, (OSSL_CONST_SINCE_4_0 X509 *x)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, EVP_PKEY *, X509_get0_pubkey, (const X509 *x)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, EVP_PKEY_up_ref, (EVP_PKEY *pkey)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, EVP_PKEY_CTX_free, (EVP_PKEY_CTX *ctx)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, OSSL_PROVIDER_add_builtin, (OSSL_LIB_CTX *ctx, const char *name, \
		int (*init)(const OSSL_CORE_HANDLE *, const OSSL_DISPATCH *, const OSSL_DISPATCH **, void **))) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, EVP_PKEY_CTX *, EVP_PKEY_CTX_new_from_name, \
		(OSSL_LIB_CTX *libctx, const char *name, const char *propquery)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_PKEY_fromdata_init, (EVP_PKEY_CTX *ctx)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_PKEY_fromdata, \
		(EVP_PKEY_CTX *ctx, EVP_PKEY **ppkey, int selection, OSSL_PARAM *params)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_PKEY_export, \
		(const EVP_PKEY *pkey, int selection, int (*cb)(const OSSL_PARAM *, void *), void *arg)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_PKEY_get_params, (const EVP_PKEY *pkey, OSSL_PARAM *params)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_PKEY_get_size, (const EVP_PKEY *pkey)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_PKEY_is_a, (const EVP_PKEY *pkey, const char *name)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_PKEY_eq, (const EVP_PKEY *a, const EVP_PKEY *b)) \
	/* Stores: OSSL_STORE_open(3), OSSL_STORE_INFO(3), UI_UTIL_read_pw(3), UI_new(3), OSSL_STORE_LOADER(3), OSSL_PROVIDER(3) */ \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, OSSL_STORE_CTX *, OSSL_STORE_open, (const char *uri, const UI_METHOD *ui_method, \
		void *ui_data, OSSL_STORE_INFO *(*post_process)(OSSL_STORE_INFO *, void *), void *post_process_data)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, OSSL_STORE_expect, (OSSL_STORE_CTX *ctx, int expected_type)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, OSSL_STORE_INFO *, OSSL_STORE_load, (OSSL_STORE_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, OSSL_STORE_eof, (OSSL_STORE_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, OSSL_STORE_error, (OSSL_STORE_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, OSSL_STORE_close, (OSSL_STORE_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, OSSL_STORE_INFO_get_type, (const OSSL_STORE_INFO *info)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, EVP_PKEY *, OSSL_STORE_INFO_get1_PKEY, (const OSSL_STORE_INFO *info)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, X509 *, OSSL_STORE_INFO_get1_CERT, (const OSSL_STORE_INFO *info)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, OSSL_STORE_INFO_free, (OSSL_STORE_INFO *info)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, OSSL_STORE_LOADER *, OSSL_STORE_LOADER_fetch, \
		(OSSL_LIB_CTX *libctx, const char *scheme, const char *properties)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, OSSL_STORE_LOADER_free, (OSSL_STORE_LOADER *loader)) \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, OSSL_PROVIDER_available, (OSSL_LIB_CTX *ctx, const char *name)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, UI_METHOD *, UI_UTIL_wrap_read_pem_callback, \
		(int (*cb)(char *, int, int, void *), int rwflag)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, UI_destroy_method, (UI_METHOD *ui_method)) \
	X(CRYPTO, OSSL_V1_1_1, OPTIONAL, UI_METHOD *, UI_OpenSSL, (void)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, const UI_METHOD *, UI_null, (void)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, const UI_METHOD *, UI_get_default_method, (void)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, UI_set_default_method, (const UI_METHOD *meth)) \
	/* Keys from stores: EVP_PKEY_sign(3), EVP_PKEY_CTX_ctrl(3), EVP_DigestSignInit(3), d2i_PUBKEY(3) */ \
	X(CRYPTO, OSSL_V3_0, REQUIRED, const OSSL_PROVIDER *, EVP_PKEY_get0_provider, (const EVP_PKEY *key)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, i2d_PUBKEY, (OSSL_CONST_SINCE_3_0 EVP_PKEY *a, unsigned char **out)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, EVP_PKEY_CTX *, EVP_PKEY_CTX_new, (EVP_PKEY *pkey, ENGINE *e)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, EVP_PKEY_CTX_ctrl_str, (EVP_PKEY_CTX *ctx, const char *type, const char *value)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, EVP_PKEY_sign_init, (EVP_PKEY_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, EVP_PKEY_sign, \
		(EVP_PKEY_CTX *ctx, unsigned char *sig, size_t *siglen, const unsigned char *tbs, size_t tbslen)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, EVP_MD_CTX *, EVP_MD_CTX_new, (void)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, void, EVP_MD_CTX_free, (EVP_MD_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, EVP_DigestSignInit, \
		(EVP_MD_CTX *ctx, EVP_PKEY_CTX **pctx, const EVP_MD *type, ENGINE *e, EVP_PKEY *pkey)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, EVP_DigestSign, \
		(EVP_MD_CTX *ctx, unsigned char *sigret, size_t *siglen, const unsigned char *tbs, size_t tbslen)) \
	/* Signatures of revocation lists in FIPS mode: EVP_DigestVerifyInit(3) */ \
	X(CRYPTO, OSSL_V3_0, REQUIRED, int, EVP_DigestVerifyInit_ex, \
		(EVP_MD_CTX *ctx, EVP_PKEY_CTX **pctx, const char *mdname, OSSL_LIB_CTX *libctx, const char *props, EVP_PKEY *pkey, \
			const OSSL_PARAM *params)) \
	X(CRYPTO, OSSL_V1_1_1, REQUIRED, int, EVP_DigestVerify, \
		(EVP_MD_CTX *ctx, const unsigned char *sigret, size_t siglen, const unsigned char *tbs, size_t tbslen)) \
	/* Signers on 1.1.1: ENGINE_new(3), EVP_PKEY_meth_new(3), EVP_PKEY_set1_engine(3), RSA_get_ex_new_index(3) */ \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, ENGINE *, ENGINE_new, (void)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, int, ENGINE_free, (ENGINE *e)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, int, ENGINE_set_id, (ENGINE *e, const char *id)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, int, ENGINE_set_pkey_meths, \
		(ENGINE *e, int (*f)(ENGINE *, EVP_PKEY_METHOD **, const int **, int))) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, EVP_PKEY_METHOD *, EVP_PKEY_meth_new, (int id, int flags)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, void, EVP_PKEY_meth_free, (EVP_PKEY_METHOD *m)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, const EVP_PKEY_METHOD *, EVP_PKEY_meth_find, (int type)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, void, EVP_PKEY_meth_copy, (EVP_PKEY_METHOD *dst, const EVP_PKEY_METHOD *src)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, void, EVP_PKEY_meth_set_sign, (EVP_PKEY_METHOD *m, int (*init)(EVP_PKEY_CTX *), \
		int (*sign)(EVP_PKEY_CTX *, unsigned char *, size_t *, const unsigned char *, size_t))) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, void, EVP_PKEY_meth_set_decrypt, (EVP_PKEY_METHOD *m, int (*init)(EVP_PKEY_CTX *), \
		int (*decrypt)(EVP_PKEY_CTX *, unsigned char *, size_t *, const unsigned char *, size_t))) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, int, EVP_PKEY_set1_engine, (EVP_PKEY *pkey, ENGINE *e)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, EVP_PKEY *, EVP_PKEY_CTX_get0_pkey, (EVP_PKEY_CTX *ctx)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, int, EVP_PKEY_CTX_ctrl, \
		(EVP_PKEY_CTX *ctx, int keytype, int optype, int cmd, int p1, void *p2)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, int, EVP_PKEY_id, (const EVP_PKEY *pkey)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, int, EVP_PKEY_size, (const EVP_PKEY *pkey)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, int, EVP_MD_type, (const EVP_MD *md)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, EVP_PKEY *, d2i_PUBKEY, (EVP_PKEY **a, const unsigned char **in, long len)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, int, CRYPTO_get_ex_new_index, (int class_index, long argl, void *argp, \
		void (*init)(void *, void *, CRYPTO_EX_DATA *, int, long, void *), \
		int (*dup)(CRYPTO_EX_DATA *, const CRYPTO_EX_DATA *, void *, int, long, void *), \
		void (*free)(void *, void *, CRYPTO_EX_DATA *, int, long, void *))) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, RSA *, EVP_PKEY_get0_RSA, (EVP_PKEY *pkey)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, int, RSA_set_ex_data, (RSA *r, int idx, void *arg)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, void *, RSA_get_ex_data, (const RSA *r, int idx)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, EC_KEY *, EVP_PKEY_get0_EC_KEY, (EVP_PKEY *pkey)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, int, EC_KEY_set_ex_data, (EC_KEY *key, int idx, void *arg)) \
	X(CRYPTO, OSSL_V1_1_1, ONLY_1_1_1, void *, EC_KEY_get_ex_data, (const EC_KEY *key, int idx))

/* K(SINCE, NAME, VALUE): OpenSSL's constant NAME, which we call OSSL_NAME. */
#define OSSL_CONSTANTS(K) \
	K(OSSL_V1_1_1, OPENSSL_INIT_NO_ATEXIT, 0x00080000L) \
	K(OSSL_V1_1_1, OPENSSL_VERSION, 0) \
	K(OSSL_V1_1_1, OPENSSL_CFLAGS, 1) \
	K(OSSL_V1_1_1, OPENSSL_DIR, 4) \
	K(OSSL_V3_0, OPENSSL_INFO_MODULES_DIR, 1003) \
	K(OSSL_V3_0, OPENSSL_INFO_DSO_EXTENSION, 1004) \
	/* Error codes: ERR_GET_LIB(3) */ \
	K(OSSL_V3_0, ERR_SYSTEM_FLAG, 0x80000000L) \
	K(OSSL_V3_0, ERR_LIB_OFFSET, 23) \
	K(OSSL_V3_0, ERR_REASON_MASK, 0x7fffff) \
	K(OSSL_V3_0, ERR_R_MALLOC_FAILURE, 0xc0100) \
	K(OSSL_V3_0, ERR_RFLAG_COMMON, 0x80000) \
	K(OSSL_V3_0, ERR_R_EVP_LIB, 0x80006) \
	K(OSSL_V1_1_1, ERR_LIB_SYS, 2) \
	K(OSSL_V1_1_1, ERR_LIB_ASN1, 13) \
	K(OSSL_V1_1_1, ERR_LIB_SSL, 20) \
	K(OSSL_V1_1_1, ERR_LIB_OSSL_STORE, 44) \
	K(OSSL_V1_1_1, ERR_LIB_USER, 128) \
	K(OSSL_V1_1_1, SSL_R_ENCRYPTED_LENGTH_TOO_LONG, 150) \
	K(OSSL_V1_1_1, SSL_R_PACKET_LENGTH_TOO_LONG, 198) \
	K(OSSL_V1_1_1, SSL_R_WRONG_VERSION_NUMBER, 267) \
	K(OSSL_V1_1_1, OSSL_STORE_R_UNREGISTERED_SCHEME, 105) \
	K(OSSL_V1_1_1, BIO_TYPE_SOURCE_SINK, 0x0400) \
	K(OSSL_V1_1_1, BIO_FLAGS_READ, 0x01) \
	K(OSSL_V1_1_1, BIO_FLAGS_WRITE, 0x02) \
	K(OSSL_V1_1_1, BIO_FLAGS_RWS, 0x07) \
	K(OSSL_V1_1_1, BIO_FLAGS_SHOULD_RETRY, 0x08) \
	K(OSSL_V1_1_1, BIO_CTRL_INFO, 3) \
	K(OSSL_V1_1_1, BIO_CTRL_FLUSH, 11) \
	K(OSSL_V1_1_1, OSSL_STORE_INFO_NAME, 1) \
	K(OSSL_V3_0, OSSL_STORE_INFO_PKEY, 4) \
	K(OSSL_V3_0, OSSL_STORE_INFO_CERT, 5) \
	K(OSSL_V1_1_1, SSL_ERROR_SSL, 1) \
	K(OSSL_V1_1_1, SSL_ERROR_WANT_READ, 2) \
	K(OSSL_V1_1_1, SSL_ERROR_WANT_WRITE, 3) \
	K(OSSL_V1_1_1, SSL_ERROR_WANT_X509_LOOKUP, 4) \
	K(OSSL_V1_1_1, SSL_ERROR_ZERO_RETURN, 6) \
	K(OSSL_V1_1_1, SSL_ERROR_WANT_CLIENT_HELLO_CB, 11) \
	K(OSSL_V3_0, SSL_ERROR_WANT_RETRY_VERIFY, 12) \
	K(OSSL_V1_1_1, SSL_CTRL_MODE, 33) \
	K(OSSL_V1_1_1, SSL_CTRL_SET_SESS_CACHE_MODE, 44) \
	K(OSSL_V1_1_1, SSL_CTRL_SET_MAX_CERT_LIST, 51) \
	K(OSSL_V1_1_1, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB, 53) \
	K(OSSL_V1_1_1, SSL_CTRL_SET_TLSEXT_HOSTNAME, 55) \
	K(OSSL_V1_1_1, SSL_CTRL_SET_TLSEXT_STATUS_REQ_CB, 63) \
	K(OSSL_V1_1_1, SSL_CTRL_SET_TLSEXT_STATUS_REQ_TYPE, 65) \
	K(OSSL_V1_1_1, SSL_CTRL_GET_TLSEXT_STATUS_REQ_OCSP_RESP, 70) \
	K(OSSL_V1_1_1, SSL_CTRL_SET_TLSEXT_STATUS_REQ_OCSP_RESP, 71) \
	K(OSSL_V1_1_1, SSL_CTRL_SET_GROUPS_LIST, 92) \
	K(OSSL_V1_1_1, SSL_CTRL_SET_SIGALGS_LIST, 98) \
	K(OSSL_V1_1_1, SSL_CTRL_SET_CLIENT_SIGALGS_LIST, 102) \
	K(OSSL_V1_1_1, SSL_CTRL_GET_EXTMS_SUPPORT, 122) \
	K(OSSL_V1_1_1, SSL_CTRL_GET_RAW_CIPHERLIST, 110) \
	K(OSSL_V1_1_1, SSL_CTRL_SET_MIN_PROTO_VERSION, 123) \
	K(OSSL_V1_1_1, SSL_CTRL_SET_MAX_PROTO_VERSION, 124) \
	K(OSSL_V1_1_1, SSL_CTRL_GET_MIN_PROTO_VERSION, 130) \
	K(OSSL_V3_0, SSL_CTRL_SET_RETRY_VERIFY, 136) \
	K(OSSL_V1_1_1, SSL_CTRL_SET_TLSEXT_TICKET_KEY_CB, 72) \
	K(OSSL_V1_1_1, SSL_SESS_CACHE_CLIENT, 0x0001) \
	K(OSSL_V1_1_1, SSL_SESS_CACHE_SERVER, 0x0002) \
	K(OSSL_V1_1_1, SSL_SESS_CACHE_NO_AUTO_CLEAR, 0x0080) \
	K(OSSL_V1_1_1, SSL_SESS_CACHE_NO_INTERNAL, 0x0300) \
	K(OSSL_V1_1_1, SSL_TICKET_SUCCESS, 5) \
	K(OSSL_V1_1_1, SSL_TICKET_SUCCESS_RENEW, 6) \
	K(OSSL_V1_1_1, SSL_TICKET_RETURN_IGNORE_RENEW, 2) \
	K(OSSL_V1_1_1, SSL_TICKET_RETURN_USE, 3) \
	K(OSSL_V1_1_1, SSL_TICKET_RETURN_USE_RENEW, 4) \
	K(OSSL_V1_1_1, TLSEXT_TYPE_server_name, 0) \
	K(OSSL_V1_1_1, TLSEXT_TYPE_ec_point_formats, 11) \
	K(OSSL_V1_1_1, TLSEXT_TYPE_application_layer_protocol_negotiation, 16) \
	K(OSSL_V1_1_1, TLSEXT_TYPE_extended_master_secret, 23) \
	K(OSSL_V1_1_1, TLSEXT_TYPE_session_ticket, 35) \
	K(OSSL_V1_1_1, TLSEXT_TYPE_psk, 41) \
	K(OSSL_V1_1_1, TLSEXT_TYPE_supported_versions, 43) \
	K(OSSL_V1_1_1, TLSEXT_TYPE_psk_kex_modes, 45) \
	K(OSSL_V1_1_1, SSL_MODE_ENABLE_PARTIAL_WRITE, 0x1) \
	K(OSSL_V1_1_1, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, 0x2) \
	K(OSSL_V1_1_1, SSL_MODE_AUTO_RETRY, 0x4) \
	K(OSSL_V1_1_1, SSL_MODE_NO_AUTO_CHAIN, 0x8) \
	K(OSSL_V1_1_1, SSL_MODE_RELEASE_BUFFERS, 0x10) \
	K(OSSL_V1_1_1, SSL_CTRL_CLEAR_CERT_FLAGS, 100) \
	K(OSSL_V1_1_1, SSL_CERT_FLAG_TLS_STRICT, 0x00000001) \
	K(OSSL_V1_1_1, SSL_CERT_FLAG_SUITEB_128_LOS, 0x00030000) \
	K(OSSL_V1_1_1, SSL_CONF_FLAG_FILE, 0x2) \
	K(OSSL_V1_1_1, SSL_CONF_FLAG_CLIENT, 0x4) \
	K(OSSL_V1_1_1, SSL_CONF_FLAG_SERVER, 0x8) \
	K(OSSL_V3_0, SSL_OP_NO_EXTENDED_MASTER_SECRET, 0x00000001) \
	K(OSSL_V1_1_1, SSL_OP_LEGACY_SERVER_CONNECT, 0x00000004) \
	K(OSSL_V3_0, SSL_OP_DISABLE_TLSEXT_CA_NAMES, 0x00000200) \
	K(OSSL_V1_1_1, SSL_OP_ALLOW_NO_DHE_KEX, 0x00000400) \
	K(OSSL_V1_1_1, SSL_OP_ALLOW_UNSAFE_LEGACY_RENEGOTIATION, 0x00040000) \
	K(OSSL_V1_1_1, SSL_OP_NO_ENCRYPT_THEN_MAC, 0x00080000) \
	K(OSSL_V1_1_1, SSL_OP_ENABLE_MIDDLEBOX_COMPAT, 0x00100000) \
	K(OSSL_V1_1_1, SSL_OP_NO_TLSv1_2, 0x08000000) \
	K(OSSL_V1_1_1, SSL_OP_NO_TLSv1_3, 0x20000000) \
	K(OSSL_V1_1_1, SSL_OP_NO_TICKET, 0x00004000) \
	K(OSSL_V1_1_1, SSL_OP_NO_COMPRESSION, 0x00020000) \
	K(OSSL_V1_1_1, SSL_OP_PRIORITIZE_CHACHA, 0x00200000) \
	K(OSSL_V1_1_1, SSL_OP_CIPHER_SERVER_PREFERENCE, 0x00400000) \
	K(OSSL_V1_1_1, SSL_OP_NO_RENEGOTIATION, 0x40000000) \
	K(OSSL_V3_2, SSL_OP_NO_TX_CERTIFICATE_COMPRESSION, (uint64_t)1 << 32) \
	K(OSSL_V3_2, SSL_OP_NO_RX_CERTIFICATE_COMPRESSION, (uint64_t)1 << 33) \
	K(OSSL_V1_1_1, SSL_VERIFY_NONE, 0) \
	K(OSSL_V1_1_1, SSL_VERIFY_PEER, 1) \
	K(OSSL_V1_1_1, SSL_VERIFY_FAIL_IF_NO_PEER_CERT, 2) \
	K(OSSL_V1_1_1, SSL_SENT_SHUTDOWN, 1) \
	K(OSSL_V1_1_1, SSL_RECEIVED_SHUTDOWN, 2) \
	K(OSSL_V1_1_1, SSL_CLIENT_HELLO_SUCCESS, 1) \
	K(OSSL_V1_1_1, SSL_CLIENT_HELLO_ERROR, 0) \
	K(OSSL_V1_1_1, SSL_CLIENT_HELLO_RETRY, -1) \
	K(OSSL_V1_1_1, SSL_TLSEXT_ERR_OK, 0) \
	K(OSSL_V1_1_1, SSL_TLSEXT_ERR_ALERT_FATAL, 2) \
	K(OSSL_V1_1_1, SSL_TLSEXT_ERR_NOACK, 3) \
	K(OSSL_V1_1_1, SSL_CB_READ_ALERT, 0x4004) \
	K(OSSL_V1_1_1, SSL_CB_WRITE_ALERT, 0x4008) \
	K(OSSL_V1_1_1, SSL_KEY_UPDATE_NONE, -1) \
	K(OSSL_V1_1_1, SSL_KEY_UPDATE_REQUESTED, 1) \
	K(OSSL_V1_1_1, SSL3_RT_CHANGE_CIPHER_SPEC, 20) \
	K(OSSL_V1_1_1, SSL3_RT_ALERT, 21) \
	K(OSSL_V1_1_1, SSL3_AL_FATAL, 2) \
	K(OSSL_V1_1_1, SSL3_RT_HANDSHAKE, 22) \
	K(OSSL_V1_1_1, SSL3_RT_APPLICATION_DATA, 23) \
	K(OSSL_V1_1_1, SSL3_RT_HEADER, 0x100) \
	K(OSSL_V1_1_1, SSL3_RT_INNER_CONTENT_TYPE, 0x101) \
	K(OSSL_V1_1_1, SSL3_MT_NEWSESSION_TICKET, 4) \
	K(OSSL_V1_1_1, SSL3_MT_FINISHED, 20) \
	K(OSSL_V1_1_1, SSL3_MT_KEY_UPDATE, 24) \
	K(OSSL_V1_1_1, X509_PURPOSE_SSL_CLIENT, 1) \
	K(OSSL_V1_1_1, X509_PURPOSE_SSL_SERVER, 2) \
	K(OSSL_V1_1_1, X509_V_FLAG_PARTIAL_CHAIN, 0x80000) \
	K(OSSL_V1_1_1, X509_V_FLAG_POLICY_CHECK, 0x80) \
	K(OSSL_V1_1_1, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, 0x4) \
	K(OSSL_V1_1_1, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, 0x20) \
	K(OSSL_V1_1_1, EVP_CTRL_AEAD_GET_TAG, 0x10) \
	K(OSSL_V1_1_1, EVP_CTRL_AEAD_SET_TAG, 0x11) \
	K(OSSL_V3_0, EVP_KDF_HKDF_MODE_EXTRACT_ONLY, 1) \
	K(OSSL_V3_0, EVP_KDF_HKDF_MODE_EXPAND_ONLY, 2) \
	K(OSSL_V1_1_1, SSL_AD_UNEXPECTED_MESSAGE, 10) \
	K(OSSL_V1_1_1, SSL_AD_BAD_RECORD_MAC, 20) \
	K(OSSL_V1_1_1, SSL_AD_RECORD_OVERFLOW, 22) \
	K(OSSL_V1_1_1, SSL_AD_HANDSHAKE_FAILURE, 40) \
	K(OSSL_V1_1_1, SSL_AD_ILLEGAL_PARAMETER, 47) \
	K(OSSL_V1_1_1, SSL_AD_DECODE_ERROR, 50) \
	K(OSSL_V1_1_1, SSL_AD_MISSING_EXTENSION, 109) \
	K(OSSL_V1_1_1, SSL_AD_PROTOCOL_VERSION, 70) \
	K(OSSL_V1_1_1, SSL3_MT_CLIENT_HELLO, 1) \
	K(OSSL_V1_1_1, SSL3_MT_SERVER_HELLO, 2) \
	K(OSSL_V1_1_1, SSL3_MT_CERTIFICATE, 11) \
	K(OSSL_V1_1_1, SSL3_MT_SERVER_KEY_EXCHANGE, 12) \
	K(OSSL_V1_1_1, SSL3_MT_CERTIFICATE_REQUEST, 13) \
	K(OSSL_V1_1_1, TLSEXT_NAMETYPE_host_name, 0) \
	K(OSSL_V1_1_1, TLSEXT_STATUSTYPE_ocsp, 1) \
	K(OSSL_V1_1_1, TLSEXT_TYPE_signed_certificate_timestamp, 18) \
	K(OSSL_V1_1_1, SSL_EXT_CLIENT_HELLO, 0x0080) \
	K(OSSL_V1_1_1, SSL_EXT_TLS1_2_SERVER_HELLO, 0x0100) \
	K(OSSL_V1_1_1, SSL_EXT_TLS1_3_CERTIFICATE, 0x1000) \
	K(OSSL_V1_1_1, SSL_EXT_TLS1_3_CERTIFICATE_REQUEST, 0x4000) \
	K(OSSL_V1_1_1, SSL_AD_INTERNAL_ERROR, 80) \
	K(OSSL_V1_1_1, TLS1_2_VERSION, 0x0303) \
	K(OSSL_V1_1_1, TLS1_3_VERSION, 0x0304) \
	K(OSSL_V1_1_1, X509_V_OK, 0) \
	K(OSSL_V1_1_1, X509_V_ERR_UNSPECIFIED, 1) \
	K(OSSL_V1_1_1, X509_V_ERR_CERT_HAS_EXPIRED, 10) \
	K(OSSL_V1_1_1, X509_V_ERR_OUT_OF_MEM, 17) \
	K(OSSL_V1_1_1, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, 20) \
	K(OSSL_V1_1_1, X509_V_ERR_INVALID_PURPOSE, 26) \
	K(OSSL_V1_1_1, X509_V_ERR_CERT_REJECTED, 28) \
	K(OSSL_V1_1_1, X509_V_ERR_APPLICATION_VERIFICATION, 50) \
	/* Providers: openssl/core_dispatch.h and core.h */ \
	K(OSSL_V3_0, OSSL_OP_DIGEST, 1) \
	K(OSSL_V3_0, OSSL_OP_CIPHER, 2) \
	K(OSSL_V3_0, OSSL_OP_MAC, 3) \
	K(OSSL_V3_0, OSSL_OP_KDF, 4) \
	K(OSSL_V3_0, OSSL_OP_RAND, 5) \
	K(OSSL_V3_0, OSSL_OP_KEYMGMT, 10) \
	K(OSSL_V3_0, OSSL_OP_SIGNATURE, 12) \
	K(OSSL_V3_0, OSSL_OP_DECODER, 21) \
	K(OSSL_V3_0, OSSL_FUNC_PROVIDER_QUERY_OPERATION, 1027) \
	K(OSSL_V3_0, OSSL_FUNC_PROVIDER_GET_CAPABILITIES, 1030) \
	K(OSSL_V3_0, OSSL_FUNC_MAC_NEWCTX, 1) \
	K(OSSL_V3_0, OSSL_FUNC_MAC_DUPCTX, 2) \
	K(OSSL_V3_0, OSSL_FUNC_MAC_FREECTX, 3) \
	K(OSSL_V3_0, OSSL_FUNC_MAC_INIT, 4) \
	K(OSSL_V3_0, OSSL_FUNC_MAC_UPDATE, 5) \
	K(OSSL_V3_0, OSSL_FUNC_MAC_FINAL, 6) \
	K(OSSL_V3_0, OSSL_FUNC_MAC_GET_CTX_PARAMS, 8) \
	K(OSSL_V3_0, OSSL_FUNC_MAC_SET_CTX_PARAMS, 9) \
	K(OSSL_V3_0, OSSL_FUNC_MAC_GETTABLE_CTX_PARAMS, 11) \
	K(OSSL_V3_0, OSSL_FUNC_MAC_SETTABLE_CTX_PARAMS, 12) \
	K(OSSL_V3_0, OSSL_FUNC_KDF_NEWCTX, 1) \
	K(OSSL_V3_0, OSSL_FUNC_KDF_FREECTX, 3) \
	K(OSSL_V3_0, OSSL_FUNC_KDF_RESET, 4) \
	K(OSSL_V3_0, OSSL_FUNC_KDF_DERIVE, 5) \
	K(OSSL_V3_0, OSSL_FUNC_KDF_SET_CTX_PARAMS, 11) \
	K(OSSL_V3_0, OSSL_FUNC_RAND_NEWCTX, 1) \
	K(OSSL_V3_0, OSSL_FUNC_RAND_FREECTX, 2) \
	K(OSSL_V3_0, OSSL_FUNC_RAND_INSTANTIATE, 3) \
	K(OSSL_V3_0, OSSL_FUNC_RAND_UNINSTANTIATE, 4) \
	K(OSSL_V3_0, OSSL_FUNC_RAND_GENERATE, 5) \
	K(OSSL_V3_0, OSSL_FUNC_RAND_ENABLE_LOCKING, 8) \
	K(OSSL_V3_0, OSSL_FUNC_RAND_GET_CTX_PARAMS, 15) \
	K(OSSL_V3_0, OSSL_FUNC_BIO_READ_EX, 42) \
	K(OSSL_V3_0, OSSL_FUNC_BIO_CTRL, 50) \
	K(OSSL_V3_0, OSSL_FUNC_DECODER_DECODE, 11) \
	K(OSSL_V3_0, OSSL_OBJECT_PKEY, 2) \
	K(OSSL_V3_0, EVP_PKEY_PUBLIC_KEY, 0x86) \
	K(OSSL_V3_0, EVP_PKEY_KEYPAIR, 0x87) \
	K(OSSL_V3_0, OSSL_FUNC_KEYMGMT_NEW, 1) \
	K(OSSL_V3_0, OSSL_FUNC_KEYMGMT_FREE, 10) \
	K(OSSL_V3_0, OSSL_FUNC_KEYMGMT_GET_PARAMS, 11) \
	K(OSSL_V3_0, OSSL_FUNC_KEYMGMT_GETTABLE_PARAMS, 12) \
	K(OSSL_V3_0, OSSL_FUNC_KEYMGMT_QUERY_OPERATION_NAME, 20) \
	K(OSSL_V3_0, OSSL_FUNC_KEYMGMT_HAS, 21) \
	K(OSSL_V3_0, OSSL_FUNC_KEYMGMT_MATCH, 23) \
	K(OSSL_V3_0, OSSL_FUNC_KEYMGMT_IMPORT, 40) \
	K(OSSL_V3_0, OSSL_FUNC_KEYMGMT_IMPORT_TYPES, 41) \
	K(OSSL_V3_0, OSSL_FUNC_KEYMGMT_EXPORT, 42) \
	K(OSSL_V3_0, OSSL_FUNC_KEYMGMT_EXPORT_TYPES, 43) \
	K(OSSL_V3_0, OSSL_FUNC_SIGNATURE_NEWCTX, 1) \
	K(OSSL_V3_0, OSSL_FUNC_SIGNATURE_DIGEST_SIGN_INIT, 8) \
	K(OSSL_V3_0, OSSL_FUNC_SIGNATURE_DIGEST_SIGN, 11) \
	K(OSSL_V3_0, OSSL_FUNC_SIGNATURE_FREECTX, 16) \
	K(OSSL_V3_0, OSSL_FUNC_SIGNATURE_DUPCTX, 17) \
	K(OSSL_V3_0, OSSL_FUNC_SIGNATURE_SET_CTX_PARAMS, 20) \
	K(OSSL_V3_0, OSSL_FUNC_SIGNATURE_SETTABLE_CTX_PARAMS, 21) \
	K(OSSL_V3_0, OSSL_KEYMGMT_SELECT_PRIVATE_KEY, 0x01) \
	K(OSSL_V3_0, OSSL_KEYMGMT_SELECT_KEYPAIR, 0x03) \
	K(OSSL_V3_0, OSSL_PARAM_INTEGER, 1) \
	K(OSSL_V3_0, OSSL_PARAM_UTF8_STRING, 4) \
	K(OSSL_V3_0, OSSL_PARAM_UTF8_PTR, 6) \
	K(OSSL_V3_0, OSSL_PARAM_OCTET_STRING, 5) \
	K(OSSL_V1_1_1, RSA_PKCS1_PADDING, 1) \
	K(OSSL_V1_1_1, RSA_PKCS1_PSS_PADDING, 6) \
	K(OSSL_V1_1_1, RSA_PSS_SALTLEN_DIGEST, -1) \
	/* Signers on 1.1.1 */ \
	K(OSSL_V1_1_1, EVP_PKEY_RSA, 6) \
	K(OSSL_V1_1_1, EVP_PKEY_EC, 408) \
	K(OSSL_V1_1_1, EVP_PKEY_CTRL_GET_MD, 13) \
	K(OSSL_V1_1_1, EVP_PKEY_CTRL_GET_RSA_PADDING, 0x1006) \
	K(OSSL_V1_1_1, EVP_PKEY_CTRL_GET_RSA_PSS_SALTLEN, 0x1007) \
	K(OSSL_V1_1_1, CRYPTO_EX_INDEX_EC_KEY, 8) \
	K(OSSL_V1_1_1, CRYPTO_EX_INDEX_RSA, 9) \
	K(OSSL_V1_1_1, NID_sha1, 64) \
	K(OSSL_V1_1_1, NID_sha224, 675) \
	K(OSSL_V1_1_1, NID_sha256, 672) \
	K(OSSL_V1_1_1, NID_sha384, 673) \
	K(OSSL_V1_1_1, NID_sha512, 674) \
	K(OSSL_V1_1_1, NID_auth_psk, 1048) \
	/* Certificates with ML-DSA signatures */ \
	K(OSSL_V3_5, NID_ML_DSA_44, 1457) \
	K(OSSL_V3_5, NID_ML_DSA_65, 1458) \
	K(OSSL_V3_5, NID_ML_DSA_87, 1459) \
	K(OSSL_V1_1_1, NID_ecdsa_with_SHA256, 794) \
	K(OSSL_V1_1_1, NID_ecdsa_with_SHA384, 795) \
	K(OSSL_V1_1_1, NID_ecdsa_with_SHA512, 796) \
	K(OSSL_V1_1_1, TLSEXT_TYPE_signature_algorithms_cert, 50)

#define OSSL_DECLARE_CONSTANT(since, name, value) static const int64_t OSSL_##name __attribute__((unused)) = value;
OSSL_CONSTANTS(OSSL_DECLARE_CONSTANT)
#undef OSSL_DECLARE_CONSTANT

#endif
