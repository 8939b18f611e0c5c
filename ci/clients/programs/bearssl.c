/*
 * usage: bearssl PORT CA VERSION FRESH REUSED
 *
 * A client as small devices have it: BearSSL knows TLS 1.2 and session IDs, and neither TLS 1.3 nor tickets. CA holds one
 * certificate.
 */

#include <bearssl.h>

#include "client.h"

enum { MAX_CERT = 1 << 14 };

static br_ssl_client_context client;
static br_x509_minimal_context verifier;
static unsigned char records[BR_SSL_BUFSIZE_BIDI];

typedef struct {
	unsigned char bytes[MAX_CERT];
	size_t len;
} buffer;

static void append(void *to, const void *data, size_t len)
{
	buffer *b = to;

	if (len > sizeof b->bytes - b->len)
		fail("too long a certificate", (int)len);
	memcpy(b->bytes + b->len, data, len);
	b->len += len;
}

/* Reads the trusted certificate, which must stay in its place. */
static void read_anchor(const char *path, br_x509_trust_anchor *anchor)
{
	static buffer der, name;
	static br_x509_decoder_context decoder;
	static char text[MAX_CERT];
	br_pem_decoder_context pem;
	FILE *f = fopen(path, "r");
	size_t n, used = 0;
	int ended = 0;

	if (!f)
		fail(path, errno);
	n = fread(text, 1, sizeof text, f);
	fclose(f);
	br_pem_decoder_init(&pem);
	while (!ended && used < n) {
		used += br_pem_decoder_push(&pem, text + used, n - used);
		switch (br_pem_decoder_event(&pem)) {
		case BR_PEM_BEGIN_OBJ:
			br_pem_decoder_setdest(&pem, append, &der);
			break;
		case BR_PEM_END_OBJ:
			ended = 1;
			break;
		case BR_PEM_ERROR:
			fail("PEM", 0);
		}
	}
	br_x509_decoder_init(&decoder, append, &name);
	br_x509_decoder_push(&decoder, der.bytes, der.len);
	if (!ended || !br_x509_decoder_get_pkey(&decoder) || !br_x509_decoder_isCA(&decoder))
		fail("the authority's certificate", br_x509_decoder_last_error(&decoder));
	anchor->dn.data = name.bytes;
	anchor->dn.len = name.len;
	anchor->flags = BR_X509_TA_CA;
	anchor->pkey = *br_x509_decoder_get_pkey(&decoder);
}

static int socket_read(void *fd, unsigned char *to, size_t len)
{
	ssize_t n = read(*(int *)fd, to, len);

	return n > 0 ? (int)n : -1;
}

static int socket_write(void *fd, const unsigned char *from, size_t len)
{
	ssize_t n = write(*(int *)fd, from, len);

	return n > 0 ? (int)n : -1;
}

static int get(int port, int resume)
{
	br_ssl_session_parameters before, after;
	char answer[4096];
	size_t len = 0;
	br_sslio_context io;
	int n, fd = dial(port);

	br_ssl_engine_get_session_parameters(&client.eng, &before);
	if (!br_ssl_client_reset(&client, "localhost", resume))
		fail("reset", br_ssl_engine_last_error(&client.eng));
	br_sslio_init(&io, &client.eng, socket_read, &fd, socket_write, &fd);
	if (br_sslio_write_all(&io, request, sizeof request - 1) < 0 || br_sslio_flush(&io) < 0)
		fail("write", br_ssl_engine_last_error(&client.eng));
	while (len < sizeof answer && (n = br_sslio_read(&io, answer + len, sizeof answer - len)) > 0)
		len += (size_t)n;
	check(answer, len);
	close(fd);
	br_ssl_engine_get_session_parameters(&client.eng, &after);
	return resume && before.session_id_len > 0 && after.session_id_len == before.session_id_len &&
		memcmp(after.session_id, before.session_id, after.session_id_len) == 0;
}

int main(int argc, char **argv)
{
	static br_x509_trust_anchor anchor;

	if (argc != 6 || strcmp(argv[3], "1.2") != 0)
		fail("usage: bearssl PORT CA 1.2 FRESH REUSED", argc);
	read_anchor(argv[2], &anchor);
	br_ssl_client_init_full(&client, &verifier, &anchor, 1);
	br_ssl_engine_set_buffer(&client.eng, records, sizeof records, 1);
	visit(atoi(argv[1]), atoi(argv[4]), atoi(argv[5]));
	return 0;
}
