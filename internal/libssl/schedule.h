/* The key schedules of TLS, as algorithms of a provider: schedule.c. */
#ifndef OSSL_SCHEDULE_H
#define OSSL_SCHEDULE_H

#include "provider.h"

/*
 * Reports whether these functions return the same bytes as the default library context's own
 * algorithms, for inputs like TLS's. Makes the tables, which must not be used before. Returns 1 or
 * 0. EVP_KDF-TLS13_KDF(7), EVP_KDF-TLS1_PRF(7).
 */
int schedule_setup(void);

/*
 * Functions that replace those of TLS13-KDF and TLS1-PRF: provider-kdf(7). For TLS 1.2 and 1.3
 * only: with SHA-256 and SHA-384.
 */
extern OSSL_DISPATCH schedule_tls13_kdf[], schedule_tls1_prf[];

/*
 * Makes a conn see, by takeover_derived, the secrets that the TLS13-KDF above derives on this
 * thread. NULL: no conn. Returns the previous observer, which the caller must restore. Borrow.
 */
conn *schedule_observe(conn *observer);

#endif
