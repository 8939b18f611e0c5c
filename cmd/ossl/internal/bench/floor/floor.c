/*
 * The floor: the cost of a handshake with libssl and without Go, which is a lower bound for any
 * binding.
 *
 * Its rows are the rows of package bench's BenchmarkHandshake and BenchmarkResumption with
 * server=c/client=c, in go test's format, so that benchstat and cmd/ratios can compare them with
 * the others. The client and the server are in this process, on the libssl that ossl would load
 * here, in the same library context and with the same settings. No chain is verified: a row
 * measures only the proofs of the TLS protocol itself, as if ossl finds the chain in its cache.
 * Each connection is checked against its row, and the program exits at any difference.
 *
 * ci/bench compiles it, with two files of internal/libssl: the loader and dlopen. Exit status 3:
 * there is no OpenSSL 3.0 or later.
 */

#include "floor.h"

#include <errno.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* As in package bench: the time for measuring the client's and the server's processor time in a row. */
enum { SPLIT_NS = 100 * 1000 * 1000 };

_Noreturn void fail(const char *what)
{
	unsigned long code = ossl_fn.ERR_get_error ? ossl_fn.ERR_get_error() : 0;
	const char *reason = code ? ossl_fn.ERR_reason_error_string(code) : NULL;

	fprintf(stderr, "floor: %s%s%s\n", what, reason ? ": " : "", reason ? reason : "");
	_exit(FAILED); /* the other thread may be inside of the library */
}

_Noreturn void fail_system(const char *what)
{
	fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
	_exit(FAILED);
}

int64_t clock_now(int clock)
{
	struct timespec t;

	must_system(clock_gettime((clockid_t)clock, &t) == 0, "clock_gettime");
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static _Noreturn void usage(void)
{
	fputs("usage: floor [-bench REGEX] [-benchtime 0.3s|20x]\n", stderr);
	exit(USAGE);
}

static limit parse_limit(const char *text)
{
	limit l = {0, 0};
	char *unit;
	double v = strtod(text, &unit);

	if (strcmp(unit, "x") == 0 && v >= 1 && v < 1e9)
		l.n = (long)v;
	else if (strcmp(unit, "s") == 0 && v > 0 && v < 1e6)
		l.ns = (int64_t)(v * 1e9);
	else if (strcmp(unit, "ms") == 0 && v > 0 && v < 1e9)
		l.ns = (int64_t)(v * 1e6);
	if (l.n == 0 && l.ns == 0)
		usage();
	return l;
}

/* Returns the length of the part of pattern up to a separator outside of brackets. */
static size_t part(const char *pattern, size_t len, char separator)
{
	size_t i;
	int set = 0, group = 0;

	for (i = 0; i < len; i++) {
		char c = pattern[i];

		if (c == '\\' && i + 1 < len)
			i++;
		else if (c == '[')
			set++;
		else if (c == ']')
			set -= set > 0;
		else if (set == 0 && (c == '(' || c == ')'))
			group += c == '(' ? 1 : -1;
		else if (c == separator && set == 0 && group == 0)
			break;
	}
	return i;
}

static int matches(const char *pattern, size_t len, const char *text, size_t text_len)
{
	char p[1024], t[256];
	regex_t compiled;
	int found;

	if (len >= sizeof p || text_len >= sizeof t)
		usage();
	memcpy(p, pattern, len);
	memcpy(t, text, text_len);
	p[len] = t[text_len] = 0;
	if (regcomp(&compiled, p, REG_EXTENDED | REG_NOSUB) != 0)
		usage();
	found = len == 0 || regexec(&compiled, t, 0, NULL, 0) == 0; /* POSIX leaves an empty expression undefined */
	regfree(&compiled);
	return found;
}

/*
 * Reports whether go test -bench would run a benchmark. pattern has alternatives between bars; each
 * has an expression for each element of the name, or for fewer.
 */
static int is_picked(const char *pattern, const char *name)
{
	size_t rest = strlen(pattern), len;

	for (;; pattern += len + 1, rest -= len + 1) {
		const char *p = pattern, *n = name;
		size_t left;
		int ok = 1;

		len = part(pattern, rest, '|');
		for (left = len; ok; ) {
			size_t element = part(p, left, '/'), of_name = strcspn(n, "/");

			ok = matches(p, element, n, of_name);
			if (element == left)
				break;
			p += element + 1;
			left -= element + 1;
			n += of_name;
			ok = ok && *n++ == '/';
		}
		if (ok)
			return 1;
		if (len == rest)
			return 0;
	}
}

static void measure(const row *r, const char *name, limit l)
{
	ends *e = ends_new(r);
	int64_t took;
	double client, server;
	long ops = loopback(e, l, &took);

	lockstep(e, ops, SPLIT_NS, &client, &server);
	ends_free(e);
	/* -2 because there are two threads, as Go has two processors in ci/bench's other rows. */
	printf("%s-2\t%8ld\t%12.0f ns/op\t%12.0f client-ns/op\t%12.0f server-ns/op\n", name, ops, (double)took / (double)ops, client,
		server);
	must_system(fflush(stdout) == 0, "standard output");
}

static void name_of(const row *r, char *name, size_t size)
{
	const char *format = "BenchmarkHandshake/server=c/client=c/cert=%s/mutual=%s/kex=X25519/chaincache=hit";
	const char *detail = r->mutual ? "true" : "false", *resume = "";

	if (r->connection) {
		format = "BenchmarkResumption/server=c/client=c/cert=%s/version=%s/resume=%s";
		detail = r->version == OSSL_TLS1_3_VERSION ? "1.3" : "1.2";
		resume = r->resume ? "ticket" : "full";
	}
	must((size_t)snprintf(name, size, format, r->cert, detail, resume) < size, "a name's length");
}

int main(int argc, char **argv)
{
	static const char *const certs[] = {"P256", "RSA2048"};
	const char *pattern = "";
	limit l = {0, 1000000000};
	row rows[16];
	size_t n = 0, c;
	int i, version, resume;

	for (i = 1; i < argc; i += 2) {
		if (i + 1 == argc)
			usage();
		if (strcmp(argv[i], "-bench") == 0)
			pattern = argv[i + 1];
		else if (strcmp(argv[i], "-benchtime") == 0)
			l = parse_limit(argv[i + 1]);
		else
			usage();
	}
	must_system(signal(SIGPIPE, SIG_IGN) != SIG_ERR, "signal");
	printf("libssl: %s\n", library_load());

	for (c = 0; c < 2; c++)
		for (i = 0; i < 2; i++)
			rows[n++] = (row){.cert = certs[c], .version = OSSL_TLS1_3_VERSION, .mutual = i};
	for (version = OSSL_TLS1_3_VERSION; version >= OSSL_TLS1_2_VERSION; version--)
		for (c = 0; c < 2; c++)
			for (resume = 0; resume < 2; resume++)
				rows[n++] = (row){.cert = certs[c], .version = version, .connection = 1, .resume = resume};
	for (c = 0; c < n; c++) {
		char name[128];

		name_of(&rows[c], name, sizeof name);
		if (is_picked(pattern, name))
			measure(&rows[c], name, l);
	}
	return 0;
}
