//go:build ossl_faults

/* Allocations that fail, for tests. */

#include "faults.h"

#undef malloc
#undef calloc

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

static void (*thread_stop)(void);
static _Thread_local int last_line; /* of sparse_array.c, if the thread's last allocation was there and has failed */
static atomic_long count, first, end; /* end: 0 while none fails */

int faults_hit(void)
{
	long n;

	if (!atomic_load(&end))
		return 0;
	n = atomic_fetch_add(&count, 1) + 1;
	if (n < atomic_load(&first) || n >= atomic_load(&end))
		return 0;
	errno = ENOMEM;
	return 1;
}

static int is_in(const char *file, const char *name)
{
	const char *last = file ? strrchr(file, '/') : NULL;

	return last && strcmp(last + 1, name) == 0;
}

/*
 * OpenSSL 4.0 can't report that it has no memory for a thread's first variable: the report needs the same
 * variable, without end. So those are spared, of sparse_array.c, which has other uses, the second in a row.
 */
static void *allocate(size_t n, const char *file, int line)
{
	int sparse = is_in(file, "sparse_array.c");
	int spared = is_in(file, "threads_common.c") || (sparse && line == last_line);

	if (!n)
		return NULL;
	last_line = 0;
	if (spared || !faults_hit())
		return malloc(n);
	if (sparse)
		last_line = line;
	return NULL;
}

static void release(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	free(p);
}

static void *reallocate(void *p, size_t n, const char *file, int line)
{
	if (!p)
		return allocate(n, file, line);
	if (n)
		return faults_hit() ? NULL : realloc(p, n);
	free(p);
	return NULL;
}

void faults_take(void *symbol, void *stop)
{
	int (*set)(void *(*)(size_t, const char *, int), void *(*)(void *, size_t, const char *, int),
		void (*)(void *, const char *, int));

	*(void **)&set = symbol;
	*(void **)&thread_stop = stop;
	if (!set || set(allocate, reallocate, release) != 1)
		abort(); /* it was too late */
}

void faults_forget_thread(void) { thread_stop(); }

void faults_begin(long from, long to)
{
	atomic_store(&count, 0);
	atomic_store(&first, from);
	atomic_store(&end, to);
}

long faults_end(void)
{
	atomic_store(&end, 0);
	return atomic_load(&count);
}
