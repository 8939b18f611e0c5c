/*
 * A PKCS #11 module for tests: another one, whose signatures can be held up or made to fail, and whose limits can be set.
 * ci/pkcs11 builds it. It declares what it needs of PKCS #11 itself: the order of the functions, OASIS PKCS #11 2.40, section 3.
 *
 *   OSSL_TEST_PKCS11_MODULE    the module behind it
 *   OSSL_TEST_PKCS11_GATE      a folder of files:
 *       gate      whoever locks it, by flock(2), holds up all signatures. Its first byte says what becomes of them then:
 *                 'r' the device was removed; 'c' all sessions are closed, as after a restart of the device; 'e' they succeed
 *                 and leave an error in OpenSSL's queue, as a provider may that got over something
 *       signing   grows by a byte with each signature that begins
 *       logins    grows by a byte with each login
 *       copies    grows by a byte with each key that is copied
 *   OSSL_TEST_PKCS11_SESSIONS  how many sessions the token says it has
 *   OSSL_TEST_PKCS11_NO_PSS    if set, the token knows no RSA-PSS
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

typedef unsigned long (*function)();

enum { GET_FUNCTION_LIST = 3, GET_TOKEN_INFO = 6, GET_MECHANISM_LIST = 7, GET_MECHANISM_INFO = 8, CLOSE_ALL_SESSIONS = 14,
	GET_SESSION_INFO = 15, LOGIN = 18, COPY_OBJECT = 21, SIGN_INIT = 42, SIGN = 43, SIGN_FINAL = 45, FUNCTIONS = 68 };
enum { CKR_GENERAL_ERROR = 5, CKR_DEVICE_REMOVED = 0x32, CKR_MECHANISM_INVALID = 0x70 };

typedef struct {
	unsigned char version[2];
	function f[FUNCTIONS];
} list;

/* CK_TOKEN_INFO and CK_SESSION_INFO, as far as they are needed */
typedef struct {
	unsigned char text[32 + 32 + 16 + 16];
	unsigned long flags, max_sessions;
} token_info;

static list mine;
static const list *theirs;

static int file(const char *name, int flags)
{
	char path[4096];
	const char *dir = getenv("OSSL_TEST_PKCS11_GATE");

	snprintf(path, sizeof path, "%s/%s", dir ? dir : "/nonexistent", name);
	return open(path, flags | O_CLOEXEC, 0600);
}

static void note(const char *name)
{
	int fd = file(name, O_WRONLY | O_CREAT | O_APPEND);

	if (fd < 0 || write(fd, "x", 1) != 1)
		abort();
	close(fd);
}

static int is_pss(unsigned long mechanism)
{
	return getenv("OSSL_TEST_PKCS11_NO_PSS") && (mechanism == 0x0d || mechanism == 0x0e || (mechanism >= 0x43 && mechanism <= 0x47));
}

/* ERR_raise(3), of the libcrypto in use. */
static void leave_error(void)
{
	void *crypto = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_NOLOAD);
	void (*err_new)(void) = NULL;
	void (*err_set_error)(int, int, const char *, ...) = NULL;

	if (!crypto)
		abort();
	*(void **)&err_new = dlsym(crypto, "ERR_new");
	*(void **)&err_set_error = dlsym(crypto, "ERR_set_error");
	err_new();
	err_set_error(200, 7, NULL);
}

/* Waits until the gate is open. */
static unsigned long pass(unsigned long session)
{
	int fd = file("gate", O_RDONLY);
	char what = 0;
	unsigned long info[4]; /* slot first */

	note("signing");
	if (fd < 0)
		return 0;
	if (flock(fd, LOCK_SH) != 0 || read(fd, &what, 1) < 0)
		abort();
	close(fd);
	if (what == 'r')
		return CKR_DEVICE_REMOVED;
	if (what == 'e')
		leave_error();
	if (what == 'c' && theirs->f[GET_SESSION_INFO](session, info) == 0)
		theirs->f[CLOSE_ALL_SESSIONS](info[0]);
	return 0;
}

/* A signature that fails is made all the same, since that ends the operation in the session. */
static unsigned long done(unsigned long failed, unsigned long rv, void *sig, unsigned long *sig_len)
{
	if (failed && rv == 0 && sig)
		memset(sig, 0, *sig_len);
	return failed ? failed : rv;
}

static unsigned long sign(unsigned long session, void *data, unsigned long len, void *sig, unsigned long *sig_len)
{
	unsigned long failed = pass(session);

	return done(failed, theirs->f[SIGN](session, data, len, sig, sig_len), sig, sig_len);
}

static unsigned long sign_final(unsigned long session, void *sig, unsigned long *sig_len)
{
	unsigned long failed = pass(session);

	return done(failed, theirs->f[SIGN_FINAL](session, sig, sig_len), sig, sig_len);
}

static unsigned long login(unsigned long session, unsigned long user, void *pin, unsigned long len)
{
	note("logins");
	return theirs->f[LOGIN](session, user, pin, len);
}

static unsigned long copy_object(unsigned long session, unsigned long object, void *attributes, unsigned long n, void *copy)
{
	note("copies");
	return theirs->f[COPY_OBJECT](session, object, attributes, n, copy);
}

static unsigned long get_token_info(unsigned long slot, token_info *info)
{
	unsigned long rv = theirs->f[GET_TOKEN_INFO](slot, info);
	const char *sessions = getenv("OSSL_TEST_PKCS11_SESSIONS");

	if (rv == 0 && sessions)
		info->max_sessions = strtoul(sessions, NULL, 10);
	return rv;
}

static unsigned long get_mechanism_list(unsigned long slot, unsigned long *mechanisms, unsigned long *n)
{
	unsigned long rv = theirs->f[GET_MECHANISM_LIST](slot, mechanisms, n), i, k;

	if (rv == 0 && mechanisms) {
		for (i = k = 0; i < *n; i++)
			if (!is_pss(mechanisms[i]))
				mechanisms[k++] = mechanisms[i];
		*n = k;
	}
	return rv;
}

static unsigned long get_mechanism_info(unsigned long slot, unsigned long mechanism, void *info)
{
	return is_pss(mechanism) ? CKR_MECHANISM_INVALID : theirs->f[GET_MECHANISM_INFO](slot, mechanism, info);
}

unsigned long C_GetFunctionList(list **out);

unsigned long C_GetFunctionList(list **out)
{
	const char *path = getenv("OSSL_TEST_PKCS11_MODULE");
	void *lib = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	function get = NULL;

	if (lib)
		*(void **)&get = dlsym(lib, "C_GetFunctionList");
	if (!get || get(&theirs) != 0)
		return CKR_GENERAL_ERROR;
	mine = *theirs;
	mine.f[GET_FUNCTION_LIST] = (function)C_GetFunctionList;
	mine.f[GET_TOKEN_INFO] = (function)get_token_info;
	mine.f[GET_MECHANISM_LIST] = (function)get_mechanism_list;
	mine.f[GET_MECHANISM_INFO] = (function)get_mechanism_info;
	mine.f[LOGIN] = (function)login;
	mine.f[COPY_OBJECT] = (function)copy_object;
	mine.f[SIGN] = (function)sign;
	mine.f[SIGN_FINAL] = (function)sign_final;
	*out = &mine;
	return 0;
}
