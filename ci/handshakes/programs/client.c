/*
 * usage: client PORT CA VERSION WAY CLIENTS FULL RESUMED PID…
 *
 * Makes FULL connections that end before the handshake begins, one after the other, then as many without a session, then RESUMED
 * that resume the session of the one before, by WAY: ticket or id. CLIENTS processes do it at a time, and share them. Prints the
 * processor time that the processes PID… took for one connection of each of the three kinds, in nanoseconds.
 * A connection that was resumed and should not have been, or the reverse, ends it with an error.
 */

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "../../clients/programs/connect.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

enum { MAX_PROCESSES = 16, WARM_UP = 20 };

static SSL_CTX *context;
static SSL_SESSION *session; /* the newest */
static int brought;          /* sessions that the connection has brought */
static int port, version;
static clockid_t clocks[MAX_PROCESSES];
static int processes;

static void fail(const char *what, int code)
{
	fprintf(stderr, "client: %s: %d\n", what, code);
	ERR_print_errors_fp(stderr);
	exit(1);
}

/* Counts the sessions that libssl has from the server: with a full handshake of TLS 1.2, with each ticket of TLS 1.3. */
static int count(SSL *ssl, SSL_SESSION *made)
{
	(void)ssl;
	(void)made;
	brought++;
	return 0;
}

static int dial(void)
{
	int fd = connect_to(port);

	if (fd < 0)
		fail("connect", errno);
	return fd;
}

/* Ends a connection and waits until the server has too. */
static void hang_up(int fd)
{
	char rest[256];

	if (shutdown(fd, SHUT_WR) != 0)
		fail("shutdown", errno);
	while (read(fd, rest, sizeof rest) > 0)
		;
	close(fd);
}

/* One connection: the handshake, the ticket if it comes after it, and the end, for which it waits. */
static void handshake(int resume)
{
	char rest[256];
	int n, fd = dial();
	SSL *ssl = SSL_new(context);

	if (!ssl || SSL_set_fd(ssl, fd) != 1 || SSL_set_tlsext_host_name(ssl, "localhost") != 1 ||
		SSL_set1_host(ssl, "localhost") != 1)
		fail("set up", 0);
	if (resume && SSL_set_session(ssl, session) != 1)
		fail("set the session", 0);
	brought = 0;
	if ((n = SSL_connect(ssl)) != 1)
		fail("handshake", SSL_get_error(ssl, n));
	if (SSL_version(ssl) != version)
		fail("another version", SSL_version(ssl));
	if (SSL_session_reused(ssl) != resume)
		fail(resume ? "not resumed" : "resumed", 0);
	/* Without SSL_MODE_AUTO_RETRY it returns when a ticket was read. */
	while (version == TLS1_3_VERSION && brought == 0)
		if ((n = SSL_read(ssl, rest, sizeof rest)) > 0 || SSL_get_error(ssl, n) != SSL_ERROR_WANT_READ)
			fail("no ticket", SSL_get_error(ssl, n));
	if (!resume && brought == 0)
		fail("no session", 0);
	SSL_SESSION_free(session);
	session = SSL_get1_session(ssl); /* with its newest ticket; crypto/tls gives one whenever it resumes */
	if (SSL_shutdown(ssl) < 0)
		fail("close notify", 0);
	hang_up(fd);
	SSL_free(ssl);
}

enum kind { NONE, FULL, RESUMED };

static void visit(enum kind kind)
{
	if (kind == NONE)
		hang_up(dial());
	else
		handshake(kind == RESUMED);
}

static long long used(void)
{
	long long sum = 0;
	struct timespec t;
	int i;

	for (i = 0; i < processes; i++) {
		if (clock_gettime(clocks[i], &t) != 0)
			fail("a server's clock", errno);
		sum += t.tv_sec * 1000000000LL + t.tv_nsec;
	}
	return sum;
}

/* Has each of so many processes make n connections, and waits for them. */
static void visits(int clients, int n, enum kind kind)
{
	int i, status, failed = 0;

	if (clients == 1) {
		while (n-- > 0)
			visit(kind);
		return;
	}
	for (i = 0; i < clients; i++) {
		switch (fork()) {
		case -1:
			fail("fork", errno);
			break;
		case 0:
			while (n-- > 0)
				visit(kind);
			_exit(0);
		}
	}
	for (i = 0; i < clients; i++)
		if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
			failed++;
	if (failed)
		fail("processes failed", failed);
}

static long long each(int clients, int n, enum kind kind)
{
	long long before;

	visits(1, WARM_UP, kind);
	before = used();
	n = (n + clients - 1) / clients;
	visits(clients, n, kind);
	return (used() - before) / n / clients;
}

int main(int argc, char **argv)
{
	long long none, full, resumed;
	int i, clients;

	if (argc < 9 || argc - 8 > MAX_PROCESSES || atoi(argv[5]) < 1 || atoi(argv[6]) < 1 || atoi(argv[7]) < 1) {
		fprintf(stderr, "usage: client PORT CA VERSION WAY CLIENTS FULL RESUMED PID...\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	port = atoi(argv[1]);
	version = strcmp(argv[3], "1.3") == 0 ? TLS1_3_VERSION : TLS1_2_VERSION;
	for (; processes < argc - 8; processes++)
		if ((i = clock_getcpuclockid(atoi(argv[8 + processes]), &clocks[processes])) != 0)
			fail("a server's clock", i);

	context = SSL_CTX_new(TLS_client_method());
	/* Every server is left no choice: the group and the suite are the same for all. */
	if (!context || SSL_CTX_load_verify_locations(context, argv[2], NULL) != 1 ||
		SSL_CTX_set_min_proto_version(context, version) != 1 || SSL_CTX_set_max_proto_version(context, version) != 1 ||
		SSL_CTX_set1_groups_list(context, "X25519:P-256") != 1 ||
		SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") != 1 ||
		SSL_CTX_set_cipher_list(context, "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256") != 1)
		fail("context", 0);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(context, count);
	if (strcmp(argv[4], "id") == 0)
		SSL_CTX_set_options(context, SSL_OP_NO_TICKET);

	clients = atoi(argv[5]);
	none = each(clients, atoi(argv[6]), NONE);
	full = each(clients, atoi(argv[6]), FULL);
	resumed = each(clients, atoi(argv[7]), RESUMED);
	printf("%lld %lld %lld\n", none, full, resumed);
	return 0;
}
