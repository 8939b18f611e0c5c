/*
 * A client of Mbed TLS 2.28 with a pre-shared key: sends a line, and prints the answer.
 * usage: mbedtls PORT SUITE IDENTITY KEY   KEY in hexadecimal
 */

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/ssl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(const char *what, int code)
{
	if (code == 0)
		return;
	fprintf(stderr, "mbedtls: %s: -%#x\n", what, (unsigned)-code);
	exit(1);
}

int main(int argc, char **argv)
{
	static const unsigned char line[] = "hello\n";
	unsigned char key[64], answer[64];
	int n, suites[2] = {0};
	size_t i, len = 0;
	mbedtls_entropy_context entropy;
	mbedtls_ctr_drbg_context random;
	mbedtls_ssl_config config;
	mbedtls_ssl_context ssl;
	mbedtls_net_context net;

	if (argc != 5 || (suites[0] = mbedtls_ssl_get_ciphersuite_id(argv[2])) == 0)
		need("arguments", -1);
	for (i = 0; i < strlen(argv[4]) / 2 && i < sizeof key; i++)
		sscanf(argv[4] + 2 * i, "%2hhx", &key[i]);
	mbedtls_entropy_init(&entropy);
	mbedtls_ctr_drbg_init(&random);
	mbedtls_ssl_config_init(&config);
	mbedtls_ssl_init(&ssl);
	mbedtls_net_init(&net);
	need("seed", mbedtls_ctr_drbg_seed(&random, mbedtls_entropy_func, &entropy, NULL, 0));
	need("config", mbedtls_ssl_config_defaults(&config, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM,
				MBEDTLS_SSL_PRESET_DEFAULT));
	mbedtls_ssl_conf_rng(&config, mbedtls_ctr_drbg_random, &random);
	mbedtls_ssl_conf_ciphersuites(&config, suites);
	need("key", mbedtls_ssl_conf_psk(&config, key, i, (const unsigned char *)argv[3], strlen(argv[3])));
	need("connect", mbedtls_net_connect(&net, "127.0.0.1", argv[1], MBEDTLS_NET_PROTO_TCP));
	need("set up", mbedtls_ssl_setup(&ssl, &config));
	mbedtls_ssl_set_bio(&ssl, &net, mbedtls_net_send, mbedtls_net_recv, NULL);
	need("handshake", mbedtls_ssl_handshake(&ssl));
	need("write", mbedtls_ssl_write(&ssl, line, sizeof line - 1) != (int)sizeof line - 1);
	while (len < sizeof line - 1 && (n = mbedtls_ssl_read(&ssl, answer + len, sizeof answer - len)) > 0)
		len += (size_t)n;
	fwrite(answer, 1, len, stdout);
	return 0;
}
