/*
 * The crossings: all C functions that Go calls, except the functions in fips.h, modules.h,
 * policy.h, slim.h and store.h. One function is one operation: it clears the thread's OpenSSL error
 * queue, does the work, asks SSL_get_error, drains the queue and returns, all on one thread, since
 * Go may continue on another thread after it.
 *
 * Ownership words: "borrow" = used during the call only; "take" = C owns it from now on; "give" =
 * the caller owns it. C never keeps a Go pointer after a call returns. A connection's functions may
 * be called from any thread, one at a time.
 */
#ifndef OSSL_SHIM_H
#define OSSL_SHIM_H

#include <stddef.h>
#include <stdint.h>

/* The result of a step of a connection. */
enum {
	OSSL_DONE = 0,       /* the operation is complete */
	OSSL_WANT_READ = 1,  /* more input is needed */
	OSSL_WANT_WRITE = 2, /* the output window is full: send it and call again */
	OSSL_NEED_HELLO = 3, /* a server has the ClientHello (message): choose credential or alert, then call again */
	OSSL_NEED_VERIFY = 4, /* verify the peer's chain (message, empty if a client sent none): set verdict, then call again */
	OSSL_NEED_CERT = 5,  /* a server asks for a certificate (message): choose a credential or none, then call again */
	OSSL_CLOSED = 6,     /* the peer's close_notify was read */
	OSSL_FATAL = 7,      /* failed for good: errors[], alert_in and alert_out hold the reason */
	OSSL_RECORD = 8,     /* a record was opened that the caller must handle */
	OSSL_NEED_UPDATE = 9, /* the sending key has reached its limit of records: update it, then call again */
	OSSL_NEED_RESUME = 10, /* decide whether a session with this client's chain (message) may be resumed: set answer */
	OSSL_NEED_SIGN = 11, /* sign message with signer: fill signature, set answer to its length, then call again */
	OSSL_NEED_PART = 12, /* make the context's part for a shard (n), then start again */
	OSSL_NEED_PSK = 13, /* find the pre-shared key of a TLS 1.2 client's identity (message): ossl_conn_use_psk, then call again */
};

/* The directions of a connection that was taken over from libssl. */
enum { OSSL_READ = 1, OSSL_WRITE = 2 };

/*
 * The number of records after which a TLS 1.3 sending key is updated; RFC 8446, section 5.5, allows
 * AES-GCM 2^24.5.
 */
enum { OSSL_RECORDS_PER_KEY = 1 << 24 };

/* The number of a connection's first records whose size depends on their number. */
enum { OSSL_MAX_SIZED_RECORDS = 1000 };

/*
 * The verdict on a peer's chain. A positive number is the X509_V_ERR that libssl turns into an
 * alert.
 */
enum { OSSL_VERDICT_NONE = -1, OSSL_VERDICT_OK = 0 };

enum { OSSL_MAX_ERRORS = 4, OSSL_MAX_FINISHED = 64, OSSL_IDENTITY = 32 };

/*
 * Facts of a connection, filled when a handshake is done and by ossl_conn_facts; the pointers are
 * borrowed until the next call on the connection.
 */
typedef struct {
	uint16_t version, cipher, group;
	uint8_t resumed, hello_retry, extended_master_secret;
	uint8_t psk; /* the peers have used a pre-shared key */
	uint8_t taken_over; /* libssl no longer has it: ossl_conn_open and ossl_conn_seal instead of read and write */
	uint8_t deferred;   /* a later read will take it over, because a client waits for its tickets */
	uint8_t local_finished_len, peer_finished_len; /* TLS 1.2 only */
	uint8_t local_finished[OSSL_MAX_FINISHED], peer_finished[OSSL_MAX_FINISHED];
	const uint8_t *alpn, *server_name, *ocsp, *scts;
	size_t alpn_len, server_name_len, ocsp_len, scts_len;
} ossl_facts;

/* A ticket key: AES-CBC and HMAC-SHA256, RFC 5077, section 4. */
typedef struct {
	uint8_t name[16], cipher[32], mac[32];
	uint8_t cipher_len, mac_len; /* 16 or 32 */
} ossl_ticket_key;

typedef struct ossl_ctx ossl_ctx;
typedef struct ossl_traffic ossl_traffic; /* an ossl_conn that was taken over */
typedef struct ossl_cred ossl_cred;

/* crypto/tls's maxUselessRecords. */
enum { OSSL_MAX_USELESS = 16 };

/*
 * The part of a connection that Go reads and writes between crossings. It is the first member of
 * the conn in private.h.
 */
typedef struct {
	/* Out: valid until the next call on the connection. */
	unsigned long errors[OSSL_MAX_ERRORS]; /* packed OpenSSL codes, oldest first, 0-terminated */
	int32_t alert_in, alert_out;           /* last alert read and written: level << 8 | description, -1 for none */
	int32_t version;                       /* the protocol version, as far as it is known */
	int32_t negotiated;                    /* 1 once there was a ServerHello that is not a HelloRetryRequest */
	const uint8_t *message;                /* at a pause: the data that the answer depends on */
	size_t message_len;
	const uint8_t *spill; /* output that had no window or did not fit: send it after the window */
	size_t spill_len;
	const uint8_t *keylog; /* key-log lines since the last call, each ending in a newline */
	size_t keylog_len;
	const uint8_t *trace; /* want_trace: messages since the last call; see trace_message in callbacks.c */
	size_t trace_len;
	const uint8_t *lookup; /* at OSSL_NEED_HELLO: the ID of a session to look up, if any */
	size_t lookup_len;
	int32_t single_use; /* the ID belongs to a TLS 1.3 ticket */
	int32_t offers_tls13;     /* at OSSL_NEED_HELLO, if psk_hello: TLS 1.3 will be chosen */
	const uint8_t *psk_offer; /* and then: the body of the client's pre_shared_key, NULL for none */
	size_t psk_offer_len;
	const uint8_t *sessions; /* made since ossl_conn_forget_sessions: ID, DER, each after its length in 4 bytes */
	size_t sessions_len;
	const uint8_t *server_name; /* on a server that has read the ClientHello: the name in it */
	size_t server_name_len;
	int32_t resumed; /* 1 once it is decided that a session is resumed */
	int32_t psk;     /* 1 once it is decided that a pre-shared key is used */
	int32_t extended_master_secret; /* 1 if the ServerHello has that extension: RFC 7627 */
	int32_t hello_len; /* the length of a ClientHello that was refused as too long */
	int32_t useless;   /* messages in a row that brought no data, after the handshake; stays above OSSL_MAX_USELESS */
	int32_t left_out; /* 1 if a client failed because libssl omitted its certificate */
	int32_t paused; /* 1 if the step stopped with a question at a point where libssl itself can't pause */
	/* At OSSL_NEED_SIGN: the kind of signature, by signer.h's numbers, and the place for it. */
	uintptr_t signer;
	int32_t sign_algorithm, sign_hash, sign_form;
	uint8_t *signature;
	size_t signature_cap;
	/* In: answers to a pause, which the next call reads. */
	size_t answer;       /* to OSSL_NEED_RESUME: 1 or 0; to OSSL_NEED_SIGN: the length, 0 for a failure */
	int32_t verdict;     /* OSSL_VERDICT_… or an X509_V_ERR */
	/* The alert for a verdict that is not OSSL_VERDICT_OK, -1 for the verdict's own. At
	 * OSSL_NEED_CERT, on a TLS 1.3 client whose context has seal_refusals: aborts the handshake
	 * with this alert when the server's flight is complete. */
	int32_t refusal;
	int32_t hello_alert; /* >= 0: refuse the ClientHello with this alert */
	int32_t deferred;    /* a later read may take the connection over */
	int32_t socket;      /* the descriptor that the connection uses, -1 for none: probe.h */
	int32_t shard, shards; /* out: the connection's, from 0, and the number of its context's */
} ossl_conn;

/* The results of a step, returned by value except by the two functions that are called most. */
typedef struct {
	int32_t status;
	uint16_t pending;  /* libssl holds decrypted bytes that the next read returns without input */
	uint16_t taken_over; /* of a read: it finished by taking over the connection */
	size_t consumed;   /* bytes taken from the input window */
	size_t produced;   /* bytes put into the output window */
	size_t n;          /* bytes of user data read or written */
	size_t records;    /* records written */
} ossl_step;

/* The results of ossl_conn_open. */
typedef struct {
	int32_t status;
	int32_t alert;   /* OSSL_FATAL: the alert to send. The record that caused it is not consumed */
	uint8_t type;    /* OSSL_RECORD: its content type */
	size_t consumed; /* bytes of the input whose records were opened */
	size_t n;        /* bytes of application data written to dst */
	size_t at, len;  /* OSSL_RECORD: its text, in the input. For application data, the part that did not fit into dst */
} ossl_opened;

/* The most shards of the slim library context: slim.c. */
enum { OSSL_MAX_SHARDS = 32 };

/* The parameters of a context; strings may be NULL for libssl's default. */
typedef struct {
	int32_t min_version, max_version; /* TLS1_2_VERSION or TLS1_3_VERSION */
	int32_t security_level;           /* at least this; -1 keeps the library's */
	int32_t client_auth;              /* SSL_VERIFY_ bits for the server role */
	uint8_t want_hello;               /* servers pause at the ClientHello */
	uint8_t want_cert;                /* clients pause when a server requests a certificate */
	uint8_t want_keylog;
	uint8_t want_trace;               /* keep the messages of the handshake */
	uint8_t verify_pauses;            /* clients can pause for verification: 3.0 and later */
	uint8_t direct_records;              /* take connections over after the handshake; requires seal_refusals */
	uint8_t seal_refusals;            /* TLS 1.3 clients protect the alert if Go refuses the server, on either record path */
	uint8_t fips;                     /* use the library context of fips.h, which must be ready */
	uint8_t tickets;                  /* servers seal sessions into tickets: ossl_ctx_set_ticket_keys */
	uint8_t cached;                   /* servers pause to have sessions looked up, and collect new ones */
	uint8_t tickets13;                /* if cached: TLS 1.3 sessions are in tickets while there are keys */
	uint8_t keep_sessions;            /* clients collect sessions */
	int32_t session_timeout;          /* seconds */
	uint8_t policy[32];               /* servers: sessions made under another policy are not resumed */
	uint8_t exact_level;              /* set security_level even if it is lower than the current level */
	uint8_t as_host;                  /* min_version is a lower bound, and max_version the host's: policy.c */
	uint8_t without_policy;           /* undo the host's policy: policy.c */
	const uint8_t *commands;          /* otherwise the policy's commands: for each its name, 0, its value, 0 */
	size_t commands_len;
	const char *cipher_list, *cipher_suites, *groups, *sigalgs;
	const char *client_sigalgs; /* the algorithms that clients may sign with, NULL for sigalgs */
	const uint8_t *alpn; /* protocol list in wire format */
	size_t alpn_len;
	uint8_t alpn_by_client; /* servers use the client's order of preference */
	/* Pre-shared keys: the TLS 1.2 suites with one, which are in cipher_list too; the TLS 1.3 suites with SHA-256 and
	 * with SHA-384. */
	const char *psk_list, *psk_suites[2];
	uint8_t psk_hello;       /* if want_hello: servers report the client's offer of keys */
	uint8_t psk_without_dhe; /* a TLS 1.3 connection with a key may have no other key exchange */
	uint8_t psk_narrows_clients, psk_narrows_servers; /* connections with a key have no other TLS 1.2 suites than psk_list */
	const ossl_ctx *before; /* nullable, borrow: a context with the same parameters, to share its ticket keys */
	int32_t shards;         /* among how many connections are divided, if it is in the slim library context */
	int32_t shard;          /* for a part of a context: its shard; -1 for the whole, of which it is the first part */
} ossl_ctx_params;

/* The results of ossl_load. */
typedef struct {
	unsigned long version; /* in the form of OPENSSL_VERSION_NUMBER */
	const char *text;      /* static */
	uint8_t crypto_before, ssl_before; /* whether the libraries were in the process before */
	char ssl[4096], crypto[4096]; /* paths, 0-terminated */
} ossl_library;

/* libssl is bound to another libcrypto than the one loaded for it. */
enum { OSSL_LOAD_MISMATCH = -2 };

/*
 * Loads libssl and the libcrypto that it depends on, and calls no functions in them except those
 * that return their version. path: libssl's name or path; crypto_path: nullable, loaded first so
 * that libssl binds to it; crypto_name: nullable, the name that libssl's dependency has; lib:
 * filled; report: ossl_report_size bytes of text. Returns 0, or -1 or OSSL_LOAD_MISMATCH with the
 * reason in report (0-terminated): the system's error, or the missing symbols. Nothing is ever
 * unloaded. dlopen(3).
 */
int ossl_load(const char *path, const char *crypto_path, const char *crypto_name, ossl_library *lib, char *report, size_t size);

/* Returns the size that fits any report. */
size_t ossl_report_size(void);

/*
 * Readies the library that ossl_load found for the functions that may be called before ossl_use,
 * without its reading openssl.cnf. Returns 1, or 0 if memory is short. Then ossl_use must succeed, or
 * ossl_load_give_up be called. OPENSSL_init_crypto(3).
 */
int ossl_load_begin(void);
void ossl_load_give_up(void);

/*
 * Initializes that library, which reads openssl.cnf, and makes it the one in use. report: as for
 * ossl_load. Returns 0, or -1 with the reason in report. OPENSSL_init_ssl(3).
 */
int ossl_use(char *report, size_t size);

/* Returns the version number of the library in use. OpenSSL_version_num(3). */
unsigned long ossl_version(void);

/*
 * Reports whether the environment must not be trusted, because the process has more rights than the
 * user who started it: 1 or 0. getauxval(3).
 */
int ossl_privileged(void);

/*
 * Returns the text for the reason of a packed error code (borrow, static), NULL if it is unknown.
 * ERR_reason_error_string(3).
 */
const char *ossl_error_reason(unsigned long code);

/*
 * The kinds of errors that Go distinguishes. VERSION and LENGTH are errors in a record's header,
 * SSL is any other libssl error, and ASN1 is an error in an encoding. MEMORY means that memory was
 * short.
 */
enum { OSSL_ERROR_OTHER, OSSL_ERROR_SYSTEM, OSSL_ERROR_VERSION, OSSL_ERROR_LENGTH, OSSL_ERROR_NO_SCHEME, OSSL_ERROR_SSL,
	OSSL_ERROR_ASN1, OSSL_ERROR_MEMORY };

/*
 * Returns the kind of a packed error code. number is set to the errno of OSSL_ERROR_SYSTEM, to the
 * reason of OSSL_ERROR_SSL, otherwise to 0. ERR_GET_LIB(3).
 */
int ossl_error_kind(unsigned long code, int *number);

/*
 * Returns the number of bytes in use on the C heap, 0 if mallinfo2(3) is missing. For measurements.
 */
size_t ossl_heap_in_use(void);

/*
 * Gives free memory on the C heap back to the system, if do_it is set. Returns 0 if malloc_trim(3) is
 * missing: other C libraries than glibc need none. The call takes up to a second, if thousands of
 * handshakes have left free memory, and holds the lock of one arena at a time.
 */
int ossl_heap_trim(int do_it);

/*
 * Makes a context. p: borrow. errors: OSSL_MAX_ERRORS codes, filled on failure. failed: set to the
 * name of the setting that libssl refused (static). Returns give (ossl_ctx_free) or NULL.
 * SSL_CTX_new(3).
 */
ossl_ctx *ossl_ctx_new(const ossl_ctx_params *p, unsigned long *errors, const char **failed);

/*
 * Releases the owner's reference; connections keep the context alive as long as they need it.
 * SSL_CTX_free(3).
 */
void ossl_ctx_free(ossl_ctx *ctx);

/*
 * Adds the part for its shard, unless there is one: from then on connections that start on that shard's
 * processors have it. part: take.
 */
void ossl_ctx_add_part(ossl_ctx *ctx, ossl_ctx *part);

/* Returns the number of such parts of all contexts. */
uint64_t ossl_ctx_parts(void);

/*
 * Sets the credential of servers that don't pause. cred: borrow (a reference is taken). Returns 1,
 * or 0 with errors. SSL_CTX_use_cert_and_key(3).
 */
int ossl_ctx_set_cred(ossl_ctx *ctx, ossl_cred *cred, unsigned long *errors);

/*
 * Appends one DER X509_NAME to the names that servers send in a CertificateRequest. Returns 1, or 0
 * with errors. SSL_CTX_set_client_CA_list(3) is called by ossl_ctx_seal_cas, after the last.
 */
int ossl_ctx_add_ca(ossl_ctx *ctx, const uint8_t *name, size_t len, unsigned long *errors);
void ossl_ctx_seal_cas(ossl_ctx *ctx);

/* Reports whether the context offers this cipher suite: 1 or 0. SSL_CTX_get_ciphers(3). */
int ossl_ctx_has_cipher(ossl_ctx *ctx, uint16_t id);

/* Returns the security level in force. SSL_CTX_get_security_level(3). */
int ossl_ctx_security_level(ossl_ctx *ctx);

/*
 * Reports which groups and signature algorithms libssl knows, by setting each on a separate context:
 * has gets 1 or 0 for each. names: first the groups, then the algorithms, one after the other, each
 * with its 0. fips: 1 or 0, whether in FIPS mode. Returns 1, or 0 with errors, and then has is not
 * valid. SSL_CTX_set1_groups_list(3), SSL_CTX_set1_sigalgs_list(3).
 */
int ossl_has(const char *names, size_t groups, size_t signatures, int fips, uint8_t *has, unsigned long *errors);

/* Returns the number of SSL_CTXs that were made, except FIPS mode's. SSL_CTX_new(3). */
uint64_t ossl_ssl_ctxs_made(void);

/*
 * Makes a credential: a chain, its key, and the extensions that are sent with the chain. chain: DER
 * certificates, leaf first, each preceded by its length in 4 bytes, big-endian; key: PKCS #8 DER,
 * cleansed by the caller. sigalgs: nullable, the signature algorithms that the key may use. staple,
 * scts: nullable. fips: 1 or 0, for contexts in FIPS mode. Returns give (ossl_cred_free) or NULL
 * with errors. d2i_X509(3), d2i_PrivateKey_ex(3).
 */
ossl_cred *ossl_cred_new(int fips, const uint8_t *chain, size_t chain_len, const uint8_t *key, size_t key_len,
	const char *sigalgs, const uint8_t *staple, size_t staple_len, const uint8_t *scts, size_t scts_len, unsigned long *errors);

/*
 * Is like ossl_cred_new for a key that only Go can use. signer: Go's handle, which is set at
 * OSSL_NEED_SIGN.
 */
ossl_cred *ossl_cred_new_signer(const uint8_t *chain, size_t chain_len, uintptr_t signer, const char *sigalgs,
	const uint8_t *staple, size_t staple_len, const uint8_t *scts, size_t scts_len, unsigned long *errors);

/*
 * Sets the hash of the identity in the certificate, before the credential's first use: servers bind
 * their sessions to it. id: borrow, OSSL_IDENTITY bytes.
 */
void ossl_cred_set_identity(ossl_cred *cred, const uint8_t *id);

/* Releases one reference. */
void ossl_cred_free(ossl_cred *cred);

/*
 * Reports whether servers of the context can use a credential: whether a server accepts it and, if
 * sign is 1, answers a client of the same context with it, in TLS 1.3 or in TLS 1.2. sign must be 0
 * for a key that only Go can use. cred: borrow. Returns 1, or 0 with errors.
 * SSL_use_cert_and_key(3), SSL_do_handshake(3).
 */
int ossl_ctx_check_cred(ossl_ctx *ctx, ossl_cred *cred, int sign, unsigned long *errors);

/*
 * Sets the keys of tickets: the first seals, all of them open. keys: borrow, n of them. Returns 1,
 * or 0 if there is no memory, and then the keys stay. SSL_CTX_set_tlsext_ticket_key_cb(3).
 */
int ossl_ctx_set_ticket_keys(ossl_ctx *ctx, const ossl_ticket_key *keys, size_t n);

/*
 * Makes a connection. server: 1 or 0; server_name: nullable, the name that a client sends; session:
 * a client's, DER, to be resumed if the server agrees; psk: a client's, as for ossl_conn_use_psk,
 * psk_len 0 for none, else there must be no session; may_ask: 1 or 0, whether steps may end with
 * questions at points where libssl itself can't pause. Returns give (ossl_conn_free) or NULL with
 * errors. SSL_new(3).
 */
ossl_conn *ossl_conn_new(ossl_ctx *ctx, int server, const char *server_name, const uint8_t *session, size_t session_len,
	const uint8_t *psk, size_t psk_len, int may_ask, unsigned long *errors);

/*
 * Makes a connection as ossl_conn_new does, in the context's part for this thread's processor, and takes
 * the first step of its handshake. conn: set to give, or NULL with errors, or NULL at OSSL_NEED_PART, which
 * doesn't come if as_is is 1.
 */
ossl_step ossl_conn_start(ossl_ctx *ctx, int as_is, int server, const char *server_name, const uint8_t *session,
	size_t session_len, const uint8_t *psk, size_t psk_len, int may_ask, ossl_conn **conn, unsigned long *errors,
	const uint8_t *in, size_t in_len, uint8_t *out, size_t out_cap);

/*
 * Gives a connection a pre-shared key: it then has no session, and in TLS 1.3 no suite with another
 * hash. Of a server, at OSSL_NEED_HELLO or OSSL_NEED_PSK; if there is no key at OSSL_NEED_HELLO, the
 * version is TLS 1.2 and OSSL_NEED_PSK follows. packed: borrow; 1 for SHA-384 or 0 for SHA-256, the
 * length of the identity in 2 bytes, the identity, the key. Returns 1, or 0 with the connection's
 * errors. SSL_set_psk_find_session_callback(3), SSL_set_psk_use_session_callback(3),
 * SSL_set_psk_server_callback(3), SSL_set_psk_client_callback(3), SSL_set_ciphersuites(3).
 */
int ossl_conn_use_psk(ossl_conn *conn, const uint8_t *packed, size_t len);

/*
 * Answers the lookup at OSSL_NEED_HELLO. session: borrow, DER. Returns 1 or 0.
 * SSL_CTX_sess_set_get_cb(3).
 */
int ossl_conn_offer_session(ossl_conn *conn, const uint8_t *session, size_t len);

/* Frees pub->sessions. */
void ossl_conn_forget_sessions(ossl_conn *conn);

/*
 * Takes a step of the handshake. in, out: borrow. facts: filled if the step returns OSSL_DONE.
 * SSL_do_handshake(3).
 */
ossl_step ossl_conn_handshake(ossl_conn *conn, const uint8_t *in, size_t in_len, uint8_t *out, size_t out_cap, ossl_facts *facts);

/*
 * Refuses a resumption that libssl has completed, on a TLS 1.3 client of whose flight nothing has
 * been or will be sent: fills out (borrow) with an alert under the handshake's keys, or in the
 * clear if the conn doesn't have them. The conn has failed then. RFC 8446, section 6.2.
 */
ossl_step ossl_conn_refuse(ossl_conn *conn, uint8_t alert, uint8_t *out, size_t out_cap);

/*
 * Answers NEED_CERT or NEED_HELLO with a credential. cred: borrow (a reference is taken), NULL for
 * none. Returns 1, or 0 with the connection's errors. SSL_use_cert_and_key(3).
 */
int ossl_conn_use_cred(ossl_conn *conn, ossl_cred *cred);

/*
 * The hellos of a handshake that is not done, for the text of its error. The pointer is borrowed
 * until the next call on the connection.
 */
typedef struct {
	const uint8_t *client; /* of a server: as hello_facts in callbacks.c puts it together; NULL if there is none yet */
	size_t client_len;
	uint16_t version, suite; /* in the ServerHello */
} ossl_hellos;

/* Fills hellos. */
void ossl_conn_hellos(ossl_conn *conn, ossl_hellos *hellos);

/* Fills facts. SSL_get_version(3) and others. */
void ossl_conn_facts(ossl_conn *conn, ossl_facts *facts);

/*
 * Opens records from in until dst is full or in is used up. A resulting key update or alert is left
 * in spill. SSL_read_ex(3), SSL_get_key_update_type(3).
 */
ossl_step ossl_conn_read(ossl_conn *conn, const uint8_t *in, size_t in_len, uint8_t *dst, size_t dst_len);

/*
 * Seals src into records of at most 16384 bytes. If payload > 0, the first records are small:
 * record i holds at most payload * (first + i + 1) bytes. SSL_write_ex(3).
 */
ossl_step ossl_conn_write(ossl_conn *conn, const uint8_t *src, size_t len, uint8_t *out, size_t out_cap, size_t payload,
	size_t first);

/*
 * Seals close_notify, if it has not been sent and the handshake is complete. Ends with
 * OSSL_WANT_READ if the rest of a message from the peer must be read first, and with OSSL_FATAL if it
 * can't be sealed. SSL_shutdown(3), SSL_in_init(3).
 */
ossl_step ossl_conn_close_notify(ossl_conn *conn, uint8_t *out, size_t out_cap);

/*
 * Updates the sending key; if request is 1, asks the peer to do the same. The message is left in
 * spill. SSL_key_update(3).
 */
ossl_step ossl_conn_key_update(ossl_conn *conn, int request);

/*
 * Exports keying material. label: borrow, label_len bytes; context: nullable means none. Returns 1
 * or 0. SSL_export_keying_material(3).
 */
int ossl_conn_export(ossl_conn *conn, uint8_t *out, size_t len, const char *label, size_t label_len, const uint8_t *context,
	size_t context_len, int use_context);

/*
 * After a takeover, the functions take the same address under another type, an opaque one, so that
 * cgo has no fields to check for pointers. The two directions are independent: one thread may open
 * while another seals.
 */

/*
 * Opens records in place, until dst is full, in is used up, or a record of another type than
 * application data was opened. The text of such a record is left in the input, as is application
 * data that did not fit. On failure, none of the text is left in either. in: borrow, changed; dst:
 * borrow; opened: filled. RFC 8446, section 5.2.
 */
void ossl_conn_open(ossl_traffic *conn, uint8_t *in, size_t in_len, uint8_t *dst, size_t dst_len, ossl_opened *opened);

/*
 * Seals src into records of this content type, as many as fit. If payload > 0, the first records
 * are small: record i holds at most payload * (first + i + 1) bytes, until the output is grown
 * bytes long. step: filled.
 */
void ossl_conn_seal(ossl_traffic *conn, uint8_t type, const uint8_t *src, size_t len, uint8_t *out, size_t out_cap,
	size_t payload, size_t first, size_t grown, ossl_step *step);

/*
 * Reports whether a paused handshake holds a thread, because stacks can't be switched on this
 * system: 1 or 0.
 */
int ossl_pauses_hold_threads(void);

/* Sets the number of stacks that are kept for handshakes which may pause. It is at least 64. */
void ossl_keep_stacks(size_t n);

/*
 * Reports whether this thread's signatures and secrets are attributed to a handshake: 1 or 0. For
 * tests.
 */
int ossl_occupied(void);

/*
 * Advances a direction to its next keys, TLS 1.3 only. sealing: 1 or 0. Returns 1 or 0. RFC 8446,
 * section 7.2.
 */
int ossl_conn_update(ossl_traffic *conn, int sealing);

/*
 * The data that the kernel needs to seal the next records: linux/tls.h. iv: the whole IV in TLS 1.3
 * and for ChaCha20; in TLS 1.2 with GCM the four bytes from the key block, then the explicit nonce
 * of the next record. seq: the next record's number, big-endian.
 */
typedef struct {
	uint16_t suite;
	uint8_t tls13, key_len;
	uint8_t key[32], iv[12], seq[8];
} ossl_kernel_key;

/*
 * Returns the sending side's key. The result is 1, or 0 if it is not available: in TLS 1.2, once a
 * record was sealed with it. key: filled. As soon as the kernel has it, ossl_conn_kernel_seals must
 * be called; until then the connection can still seal, and nothing has changed.
 */
int ossl_conn_kernel_key(ossl_traffic *conn, ossl_kernel_key *key);
/*
 * Ends sealing by the sending side. In TLS 1.3 ossl_conn_update still advances to its next key, for
 * ossl_conn_kernel_key.
 */
void ossl_conn_kernel_seals(ossl_traffic *conn);

/* Skips sequence numbers, for tests of their limits; never goes back. Returns 1 or 0. */
int ossl_conn_skip(ossl_conn *conn, int sealing, uint64_t seq);

/*
 * Hides the n-th record from now, or Finished, from the takeover's first count, to test the second
 * one. sent: 1 or 0.
 */
enum { OSSL_MISS_FINISHED = 255 };
void ossl_conn_miss(ossl_conn *conn, int sent, uint8_t n);

/*
 * An established connection, from which another process can go on: it has the keys, or what they are made
 * from. In TLS 1.3, read and write are the traffic secrets, and exporter the exporter secret. In TLS 1.2,
 * exporter is the master secret, and randoms are the client's and the server's. read_seq and write_seq are
 * the numbers of the next records; nonce: in TLS 1.2 with GCM, the explicit nonce of the next record to seal.
 */
typedef struct {
	uint16_t suite;
	uint8_t server, sides; /* sides: those that can be used, OSSL_READ | OSSL_WRITE */
	uint8_t kernel; /* the kernel seals, and counts: write_seq and nonce are 0 */
	uint8_t read[48], write[48], exporter[48], randoms[64];
	uint64_t read_seq, write_seq, nonce;
} ossl_secrets;

/*
 * Copies the state of a connection that was taken over, whose sides are both unused in the meantime. Returns
 * 1, or 0 if it can't go on elsewhere: a side has failed. In TLS 1.2, the connection must have Extended Master
 * Secret. secrets: filled; the caller wipes it.
 */
int ossl_conn_secrets(const ossl_conn *conn, ossl_secrets *secrets);
/*
 * Makes an established connection, which was taken over, from its state. Returns give, or NULL with errors; without
 * errors if ctx has not the suite. If the kernel seals, the connection never does: ossl_conn_kernel_key returns
 * the key, to be compared with the kernel's, and ossl_conn_kernel_seals must follow. secrets: borrow.
 */
ossl_conn *ossl_conn_of_secrets(ossl_ctx *ctx, const ossl_secrets *secrets, unsigned long *errors);

/*
 * Frees sides of a connection, OSSL_READ | OSSL_WRITE: both, unless it was taken over and the other
 * one is in use and freed later. If notify is not 0, close_notify is sealed into out first. A step
 * that waits for Go fails; then n in the result is the number of bytes that it would have sent.
 * SSL_free(3).
 */
ossl_step ossl_conn_free(ossl_conn *conn, int sides, int notify, uint8_t *out, size_t out_cap);

#endif
