/*
 * The random generator of the slim library context (slim.c): that of the default library context or, in
 * other shards than the first, of the holder.
 *
 * The slim context itself would have further generators, seeded again for each thread. And from
 * 3.2 on they can't be created, since a DRBG of the default provider looks for that provider under
 * our provider's name. So libssl's requests to the slim context, for hello randoms, session IDs,
 * IVs and ticket keys, are answered by RAND_bytes_ex(3), which also makes the bytes of keys.
 */

#include "slim.h"

#include <string.h>

enum { STRENGTH = 256, MAX_REQUEST = 1 << 16, READY = 1 };

static void *new_ctx(void *provider, void *parent, const OSSL_DISPATCH *parent_functions)
{
	(void)parent;
	(void)parent_functions;
	return slim_holder(provider); /* there is no state */
}

static void free_ctx(void *ctx) { (void)ctx; }

static int instantiate(void *ctx, unsigned int strength, int prediction_resistance, const unsigned char *personal, size_t len,
	const OSSL_PARAM *params)
{
	(void)ctx;
	(void)prediction_resistance;
	(void)personal;
	(void)len;
	(void)params;
	return strength <= STRENGTH;
}

static int uninstantiate(void *ctx)
{
	(void)ctx;
	return 1;
}

/*
 * With NULL for ctx it would ask the thread's default library context, which may be the slim one: libssl
 * sets it while it executes openssl.cnf's policy.
 */
static int generate(void *ctx, unsigned char *out, size_t len, unsigned int strength, int prediction_resistance,
	const unsigned char *additional, size_t additional_len)
{
	(void)additional;
	(void)additional_len;
	return !prediction_resistance && ossl_fn.RAND_bytes_ex(ctx, out, len, strength) == 1;
}

/* The generator used here has locks. */
static int enable_locking(void *ctx)
{
	(void)ctx;
	return 1;
}

/* EVP_RAND(3), "PARAMETERS" */
static int get_params(void *ctx, OSSL_PARAM *p)
{
	int ok = 1;

	(void)ctx;
	for (; ok && p && p->key; p++) {
		if (strcmp(p->key, "state") == 0)
			ok = param_put(p, READY);
		else if (strcmp(p->key, "strength") == 0)
			ok = param_put(p, STRENGTH);
		else if (strcmp(p->key, "max_request") == 0)
			ok = param_put(p, MAX_REQUEST);
	}
	return ok;
}

OSSL_DISPATCH slim_random[9];

void slim_random_setup(void)
{
	size_t n = 0;

	PUT(slim_random, n, RAND_NEWCTX, new_ctx);
	PUT(slim_random, n, RAND_FREECTX, free_ctx);
	PUT(slim_random, n, RAND_INSTANTIATE, instantiate);
	PUT(slim_random, n, RAND_UNINSTANTIATE, uninstantiate);
	PUT(slim_random, n, RAND_GENERATE, generate);
	PUT(slim_random, n, RAND_ENABLE_LOCKING, enable_locking);
	PUT(slim_random, n, RAND_GET_CTX_PARAMS, get_params);
}
