/* OpenSSL's error queue, and the errors in it that Go distinguishes. */

#include "private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h" /* behind the declarations of the functions that it replaces */

static int since_3_0(void) { return ossl_fn.OpenSSL_version_num() >= OSSL_V3_0; }

/* The reason of 1.1.1's errors for want of memory. */
enum { MALLOC_FAILURE_1_1_1 = 65 };

static int memory_reason(void) { return since_3_0() ? (int)OSSL_ERR_R_MALLOC_FAILURE : MALLOC_FAILURE_1_1_1; }

unsigned long memory_error(void)
{
	return (unsigned long)OSSL_ERR_LIB_SSL << (since_3_0() ? OSSL_ERR_LIB_OFFSET : 24) | (unsigned long)memory_reason();
}

/*
 * Reports whether the first error of a queue is from a failed ASN.1 constructor, which from 3.2 on
 * leaves no reason: 1 or 0. A malformed encoding has a reason, and other errors follow it; a
 * certificate's wrong signature is a failure of EVP.
 */
static int is_constructors(unsigned long e)
{
	return ossl_fn.OpenSSL_version_num() >= OSSL_V3_2 && !(e & (unsigned long)OSSL_ERR_SYSTEM_FLAG) &&
		(e >> OSSL_ERR_LIB_OFFSET & 0xff) == (unsigned long)OSSL_ERR_LIB_ASN1 && (e & (unsigned long)OSSL_ERR_RFLAG_COMMON) &&
		(e & (unsigned long)OSSL_ERR_REASON_MASK) != (unsigned long)OSSL_ERR_R_EVP_LIB;
}

int ossl_drain_errors(unsigned long *errors)
{
	unsigned long e;
	int n = 0, number, memory = 0;

	memset(errors, 0, OSSL_MAX_ERRORS * sizeof *errors);
	e = ossl_fn.ERR_peek_error();
	if (is_constructors(e)) {
		errors[n++] = memory_error();
		memory = 1;
	}
	while ((e = ossl_fn.ERR_get_error()) != 0) {
		if (!memory && ossl_error_kind(e, &number) == OSSL_ERROR_MEMORY) {
			memory = 1;
			if (n == OSSL_MAX_ERRORS) /* the cause, and the others are its consequences */
				n--;
		}
		if (n < OSSL_MAX_ERRORS)
			errors[n++] = e;
	}
	return memory;
}

static void *allocated(void *p)
{
	if (p)
		return p;
	if (since_3_0()) {
		ossl_fn.ERR_new();
		ossl_fn.ERR_set_error((int)OSSL_ERR_LIB_SSL, memory_reason(), NULL);
	} else {
		ossl_fn.ERR_put_error((int)OSSL_ERR_LIB_SSL, 0, memory_reason(), __FILE__, __LINE__);
	}
	return NULL;
}

void *new_memory(size_t n) { return allocated(malloc(n ? n : 1)); }
void *new_zeros(size_t n) { return allocated(calloc(1, n)); }
void raise_no_memory(void) { allocated(NULL); }

int memory_may_have_failed(void)
{
	void *(*m)(size_t, const char *, int) = NULL;
	void *(*r)(void *, size_t, const char *, int) = NULL;
	void (*f)(void *, const char *, int) = NULL;

	if (errno == ENOMEM)
		return 1;
	ossl_fn.CRYPTO_get_mem_functions(&m, &r, &f);
	return m != ossl_fn.CRYPTO_malloc;
}

const char *ossl_error_reason(unsigned long code) { return ossl_fn.ERR_reason_error_string(code); }

int ossl_error_kind(unsigned long code, int *number)
{
	int64_t lib, reason;
	int newer;

	*number = 0;
	if (!ossl_fn.OpenSSL_version_num) /* the user has made the error, before OpenSSL is loaded */
		return OSSL_ERROR_OTHER;
	/* 1.1.1 packs the library into 8 bits above bit 24 and the reason into 12. */
	newer = since_3_0();
	lib = (int64_t)(newer ? code >> OSSL_ERR_LIB_OFFSET : code >> 24) & 0xff;
	reason = (int64_t)code & (newer ? OSSL_ERR_REASON_MASK : 0xfff);
	if (newer ? (code & (unsigned long)OSSL_ERR_SYSTEM_FLAG) != 0 : lib == OSSL_ERR_LIB_SYS) {
		*number = (int)(newer ? code & ~(unsigned long)OSSL_ERR_SYSTEM_FLAG : (unsigned long)reason);
		if (*number == ENOMEM)
			return OSSL_ERROR_MEMORY;
		return *number ? OSSL_ERROR_SYSTEM : OSSL_ERROR_OTHER;
	}
	if (reason == memory_reason()) /* of any library */
		return OSSL_ERROR_MEMORY;
	if (lib == OSSL_ERR_LIB_OSSL_STORE)
		return reason == OSSL_OSSL_STORE_R_UNREGISTERED_SCHEME ? OSSL_ERROR_NO_SCHEME : OSSL_ERROR_OTHER;
	if (lib == OSSL_ERR_LIB_ASN1)
		return OSSL_ERROR_ASN1;
	if (lib != OSSL_ERR_LIB_SSL)
		return OSSL_ERROR_OTHER;
	if (reason == OSSL_SSL_R_WRONG_VERSION_NUMBER)
		return OSSL_ERROR_VERSION;
	if (reason == OSSL_SSL_R_PACKET_LENGTH_TOO_LONG || reason == OSSL_SSL_R_ENCRYPTED_LENGTH_TOO_LONG)
		return OSSL_ERROR_LENGTH;
	*number = (int)reason;
	return OSSL_ERROR_SSL;
}
