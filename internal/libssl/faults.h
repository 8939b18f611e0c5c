/* Allocations that fail, for tests with the build tag ossl_faults: faults.c. Without it, this file is empty. */
#ifndef OSSL_FAULTS_H
#define OSSL_FAULTS_H
#ifdef OSSL_FAULTS

#include <stdlib.h>

/* Counts an allocation. Reports whether it must fail: 1 or 0. */
int faults_hit(void);

/* libcrypto's allocations are others: faults_take. */
#define malloc(n) (faults_hit() ? NULL : malloc(n))
#define calloc(m, n) (faults_hit() ? NULL : calloc(m, n))
#define mmap(...) (faults_hit() ? MAP_FAILED : mmap(__VA_ARGS__))
#define mprotect(...) (faults_hit() ? -1 : mprotect(__VA_ARGS__))

/*
 * Has libcrypto count its allocations too. set, stop: its CRYPTO_set_mem_functions(3), before any other call,
 * and OPENSSL_thread_stop(3).
 */
void faults_take(void *set, void *stop);

/* Has libcrypto forget this thread: its first error then needs memory, as on a new thread. */
void faults_forget_thread(void);

/* Has the from-th allocation from now on fail, and all others before the to-th. */
void faults_begin(long from, long to);

/* Ends that. Returns the number of allocations since. */
long faults_end(void);

#endif
#endif
