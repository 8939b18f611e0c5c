/* The host's policy: the settings of every SSL_CTX in openssl.cnf's ssl_conf module. policy.c. */
#ifndef OSSL_POLICY_H
#define OSSL_POLICY_H

#include "config.h"
#include "shim.h"

/*
 * Reads the commands of the section system_default, in order. conf: borrow. Returns give (free),
 * *len bytes: for each command a byte, 1 if libssl executes it, else 0; its name, 0; its value, 0.
 * NULL with the reason in *problem (static), or a NULL reason if OpenSSL can't make an SSL_CTX.
 * errors: filled in any case, with the errors of commands that libssl refuses. config(5),
 * SSL_CONF_cmd(3).
 */
uint8_t *ossl_policy_read(const ossl_config *conf, size_t *len, const char **problem, unsigned long *errors);

/*
 * Reports whether the context has tickets turned off, SSL_OP_NO_TICKET: 1 or 0.
 * SSL_CTX_get_options(3).
 */
int ossl_ctx_no_tickets(ossl_ctx *ctx);

#endif
