/*
 * Checks whether a context's servers can use a credential, with a handshake in memory up to the
 * server's first flight.
 */

#include "private.h"

#include <stdlib.h>

enum { ROOM = 1 << 14 };

/* Makes a server of the context with the credential. Returns give or NULL with errors. */
static ossl_conn *server_with(ossl_ctx *ctx, ossl_cred *cred, unsigned long *errors)
{
	ossl_conn *server = ossl_conn_new(ctx, 1, NULL, NULL, 0, NULL, 0, 0, errors);
	int i;

	if (!server || ossl_conn_use_cred(server, cred))
		return server;
	for (i = 0; i < OSSL_MAX_ERRORS; i++)
		errors[i] = server->errors[i];
	ossl_conn_free(server, OSSL_READ | OSSL_WRITE, 0, NULL, 0);
	return NULL;
}

/*
 * Has a server with the credential answer a client of the same context that offers at most
 * max_version. The answer's contents don't matter, only whether the server makes and signs one.
 * buf: 2 * ROOM bytes. Returns 1, or 0 with errors.
 */
static int answers(ossl_ctx *ctx, ossl_cred *cred, int max_version, uint8_t *buf, unsigned long *errors)
{
	ossl_conn *server = server_with(ctx, cred, errors), *client = NULL;
	ossl_step hello, step = {.status = OSSL_FATAL};
	size_t taken = 0;
	int i;

	if (server)
		client = ossl_conn_new(ctx, 0, NULL, NULL, 0, NULL, 0, 0, errors);
	if (client && ossl_fn.SSL_ctrl(((conn *)client)->ssl, OSSL_SSL_CTRL_SET_MAX_PROTO_VERSION, max_version, NULL) == 1) {
		hello = ossl_conn_handshake(client, NULL, 0, buf, ROOM, NULL);
		for (i = 0; i < OSSL_MAX_ERRORS && hello.status == OSSL_FATAL; i++)
			errors[i] = client->errors[i];
		if (hello.status == OSSL_WANT_READ) {
			do { /* it pauses for a certificate, which was set, and when the window is full */
				step = ossl_conn_handshake(server, buf + taken, hello.produced - taken, buf + ROOM, ROOM, NULL);
				taken += step.consumed;
			} while (step.status == OSSL_NEED_HELLO || step.status == OSSL_WANT_WRITE);
			for (i = 0; i < OSSL_MAX_ERRORS && step.status == OSSL_FATAL; i++)
				errors[i] = server->errors[i];
		}
	}
	if (client)
		ossl_conn_free(client, OSSL_READ | OSSL_WRITE, 0, NULL, 0);
	if (server)
		ossl_conn_free(server, OSSL_READ | OSSL_WRITE, 0, NULL, 0);
	return step.status == OSSL_WANT_READ;
}

int ossl_ctx_check_cred(ossl_ctx *ctx, ossl_cred *cred, int sign, unsigned long *errors)
{
	unsigned long others[OSSL_MAX_ERRORS] = {0};
	ossl_conn *server;
	uint8_t *buf;
	int ok;

	if (!sign) {
		server = server_with(ctx, cred, errors);
		if (server)
			ossl_conn_free(server, OSSL_READ | OSSL_WRITE, 0, NULL, 0);
		return server != NULL;
	}
	ossl_fn.ERR_clear_error();
	buf = new_memory(2 * ROOM);
	if (!buf) {
		ossl_drain_errors(errors);
		return 0;
	}
	ok = answers(ctx, cred, OSSL_TLS1_3_VERSION, buf, errors) || answers(ctx, cred, OSSL_TLS1_2_VERSION, buf, others);
	free(buf);
	return ok;
}
