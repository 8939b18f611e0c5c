/*
 * The function table: one pointer for each symbol of api.h. Private to the C files of this package.
 */
#ifndef OSSL_TABLE_H
#define OSSL_TABLE_H

#include "api.h"

typedef struct {
#define OSSL_MEMBER(lib, since, need, ret, name, params) ret(*name) params;
	OSSL_API(OSSL_MEMBER)
#undef OSSL_MEMBER
} ossl_table;

/* Filled once by ossl_load, before any other function here is called, and never changed again. */
extern ossl_table ossl_fn;

/* Makes the BIO method and the ex_data of connections. Returns 1, or 0 if memory is short. */
int ossl_bio_setup(void);

#endif
