/* Calls that can be paused: coroutine.c. */
#ifndef OSSL_COROUTINE_H
#define OSSL_COROUTINE_H

#include <stddef.h>

/*
 * libssl asks for signatures, for verdicts on chains and for decisions on sessions in the middle of
 * SSL_do_handshake(3). A coroutine runs that call on a stack of its own, so that it can stop there,
 * return to Go, and continue with Go's answer, even on another thread. While it is paused it holds
 * its stack, but no thread unless coroutine_holds_thread returns 1.
 */
typedef struct coroutine coroutine;

/*
 * Reports whether a paused coroutine holds a thread: 1 if coroutine.c can't switch stacks on this
 * system, else 0.
 */
int coroutine_holds_thread(void);

/*
 * Makes a coroutine for one call of body. Returns give (coroutine_free), or NULL if there is no
 * memory for its stack.
 */
coroutine *coroutine_new(void (*body)(void *arg), void *arg);

/* Sets the number of stacks to keep for later coroutines. There are at least 64. */
void coroutine_keep(size_t n);

/* Runs it until it pauses, then returns 1, or until body has returned, then returns 0. */
int coroutine_resume(coroutine *co);

/* Pauses it, from within body. Returns when it is resumed. */
void coroutine_pause(coroutine *co);

/* Frees a coroutine whose body has returned or was never started. */
void coroutine_free(coroutine *co);

#endif
