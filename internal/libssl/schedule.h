/* The TLS key schedules, as algorithms of a provider: schedule.c. */
#ifndef OSSL_SCHEDULE_H
#define OSSL_SCHEDULE_H

#include "provider.h"

/*
 * Makes the tables, which must not be used before. Returns 1, or 0 if the library lacks the hashes.
 */
int schedule_setup(void);

/*
 * Functions that replace the functions of TLS13-KDF and TLS1-PRF: provider-kdf(7). Only for TLS 1.2
 * and 1.3, with SHA-256 and SHA-384. They return the same bytes as the default library context's
 * own algorithms, which derive instead if a comparison at the first use shows that they don't.
 * EVP_KDF-TLS13_KDF(7), EVP_KDF-TLS1_PRF(7).
 */
extern OSSL_DISPATCH schedule_tls13_kdf[];
extern OSSL_DISPATCH schedule_tls1_prf[];

/*
 * For tests. The first reports whether all algorithms return the same bytes as the default library
 * context's, 1 or 0; the slim library context must be used. The second sets or clears the result
 * that they don't.
 */
int ossl_schedule_all_same(void);
void ossl_schedule_distrust(int on);

#endif
