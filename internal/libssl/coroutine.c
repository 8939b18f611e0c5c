/*
 * Coroutines on stacks of their own. On Linux with amd64 or arm64 a pause is a switch of stacks,
 * some two dozen instructions. Elsewhere each coroutine has a thread, and a pause hands over to the
 * thread that resumed it.
 *
 * Code in a coroutine must not keep the address of a thread-local variable across a pause, since it
 * may continue on another thread. libssl and libcrypto don't: they call pthread_getspecific(3) each
 * time, and they hold no lock when they call back for a signature or a verdict. Our own C has no
 * thread-local variables.
 */

#include "coroutine.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__linux__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(OSSL_COROUTINE_THREADS)

#include <sys/mman.h>

#include "faults.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif

/*
 * The stack of a coroutine is address space, of which only the touched pages take memory. Below it
 * is a guard area, larger than the variables of any one function: a stack overflow crashes the
 * process instead of overwriting other memory. Both sizes are multiples of all existing page sizes.
 */
enum { GUARD = 64 << 10, STACK = 1 << 20 };

/* The number of stacks that are kept for later coroutines. A stack that isn't is unmapped, which interrupts
 * all processors of the process. */
static size_t keep = 64; /* guarded by kept_mu */

struct coroutine {
	coroutine *next; /* in the list of kept ones */
	char *mapping; /* GUARD and STACK */
	void *own, *other; /* stack pointers: its own while it is paused, its resumer's while it runs */
	void (*body)(void *arg);
	void *arg;
	int ended;
#if defined(__SANITIZE_ADDRESS__)
	void *fake;
	const void *other_bottom;
	size_t other_size;
#endif
};

int coroutine_holds_thread(void) { return 0; }

/*
 * Saves the callee-saved registers on the stack and the stack pointer in *from, and continues at
 * the point where the stack pointer to was saved.
 */
void ossl_coroutine_switch(void **from, void *to);
/*
 * The first code on a new stack: calls a function whose address and argument are in registers that
 * the switch has loaded.
 */
void ossl_coroutine_entry(void);

/* clang-format off */
#if defined(__x86_64__)
/*
 * System V ABI, AMD64 Architecture Processor Supplement, section 3.2.3: rbx, rbp, r12 to r15, and
 * the control words of SSE and x87.
 */
enum { FRAME = 8, ARGUMENT = 3, FUNCTION = 4, RETURN = 7 }; /* in words from the saved stack pointer */
__asm__(
	".text\n"
	".p2align 4\n"
	".hidden ossl_coroutine_switch\n"
	".globl ossl_coroutine_switch\n"
	".type ossl_coroutine_switch, @function\n"
	"ossl_coroutine_switch:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	subq $8, %rsp\n"
	"	stmxcsr (%rsp)\n"
	"	fnstcw 4(%rsp)\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	ldmxcsr (%rsp)\n"
	"	fldcw 4(%rsp)\n"
	"	addq $8, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size ossl_coroutine_switch, .-ossl_coroutine_switch\n"
	".p2align 4\n"
	".hidden ossl_coroutine_entry\n"
	".globl ossl_coroutine_entry\n"
	".type ossl_coroutine_entry, @function\n"
	"ossl_coroutine_entry:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n" /* debuggers stop here */
	"	movq %r13, %rdi\n"
	"	callq *%r12\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	".size ossl_coroutine_entry, .-ossl_coroutine_entry\n"
);

static void first_frame(void **sp)
{
	uint32_t mxcsr;
	uint16_t x87;

	__asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(x87));
	sp[0] = (void *)((uintptr_t)mxcsr | (uintptr_t)x87 << 32);
}
#else
/* Procedure Call Standard for the Arm 64-bit Architecture, section 6.1: x19 to x30, d8 to d15. */
enum { FRAME = 20, ARGUMENT = 0, FUNCTION = 1, RETURN = 11 };
__asm__(
	".text\n"
	".p2align 4\n"
	".hidden ossl_coroutine_switch\n"
	".globl ossl_coroutine_switch\n"
	".type ossl_coroutine_switch, @function\n"
	"ossl_coroutine_switch:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp]\n"
	"	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n"
	"	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n"
	"	str x9, [x0]\n"
	"	mov sp, x1\n"
	"	ldp x19, x20, [sp]\n"
	"	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n"
	"	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret\n"
	".size ossl_coroutine_switch, .-ossl_coroutine_switch\n"
	".p2align 4\n"
	".hidden ossl_coroutine_entry\n"
	".globl ossl_coroutine_entry\n"
	".type ossl_coroutine_entry, @function\n"
	"ossl_coroutine_entry:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined x30\n"
	"	mov x0, x19\n"
	"	blr x20\n"
	"	brk #0\n"
	"	.cfi_endproc\n"
	".size ossl_coroutine_entry, .-ossl_coroutine_entry\n"
);

static void first_frame(void **sp) { (void)sp; }
#endif
/* clang-format on */

static coroutine *kept; /* guarded by kept_mu */
static size_t kept_n;   /* guarded by kept_mu */
static pthread_mutex_t kept_mu = PTHREAD_MUTEX_INITIALIZER;

/* Returns to the stack that the coroutine was resumed from. */
static void leave(coroutine *co)
{
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_start_switch_fiber(co->ended ? NULL : &co->fake, co->other_bottom, co->other_size);
#endif
	ossl_coroutine_switch(&co->own, co->other);
}

static char *new_mapping(void)
{
	char *p = mmap(NULL, GUARD + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (mprotect(p, GUARD, PROT_NONE) != 0) {
		munmap(p, GUARD + STACK);
		return NULL;
	}
#if defined(__SANITIZE_ADDRESS__)
	__lsan_register_root_region(p + GUARD, STACK);
#endif
	return p;
}

static void main_of(void *arg)
{
	coroutine *co = arg;

#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_finish_switch_fiber(NULL, &co->other_bottom, &co->other_size);
#endif
	co->body(co->arg);
	co->ended = 1;
	leave(co);
	abort(); /* a coroutine that has returned is never resumed */
}

coroutine *coroutine_new(void (*body)(void *arg), void *arg)
{
	coroutine *co;
	void **sp;

	pthread_mutex_lock(&kept_mu);
	co = kept;
	if (co) {
		kept = co->next;
		kept_n--;
	}
	pthread_mutex_unlock(&kept_mu);
	if (!co) {
		co = calloc(1, sizeof *co);
		if (!co)
			return NULL;
		co->mapping = new_mapping();
		if (!co->mapping) {
			free(co);
			return NULL;
		}
	}
	co->body = body;
	co->arg = arg;
	co->ended = 0;
	sp = (void **)(co->mapping + GUARD + STACK) - FRAME;
	first_frame(sp);
	sp[ARGUMENT] = co;
	sp[FUNCTION] = (void *)main_of;
	sp[RETURN] = (void *)ossl_coroutine_entry;
	co->own = sp;
	return co;
}

int coroutine_resume(coroutine *co)
{
#if defined(__SANITIZE_ADDRESS__)
	void *fake;

	__sanitizer_start_switch_fiber(&fake, co->mapping + GUARD, STACK);
#endif
	ossl_coroutine_switch(&co->other, co->own);
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
	return !co->ended;
}

void coroutine_pause(coroutine *co)
{
	leave(co);
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_finish_switch_fiber(co->fake, &co->other_bottom, &co->other_size);
#endif
}

void coroutine_keep(size_t n)
{
	pthread_mutex_lock(&kept_mu);
	keep = n < 64 ? 64 : n;
	pthread_mutex_unlock(&kept_mu);
}

void coroutine_free(coroutine *co)
{
	pthread_mutex_lock(&kept_mu);
	if (kept_n < keep) {
		co->next = kept;
		kept = co;
		kept_n++;
		co = NULL;
	}
	pthread_mutex_unlock(&kept_mu);
	if (!co)
		return;
#if defined(__SANITIZE_ADDRESS__)
	__lsan_unregister_root_region(co->mapping + GUARD, STACK);
#endif
	munmap(co->mapping, GUARD + STACK);
	free(co);
}

#else /* one thread for each coroutine */

#include <signal.h>

enum { STACK = 1 << 20 };

struct coroutine {
	pthread_mutex_t mu;
	pthread_cond_t turn_changed;
	int inside, ended, begun; /* guarded by mu: inside means that it is the coroutine's turn */
	pthread_t thread;
	void (*body)(void *arg);
	void *arg;
};

int coroutine_holds_thread(void) { return 1; }

void coroutine_keep(size_t n) { (void)n; } /* threads are not kept */

/*
 * Gives the turn to the other side, and waits until it is back, or until the coroutine has
 * returned. mu is held.
 */
static void hand_over(coroutine *co, int to)
{
	co->inside = to;
	pthread_cond_broadcast(&co->turn_changed);
	while (co->inside == to && !co->ended)
		pthread_cond_wait(&co->turn_changed, &co->mu);
}

static void *main_of(void *arg)
{
	coroutine *co = arg;

	pthread_mutex_lock(&co->mu);
	while (!co->inside)
		pthread_cond_wait(&co->turn_changed, &co->mu);
	pthread_mutex_unlock(&co->mu);
	if (co->body)
		co->body(co->arg);
	pthread_mutex_lock(&co->mu);
	co->ended = 1;
	pthread_cond_broadcast(&co->turn_changed);
	pthread_mutex_unlock(&co->mu);
	return NULL;
}

coroutine *coroutine_new(void (*body)(void *arg), void *arg)
{
	coroutine *co = calloc(1, sizeof *co);
	pthread_attr_t attributes;
	int failed;
#if !defined(_WIN32)
	sigset_t all, before;
#endif

	if (!co)
		return NULL;
	co->body = body;
	co->arg = arg;
	pthread_mutex_init(&co->mu, NULL);
	pthread_cond_init(&co->turn_changed, NULL);
	failed = pthread_attr_init(&attributes);
	if (!failed) {
		pthread_attr_setstacksize(&attributes, STACK);
#if !defined(_WIN32)
		sigfillset(&all); /* signals are for Go's own threads */
		pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
		failed = pthread_create(&co->thread, &attributes, main_of, co);
#if !defined(_WIN32)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
#endif
		pthread_attr_destroy(&attributes);
	}
	if (!failed)
		return co;
	pthread_cond_destroy(&co->turn_changed);
	pthread_mutex_destroy(&co->mu);
	free(co);
	return NULL;
}

int coroutine_resume(coroutine *co)
{
	int paused;

	pthread_mutex_lock(&co->mu);
	co->begun = 1;
	hand_over(co, 1);
	paused = !co->ended;
	pthread_mutex_unlock(&co->mu);
	return paused;
}

void coroutine_pause(coroutine *co)
{
	pthread_mutex_lock(&co->mu);
	hand_over(co, 0);
	pthread_mutex_unlock(&co->mu);
}

void coroutine_free(coroutine *co)
{
	if (!co->begun) {
		co->body = NULL;
		coroutine_resume(co);
	}
	pthread_join(co->thread, NULL);
	pthread_cond_destroy(&co->turn_changed);
	pthread_mutex_destroy(&co->mu);
	free(co);
}

#endif
