/*
 * The time of operations over loopback TCP, the server in a thread of its own: NewHandshake and
 * NewConnections of package bench, without Go.
 */

#include "floor.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The number of TCP connections that are made at a time, as in package bench. */
enum { BATCH = 16 };

static int listen_on(struct sockaddr_in *address)
{
	socklen_t len = sizeof *address;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	must_system(fd >= 0, "socket");
	must_system(bind(fd, (struct sockaddr *)address, sizeof *address) == 0, "bind");
	must_system(listen(fd, BATCH) == 0, "listen");
	must_system(getsockname(fd, (struct sockaddr *)address, &len) == 0, "getsockname");
	return fd;
}

static int without_delay(int fd)
{
	int on = 1;

	must_system(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "TCP_NODELAY");
	return fd;
}

static int dial(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	must_system(fd >= 0, "socket");
	must_system(connect(fd, (const struct sockaddr *)address, sizeof *address) == 0, "connect");
	return without_delay(fd);
}

static void wait_for(sem_t *s)
{
	while (sem_wait(s) != 0)
		must_system(errno == EINTR, "sem_wait");
}

/* Makes an end and does its part of the operation. */
static end run_end(ends *e, int server, int fd)
{
	end new = end_open(e, server);

	must(floor_fn.SSL_set_fd(new.ssl, fd) == 1, "SSL_set_fd");
	while (!end_turn(&new))
		; /* retries after a signal */
	return new;
}

typedef struct {
	ends *ends;
	int listener;
	struct sockaddr_in address;
	sem_t go, done; /* signal the beginning and the end of an operation of the server */
	/* The server's input and its results. Each belongs to the thread that was signalled last. */
	int fd, stop; /* of handshakes */
	end served;
	int resumed; /* of connections: whether the server's was */
	int closing; /* atomic: no more connections */
} bench;

static void *serve_handshakes(void *arg)
{
	bench *b = arg;

	for (;;) {
		wait_for(&b->go);
		if (b->stop)
			return NULL;
		b->served = run_end(b->ends, 1, b->fd);
		must_system(sem_post(&b->done) == 0, "sem_post");
	}
}

/* One batch: from connected sockets to the end of both handshakes. */
static long handshakes(bench *b, limit l, long ops, int64_t *took)
{
	int client_fd[BATCH], server_fd[BATCH], i, n;
	end client[BATCH], server[BATCH];

	for (i = 0; i < BATCH; i++) {
		client_fd[i] = dial(&b->address);
		server_fd[i] = accept(b->listener, NULL, NULL);
		must_system(server_fd[i] >= 0, "accept");
		without_delay(server_fd[i]);
	}
	for (n = 0; n < BATCH && (l.n ? ops < l.n : *took < l.ns); n++, ops++) {
		int64_t start = clock_now(CLOCK_MONOTONIC);

		b->fd = server_fd[n];
		must_system(sem_post(&b->go) == 0, "sem_post");
		client[n] = run_end(b->ends, 0, client_fd[n]);
		wait_for(&b->done);
		*took += clock_now(CLOCK_MONOTONIC) - start;
		server[n] = b->served;
	}
	for (i = 0; i < BATCH; i++) {
		if (i < n) {
			check_resumed(0, end_check(&client[i]), end_check(&server[i]));
			end_close(&client[i]);
			end_close(&server[i]);
		}
		must_system(close(client_fd[i]) == 0 && close(server_fd[i]) == 0, "close");
	}
	return ops;
}

static void *serve_connections(void *arg)
{
	bench *b = arg;

	for (;;) {
		int fd = accept(b->listener, NULL, NULL);
		end server;

		if (fd < 0 && __atomic_load_n(&b->closing, __ATOMIC_ACQUIRE))
			return NULL;
		must_system(fd >= 0, "accept");
		server = run_end(b->ends, 1, without_delay(fd));
		b->resumed = end_check(&server);
		end_shutdown(&server);
		end_close(&server);
		must_system(close(fd) == 0, "close");
		must_system(sem_post(&b->done) == 0, "sem_post");
	}
}

/* One connection, from connecting to closing on both sides. */
static void connection(bench *b)
{
	int want = b->ends->row->resume && b->ends->session, resumed, fd = dial(&b->address);
	end client = run_end(b->ends, 0, fd);

	resumed = end_check(&client);
	end_shutdown(&client);
	end_close(&client);
	must_system(close(fd) == 0, "close");
	wait_for(&b->done);
	check_resumed(want, resumed, b->resumed);
}

static long connections(bench *b, limit l, long ops, int64_t *took)
{
	int64_t start = clock_now(CLOCK_MONOTONIC);

	do {
		connection(b);
		ops++;
		*took = clock_now(CLOCK_MONOTONIC) - start;
	} while (l.n ? ops < l.n : *took < l.ns);
	return ops;
}

long loopback(ends *e, limit l, int64_t *took)
{
	bench b = {.ends = e};
	pthread_t server;
	int64_t unused = 0;
	long ops = 0;

	*took = 0;
	b.listener = listen_on(&b.address);
	must_system(sem_init(&b.go, 0, 0) == 0 && sem_init(&b.done, 0, 0) == 0, "sem_init");
	must(pthread_create(&server, NULL, e->row->connection ? serve_connections : serve_handshakes, &b) == 0, "pthread_create");
	if (e->row->connection) {
		connection(&b); /* a warm-up, which makes the session that the next one resumes */
		check_session(e);
		ops = connections(&b, l, 0, took);
		__atomic_store_n(&b.closing, 1, __ATOMIC_RELEASE);
		must_system(shutdown(b.listener, SHUT_RDWR) == 0, "shutdown"); /* makes accept fail */
	} else {
		handshakes(&b, (limit){.n = 1}, 0, &unused); /* a warm-up */
		while (l.n ? ops < l.n : *took < l.ns)
			ops = handshakes(&b, l, ops, took);
		b.stop = 1;
		must_system(sem_post(&b.go) == 0, "sem_post");
	}
	must(pthread_join(server, NULL) == 0, "pthread_join");
	must_system(close(b.listener) == 0, "close");
	must_system(sem_destroy(&b.go) == 0 && sem_destroy(&b.done) == 0, "sem_destroy");
	return ops;
}
