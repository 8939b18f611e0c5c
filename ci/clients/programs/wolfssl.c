/*
 * usage: wolfssl PORT CA VERSION FRESH REUSED
 *
 * In TLS 1.2 wolfSSL resumes by ID unless it is asked to use tickets; with TICKETS defined it is.
 */

#include <wolfssl/options.h>
#include <wolfssl/ssl.h>

#include "client.h"

static WOLFSSL_CTX *context;
static WOLFSSL_SESSION *session;

static int get(int port, int resume)
{
	char answer[4096];
	size_t len = 0;
	int n, resumed, fd = dial(port);
	WOLFSSL *ssl = wolfSSL_new(context);

	if (!ssl || wolfSSL_UseSNI(ssl, WOLFSSL_SNI_HOST_NAME, "localhost", 9) != WOLFSSL_SUCCESS ||
		wolfSSL_check_domain_name(ssl, "localhost") != WOLFSSL_SUCCESS || wolfSSL_set_fd(ssl, fd) != WOLFSSL_SUCCESS)
		fail("set up", 0);
#ifdef TICKETS
	if (wolfSSL_UseSessionTicket(ssl) != WOLFSSL_SUCCESS)
		fail("tickets", 0);
#endif
	if (resume && session) /* refused if the server gave it no ID, and then there is nothing to resume */
		wolfSSL_set_session(ssl, session);
	if ((n = wolfSSL_connect(ssl)) != WOLFSSL_SUCCESS)
		fail("handshake", wolfSSL_get_error(ssl, n));
	if (wolfSSL_write(ssl, request, sizeof request - 1) != (int)sizeof request - 1)
		fail("write", 0);
	while (len < sizeof answer && (n = wolfSSL_read(ssl, answer + len, (int)(sizeof answer - len))) > 0)
		len += (size_t)n;
	check(answer, len);
	wolfSSL_SESSION_free(session);
	session = wolfSSL_get1_session(ssl);
	resumed = wolfSSL_session_reused(ssl);
	wolfSSL_free(ssl);
	close(fd);
	return resumed;
}

int main(int argc, char **argv)
{
	if (argc != 6)
		fail("usage: wolfssl PORT CA VERSION FRESH REUSED", argc);
	wolfSSL_Init();
	context = wolfSSL_CTX_new(strcmp(argv[3], "1.3") == 0 ? wolfTLSv1_3_client_method() : wolfTLSv1_2_client_method());
	if (!context || wolfSSL_CTX_load_verify_locations(context, argv[2], NULL) != WOLFSSL_SUCCESS)
		fail("context", 0);
	wolfSSL_CTX_set_verify(context, WOLFSSL_VERIFY_PEER, NULL);
	visit(atoi(argv[1]), atoi(argv[4]), atoi(argv[5]));
	return 0;
}
