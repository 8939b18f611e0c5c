/* Shared libraries on Windows. */

#include "dl.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

/*
 * The longest path, in characters: too large for a thread's stack. Libraries are loaded by one
 * thread at a time (load.go).
 */
enum { MAX_LONG_PATH = 32768 };

static HMODULE module_of(const void *address)
{
	HMODULE m;

	return GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
		       (LPCSTR)address, &m) ? m : NULL;
}

/*
 * Windows identifies a DLL by its name alone, so anyone who may write to a folder that is searched
 * can replace it. Therefore neither the current folder nor PATH is searched: a name is looked up
 * beside the program and in the system's folder, and a path's imports beside that file and in the
 * system's folder. path is UTF-8.
 */
void *dl_open(const char *path, char *report, size_t size)
{
	static wchar_t wide[MAX_LONG_PATH];
	DWORD flags = LOAD_LIBRARY_SEARCH_SYSTEM32, mode;
	HMODULE lib, pinned;

	if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, MAX_LONG_PATH)) {
		snprintf(report, size, "not a path: error %lu", GetLastError());
		return NULL;
	}
	flags |= strpbrk(path, "\\/") ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR : LOAD_LIBRARY_SEARCH_APPLICATION_DIR;
	SetThreadErrorMode(SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX, &mode); /* no dialogue */
	lib = LoadLibraryExW(wide, NULL, flags);
	if (!lib)
		snprintf(report, size, "LoadLibraryEx: error %lu", GetLastError());
	SetThreadErrorMode(mode, NULL);
	/* Another part of the program may free it any number of times. */
	if (lib)
		GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN, (LPCSTR)lib, &pinned);
	return lib;
}

int dl_is_loaded(const char *name) { return GetModuleHandleA(name) != NULL; }

char *dl_search_folders(void) { return NULL; }

/*
 * GetProcAddress finds only a DLL's own exports. The libcrypto that libssl was bound to is found by
 * following one of its imports: the loader may have used one that was in the process before.
 */
void *dl_crypto(void *ssl)
{
	char *base = ssl;
	const IMAGE_NT_HEADERS *headers = (const IMAGE_NT_HEADERS *)(base + ((const IMAGE_DOS_HEADER *)base)->e_lfanew);
	const IMAGE_DATA_DIRECTORY *imports = &headers->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT];
	const IMAGE_IMPORT_DESCRIPTOR *d;

	if (headers->Signature != IMAGE_NT_SIGNATURE || !imports->VirtualAddress)
		return NULL;
	for (d = (const IMAGE_IMPORT_DESCRIPTOR *)(base + imports->VirtualAddress); d->Name; d++)
		if (_strnicmp(base + d->Name, "libcrypto", 9) == 0)
			return module_of(*(void **)(base + d->FirstThunk));
	return NULL;
}

void *dl_symbol(void *lib, const char *name) { return (void *)(uintptr_t)GetProcAddress(lib, name); }

int dl_path(const void *address, char *to, size_t size)
{
	static wchar_t wide[MAX_LONG_PATH];
	HMODULE m = module_of(address);
	DWORD n = m ? GetModuleFileNameW(m, wide, MAX_LONG_PATH) : 0;

	if (n == 0 || n >= MAX_LONG_PATH)
		return -1;
	return WideCharToMultiByte(CP_UTF8, 0, wide, -1, to, (int)size, NULL, NULL) ? 0 : -1;
}

int dl_same(const void *a, const void *b)
{
	HMODULE m = module_of(a);

	return m && m == module_of(b);
}

/* A DLL's imports name the DLL that they come from. */
const char *dl_foreign(void *ssl, const void *crypto, const void **at)
{
	(void)ssl;
	(void)crypto;
	(void)at;
	return NULL;
}

int dl_static(void) { return 0; }

int dl_privileged(void) { return 0; } /* no program here runs with more rights than the user who started it */

int dl_processor(void) { return (int)GetCurrentProcessorNumber(); } /* in the thread's group */

void *dl_mallinfo(void) { return NULL; }

void *dl_malloc_trim(void) { return NULL; }
