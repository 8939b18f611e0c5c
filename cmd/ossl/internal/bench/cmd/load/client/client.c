/*
 * usage: client PORT CA VERSION WAY CLIENTS KIND REQUEST MOST MILLISECONDS
 *
 * One turn: CLIENTS processes at a time make connections of a KIND, each for so many milliseconds, and at most MOST of them
 * together if that isn't 0. The kinds are none (closed before the handshake begins), full and resumed, which resumes the session
 * of the one before, by WAY: ticket or id. If REQUEST is not 0, each connection has a request of so many bytes answered.
 * With the kind kept, each client has one connection, and makes requests over it.
 * It prints "ready" if all is prepared, waits for a line, and in the end prints the number of connections or requests, and the
 * nanoseconds that the clients took.
 * A connection that was resumed and should not have been, or the reverse, makes the program exit with an error.
 */

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "../../../../../../../ci/clients/programs/connect.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CLIENTS = 4096, WARM_UP = 3, MAX_REQUEST = 16384, MIN_REQUEST = 128 };
enum { ANSWER = 1024 }; /* the bytes of the answer's body, as in bare.go */

static SSL_CTX *context;
static SSL_SESSION *session; /* the newest */
static int brought;          /* sessions that the connection has brought */
static int port, version;
static char request[MAX_REQUEST + 1];
static int request_size; /* 0 for none */

static void fail(const char *what, int code)
{
	fprintf(stderr, "client: %s: %d\n", what, code);
	ERR_print_errors_fp(stderr);
	exit(1);
}

/* Counts the sessions that libssl gets from the server: in TLS 1.2 with a full handshake, in TLS 1.3 with each ticket. */
static int count(SSL *ssl, SSL_SESSION *made)
{
	(void)ssl;
	(void)made;
	brought++;
	return 0;
}

/* Each client has an address of its own, since the ports of one suffice for some thousand connections a second. */
static int source = 1;

static int dial(void)
{
	int fd = connect_from(source, port);

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

/* Sends the request, and reads its answer. */
static void ask(SSL *ssl)
{
	char answer[4096];
	const char *end = NULL;
	size_t have = 0;
	int n;

	if ((n = SSL_write(ssl, request, request_size)) != request_size)
		fail("request", SSL_get_error(ssl, n));
	while (!end || have - (size_t)(end + 4 - answer) < ANSWER) {
		/* Without SSL_MODE_AUTO_RETRY it returns when a ticket was read. */
		if ((n = SSL_read(ssl, answer + have, (int)(sizeof answer - 1 - have))) <= 0) {
			if (SSL_get_error(ssl, n) == SSL_ERROR_WANT_READ)
				continue;
			fail("answer", SSL_get_error(ssl, n));
		}
		have += (size_t)n;
		answer[have] = 0;
		end = strstr(answer, "\r\n\r\n");
	}
	if (strncmp(answer, "HTTP/1.1 200 ", 13) != 0)
		fail("the answer is not 200", 0);
}

/* Makes a connection, with its handshake. */
static SSL *shake(int resume)
{
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
	return ssl;
}

/* One connection: the handshake, the request, the ticket if it comes after them, and the end, for which it waits. */
static void handshake(int resume)
{
	char rest[256];
	int n;
	SSL *ssl = shake(resume);

	if (request_size > 0)
		ask(ssl);
	while (version == TLS1_3_VERSION && brought == 0)
		if ((n = SSL_read(ssl, rest, sizeof rest)) > 0 || SSL_get_error(ssl, n) != SSL_ERROR_WANT_READ)
			fail("no ticket", SSL_get_error(ssl, n));
	if (!resume && brought == 0)
		fail("no session", 0);
	SSL_SESSION_free(session);
	session = SSL_get1_session(ssl); /* with its newest ticket; crypto/tls gives one whenever it resumes */
	if (SSL_shutdown(ssl) < 0)
		fail("close notify", 0);
	hang_up(SSL_get_fd(ssl));
	SSL_free(ssl);
}

enum kind { NONE, FULL, RESUMED, KEPT, KINDS };
static const char *const kind_names[KINDS] = {"none", "full", "resumed", "kept"};

static SSL *kept; /* the client's connection */

static void visit(enum kind kind)
{
	if (kind == NONE)
		hang_up(dial());
	else if (kind == KEPT)
		ask(kept);
	else
		handshake(kind == RESUMED);
}

static long long now(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
		fail("the clock", errno);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/*
 * Forks the clients, which wait until the pipe's writing end is closed everywhere. Their counts go to made. Each of those that
 * resume first gets a session of its own, since a server may let a session be resumed only once.
 */
static int fork_clients(int clients, enum kind kind, int most, long long nanoseconds, int *made)
{
	int i, start[2], prepared[2];
	char c;

	if (pipe(start) != 0 || pipe(prepared) != 0)
		fail("pipe", errno);
	for (i = 0; i < clients; i++) {
		int share = most / clients + (i < most % clients);
		long long end;

		switch (fork()) {
		case -1:
			fail("fork", errno);
			break;
		case 0:
			close(start[1]);
			close(prepared[0]);
			prctl(PR_SET_PDEATHSIG, SIGKILL); /* else a client would take the parent's end for the start */
			source += i;
			if (kind == RESUMED)
				visit(FULL);
			if (kind == KEPT)
				kept = shake(0);
			if (write(prepared[1], "", 1) != 1)
				_exit(1);
			close(prepared[1]); /* so that the parent sees if another one fails */
			if (read(start[0], &c, 1) != 0)
				_exit(1);
			for (end = now() + nanoseconds; (most == 0 || made[i] < share) && now() < end; made[i]++)
				visit(kind);
			_exit(0);
		}
	}
	close(start[0]);
	close(prepared[1]);
	for (i = 0; i < clients; i++)
		if (read(prepared[0], &c, 1) != 1)
			fail("a process has failed", i);
	close(prepared[0]);
	return start[1];
}

static int number(const char *text, int least, int most)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*end || end == text || n < least || n > most) {
		fprintf(stderr, "client: %s is not a number from %d to %d\n", text, least, most);
		exit(2);
	}
	return (int)n;
}

static void make_context(const char *ca, const char *way)
{
	context = SSL_CTX_new(TLS_client_method());
	/* Every server is left no choice: the group and the suite are the same for all. */
	if (!context || SSL_CTX_load_verify_locations(context, ca, NULL) != 1 ||
		SSL_CTX_set_min_proto_version(context, version) != 1 || SSL_CTX_set_max_proto_version(context, version) != 1 ||
		SSL_CTX_set1_groups_list(context, "X25519:P-256") != 1 ||
		SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") != 1 ||
		SSL_CTX_set_cipher_list(context, "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256") != 1)
		fail("context", 0);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(context, count);
	if (strcmp(way, "id") == 0)
		SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
}

/* An HTTP/1.1 request with a header that fills it up to its size. */
static void make_request(void)
{
	int n = snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Filler: ");

	memset(request + n, 'x', (size_t)(request_size - n - 4));
	memcpy(request + request_size - 4, "\r\n\r\n", 4);
}

int main(int argc, char **argv)
{
	int i, clients, most, status, start, failed = 0, *made, total = 0;
	long long nanoseconds, began;
	enum kind kind = NONE;

	if (argc != 10) {
		fprintf(stderr, "usage: client PORT CA VERSION WAY CLIENTS KIND REQUEST MOST MILLISECONDS\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	port = number(argv[1], 1, 65535);
	version = strcmp(argv[3], "1.3") == 0 ? TLS1_3_VERSION : TLS1_2_VERSION;
	clients = number(argv[5], 1, MAX_CLIENTS);
	while (kind < KINDS && strcmp(argv[6], kind_names[kind]) != 0)
		kind++;
	if (kind == KINDS)
		fail("no such kind", 0);
	request_size = number(argv[7], 0, MAX_REQUEST);
	if (request_size > 0 && request_size < MIN_REQUEST)
		fail("the request is too small", request_size);
	if (kind == KEPT && request_size == 0)
		fail("no request", 0);
	most = number(argv[8], 0, 1000000000);
	nanoseconds = number(argv[9], 1, 3600000) * 1000000LL;
	make_context(argv[2], argv[4]);
	if (request_size > 0)
		make_request();

	made = mmap(NULL, sizeof *made * (size_t)clients, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		fail("mmap", errno);
	for (i = 0; i < WARM_UP; i++)
		visit(kind == NONE ? NONE : FULL);
	start = fork_clients(clients, kind, most, nanoseconds, made);
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		_exit(1); /* and so do the clients */
	began = now();
	close(start);
	for (i = 0; i < clients; i++)
		if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
			failed++;
	if (failed)
		fail("processes failed", failed);
	for (i = 0; i < clients; i++)
		total += made[i];
	printf("%d %lld\n", total, now() - began);
	return 0;
}
