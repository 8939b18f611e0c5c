/*
 * The start of a process that uses libssl without Go: one server and one client in memory, one
 * handshake, and an echo of a few bytes. It is the lower bound for programs whose start is measured:
 * package startup has the same in Go, and BenchmarkStart compiles and compares them.
 *
 * It loads no more than it calls. Its argument is a folder with cert.pem, key.pem and root.pem. It
 * exits without the library's exit handlers, as Go programs do. Exit status 3: there is no libssl
 * that it can use.
 */

#include "../floor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ossl_table ossl;
static floor_table more;

_Noreturn void fail(const char *what)
{
	fprintf(stderr, "startup: %s\n", what);
	_exit(FAILED);
}

/* Loads the libssl that ossl would load, if that is one for a name or a version. */
static void *load(void)
{
	static const char *const majors[] = {"4", "3", "1.1"};
	const char *version = getenv("OSSL_LIBRARY");
	char name[32];
	void *ssl = NULL;
	size_t i;

	for (i = 0; !ssl && i < sizeof majors / sizeof majors[0]; i++) {
		if (version && strncmp(version, majors[i], strlen(majors[i])) != 0)
			continue;
		snprintf(name, sizeof name, "libssl.so.%s", majors[i]);
		ssl = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	}
	if (!ssl) {
		fputs("startup: no libssl was found by its name\n", stderr);
		exit(CANT_RUN);
	}
	return ssl;
}

static void find(void *ssl)
{
#define FIND(table, name) must((*(void **)&(table).name = dlsym(ssl, #name)) != NULL, #name)
	FIND(ossl, TLS_method);
	FIND(ossl, SSL_CTX_new);
	FIND(ossl, SSL_new);
	FIND(ossl, SSL_set_bio);
	FIND(ossl, SSL_set_accept_state);
	FIND(ossl, SSL_set_connect_state);
	FIND(ossl, SSL_do_handshake);
	FIND(ossl, SSL_get_error);
	FIND(ossl, SSL_read_ex);
	FIND(ossl, SSL_write_ex);
	FIND(more, SSL_CTX_use_certificate_chain_file);
	FIND(more, SSL_CTX_use_PrivateKey_file);
	FIND(more, SSL_CTX_load_verify_locations);
	FIND(more, SSL_CTX_set_verify);
	FIND(more, SSL_set1_host);
	FIND(more, BIO_new_bio_pair);
#undef FIND
}

static const char *in(const char *dir, const char *file)
{
	static char path[4096];

	must((size_t)snprintf(path, sizeof path, "%s/%s", dir, file) < sizeof path, "a long path");
	return path;
}

static SSL *new_server(const char *dir)
{
	SSL_CTX *ctx = ossl.SSL_CTX_new(ossl.TLS_method());
	SSL *s;

	must(ctx && more.SSL_CTX_use_certificate_chain_file(ctx, in(dir, "cert.pem")) == 1 &&
		more.SSL_CTX_use_PrivateKey_file(ctx, in(dir, "key.pem"), (int)FLOOR_X509_FILETYPE_PEM) == 1, "the server's certificate");
	s = ossl.SSL_new(ctx);
	must(s != NULL, "SSL_new");
	ossl.SSL_set_accept_state(s);
	return s;
}

static SSL *new_client(const char *dir)
{
	SSL_CTX *ctx = ossl.SSL_CTX_new(ossl.TLS_method());
	SSL *s;

	must(ctx && more.SSL_CTX_load_verify_locations(ctx, in(dir, "root.pem"), NULL) == 1, "the client's root");
	more.SSL_CTX_set_verify(ctx, (int)OSSL_SSL_VERIFY_PEER, NULL);
	s = ossl.SSL_new(ctx);
	must(s && more.SSL_set1_host(s, "bench.example") == 1, "SSL_set1_host");
	ossl.SSL_set_connect_state(s);
	return s;
}

/* Continues a handshake. Returns 1 once it is done, 0 if it waits for the peer. */
static int shake(SSL *s)
{
	int result = ossl.SSL_do_handshake(s);

	must(result == 1 || ossl.SSL_get_error(s, result) == OSSL_SSL_ERROR_WANT_READ, "SSL_do_handshake");
	return result == 1;
}

static void echo(SSL *from, SSL *to)
{
	char hello[5] = "hello";
	size_t n;

	must(ossl.SSL_write_ex(from, hello, sizeof hello, &n) == 1 && ossl.SSL_read_ex(to, hello, sizeof hello, &n) == 1 &&
		n == sizeof hello, "an echo");
}

int main(int argc, char **argv)
{
	BIO *client_bio, *server_bio;
	SSL *client, *server;
	int turns = 0, done;

	if (argc != 2)
		return USAGE;
	find(load());
	server = new_server(argv[1]);
	client = new_client(argv[1]);
	must(more.BIO_new_bio_pair(&client_bio, 0, &server_bio, 0) == 1, "BIO_new_bio_pair");
	ossl.SSL_set_bio(client, client_bio, client_bio);
	ossl.SSL_set_bio(server, server_bio, server_bio);
	do {
		must(turns++ < 100, "both ends wait for the other");
		done = shake(client);
		done &= shake(server);
	} while (!done);
	echo(client, server);
	echo(server, client);
	_exit(0);
}
