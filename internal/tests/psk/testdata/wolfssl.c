/*
 * A client of wolfSSL with a pre-shared key: sends a line, and prints the answer.
 * usage: wolfssl PORT 1.2|1.3 IDENTITY KEY   KEY in hexadecimal
 */

#include <wolfssl/options.h>
#include <wolfssl/ssl.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const char *identity, *hex;

static void need(const char *what, int ok)
{
	if (ok)
		return;
	fprintf(stderr, "wolfssl: %s\n", what);
	exit(1);
}

static unsigned int give(WOLFSSL *ssl, const char *hint, char *name, unsigned int name_max, unsigned char *key, unsigned int max)
{
	unsigned int i;

	(void)ssl;
	(void)hint;
	snprintf(name, name_max, "%s", identity);
	for (i = 0; i < strlen(hex) / 2 && i < max; i++)
		sscanf(hex + 2 * i, "%2hhx", &key[i]);
	return i;
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	char answer[64];
	int n, fd = socket(AF_INET, SOCK_STREAM, 0), tls13;
	size_t len = 0;
	WOLFSSL_CTX *context;
	WOLFSSL *ssl;

	need("arguments", argc == 5);
	tls13 = strcmp(argv[2], "1.3") == 0;
	identity = argv[3];
	hex = argv[4];
	to.sin_port = htons((uint16_t)atoi(argv[1]));
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	need("connect", connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
	wolfSSL_Init();
	context = wolfSSL_CTX_new(tls13 ? wolfTLSv1_3_client_method() : wolfTLSv1_2_client_method());
	need("context", context != NULL);
	need("suites", wolfSSL_CTX_set_cipher_list(context, tls13 ? "TLS13-AES128-GCM-SHA256" :
		"ECDHE-PSK-AES128-CBC-SHA256:ECDHE-PSK-CHACHA20-POLY1305") == WOLFSSL_SUCCESS);
	wolfSSL_CTX_set_psk_client_callback(context, give);
	ssl = wolfSSL_new(context);
	need("connection", ssl && wolfSSL_set_fd(ssl, fd) == WOLFSSL_SUCCESS);
	if ((n = wolfSSL_connect(ssl)) != WOLFSSL_SUCCESS) {
		fprintf(stderr, "wolfssl: error %d\n", wolfSSL_get_error(ssl, n));
		return 1;
	}
	need("write", wolfSSL_write(ssl, "hello\n", 6) == 6);
	while (len < 6 && (n = wolfSSL_read(ssl, answer + len, (int)(sizeof answer - len))) > 0)
		len += (size_t)n;
	fwrite(answer, 1, len, stdout);
	return 0;
}
