//go:build ignore

/*
 * A malloc for LD_PRELOAD that never reuses memory, and gives each object cache lines of its own. So a line that several
 * operations write to belongs to an object that outlives them. It makes no atomic writes itself.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { CHUNK = 64 << 20, LINE = 64 };

static __thread char *next __attribute__((tls_model("initial-exec"))), *limit __attribute__((tls_model("initial-exec")));

static void *take(size_t size, size_t align)
{
	size_t need = size + 2 * LINE + align;
	uintptr_t p;

	if (need < size)
		return NULL;
	if (!next || (size_t)(limit - next) < need) {
		size_t n = need > CHUNK ? need : CHUNK;
		char *m = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (m == MAP_FAILED)
			return NULL;
		next = m;
		limit = m + n;
	}
	/* realloc needs the size. */
	p = ((uintptr_t)next + sizeof size + align - 1) & ~(uintptr_t)(align - 1);
	((size_t *)p)[-1] = size;
	next = (char *)((p + size + LINE - 1) & ~(uintptr_t)(LINE - 1));
	return (void *)p;
}

void *malloc(size_t n) { return take(n, LINE); }
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t k) { return k && n > SIZE_MAX / k ? NULL : take(n * k, LINE); }
size_t malloc_usable_size(void *p) { return p ? ((size_t *)p)[-1] : 0; }
void *realloc(void *p, size_t n)
{
	void *q = take(n, LINE);
	size_t old = malloc_usable_size(p);

	if (p && q)
		memcpy(q, p, old < n ? old : n);
	return q;
}
void *memalign(size_t a, size_t n) { return take(n, a > LINE ? a : LINE); }
void *aligned_alloc(size_t a, size_t n) { return memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) { return (*p = memalign(a, n)) ? 0 : ENOMEM; }
