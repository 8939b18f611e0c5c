/*
 * A peer of Mbed TLS 2.28 with a pre-shared key.
 * usage: mbedtls client|server PORT SUITE IDENTITY KEY   KEY in hexadecimal
 * The client sends a line, and prints the answer. The server sends a line back; it listens on a port of its choice,
 * which it prints.
 */

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/ssl.h>

#include <arpa/inet.h>
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

enum { LINE = 6 };

static void write_line(mbedtls_ssl_context *ssl, const unsigned char *line)
{
	need("write", mbedtls_ssl_write(ssl, line, LINE) != LINE);
}

static size_t read_line(mbedtls_ssl_context *ssl, unsigned char *line)
{
	size_t len = 0;
	int n;

	while (len < LINE && (n = mbedtls_ssl_read(ssl, line + len, LINE - len)) > 0)
		len += (size_t)n;
	return len;
}

static void accept_one(mbedtls_net_context *net)
{
	struct sockaddr_in at;
	socklen_t size = sizeof at;
	mbedtls_net_context listener;

	mbedtls_net_init(&listener);
	need("bind", mbedtls_net_bind(&listener, "127.0.0.1", "0", MBEDTLS_NET_PROTO_TCP));
	need("address", getsockname(listener.fd, (struct sockaddr *)&at, &size));
	printf("PORT %d\n", ntohs(at.sin_port));
	fflush(stdout);
	need("accept", mbedtls_net_accept(&listener, net, NULL, 0, NULL));
	mbedtls_net_free(&listener);
}

int main(int argc, char **argv)
{
	unsigned char key[64], line[LINE];
	int server, suites[2] = {0};
	size_t i;
	mbedtls_entropy_context entropy;
	mbedtls_ctr_drbg_context random;
	mbedtls_ssl_config config;
	mbedtls_ssl_context ssl;
	mbedtls_net_context net;

	if (argc != 6 || (suites[0] = mbedtls_ssl_get_ciphersuite_id(argv[3])) == 0)
		need("arguments", -1);
	server = strcmp(argv[1], "server") == 0;
	for (i = 0; i < strlen(argv[5]) / 2 && i < sizeof key; i++)
		sscanf(argv[5] + 2 * i, "%2hhx", &key[i]);
	mbedtls_entropy_init(&entropy);
	mbedtls_ctr_drbg_init(&random);
	mbedtls_ssl_config_init(&config);
	mbedtls_ssl_init(&ssl);
	mbedtls_net_init(&net);
	need("seed", mbedtls_ctr_drbg_seed(&random, mbedtls_entropy_func, &entropy, NULL, 0));
	need("config", mbedtls_ssl_config_defaults(&config, server ? MBEDTLS_SSL_IS_SERVER : MBEDTLS_SSL_IS_CLIENT,
				MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT));
	mbedtls_ssl_conf_rng(&config, mbedtls_ctr_drbg_random, &random);
	mbedtls_ssl_conf_ciphersuites(&config, suites);
	need("key", mbedtls_ssl_conf_psk(&config, key, i, (const unsigned char *)argv[4], strlen(argv[4])));
	if (server)
		accept_one(&net);
	else
		need("connect", mbedtls_net_connect(&net, "127.0.0.1", argv[2], MBEDTLS_NET_PROTO_TCP));
	need("set up", mbedtls_ssl_setup(&ssl, &config));
	mbedtls_ssl_set_bio(&ssl, &net, mbedtls_net_send, mbedtls_net_recv, NULL);
	need("handshake", mbedtls_ssl_handshake(&ssl));
	if (server) {
		need("read", read_line(&ssl, line) != LINE);
		write_line(&ssl, line);
		mbedtls_ssl_close_notify(&ssl);
		return 0;
	}
	write_line(&ssl, (const unsigned char *)"hello\n");
	fwrite(line, 1, read_line(&ssl, line), stdout);
	return 0;
}
