/*
 * A peer of wolfSSL with a pre-shared key.
 * usage: wolfssl client|server PORT 1.2|1.3 IDENTITY KEY   KEY in hexadecimal
 * The client sends a line, and prints the answer. The server sends a line back; it listens on a port of its choice,
 * which it prints.
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

static unsigned int copy_key(unsigned char *key, unsigned int max)
{
	unsigned int i;

	for (i = 0; i < strlen(hex) / 2 && i < max; i++)
		sscanf(hex + 2 * i, "%2hhx", &key[i]);
	return i;
}

static unsigned int offer(WOLFSSL *ssl, const char *hint, char *name, unsigned int name_max, unsigned char *key, unsigned int max)
{
	(void)ssl;
	(void)hint;
	snprintf(name, name_max, "%s", identity);
	return copy_key(key, max);
}

static unsigned int look_up(WOLFSSL *ssl, const char *name, unsigned char *key, unsigned int max)
{
	(void)ssl;
	return strcmp(name, identity) == 0 ? copy_key(key, max) : 0;
}

static int accept_one(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;

	need("listen", bind(listener, (struct sockaddr *)&at, size) == 0 && listen(listener, 1) == 0 &&
		getsockname(listener, (struct sockaddr *)&at, &size) == 0);
	printf("PORT %d\n", ntohs(at.sin_port));
	fflush(stdout);
	fd = accept(listener, NULL, NULL);
	need("accept", fd >= 0);
	return fd;
}

static int connect_to(const char *port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_port = htons((uint16_t)atoi(port));
	need("connect", connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
	return fd;
}

enum { LINE = 6 };

static size_t read_line(WOLFSSL *ssl, char *line)
{
	size_t len = 0;
	int n;

	while (len < LINE && (n = wolfSSL_read(ssl, line + len, (int)(LINE - len))) > 0)
		len += (size_t)n;
	return len;
}

int main(int argc, char **argv)
{
	char line[LINE];
	int n, server, tls13;
	WOLFSSL_CTX *context;
	WOLFSSL *ssl;

	need("arguments", argc == 6);
	server = strcmp(argv[1], "server") == 0;
	tls13 = strcmp(argv[3], "1.3") == 0;
	identity = argv[4];
	hex = argv[5];
	wolfSSL_Init();
	if (server)
		context = wolfSSL_CTX_new(tls13 ? wolfTLSv1_3_server_method() : wolfTLSv1_2_server_method());
	else
		context = wolfSSL_CTX_new(tls13 ? wolfTLSv1_3_client_method() : wolfTLSv1_2_client_method());
	need("context", context != NULL);
	need("suites", wolfSSL_CTX_set_cipher_list(context, tls13 ? "TLS13-AES128-GCM-SHA256" :
		"ECDHE-PSK-AES128-CBC-SHA256:ECDHE-PSK-CHACHA20-POLY1305") == WOLFSSL_SUCCESS);
	if (server)
		wolfSSL_CTX_set_psk_server_callback(context, look_up);
	else
		wolfSSL_CTX_set_psk_client_callback(context, offer);
	ssl = wolfSSL_new(context);
	need("connection", ssl && wolfSSL_set_fd(ssl, server ? accept_one() : connect_to(argv[2])) == WOLFSSL_SUCCESS);
	if ((n = server ? wolfSSL_accept(ssl) : wolfSSL_connect(ssl)) != WOLFSSL_SUCCESS) {
		fprintf(stderr, "wolfssl: error %d\n", wolfSSL_get_error(ssl, n));
		return 1;
	}
	if (server) {
		need("read", read_line(ssl, line) == LINE);
		need("write", wolfSSL_write(ssl, line, LINE) == LINE);
		wolfSSL_shutdown(ssl);
		return 0;
	}
	need("write", wolfSSL_write(ssl, "hello\n", LINE) == LINE);
	fwrite(line, 1, read_line(ssl, line), stdout);
	return 0;
}
