/*
 * The processor time of each end: SplitCPU of package bench, without Go.
 *
 * The client and the server run on one thread, in turns: each end runs until it needs bytes that
 * the other has not written, over a BIO pair, which is memory. The thread's own clock is read at
 * each turn, and the time for reading it is subtracted. An end's time is measured from SSL_new to
 * SSL_free, both included. It excludes making and freeing the BIO pair, and the checks.
 */

#include "floor.h"

#include <stdlib.h>
#include <time.h>

static int64_t thread_time(void) { return clock_now(CLOCK_THREAD_CPUTIME_ID); }

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Returns the advance of the thread's clock from one reading to the next: the median of many. */
static int64_t reading_time(void)
{
	int64_t steps[101];
	size_t i, n = sizeof steps / sizeof steps[0];

	for (i = 0; i < n; i++) {
		int64_t start = thread_time();

		steps[i] = thread_time() - start;
	}
	qsort(steps, n, sizeof steps[0], compare);
	return steps[n / 2];
}

/* A stopwatch that client and server use in turn. */
typedef struct {
	int64_t since, reading;
} watch;

/* Charges an end with the time since the last reading. */
static void charge(watch *w, int64_t *used)
{
	int64_t now = thread_time(), took = now - w->since - w->reading;

	if (took > 0)
		*used += took;
	w->since = now;
}

/* Gives an end one side of the BIO pair, of which the caller keeps a reference. */
static void set_transport(end *e, BIO *bio)
{
	must(floor_fn.BIO_up_ref(bio) == 1, "BIO_up_ref");
	ossl_fn.SSL_set_bio(e->ssl, bio, bio); /* takes one reference */
}

static void operation(ends *e, int64_t reading, int64_t used[2])
{
	enum { CLIENT, SERVER };
	int want = e->row->resume && e->session, resumed[2], turns = 0, done;
	BIO *bio[2];
	end client, server;
	watch w = {0, reading};

	must(floor_fn.BIO_new_bio_pair(&bio[CLIENT], 0, &bio[SERVER], 0) == 1, "BIO_new_bio_pair");
	w.since = thread_time();
	client = end_open(e, 0);
	set_transport(&client, bio[CLIENT]);
	do {
		must(turns < 100, "both ends wait for the other");
		done = end_turn(&client);
		charge(&w, &used[CLIENT]);
		if (turns++ == 0) {
			server = end_open(e, 1);
			set_transport(&server, bio[SERVER]);
		}
		done &= end_turn(&server);
		charge(&w, &used[SERVER]);
	} while (!done);

	resumed[CLIENT] = end_check(&client);
	resumed[SERVER] = end_check(&server);
	check_resumed(want, resumed[CLIENT], resumed[SERVER]);
	w.since = thread_time();
	end_close(&client);
	charge(&w, &used[CLIENT]);
	end_close(&server);
	charge(&w, &used[SERVER]);
	must(ossl_fn.BIO_free(bio[CLIENT]) == 1 && ossl_fn.BIO_free(bio[SERVER]) == 1, "BIO_free");
}

void lockstep(ends *e, long n, int64_t ns, double *client, double *server)
{
	int64_t used[2] = {0, 0}, reading = reading_time(), start;
	long ops = 0;

	operation(e, reading, used); /* a warm-up, which makes the session that the next one resumes; not counted */
	check_session(e);
	used[0] = used[1] = 0;
	for (start = clock_now(CLOCK_MONOTONIC); ops < n && (ops == 0 || clock_now(CLOCK_MONOTONIC) - start < ns); ops++)
		operation(e, reading, used);
	*client = (double)used[0] / (double)ops;
	*server = (double)used[1] / (double)ops;
}
