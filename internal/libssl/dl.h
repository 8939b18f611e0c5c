/* Shared libraries, system by system: dl_unix.c, dl_windows.c. Nothing here unloads any. */
#ifndef OSSL_DL_H
#define OSSL_DL_H

#include <stddef.h>

/* Loads a library, or finds it loaded. path: borrow, a name or a path. report: size bytes of text.
 * Returns its handle (borrow: nothing frees it), or NULL with the system's reason in report. dlopen(3), LoadLibraryEx. */
void *dl_open(const char *path, char *report, size_t size);

/* Whether a library of this name is in the process: 1 yes, 0 no or not to be told. dlopen(3). */
int dl_is_loaded(const char *name);

/* A handle that finds the symbols of the libcrypto that libssl has brought, or NULL. The handle is borrowed. */
void *dl_crypto(void *ssl);

/* The address of a symbol, or NULL. dlsym(3), GetProcAddress. */
void *dl_symbol(void *lib, const char *name);

/* The path of the object that holds an address, symbolic links resolved. Returns 0, or -1 when unknown. dladdr(3). */
int dl_path(const void *address, char *to, size_t size);

/* Whether two addresses are in one object: 1 yes, 0 no or unknown. */
int dl_same(const void *a, const void *b);

/* Looks whether what libssl calls in libcrypto is really there: in ELF any object that was in the process before, the program
 * itself included, may have put symbols of the same names before libcrypto's. ssl: dl_open's. crypto: an address in libcrypto.
 * Returns the name of a symbol that is another object's, with its address in at, or NULL if there is none. */
const char *dl_foreign(void *ssl, const void *crypto, const void **at);

/* Whether the process runs with rights that its environment must not steer: 1 yes, 0 no. getauxval(3), issetugid(2). */
int dl_privileged(void);

/* glibc's mallinfo2(3), or NULL. */
void *dl_mallinfo(void);

#endif
