/* The key schedules of TLS as algorithms of a provider: schedule.c. */
#ifndef OSSL_SCHEDULE_H
#define OSSL_SCHEDULE_H

#include "provider.h"

/* Whether what is here gives the bytes that the default library context's own algorithms give, over inputs like TLS's. Makes the
 * tables, which must not be used before. Returns 1 or 0. EVP_KDF-TLS13_KDF(7), EVP_KDF-TLS1_PRF(7). */
int schedule_setup(void);

/* Functions in the place of TLS13-KDF's and TLS1-PRF's: provider-kdf(7). For TLS 1.2 and 1.3 only: with SHA-256 and SHA-384. */
extern OSSL_DISPATCH schedule_tls13_kdf[], schedule_tls1_prf[];

/* Makes a conn see, by takeover_derived, what TLS13-KDF derives on this thread, where it is the one above. NULL: nobody.
 * Returns who saw it before; put that back. Borrow. */
conn *schedule_observe(conn *observer);

#endif
