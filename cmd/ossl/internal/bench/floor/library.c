/*
 * Finds the same libssl as ossl: internal/libssl/find.go for Linux, in short.
 * internal/libssl/load.c loads it.
 */

#include "floor.h"

#include "../../../../../internal/libssl/dl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

floor_table floor_fn;

/*
 * The functions that load.c needs from the rest of internal/libssl. There are no window BIOs here.
 */
int ossl_bio_setup(void) { return 1; }

int occupant_setup(void) { return 1; }

static ossl_library library;

/* The attempts and their errors, one per line. */
static char tried[8192];

static int not_used(const char *path, const char *reason)
{
	size_t used = strlen(tried);

	snprintf(tried + used, sizeof tried - used, "\t%s: %s\n", path, reason);
	return 0;
}

/* Reports whether version is spec or a patch release of it. */
static int has_version(const char *version, const char *spec)
{
	size_t len = strlen(spec);

	return strncmp(version, spec, len) == 0 && (!version[len] || version[len] == '.' || islower((unsigned char)version[len]));
}

/* Returns the version of the library found: the second word of "OpenSSL 3.0.19 27 Jan 2026". */
static const char *version_of(const ossl_library *lib)
{
	static char version[64];
	const char *from = strchr(lib->text, ' ');
	size_t len;

	must(from != NULL, "a version without a number");
	len = strcspn(from + 1, " ");
	if (len >= sizeof version)
		len = sizeof version - 1;
	memcpy(version, from + 1, len);
	version[len] = 0;
	return version;
}

/*
 * Writes the path of the libcrypto beside a libssl to to; NULL if there is none, or if path is a
 * name alone.
 */
static const char *crypto_beside(const char *path, char *to, size_t size)
{
	static const char ssl[] = "libssl";
	const char *slash = strrchr(path, '/');
	const char *base = slash ? strstr(slash, ssl) : NULL;

	if (!base || (size_t)snprintf(to, size, "%.*slibcrypto%s", (int)(base - path), path, base + strlen(ssl)) >= size)
		return NULL;
	return access(to, F_OK) == 0 ? to : NULL;
}

/*
 * Tries one candidate. version: nullable, the version that it must have. Returns 1 if it can be
 * used.
 */
static int try(const char *path, const char *version)
{
	char crypto[4096], *report = malloc(ossl_report_size());
	int ok = 0;

	must(report != NULL, "malloc");
	if (ossl_load(path, crypto_beside(path, crypto, sizeof crypto), NULL, &library, report, ossl_report_size()) != 0)
		not_used(path, report);
	else if (version && !has_version(version_of(&library), version))
		not_used(path, "is of another version");
	else if (library.version < OSSL_V3_0)
		not_used(path, "is older than OpenSSL 3.0, which this program needs");
	else if (!ossl_load_begin())
		not_used(path, "can't be initialized");
	else if (ossl_use(report, ossl_report_size()) != 0)
		not_used(path, report);
	else
		ok = 1;
	free(report);
	return ok;
}

/* Tries libssl.so.4 and so on, in dir unless that is NULL; major: nullable, the only one to try. */
static int try_majors(const char *dir, const char *major, const char *version)
{
	static const char *const majors[] = {"4", "3", "1.1"};
	char path[4096];
	size_t i;

	for (i = 0; i < sizeof majors / sizeof majors[0]; i++) {
		if (major && strcmp(major, majors[i]) != 0)
			continue;
		if ((size_t)snprintf(path, sizeof path, "%s%slibssl.so.%s", dir ? dir : "", dir ? "/" : "", majors[i]) >= sizeof path)
			return 0;
		if ((!dir || access(path, F_OK) == 0) && try(path, version))
			return 1;
	}
	return 0;
}

static int find(void)
{
	const char *spec = getenv("OSSL_LIBRARY");
	char major[16];

	if (!spec || !*spec)
		return try_majors(NULL, NULL, NULL);
	if (isdigit((unsigned char)spec[0]) && !strchr(spec, '/')) {
		snprintf(major, sizeof major, "%.*s", (int)strcspn(spec, "."), spec);
		return try_majors(NULL, strcmp(major, "1") == 0 ? "1.1" : major, spec);
	}
	return try_majors(spec, NULL, NULL) || try(spec, NULL);
}

const char *library_load(void)
{
	char report[256];
	void *ssl;

	if (!find()) {
		fprintf(stderr, "floor: no libssl that can be measured; tried:\n%s", tried);
		exit(CANT_RUN);
	}
	ssl = dl_open(library.ssl, report, sizeof report); /* a second time: for its handle */
	must(ssl != NULL, library.ssl);
#define FLOOR_LOAD(lib, since, need, ret, name, params) \
	*(void **)&floor_fn.name = dl_symbol(ssl, #name); \
	must(floor_fn.name != NULL, #name " is missing");
	FLOOR_API(FLOOR_LOAD)
#undef FLOOR_LOAD
	return version_of(&library);
}
