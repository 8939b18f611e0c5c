//go:build unix

/* Shared libraries with dlopen. */

#define _GNU_SOURCE /* dladdr, dlinfo */

#include "dl.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif
#ifdef __GLIBC__
#include <link.h>
#endif

/*
 * NODELETE: another part of the program may close the library any number of times. Threads that
 * have used OpenSSL run its destructors when they exit, and Go's threads may exit at any time.
 */
enum { MODE = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };

void *dl_open(const char *path, char *report, size_t size)
{
	void *lib = dlopen(path, MODE);
	const char *reason;

	if (!lib) {
		reason = dlerror();
		snprintf(report, size, "%s", reason ? reason : "unknown error");
	}
	return lib;
}

int dl_is_loaded(const char *name) { return dlopen(name, MODE | RTLD_NOLOAD) != NULL; }

#ifdef __GLIBC__

char *dl_search_folders(void)
{
	static const char here = 0; /* dlopen searches for the object that calls it */
	struct link_map *self = NULL;
	Dl_serinfo head, *info;
	Dl_info unused;
	int (*addr1)(const void *, Dl_info *, void **, int);
	char *list = NULL, *end;
	size_t size = 1;
	unsigned i;

	/* Looked up, since a build without cgo has one object for all C libraries, and musl's has no dladdr1. */
	*(void **)&addr1 = dlsym(RTLD_DEFAULT, "dladdr1");
	if (!addr1 || !addr1(&here, &unused, (void **)&self, RTLD_DL_LINKMAP) || dlinfo(self, RTLD_DI_SERINFOSIZE, &head) != 0)
		return NULL;
	info = malloc(head.dls_size);
	if (!info || dlinfo(self, RTLD_DI_SERINFOSIZE, info) != 0 || dlinfo(self, RTLD_DI_SERINFO, info) != 0)
		goto done;
	for (i = 0; i < info->dls_cnt; i++)
		size += strlen(info->dls_serpath[i].dls_name) + 1;
	list = end = malloc(size);
	for (i = 0; list && i < info->dls_cnt; i++)
		end += sprintf(end, "%s\n", info->dls_serpath[i].dls_name);
done:
	free(info);
	return list;
}

#else

char *dl_search_folders(void) { return NULL; }

#endif

/* A lookup by libssl's handle searches libssl's own dependencies, so the pair always matches. */
void *dl_crypto(void *ssl) { return ssl; }

void *dl_symbol(void *lib, const char *name) { return dlsym(lib, name); }

int dl_privileged(void)
{
#ifdef __linux__
	return getauxval(AT_SECURE) != 0;
#else
	return issetugid();
#endif
}

static int no_processor(void) { return -1; }

/* Neither macOS nor an old musl has the function. */
int dl_processor(void)
{
	static int (*known)(void); /* atomic */
	int (*current)(void) = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (!current) {
		*(void **)&current = dlsym(RTLD_DEFAULT, "sched_getcpu");
		if (!current)
			current = no_processor;
		__atomic_store_n(&known, current, __ATOMIC_RELAXED);
	}
	return current();
}

void *dl_mallinfo(void) { return dlsym(RTLD_DEFAULT, "mallinfo2"); }

void *dl_malloc_trim(void) { return dlsym(RTLD_DEFAULT, "malloc_trim"); }

/* The address range of the object that holds an address, and its path, "" for the program. */
typedef struct {
	uintptr_t of, from, to;
	const char *name;
} extent;

#if (defined(__linux__) && !defined(__ANDROID__)) || defined(__FreeBSD__) || defined(__NetBSD__)

#include <link.h>

/* Looks at the first object, which is the program: elf(5), PT_INTERP. */
static int find_loader(struct dl_phdr_info *info, size_t size, void *found)
{
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_INTERP)
			*(int *)found = 1;
	return 1;
}

/*
 * glibc's dlopen works in a static program, but the loaded library uses a second copy of glibc,
 * without this program's thread-local storage, and crashes at its first use of threads. musl's
 * dlopen refuses.
 */
int dl_static(void)
{
	int found = 0;

	return dl_iterate_phdr(find_loader, &found) == 1 && !found;
}

static int extent_of(struct dl_phdr_info *info, size_t size, void *arg)
{
	extent *e = arg;
	uintptr_t from = UINTPTR_MAX, to = 0;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		if (at < from)
			from = at;
		if (at + info->dlpi_phdr[i].p_memsz > to)
			to = at + info->dlpi_phdr[i].p_memsz;
	}
	if (e->of < from || e->of >= to)
		return 0;
	e->from = from;
	e->to = to;
	e->name = info->dlpi_name;
	return 1;
}

static int find_extent(const void *address, extent *e)
{
	e->of = (uintptr_t)address;
	return dl_iterate_phdr(extent_of, e) == 1;
}

static int is_within(const void *address, const extent *e)
{
	return (uintptr_t)address >= e->from && (uintptr_t)address < e->to;
}

int dl_same(const void *a, const void *b)
{
	extent e;

	return find_extent(a, &e) && is_within(b, &e);
}

/* The dynamic section of an object: its symbols and the tables of relocations. */
typedef struct {
	const struct link_map *map;
	const char *names;
	const ElfW(Sym) *symbols;
	struct {
		const char *at;
		size_t size, step;
	} tables[3]; /* RELA, REL, and the procedure linkage table's */
} dynamic;

/* Some C libraries have added the load address to the section's values, others have not. */
static const char *section_at(const struct link_map *map, ElfW(Addr) at)
{
	return (const char *)(at < map->l_addr ? at + map->l_addr : at);
}

static void read_dynamic(dynamic *d)
{
	const ElfW(Dyn) *entry;

	for (entry = d->map->l_ld; entry->d_tag != DT_NULL; entry++) {
		const char *at = section_at(d->map, entry->d_un.d_ptr);
		size_t value = (size_t)entry->d_un.d_val;

		switch (entry->d_tag) {
		case DT_STRTAB:
			d->names = at;
			break;
		case DT_SYMTAB:
			d->symbols = (const ElfW(Sym) *)at;
			break;
		case DT_RELA:
			d->tables[0].at = at;
			d->tables[0].step = sizeof(ElfW(Rela));
			break;
		case DT_RELASZ:
			d->tables[0].size = value;
			break;
		case DT_REL:
			d->tables[1].at = at;
			d->tables[1].step = sizeof(ElfW(Rel));
			break;
		case DT_RELSZ:
			d->tables[1].size = value;
			break;
		case DT_JMPREL:
			d->tables[2].at = at;
			break;
		case DT_PLTRELSZ:
			d->tables[2].size = value;
			break;
		case DT_PLTREL:
			d->tables[2].step = value == DT_RELA ? sizeof(ElfW(Rela)) : sizeof(ElfW(Rel));
			break;
		}
	}
}

/* Returns the name of another object's function that a relocation refers to, or NULL. */
static const char *wanted(const dynamic *d, const ElfW(Rel) *r)
{
	size_t index = sizeof r->r_info == 8 ? (size_t)((uint64_t)r->r_info >> 32) : (size_t)(r->r_info >> 8);
	const ElfW(Sym) *symbol = &d->symbols[index];
	int type = symbol->st_info & 15;

	if (index == 0 || symbol->st_shndx != SHN_UNDEF || (type != STT_FUNC && type != STT_NOTYPE))
		return NULL;
	return d->names + symbol->st_name;
}

const char *dl_foreign(void *ssl, const void *crypto, const void **at)
{
	dynamic d = {0};
	struct link_map *map;
	extent libcrypto, libssl;
	size_t i, pos;

	if (dlinfo(ssl, RTLD_DI_LINKMAP, &map) != 0 || !find_extent(crypto, &libcrypto) || !find_extent(map->l_ld, &libssl))
		return NULL;
	d.map = map;
	read_dynamic(&d);
	if (!d.names || !d.symbols)
		return NULL;
	for (i = 0; i < 3; i++) {
		for (pos = 0; d.tables[i].at && d.tables[i].step && pos + d.tables[i].step <= d.tables[i].size; pos += d.tables[i].step) {
			/* Rela begins with the fields of Rel. */
			const ElfW(Rel) *r = (const ElfW(Rel) *)(d.tables[i].at + pos);
			const char *name = wanted(&d, r);
			const void *bound, *own;

			if (!name)
				continue;
			bound = *(void *const *)(map->l_addr + r->r_offset);
			if (is_within(bound, &libcrypto)) /* as most are: a lookup takes longer */
				continue;
			own = dlsym(ssl, name);
			if (!own || !is_within(own, &libcrypto))
				continue;
			/* libssl was loaded before, with lazy binding, and this symbol is not bound yet. It
			 * will be bound to the process's first definition, if there is one. */
			if (is_within(bound, &libssl)) {
				bound = dlsym(RTLD_DEFAULT, name);
				if (!bound)
					continue;
			}
			if (bound != own) {
				*at = bound;
				return name;
			}
		}
	}
	return NULL;
}

#else

int dl_static(void) { return 0; }

static int find_extent(const void *address, extent *e)
{
	(void)address;
	(void)e;
	return 0;
}

int dl_same(const void *a, const void *b)
{
	Dl_info x, y;

	return dladdr(a, &x) && dladdr(b, &y) && x.dli_fbase == y.dli_fbase;
}

/* On other systems a library's calls name the library that they go to. */
const char *dl_foreign(void *ssl, const void *crypto, const void **at)
{
	(void)ssl;
	(void)crypto;
	(void)at;
	return NULL;
}

#endif

int dl_path(const void *address, char *to, size_t size)
{
	char resolved[PATH_MAX];
	const char *path = "";
	Dl_info info;
	extent e;

	if (find_extent(address, &e))
		path = e.name;
	if (!*path && (!dladdr(address, &info) || !(path = info.dli_fname))) /* which also searches the object's symbols */
		return -1;
	snprintf(to, size, "%s", realpath(path, resolved) ? resolved : path);
	return 0;
}
