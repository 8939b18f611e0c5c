/*
 * A provider for tests: OpenSSL's FIPS module under another name. fips_listed_test.go builds it. The
 * module behind it is the value of "behind" in the provider's section. It checks the file that
 * libcrypto says it was loaded from, so that is replaced.
 *
 *   TITLE       the provider's own name for itself
 *   PROPERTY    the property definition of its algorithms, in place of provider=fips,fips=yes
 *   CORE        a function of another library, which this one needs; optional
 *
 * The interface, which has not changed since OpenSSL 3.0: openssl/core.h, openssl/core_dispatch.h.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	int id;
	void (*function)(void);
} dispatch;
typedef struct {
	const char *key;
	unsigned type;
	void *data;
	size_t size, used;
} param;
typedef struct {
	const char *names, *properties;
	const dispatch *functions;
	const char *description;
} algorithm;

enum { CORE_GET_PARAMS = 2, PROVIDER_GET_PARAMS = 1026, PROVIDER_QUERY_OPERATION = 1027, UTF8_PTR = 6 };
enum { OPERATIONS = 64, MOST = 256 };

typedef int init(const void *handle, const dispatch *in, const dispatch **out, void **ctx);
typedef int core_get_params(const void *handle, param *params);
typedef int get_params(void *ctx, param *params);
typedef const algorithm *query_operation(void *ctx, int operation, int *no_cache);

#ifdef CORE
void CORE(void);
void standin_needs(void) { CORE(); }
#endif

static const char *behind;
static core_get_params *core;
static get_params *inner_params;
static query_operation *inner_query;
static algorithm tables[OPERATIONS][MOST + 1]; /* in this file, as a provider's are */

static int our_core_params(const void *handle, param *params)
{
	int ok = core(handle, params);

	for (; params->key; params++)
		if (strcmp(params->key, "module-filename") == 0)
			*(const char **)params->data = behind;
	return ok;
}

static int our_params(void *ctx, param *params)
{
	int ok = inner_params(ctx, params);

	for (; params->key; params++)
		if (strcmp(params->key, "name") == 0)
			*(const char **)params->data = TITLE;
	return ok;
}

static const algorithm *our_query(void *ctx, int operation, int *no_cache)
{
	const algorithm *a = inner_query(ctx, operation, no_cache);
	size_t n;

	if (!a || operation < 0 || operation >= OPERATIONS)
		return NULL;
	for (n = 0; a[n].names && n < MOST; n++) {
		tables[operation][n] = a[n];
		if (strcmp(a[n].properties, "provider=fips,fips=yes") == 0)
			tables[operation][n].properties = PROPERTY;
	}
	return tables[operation];
}

static dispatch *copied(const dispatch *from, int id, void (*function)(void))
{
	size_t n = 0, i;
	dispatch *to;

	while (from[n].id)
		n++;
	to = calloc(n + 1, sizeof *to);
	for (i = 0; i < n; i++) {
		to[i] = from[i];
		if (from[i].id == id)
			to[i].function = function;
	}
	return to;
}

static void (*function_of(const dispatch *d, int id))(void)
{
	for (; d->id; d++)
		if (d->id == id)
			return d->function;
	abort();
}

int OSSL_provider_init(const void *handle, const dispatch *in, const dispatch **out, void **ctx)
{
	param params[] = {{"behind", UTF8_PTR, &behind, sizeof behind, 0}, {NULL, 0, NULL, 0, 0}};
	dispatch *all;
	void *lib;
	init *f;

	core = (core_get_params *)function_of(in, CORE_GET_PARAMS);
	if (!core(handle, params) || !behind)
		return 0;
	lib = dlopen(behind, RTLD_NOW | RTLD_LOCAL);
	f = lib ? (init *)dlsym(lib, "OSSL_provider_init") : NULL;
	if (!f || !f(handle, copied(in, CORE_GET_PARAMS, (void (*)(void))our_core_params), out, ctx))
		return 0;
	inner_params = (get_params *)function_of(*out, PROVIDER_GET_PARAMS);
	inner_query = (query_operation *)function_of(*out, PROVIDER_QUERY_OPERATION);
	all = copied(*out, PROVIDER_GET_PARAMS, (void (*)(void))our_params);
	*out = copied(all, PROVIDER_QUERY_OPERATION, (void (*)(void))our_query);
	return 1;
}
