/* OpenSSL's error queue, and the errors in it that Go distinguishes. */

#include "private.h"

#include <string.h>

void ossl_drain_errors(unsigned long *errors)
{
	unsigned long e;
	int n = 0;

	memset(errors, 0, OSSL_MAX_ERRORS * sizeof *errors);
	while ((e = ossl_fn.ERR_get_error()) != 0)
		if (n < OSSL_MAX_ERRORS)
			errors[n++] = e;
}

const char *ossl_error_reason(unsigned long code) { return ossl_fn.ERR_reason_error_string(code); }


int ossl_error_kind(unsigned long code, int *number)
{
	/* 1.1.1 packs the library into 8 bits above bit 24 and the reason into 12. */
	int since_3_0 = ossl_fn.OpenSSL_version_num() >= OSSL_V3_0;
	int64_t lib = (int64_t)(since_3_0 ? code >> OSSL_ERR_LIB_OFFSET : code >> 24) & 0xff;
	int64_t reason = (int64_t)code & (since_3_0 ? OSSL_ERR_REASON_MASK : 0xfff);

	*number = 0;
	if (since_3_0 ? (code & (unsigned long)OSSL_ERR_SYSTEM_FLAG) != 0 : lib == OSSL_ERR_LIB_SYS) {
		*number = (int)(since_3_0 ? code & ~(unsigned long)OSSL_ERR_SYSTEM_FLAG : (unsigned long)reason);
		return *number ? OSSL_ERROR_SYSTEM : OSSL_ERROR_OTHER;
	}
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
