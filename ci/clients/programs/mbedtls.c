/*
 * usage: mbedtls PORT CA VERSION FRESH REUSED
 *
 * Mbed TLS uses tickets, and IDs if it gets none; with IDS_ONLY defined it asks for no tickets.
 * VERSION is 1.2: the releases before 3 know no TLS 1.3 clients.
 */

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>

#include "client.h"

static mbedtls_ssl_config config;
static mbedtls_ssl_session session;
static int have_session, verified;

static void need(const char *what, int code)
{
	if (code != 0)
		fail(what, code);
}

/*
 * Is called for each certificate of a server's chain. There is no chain if a session is resumed: no
 * function reports that.
 */
static int note(void *arg, mbedtls_x509_crt *cert, int depth, uint32_t *flags)
{
	(void)arg;
	(void)cert;
	(void)depth;
	(void)flags;
	verified = 1;
	return 0;
}

static int get(int port, int resume)
{
	char answer[4096];
	size_t len = 0;
	int n, resumed;
	mbedtls_net_context net = {.fd = dial(port)};
	mbedtls_ssl_context ssl;

	mbedtls_ssl_init(&ssl);
	need("set up", mbedtls_ssl_setup(&ssl, &config));
	need("name", mbedtls_ssl_set_hostname(&ssl, "localhost"));
	mbedtls_ssl_set_bio(&ssl, &net, mbedtls_net_send, mbedtls_net_recv, NULL);
	if (resume && have_session)
		need("set session", mbedtls_ssl_set_session(&ssl, &session));
	verified = 0;
	need("handshake", mbedtls_ssl_handshake(&ssl));
	resumed = !verified;
	if (mbedtls_ssl_write(&ssl, (const unsigned char *)request, sizeof request - 1) != (int)sizeof request - 1)
		fail("write", 0);
	while (len < sizeof answer && (n = mbedtls_ssl_read(&ssl, (unsigned char *)answer + len, sizeof answer - len)) > 0)
		len += (size_t)n;
	check(answer, len);
	mbedtls_ssl_session_free(&session);
	mbedtls_ssl_session_init(&session);
	need("get session", mbedtls_ssl_get_session(&ssl, &session));
	have_session = 1;
	mbedtls_ssl_close_notify(&ssl);
	mbedtls_ssl_free(&ssl);
	close(net.fd);
	return resumed;
}

int main(int argc, char **argv)
{
	static mbedtls_entropy_context entropy;
	static mbedtls_ctr_drbg_context random;
	static mbedtls_x509_crt ca;

	if (argc != 6 || strcmp(argv[3], "1.2") != 0)
		fail("usage: mbedtls PORT CA 1.2 FRESH REUSED", argc);
	mbedtls_entropy_init(&entropy);
	mbedtls_ctr_drbg_init(&random);
	mbedtls_x509_crt_init(&ca);
	mbedtls_ssl_config_init(&config);
	mbedtls_ssl_session_init(&session);
	need("random", mbedtls_ctr_drbg_seed(&random, mbedtls_entropy_func, &entropy, NULL, 0));
	need("authority", mbedtls_x509_crt_parse_file(&ca, argv[2]));
	need("defaults",
		mbedtls_ssl_config_defaults(&config, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT));
	mbedtls_ssl_conf_max_version(&config, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
	mbedtls_ssl_conf_rng(&config, mbedtls_ctr_drbg_random, &random);
	mbedtls_ssl_conf_ca_chain(&config, &ca, NULL);
	mbedtls_ssl_conf_authmode(&config, MBEDTLS_SSL_VERIFY_REQUIRED);
	mbedtls_ssl_conf_verify(&config, note, NULL);
#ifdef IDS_ONLY
	mbedtls_ssl_conf_session_tickets(&config, MBEDTLS_SSL_SESSION_TICKETS_DISABLED);
#endif
	visit(atoi(argv[1]), atoi(argv[4]), atoi(argv[5]));
	return 0;
}
