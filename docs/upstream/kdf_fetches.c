/*
 * Counts the calls of EVP_KDF_fetch() that libssl makes in a TLS 1.3 connection, by interposing the function. With an argument it
 * also measures the cost of a fetch, if 1, 2, 4 … THREADS threads make them at once.
 *
 *	cc -O2 -o kdf_fetches kdf_fetches.c -lssl -lcrypto -ldl -lpthread && ./kdf_fetches [THREADS]
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

static int *counter; /* of the end whose function runs, or NULL */

/* libssl's calls come here, since the program's symbols precede libcrypto's. */
EVP_KDF *EVP_KDF_fetch(OSSL_LIB_CTX *libctx, const char *algorithm, const char *properties)
{
	static EVP_KDF *(*real)(OSSL_LIB_CTX *, const char *, const char *);

	if (!real)
		real = (EVP_KDF * (*)(OSSL_LIB_CTX *, const char *, const char *)) dlsym(RTLD_NEXT, "EVP_KDF_fetch");
	if (counter && strcmp(algorithm, "TLS13-KDF") == 0)
		++*counter;
	return real(libctx, algorithm, properties);
}

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s failed\n", what);
	ERR_print_errors_fp(stderr);
	exit(1);
}

/* Gives a context a new key and a certificate that it has signed itself. */
static void certify(SSL_CTX *ctx)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();

	must(key && cert, "key");
	X509_gmtime_adj(X509_getm_notBefore(cert), 0);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	must(X509_set_pubkey(cert, key) && X509_sign(cert, key, EVP_sha256()), "certificate");
	must(SSL_CTX_use_certificate(ctx, cert) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1, "SSL_CTX");
	X509_free(cert);
	EVP_PKEY_free(key);
}

/* Makes a connection, and returns its session for the next one. */
static SSL_SESSION *connect_once(SSL_CTX *server_ctx, SSL_CTX *client_ctx, SSL_SESSION *session, int fetches[2])
{
	SSL *client = SSL_new(client_ctx), *server = SSL_new(server_ctx);
	BIO *a, *b;
	char byte;
	int client_done = 0, server_done = 0;

	must(client && server && BIO_new_bio_pair(&a, 1 << 16, &b, 1 << 16) == 1, "SSL");
	SSL_set_bio(client, a, a);
	SSL_set_bio(server, b, b);
	SSL_set_connect_state(client);
	SSL_set_accept_state(server);
	if (session)
		must(SSL_set_session(client, session) == 1, "SSL_set_session");
	while (!client_done || !server_done) {
		counter = &fetches[0];
		client_done = SSL_do_handshake(client) == 1;
		counter = &fetches[1];
		server_done = SSL_do_handshake(server) == 1;
	}
	counter = &fetches[0];
	SSL_read(client, &byte, 1); /* the tickets */
	counter = NULL;
	must(SSL_version(client) == TLS1_3_VERSION && SSL_session_reused(client) == (session != NULL), "handshake");
	SSL_SESSION_free(session);
	session = SSL_get1_session(client);
	SSL_shutdown(client); /* a session of a connection that was cut off isn't resumed */
	SSL_free(client);
	SSL_free(server);
	return session;
}

enum { FETCHES = 200000 };

static void *fetch(void *kept)
{
	int i;

	for (i = 0; i < FETCHES; i++) { /* what libssl does for each secret, key and IV, without the derivation */
		EVP_KDF *kdf = kept ? kept : EVP_KDF_fetch(NULL, "TLS13-KDF", NULL);

		EVP_KDF_CTX_free(EVP_KDF_CTX_new(kdf));
		if (!kept)
			EVP_KDF_free(kdf);
	}
	return NULL;
}

/* Prints the processor time of a fetch and a context, for some threads at once. */
static void measure(int threads, EVP_KDF *kept, const char *name)
{
	pthread_t all[1024];
	struct timespec from, to;
	int i;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	for (i = 0; i < threads; i++)
		must(pthread_create(&all[i], NULL, fetch, kept) == 0, "thread");
	for (i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	printf("%-32s %4d threads: %7.0f ns\n", name, threads,
		((to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / threads / FETCHES);
}

int main(int argc, char **argv)
{
	SSL_CTX *server = SSL_CTX_new(TLS_server_method()), *client = SSL_CTX_new(TLS_client_method());
	int i, n, threads = argc > 1 ? atoi(argv[1]) : 1;
	SSL_SESSION *session;

	must(server && client && threads > 0 && threads <= 1024, "start");
	certify(server);
	SSL_CTX_set_session_cache_mode(client, SSL_SESS_CACHE_CLIENT);
	puts(OpenSSL_version(OPENSSL_VERSION));
	for (i = 0; i < 2; i++) {
		int fetches[2] = {0, 0};

		session = connect_once(server, client, i == 0 ? NULL : session, fetches);
		printf("%-8s EVP_KDF_fetch(\"TLS13-KDF\"): client %d, server %d\n", i == 0 ? "full" : "resumed", fetches[0], fetches[1]);
	}
	SSL_SESSION_free(session);
	for (n = 1; argc > 1 && n <= threads; n *= 2) {
		EVP_KDF *kept = EVP_KDF_fetch(NULL, "TLS13-KDF", NULL);

		measure(n, NULL, "fetch, EVP_KDF_CTX_new, free");
		measure(n, kept, "EVP_KDF_CTX_new, free");
		EVP_KDF_free(kept);
	}
	SSL_CTX_free(server);
	SSL_CTX_free(client);
	return 0;
}
