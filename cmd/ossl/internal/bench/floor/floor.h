/*
 * Declarations shared by the files of the floor. Every function that can fail exits with a message
 * instead of returning.
 */
#ifndef FLOOR_H
#define FLOOR_H

#include "../../../../../internal/libssl/private.h"
#include "api.h"

/* The symbols of both lists: ossl_fn has internal/libssl's. */
typedef struct {
#define FLOOR_MEMBER(lib, since, need, ret, name, params) ret(*name) params;
	FLOOR_API(FLOOR_MEMBER)
#undef FLOOR_MEMBER
} floor_table;
extern floor_table floor_fn;

/* Exit statuses. CANT_RUN: the program is fine, but there is no OpenSSL that it can measure. */
enum { FAILED = 1, USAGE = 2, CANT_RUN = 3 };

/*
 * Exits with FAILED, after a message with what and OpenSSL's error, if this thread has one.
 */
_Noreturn void fail(const char *what);

/* Is like fail for a system call, whose error is in errno. */
_Noreturn void fail_system(const char *what);

static inline void must(int ok, const char *what)
{
	if (!ok)
		fail(what);
}

static inline void must_system(int ok, const char *what)
{
	if (!ok)
		fail_system(what);
}

/*
 * Loads the libssl that ossl would load, and returns its version ("3.0.19"); the process keeps it.
 * Exits with CANT_RUN if there is none, or if it is older than 3.0.
 */
const char *library_load(void);

/* A row's parameters: see package bench's benchmarks of the same names. */
typedef struct {
	const char *cert; /* P256 or RSA2048 */
	int version;      /* OSSL_TLS1_2_VERSION or OSSL_TLS1_3_VERSION */
	int mutual;       /* the client has a certificate too */
	int connection;   /* a whole connection with an echo, not only a handshake */
	int resume;       /* each connection except the first resumes the previous one's session, by ticket */
} row;

/* The configurations of the client and the server. */
typedef struct {
	const row *row;
	SSL_CTX *server, *client;
	SSL_SESSION *session; /* the client's newest, which the next connection resumes, or NULL; used by the client's thread only */
} ends;

/*
 * Makes the configurations for a row; keys and certificates are made once in the process. give:
 * free with ends_free.
 */
ends *ends_new(const row *r);
void ends_free(ends *e);

/* One end of a connection. */
typedef struct {
	SSL *ssl;
	const row *row;
	int server, stage;
} end;

/*
 * Makes an end, without a transport. A client offers the session that e has, if any. Free with
 * end_close.
 */
end end_open(ends *e, int server);

/*
 * Continues the end's part of the row's operation: the handshake, then the echo if it has one.
 * Returns 1 once that is done, 0 if it waits for the peer, which blocking sockets never do.
 */
int end_turn(end *e);

/* Fails unless the end, when done, matches the row. Returns 1 if it resumed a session, 0 if not. */
int end_check(const end *e);

/* Fails unless client and server resumed a session as wanted, or did not if not wanted. */
void check_resumed(int wanted, int client, int server);

/*
 * Fails unless there is a session for the next connection, if the row resumes. To be called after
 * the first.
 */
void check_session(const ends *e);

/*
 * Closes over blocking sockets in order: sends close_notify, a server after it has received the
 * client's.
 */
void end_shutdown(end *e);

/* Frees the SSL of a closed connection. */
void end_close(end *e);

/* When to stop: after n operations, or if n is 0 after so many nanoseconds. */
typedef struct {
	long n;
	int64_t ns;
} limit;

/*
 * Times operations of a row over loopback TCP, the server in a thread of its own: see loopback.c.
 * Returns their number, and their total time in nanoseconds in took.
 */
long loopback(ends *e, limit l, int64_t *took);

/*
 * Does n operations at most, for about ns nanoseconds, client and server on one thread: see
 * lockstep.c. Stores the processor time that each takes for one operation, in nanoseconds.
 */
void lockstep(ends *e, long n, int64_t ns, double *client, double *server);

/* Nanoseconds on a clock: clock_gettime(2). */
int64_t clock_now(int clock);

#endif
