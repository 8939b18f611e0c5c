/* Shared libraries on each system: dl_unix.c, dl_windows.c. No function unloads one. */
#ifndef OSSL_DL_H
#define OSSL_DL_H

#include <stddef.h>

/*
 * Loads a library, or finds it loaded. path: borrow, a name or a path. report: size bytes of text.
 * Returns its handle (borrow: it is never freed), or NULL with the system's reason in report.
 * dlopen(3), LoadLibraryEx.
 */
void *dl_open(const char *path, char *report, size_t size);

/*
 * Reports whether a library of this name is in the process: 1, or 0 if not or unknown. dlopen(3).
 */
int dl_is_loaded(const char *name);

/*
 * Returns the folders in which dl_open searches for a name, in order, each followed by a line feed,
 * or NULL if they are unknown. Give: free(3). dlinfo(3), RTLD_DI_SERINFO.
 */
char *dl_search_folders(void);

/*
 * Returns a handle that finds the symbols of the libcrypto that libssl is bound to, or NULL. The
 * handle is borrowed.
 */
void *dl_crypto(void *ssl);

/* Returns the address of a symbol, or NULL. dlsym(3), GetProcAddress. */
void *dl_symbol(void *lib, const char *name);

/*
 * Writes the path of the object that holds an address, with symbolic links resolved. Returns 0, or
 * -1 if unknown. dladdr(3).
 */
int dl_path(const void *address, char *to, size_t size);

/* Reports whether two addresses are in one object: 1, or 0 if not or unknown. */
int dl_same(const void *a, const void *b);

/*
 * Checks that libssl's calls of libcrypto go there: in ELF any object that was in the process
 * before, even the program itself, may define symbols of the same names before libcrypto's. ssl:
 * dl_open's. crypto: an address in libcrypto. Returns the name of a symbol that another object
 * defines, with its address in at, or NULL if there is none.
 */
const char *dl_foreign(void *ssl, const void *crypto, const void **at);

/*
 * Reports whether the program is linked statically, and so has no program loader: 1, or 0 if not or
 * unknown. Loading a library can't work then. dl_iterate_phdr(3).
 */
int dl_static(void);

/*
 * Reports whether the environment must not influence the process, because of its rights: 1 or 0.
 * getauxval(3), issetugid(2).
 */
int dl_privileged(void);

/* Returns the number of the processor that runs this thread, or -1 if it is unknown. sched_getcpu(3). */
int dl_processor(void);

/* Returns the address of glibc's mallinfo2(3), or NULL. */
void *dl_mallinfo(void);

/* Returns the address of glibc's malloc_trim(3), or NULL. */
void *dl_malloc_trim(void);

#endif
