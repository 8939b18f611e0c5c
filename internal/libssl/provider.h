/*
 * The interface between libcrypto and providers, fixed since 3.0: openssl/core.h. For the C files
 * that are providers.
 */
#ifndef OSSL_PROVIDER_H
#define OSSL_PROVIDER_H

#include "private.h"

#include <string.h>

typedef struct ossl_core_bio_st OSSL_CORE_BIO;
typedef int OSSL_CALLBACK(const OSSL_PARAM *params, void *arg);
typedef int OSSL_PASSPHRASE_CALLBACK(char *pass, size_t size, size_t *len, const OSSL_PARAM *params, void *arg);

struct ossl_dispatch_st {
	int function_id;
	void (*function)(void);
};

struct ossl_param_st {
	const char *key;
	unsigned int data_type;
	void *data;
	size_t data_size;
	size_t return_size;
};

struct ossl_algorithm_st {
	const char *names, *properties;
	const OSSL_DISPATCH *functions;
	const char *description;
};

static inline OSSL_PARAM param(const char *key, long type, const void *data, size_t len)
{
	OSSL_PARAM p = {key, (unsigned)type, (void *)data, len, (size_t)-1}; /* OSSL_PARAM_UNMODIFIED */

	return p;
}

/* Answers a request for a number that is 0 or more. Returns 1 or 0. */
static inline int param_put(OSSL_PARAM *p, uint64_t value)
{
	if (p->data_size == sizeof(uint32_t))
		memcpy(p->data, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
	else if (p->data_size == sizeof value)
		memcpy(p->data, &value, sizeof value);
	else
		return 0;
	p->return_size = p->data_size;
	return 1;
}

/* Adds a function to a table. Its ids are not constant expressions here. */
#define PUT(table, n, id, f) ((table)[n].function_id = (int)OSSL_OSSL_FUNC_##id, (table)[n].function = (void (*)(void))(f), (n)++)

#endif
