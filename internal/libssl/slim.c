/*
 * The slim library context, which makes handshakes with OpenSSL 3.0 and later cheaper.
 *
 * SSL_CTXs, and with them the certificates that peers send, live in a library context whose only
 * provider passes on the algorithms of the default provider, except for the parts that are too
 * expensive for TLS:
 *
 * - Key schedules. A handshake derives some 15 secrets at each end, and most of the cost is
 *   libcrypto's overhead for a hash: fetching, copying, allocating. TLS13-KDF and TLS1-PRF are
 *   schedule.c's: a sixth less for a full handshake, a fifth for a resumed one.
 * - HMAC, of Finished messages and tickets: slimmac.c. It is three to four percent of a handshake.
 * - Peers' public keys, which are decoded once and kept: slimkey.c.
 * - Ciphers in modes that TLS doesn't have: libcrypto makes an object for each, most of 130, when the
 *   first SSL_CTX of a library context asks for one.
 * - On 3.0 and 3.1, decoders. Before 3.2, whenever a certificate is parsed, libcrypto collects all
 *   key managements and all decoders of the library context (58 in Debian 12's) to find the one for
 *   its public key: 105 us per certificate on a machine where the rest of the parsing takes less
 *   than 30. Here it finds only those that a peer's certificate and TLS can need. 3.2 and later
 *   keep the decoders they found, and get them all.
 *
 * Why it is safe:
 *
 * - The cryptography is the default provider's own: digests, key exchanges, signatures, asymmetric
 *   ciphers, MACs except HMAC, and the list of groups are passed on unchanged, as complete tables,
 *   ciphers without some modes, and run with the default provider's own context. Only the use of a
 *   hash by the key schedules and by HMAC is written anew. At its first use it must return the same
 *   bytes as the default provider, for inputs like TLS's, else the default provider computes; and
 *   it supports only the two hashes that TLS 1.2 and 1.3 use.
 * - On 3.0 and 3.1 the following are omitted: all decoders except those for a DER
 *   SubjectPublicKeyInfo; keys on the SM2 curve, which Go's x509 refuses as well; and key
 *   managements that no certificate has and libssl doesn't use (see unused).
 * - Own certificates, and everything else in the process that uses OpenSSL, stay in the default
 *   library context. So do own private keys except EC and RSA ones (slimown.c): libcrypto transfers
 *   such a key's value when it first signs for an SSL_CTX, and keeps that with the key.
 * - Random numbers come from the default library context's generators: those for keys, because the
 *   default provider's algorithms use these, and those for hello randoms, session IDs, IVs and
 *   ticket keys by slimrand.c. In other shards than the first they come from generators of the same
 *   kind, which the default provider makes and seeds from the system, for each thread, as in any library
 *   context. openssl.cnf's settings for generators turn the slim context off, and a RAND_METHOD of the
 *   program applies to all.
 * - openssl.cnf's TLS settings (ssl_conf: MinProtocol, CipherString, ...) are kept once for the
 *   process, and applied to SSL_CTXs of every library context. TestSlimKeepsPolicy pins that.
 * - The slim context and a reference to the default provider are kept until the process exits, so
 *   nothing here is ever unloaded. The tables are made before they are used and never changed:
 *   libcrypto reads them from any thread.
 *
 * When it is used: a handshake of this process has finished, or it has several Contexts
 * (slim.go); the library is 3.x or 4.x, whose hashes schedule.c knows; openssl.cnf, if there is
 * one, sets up only providers, TLS and names of objects; the one active provider is "default", and
 * part of libcrypto; default properties restrict nothing. All algorithms fetched from the default
 * provider here have the same properties, so a default query matches all of them or none: therefore
 * it is enough that one digest can be fetched, and that FIPS is not required. All conditions except
 * the file are checked again for each new context, since other code in the process may load a
 * provider at any time: SSL_CTXs are then made in the default library context.
 *
 * What turns it off: OSSL_SLIM=off in the environment, and any doubt about the conditions above.
 *
 * There are several of them, the shards, so that many processors don't wait for each other. A library
 * context has locks and reference counts that a handshake changes some hundred times: on 3.0 one lock
 * 296 times, which 40 processors at most can do. So the processors are divided among shards,
 * neighbours together, and a connection is made in the shard of the processor on which it starts
 * (part_of in context.c). Each is made when it is first needed. All have the same tables, but the default
 * provider's algorithms also fetch others and draw random bytes, from the context that they run with. So
 * except for the first, each shard has the default provider loaded once more, into a library context
 * that nothing else is in, its holder. Its generators are made and seeded as those of the default library
 * context are: slimrand.c.
 */

#include "dl.h"
#include "modules.h"
#include "private.h"
#include "provider.h"
#include "schedule.h"
#include "slim.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char provider_name[] = "ossl-slim";

/* The shards, NULL until they are needed. The first is NULL if none is used. */
static OSSL_LIB_CTX *libraries[OSSL_MAX_SHARDS]; /* atomic */

static OSSL_LIB_CTX *holders[OSSL_MAX_SHARDS]; /* of the shards except the first */
static void *host_ctxs[OSSL_MAX_SHARDS];       /* atomic: the default provider's context for each shard */

/* Written only by ossl_slim_setup, before the first shard. */
static int processors;
static const OSSL_PROVIDER *host; /* the default provider of the default library context */
static OSSL_ALGORITHM *generators, *key_derivations, *decoders, *ciphers;
static OSSL_ALGORITHM *macs; /* NULL: the default provider's own are used */
static OSSL_ALGORITHM *key_managements; /* NULL from 3.2 on: the default provider's own are used */

int slim_is_named(const OSSL_ALGORITHM *a, const char *name)
{
	size_t len = strlen(name);
	const char *p = a->names;

	while (p) {
		if (strncmp(p, name, len) == 0 && (p[len] == 0 || p[len] == ':'))
			return 1;
		p = strchr(p, ':');
		p = p ? p + 1 : NULL;
	}
	return 0;
}

int slim_is_public_key(const OSSL_ALGORITHM *a)
{
	return strstr(a->properties, "input=der") && strstr(a->properties, "structure=SubjectPublicKeyInfo");
}

/*
 * libssl takes the type of a key from the certificate, so the decoder that determines the type,
 * "DER", is not needed.
 */
static int wanted_decoder(const OSSL_ALGORITHM *a)
{
	return slim_is_public_key(a) && !slim_is_named(a, "DER") && !slim_is_named(a, "SM2");
}

static int wanted_key_management(const OSSL_ALGORITHM *a)
{
	static const char *const unused[] = {"SM2", "DHX", "HKDF", "TLS1-PRF", "SCRYPT", "SIPHASH", "POLY1305", "CMAC"};
	size_t i;

	for (i = 0; i < sizeof unused / sizeof unused[0]; i++)
		if (slim_is_named(a, unused[i]))
			return 0;
	return 1;
}

/* TLS has no ciphers in these modes; QUIC, which does, is not used. */
static int wanted_cipher(const OSSL_ALGORITHM *a)
{
	static const char *const unused[] = {
		"-ECB", "-CFB", "-OFB", "-CTR", "-CTS", "-XTS", "-OCB", "-SIV", "-WRAP", "WRAP-",
	};
	size_t i;

	for (i = 0; i < sizeof unused / sizeof unused[0]; i++)
		if (strstr(a->names, unused[i]))
			return 0;
	return 1;
}

/*
 * Copies the wanted entries of a table of the default provider, unless an earlier call has, which then
 * failed elsewhere. Returns 0 if there are none, or memory is short, else 1.
 */
static int pick(OSSL_ALGORITHM **table, int operation, int (*wanted)(const OSSL_ALGORITHM *))
{
	int no_cache = 0;
	const OSSL_ALGORITHM *all = ossl_fn.OSSL_PROVIDER_query_operation(host, operation, &no_cache);
	OSSL_ALGORITHM *picked;
	size_t i, n = 0;

	if (*table)
		return 1;
	if (!all || no_cache)
		return 0;
	for (i = 0; all[i].names; i++)
		;
	picked = calloc(i + 1, sizeof *picked);
	if (!picked)
		return 0;
	for (i = 0; all[i].names; i++)
		if (wanted(&all[i]))
			picked[n++] = all[i];
	if (n > 0)
		*table = picked;
	else
		free(picked);
	return n > 0;
}

static int wanted_whole(const OSSL_ALGORITHM *a)
{
	(void)a;
	return 1;
}

/* Replaces the functions of the entries with a name. Returns 1, or 0 if there is no such name. */
static int replace(OSSL_ALGORITHM *table, const char *name, const OSSL_DISPATCH *functions)
{
	int found = 0;

	for (; table->names; table++)
		if (slim_is_named(table, name)) {
			table->functions = functions;
			found = 1;
		}
	return found;
}

/* Makes the table of MACs, with our HMAC, if that is possible. */
static void make_macs(void)
{
	OSSL_ALGORITHM *a;

	for (a = pick(&macs, (int)OSSL_OSSL_OP_MAC, wanted_whole) ? macs : NULL; a && a->names; a++)
		if (slim_is_named(a, "HMAC") && (a->functions == slim_hmac || slim_mac_setup(a->functions))) {
			a->functions = slim_hmac;
			return;
		}
	free(macs);
	macs = NULL;
}

/* The provider: provider-base(7). */

static const OSSL_ALGORITHM *provider_query(void *provider, int operation, int *no_cache)
{
	const OSSL_ALGORITHM *ours = NULL;

	(void)provider;
	if (operation == OSSL_OSSL_OP_RAND)
		ours = generators;
	else if (operation == OSSL_OSSL_OP_KDF)
		ours = key_derivations;
	else if (operation == OSSL_OSSL_OP_MAC)
		ours = macs;
	else if (operation == OSSL_OSSL_OP_CIPHER)
		ours = ciphers;
	else if (operation == OSSL_OSSL_OP_DECODER)
		ours = decoders;
	else if (operation == OSSL_OSSL_OP_KEYMGMT)
		ours = key_managements;
	if (!ours)
		return ossl_fn.OSSL_PROVIDER_query_operation(host, operation, no_cache);
	*no_cache = 0;
	return ours;
}

static int provider_capabilities(void *provider, const char *capability, int (*cb)(const OSSL_PARAM *, void *), void *arg)
{
	(void)provider;
	return ossl_fn.OSSL_PROVIDER_get_capabilities(host, capability, cb, arg);
}

void *slim_host_ctx(void) { return ossl_fn.OSSL_PROVIDER_get0_provider_ctx(host); }

OSSL_LIB_CTX *slim_holder(const void *host_ctx)
{
	int i = 1;

	while (i < OSSL_MAX_SHARDS && __atomic_load_n(&host_ctxs[i], __ATOMIC_ACQUIRE) != host_ctx)
		i++;
	return i < OSSL_MAX_SHARDS ? holders[i] : ossl_fn.OSSL_LIB_CTX_get0_global_default();
}

static OSSL_DISPATCH provider_functions[3];

/* The default provider's context for the shard that is being made. One is made at a time. */
static void *host_ctx;

static int provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out, void **provider)
{
	(void)handle;
	*out = provider_functions;
	*provider = host_ctx;
	return slim_keys_setup(decoders, in);
}

/* Counts the active providers, and 100 for each that is not called "default". */
static int count_provider(OSSL_PROVIDER *p, void *arg)
{
	const char *name = ossl_fn.OSSL_PROVIDER_get0_name(p);

	*(int *)arg += name && strcmp(name, "default") == 0 ? 1 : 100;
	return 1;
}

/* Reports whether the default library context is as if nothing were configured. */
static int is_plain(void)
{
	EVP_MD *md;
	int n = 0;

	/* A program may have made another one its thread's default: NULL would mean that one here, and
	 * it may be freed. */
	if (ossl_fn.OSSL_LIB_CTX_set0_default(NULL) != ossl_fn.OSSL_LIB_CTX_get0_global_default())
		return 0;
	if (ossl_fn.OSSL_PROVIDER_do_all(NULL, count_provider, &n) != 1 || n != 1 ||
		ossl_fn.EVP_default_properties_is_fips_enabled(NULL) != 0)
		return 0;
	md = ossl_fn.EVP_MD_fetch(NULL, "SHA2-256", NULL);
	ossl_fn.EVP_MD_free(md);
	return md != NULL;
}

int slim_is_plain_config(const CONF *conf)
{
	static const char *const harmless[] = {"providers", "ssl_conf", "oid_section"};
	const char *name = ossl_fn.NCONF_get_string(conf, NULL, "openssl_conf");
	OPENSSL_STACK *modules = section_of(conf, name);
	int i, plain = 1;
	size_t k;

	for (i = 0; modules && plain && i < ossl_fn.OPENSSL_sk_num(modules); i++) {
		const conf_value *module = ossl_fn.OPENSSL_sk_value(modules, i);
		OPENSSL_STACK *content = section_of(conf, module->value);

		plain = content && ossl_fn.OPENSSL_sk_num(content) == 0;
		for (k = 0; k < sizeof harmless / sizeof harmless[0]; k++)
			if (strcmp(module->name, harmless[k]) == 0)
				plain = 1;
	}
	return plain;
}

/*
 * Reports whether the default provider's code is in libcrypto: openssl.cnf may give that name to a
 * module.
 */
static int is_builtin(void)
{
	int no_cache;
	const OSSL_ALGORITHM *digests = ossl_fn.OSSL_PROVIDER_query_operation(host, (int)OSSL_OSSL_OP_DIGEST, &no_cache);

	return digests && digests->functions && dl_same(digests->functions, *(void **)&ossl_fn.OSSL_PROVIDER_query_operation);
}

/* Makes a shard. of: its default provider, in holder, NULL for the first. */
static OSSL_LIB_CTX *make_library(const OSSL_PROVIDER *of, OSSL_LIB_CTX *holder)
{
	OSSL_LIB_CTX *lib = ossl_fn.OSSL_LIB_CTX_new();
	OSSL_PROVIDER *ours = NULL; /* kept as long as the shard */

	host_ctx = ossl_fn.OSSL_PROVIDER_get0_provider_ctx(of);
	if (lib && ossl_fn.OSSL_PROVIDER_add_builtin(lib, provider_name, provider_init) == 1 &&
		(ours = ossl_fn.OSSL_PROVIDER_load(lib, provider_name)) != NULL && slim_works(lib, holder, libraries[0]))
		return lib;
	if (ours)
		ossl_fn.OSSL_PROVIDER_unload(ours);
	ossl_fn.OSSL_LIB_CTX_free(lib); /* takes NULL */
	return NULL;
}

/* Makes another shard, and its holder. */
static OSSL_LIB_CTX *make_another(int shard)
{
	OSSL_LIB_CTX *holder = ossl_fn.OSSL_LIB_CTX_new(), *lib;
	OSSL_PROVIDER *own = holder ? ossl_fn.OSSL_PROVIDER_load(holder, "default") : NULL;

	if (own) {
		holders[shard] = holder;
		__atomic_store_n(&host_ctxs[shard], ossl_fn.OSSL_PROVIDER_get0_provider_ctx(own), __ATOMIC_RELEASE);
		lib = make_library(own, holder);
		if (lib)
			return lib;
		__atomic_store_n(&host_ctxs[shard], NULL, __ATOMIC_RELEASE);
		ossl_fn.OSSL_PROVIDER_unload(own);
	}
	ossl_fn.OSSL_LIB_CTX_free(holder); /* takes NULL */
	return NULL;
}

/* Makes the tables and the first shard. */
static OSSL_LIB_CTX *make(void)
{
	int old = ossl_fn.OpenSSL_version_num() < OSSL_V3_2;
	size_t n = 0;

	if (!schedule_setup())
		return NULL;
	slim_random_setup();
	if (!pick(&generators, (int)OSSL_OSSL_OP_RAND, wanted_whole) || !replace(generators, "CTR-DRBG", slim_random) ||
		!pick(&key_derivations, (int)OSSL_OSSL_OP_KDF, wanted_whole) ||
		!replace(key_derivations, "TLS13-KDF", schedule_tls13_kdf) || !replace(key_derivations, "TLS1-PRF", schedule_tls1_prf) ||
		!pick(&decoders, (int)OSSL_OSSL_OP_DECODER, old ? wanted_decoder : wanted_whole) ||
		!pick(&ciphers, (int)OSSL_OSSL_OP_CIPHER, wanted_cipher) ||
		(old && !pick(&key_managements, (int)OSSL_OSSL_OP_KEYMGMT, wanted_key_management)))
		return NULL;
	make_macs();
	PUT(provider_functions, n, PROVIDER_QUERY_OPERATION, provider_query);
	PUT(provider_functions, n, PROVIDER_GET_CAPABILITIES, provider_capabilities);
	return make_library(host, NULL);
}

int ossl_slim_allowed(void)
{
	unsigned long version = ossl_fn.OpenSSL_version_num();
	int allowed;

	ossl_fn.ERR_clear_error();
	allowed = version >= OSSL_V3_0 && version < OSSL_V5_0 && modules_allow_slim() && is_plain();
	ossl_fn.ERR_clear_error();
	return allowed;
}

int ossl_slim_setup(int n_processors)
{
	OSSL_LIB_CTX *made = NULL;
	int short_of_memory;

	processors = n_processors;
	errno = 0;
	if (ossl_slim_allowed()) {
		if (!host)
			host = ossl_fn.OSSL_PROVIDER_try_load(NULL, "default", 1); /* a reference, kept */
		if (host && is_builtin())
			made = make();
	}
	short_of_memory = !made && memory_may_have_failed();
	ossl_fn.ERR_clear_error();
	__atomic_store_n(&libraries[0], made, __ATOMIC_RELEASE);
	return short_of_memory ? -1 : made != NULL;
}

static int pinned = -1; /* atomic; for ossl_shard_pin */

void ossl_shard_pin(int shard) { __atomic_store_n(&pinned, shard, __ATOMIC_RELAXED); }

int ossl_shard_known(void) { return dl_processor() >= 0; }

int slim_shard(int n)
{
	int pin, cpu, neighbours;

	if (n < 2)
		return 0;
	pin = __atomic_load_n(&pinned, __ATOMIC_RELAXED);
	if (pin >= 0)
		return pin % n;
	cpu = dl_processor();
	neighbours = processors > n ? (processors + n - 1) / n : 1;
	return cpu < 0 ? 0 : cpu / neighbours % n;
}

int slim_ready(int shard)
{
	static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
	OSSL_LIB_CTX *lib;

	if (!__atomic_load_n(&libraries[0], __ATOMIC_ACQUIRE) || __atomic_load_n(&libraries[shard], __ATOMIC_ACQUIRE))
		return 1;
	pthread_mutex_lock(&making);
	lib = __atomic_load_n(&libraries[shard], __ATOMIC_RELAXED);
	if (!lib) {
		errno = 0;
		lib = make_another(shard);
		__atomic_store_n(&libraries[shard], lib, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&making);
	ossl_fn.ERR_clear_error();
	if (!lib)
		raise_no_memory(); /* the first could be made */
	return lib != NULL;
}

OSSL_LIB_CTX *ossl_slim_library(void) { return slim_library(0); }

OSSL_LIB_CTX *slim_library(int shard)
{
	OSSL_LIB_CTX *lib = __atomic_load_n(&libraries[shard], __ATOMIC_ACQUIRE);

	if (!lib || !is_plain())
		return NULL;
	if (ossl_fn.OSSL_LIB_CTX_get_conf_diagnostics && ossl_fn.OSSL_LIB_CTX_set_conf_diagnostics) {
		int strict = ossl_fn.OSSL_LIB_CTX_get_conf_diagnostics(NULL);

		if (ossl_fn.OSSL_LIB_CTX_get_conf_diagnostics(lib) != strict)
			ossl_fn.OSSL_LIB_CTX_set_conf_diagnostics(lib, strict);
	}
	return lib;
}
