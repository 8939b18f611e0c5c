/* Functions that those clients in C share that request a page. */

#include "connect.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

static void fail(const char *what, int code)
{
	fprintf(stderr, "%s: %d\n", what, code);
	exit(1);
}

static int dial(int port)
{
	int fd = connect_to(port);

	if (fd < 0)
		fail("connect", errno);
	return fd;
}

static void check(const char *answer, size_t n)
{
	static const char head[] = "HTTP/1.1 200 ", tail[] = "\r\n\r\nok\n";

	if (n < sizeof head + sizeof tail || memcmp(answer, head, sizeof head - 1) != 0 ||
		memcmp(answer + n - (sizeof tail - 1), tail, sizeof tail - 1) != 0)
		fail("another answer, bytes", (int)n);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* get makes a connection, with the session of the last one if resume is set. Returns whether it was resumed. */
static int get(int port, int resume);

/*
 * visit is the visit that every client makes: fresh requests with a new session each, then one, and
 * reused more with the session before.
 */
static void visit(int port, int fresh, int reused)
{
	double start = now(), between, again;
	int i, resumed = 0;

	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < fresh; i++)
		get(port, 0);
	between = now();
	get(port, 0);
	again = now();
	for (i = 0; i < reused; i++)
		resumed += get(port, 1);
	printf("seconds %.6f %.6f resumed %d\n", between - start, now() - again, resumed);
}
