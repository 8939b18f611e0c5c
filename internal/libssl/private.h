/*
 * Declarations shared by the C files of this package: the objects behind the opaque types of
 * shim.h.
 */
#ifndef OSSL_PRIVATE_H
#define OSSL_PRIVATE_H

#include "config.h"
#include "coroutine.h"
#include "shim.h"
#include "table.h"
#include "traffic.h"

/* The keys of a context's tickets: session.c. */
typedef struct ticket_ring ticket_ring;

/* A byte string that grows; freed by bytes_free. */
typedef struct {
	uint8_t *data;
	size_t len, cap;
} bytes;

/* Appends to b. Returns 1, or 0 if memory is short or the result would exceed max. */
int bytes_append(bytes *b, const void *data, size_t len, size_t max);
void bytes_free(bytes *b);

/* A count of the records in a stream, made without libssl. */
enum { TAP_LENGTHS = 8 };
typedef struct {
	uint8_t head[RECORD_HEADER + 8], have; /* the header and the first bytes of the last record */
	size_t left;                           /* its bytes still to come */
	uint64_t records, since;               /* headers in total, and since the last ChangeCipherSpec */
	uint16_t lengths[TAP_LENGTHS];         /* of the last records, the n-th of all at (n - 1) % TAP_LENGTHS */
} tap;

struct ossl_cred {
	int refs; /* atomic */
	X509 *leaf;
	X509 *unlisted;       /* the leaf for peers that don't list its signature, nullable: unlisted.c */
	uint16_t leaf_scheme; /* the leaf's signature, if unlisted */
	EVP_PKEY *key;
	EVP_PKEY *moved[OSSL_MAX_SHARDS]; /* atomic: for each shard a copy in it, or key itself; NULL until it is needed */
	uint8_t movable; /* key may be copied there */
	OPENSSL_STACK *chain;
	char *sigalgs;
	uint8_t *staple, *scts;
	size_t staple_len, scts_len;
	uintptr_t signer; /* if in_go */
	uint8_t in_go;    /* only Go can use the key */
	uint8_t identity[OSSL_IDENTITY]; /* servers bind their sessions to it; zeros until it is set */
};

struct ossl_ctx {
	int refs; /* atomic: the owner's and one for each connection */
	SSL_CTX *ssl;
	OSSL_LIB_CTX *lib;  /* FIPS mode's library context, else NULL for the default one */
	OSSL_LIB_CTX *slim; /* the slim library context if ssl is in it, else NULL */
	int shard;          /* which of the slim ones */
	int shards;         /* among how many its connections are divided: 1 if ssl is in none, and of a part */
	ossl_ctx *parts[OSSL_MAX_SHARDS]; /* atomic; the same in other shards, NULL until they are needed; itself in its own */
	uint8_t is_part;
	uint8_t used; /* atomic: had a connection */
	ossl_cred *cred;    /* the credential of servers that don't pause, nullable */
	OPENSSL_STACK *cas; /* until sealed */
	char *sigalgs, *client_sigalgs;
	uint8_t *alpn;
	size_t alpn_len;
	int client_auth;
	uint8_t want_hello, want_cert, want_keylog, want_trace, verify_pauses, direct_records, seal_refusals, alpn_by_client;
	uint8_t observes; /* connections see their secrets as they are derived, and need no key log for them */
	algorithms algorithms; /* if seal_refusals, which direct_records requires */
	uint8_t tickets, cached, tickets13, keep_sessions, max_tls13, policy[32];
	/* Pre-shared keys: psk.c. The lists are NULL for none. */
	char *psk_list, *psk_suites[2];
	uint8_t psk_hello, psk_without_dhe, psk_narrows_clients, psk_narrows_servers;
	ticket_ring *ring; /* if tickets */
	const EVP_MD *binding_hash; /* if tickets or cached */
};

/* The bytes that bind a session to its Context's policy and the identity: session.c. */
enum { BINDING = 16 };

/* The state of a handshake's question to Go. */
enum { ASK_NONE, ASK_WAITING, ASK_ANSWERED };

typedef struct {
	ossl_conn pub; /* first: a conn and its pub have the same address */
	SSL *ssl;
	ossl_ctx *ctx;
	ossl_cred *cred; /* this connection's own, nullable */
	/* For a connection whose steps may have to ask Go. */
	coroutine *step_under_way; /* NULL between steps */
	ossl_step step;            /* its result */
	ossl_facts *facts_to;
	const uint8_t *asked; /* the data of a question, borrowed from libssl */
	size_t asked_len;
	int32_t question; /* while it is paused: OSSL_NEED_… */
	uint8_t may_ask, abandoned;
	/* Windows of the call under way. */
	const uint8_t *in;
	size_t in_len, in_pos;
	uint8_t *out;
	size_t out_len, out_cap;
	uint16_t waits; /* what libssl has come to wait for in it: 1 << OSSL_WANT_READ… */
	bytes spill, keylog, trace, scts;
	bytes message; /* the ClientHello, then the peer's chain */
	bytes request; /* the CertificateRequest */
	bytes facts;   /* of a server: the parts of the first ClientHello that the second one must repeat, until it is done */
	uint8_t server, started, handshake_done, hello, verify, cert, failed, notified;
	uint8_t hello_retry, refused, refused_late;
	uint8_t sent_ccs; /* libssl has made a ChangeCipherSpec, which it may not have sent: refuse */
	uint8_t left_out; /* of a client: libssl has omitted its certificate */
	uint8_t cert_list; /* whether the peer sent signature_algorithms_cert, and which of ML-DSA it has: unlisted.c */
	uint16_t group, hello_version, hello_suite; /* in the ServerHello */
	/* Sessions. */
	uint8_t stateful; /* of a server: libssl seals no TLS 1.3 session into a ticket */
	uint8_t binding[BINDING], offered_id[32], offered_id_len;
	uint8_t new_ticket; /* of a client, in TLS 1.2 */
	uint8_t candidates; /* of a server: the number of sessions in a ClientHello that were examined */
	uint8_t dotted; /* of a server: the name ends with two dots, or is one */
	bytes name;     /* of a server: the name in the ClientHello, which libssl forgets when it resumes TLS 1.2 */
	bytes chain;    /* of a server: the client's chain, to be kept in the session */
	uint8_t chain_offered;  /* chain comes from an offered session: it counts only if that is resumed */
	uint16_t offered_group; /* of the same session */
	bytes offered;  /* of a server: the session that was found for offered_id */
	bytes sessions; /* made on this connection, for Go */
	/* A pre-shared key: psk.c. */
	uint8_t psk; /* the connection uses one, or none at all, and has no sessions */
	uint8_t psk_sha384;
	bytes psk_identity, psk_key; /* until the handshake is done */
	/* For a takeover, gathered during the handshake. */
	uint8_t secrets, secret_len[3]; /* the bits and the order are as in HAVE_… */
	uint8_t handshake_secret_len, handshake_secret[MAX_SECRET]; /* of a TLS 1.3 client, for refuse in conn.c */
	uint64_t sent, received; /* records since the keys changed */
	uint32_t last;           /* the length of the last message sent */
	uint8_t deferred;        /* takeover_later does it */
	uint8_t updated;         /* there was a key update, or a stray ChangeCipherSpec: no takeover */
	uint32_t record;         /* the length of the last record received */
	uint32_t partial;        /* in TLS 1.3, at least the number of bytes that libssl may have of an incomplete handshake message */
	tap out_tap, in_tap;     /* a second count of the same */
	uint64_t reported[2];    /* the first count: headers in total, received and sent */
	uint8_t miss[2];         /* for tests: ossl_conn_miss */
	/* After the takeover, when ssl is NULL. Each side is freed by its owner, and the conn with the
	 * last. */
	bytes kept; /* the memory that the facts point to */
	traffic read, write;
	uint8_t exporter[MAX_SECRET], randoms[64]; /* in TLS 1.2: the master secret, and the client's and the server's random */
	int sides; /* atomic: OSSL_READ | OSSL_WRITE */
} conn;

/* In cert_list, above the bits of the algorithms. */
enum { LIST_SENT = 0x80 };

enum { HAVE_CLIENT = 1, HAVE_SERVER = 2, HAVE_EXPORTER = 4 };

/* Takes a secret from a key-log line. */
void takeover_secret(conn *c, const char *line);
/* Takes a secret when it is derived. label need not be 0-terminated. */
void takeover_derived(conn *c, const char *label, size_t label_len, const uint8_t *secret, size_t len);
/* Counts records in the bytes of a stream. */
void takeover_tap(tap *t, const uint8_t *p, size_t n);
/* Reports whether the conn's streams have to be counted. */
int takeover_taps(const conn *c);
void takeover_message(conn *c, int sent, int content_type, const uint8_t *p, size_t len);
int takeover(conn *c, ossl_facts *f);
int takeover_deferred(conn *c, const ossl_facts *f);
int takeover_later(conn *c);
void takeover_forget(conn *c);
void takeover_forget_handshake(conn *c);
int takeover_export(conn *c, uint8_t *out, size_t len, const char *label, size_t label_len, const uint8_t *context,
	size_t context_len, int use_context);

/* openssl/conf.h */
typedef struct {
	char *section, *name, *value;
} conf_value; /* CONF_VALUE */

/* config.c */
/* Returns the entries that libcrypto executes, or NULL. Borrow. CONF_modules_load(3). */
OPENSSL_STACK *config_entries(const CONF *conf);
/*
 * Reports whether an entry is for a module of the configuration: the part after the last dot only
 * makes names unique.
 */
int config_is_for(const conf_value *entry, const char *module);

/* modules.c */
/*
 * Reports whether a provider is part of libcrypto, which loads no file for it even if its section
 * names one.
 */
int module_is_builtin(const char *name);
/*
 * Appends the path of the file that a provider is loaded from, and a 0. module: its value in
 * openssl.cnf, nullable. Returns 1 or 0.
 */
int module_file(bytes *to, const char *name, const char *module);
/* Returns the lines of a section, conf_values, or NULL. name: nullable. Borrow. */
OPENSSL_STACK *section_of(const CONF *conf, const char *name);
/* A provider in openssl.cnf. module: nullable. Borrow. */
typedef struct {
	const char *name, *module;
	int activated;
} provider_entry;
/* Reads the section that a line of the providers' section names. */
provider_entry provider_of(const CONF *conf, const conf_value *entry);
/*
 * Returns the command in a line of a provider's section: libcrypto ignores the part before a dot.
 * Borrow, a part of name.
 */
const char *module_command(const char *name);

/*
 * Returns the connection whose handshake this thread is in, or NULL. Keys in Go need it to sign, and
 * schedule.c to attribute secrets. Borrow.
 */
conn *occupant(void);

/* Prepares for occupant, once. Returns 0 if there is no memory. */
int occupant_setup(void);

/*
 * Pauses a step of the handshake with a question for Go, OSSL_NEED_…, about data, until the next
 * step brings the answer. Returns 1, or 0 if there is no answer: the connection can't ask, or is
 * being freed. data: borrow.
 */
int ask_go(conn *c, int32_t question, const uint8_t *data, size_t len);

static inline conn *conn_of(const SSL *ssl) { return ossl_fn.SSL_get_ex_data(ssl, 0); }

/* The BIO method whose data is a conn. */
extern BIO_METHOD *ossl_window_bio;

/* Sets every callback of the context, before it is used. Returns 1 or 0. */
int ossl_ctx_set_callbacks(ossl_ctx *ctx);

/*
 * Configures a context's resumption: session.c. Returns NULL, or the name of the setting that
 * libssl refused.
 */
const char *ossl_ctx_set_sessions(ossl_ctx *ctx, const ossl_ctx_params *p);
void ossl_ctx_free_sessions(ossl_ctx *ctx);

/*
 * libssl's only criterion for resuming a session: the bindings are checked here. Servers that request
 * certificates must have one, or resumption fails the handshake. SSL_CTX_set_session_id_context(3).
 */
enum { SID_CONTEXT = 4 };
extern const uint8_t sid_context[SID_CONTEXT];

/* Prepares a connection for resumption: the sessions that it offers or accepts. */
void session_begin(conn *c, const uint8_t *session, size_t len);

/* Collects the sessions of a handshake, once it is done. */
void session_end(conn *c);

/*
 * Examines a ClientHello, in its callback. Reports whether there is a session to look up, in pub.
 */
int session_hello(conn *c);

/* Reports a ClientHello's offer of pre-shared keys, in its callback: in pub. */
void report_psks(conn *c);

/* session.c: Returns the alert for a ClientHello that libssl accepts and crypto/tls does not, or -1. */
int hello_fault(const conn *c);

/* Keeps the client's chain, packed, for the session. */
void session_chain(conn *c, const uint8_t *chain, size_t len);

/* Returns the group of the key exchange: a resumed TLS 1.2 session's, if the handshake has none. */
uint16_t session_group(const conn *c);

/*
 * Chooses among the client's protocols. Returns 1 with the selected one, 0 for none, -1 to refuse.
 */
int alpn_select(const ossl_ctx *ctx, const uint8_t *in, size_t in_len, const uint8_t **out, uint8_t *out_len);

/*
 * Makes an SSL_CTX: if fips is set, in FIPS mode's library context (NULL if that is not ready), else
 * in a shard of the slim one, or in the default one if that is not used. slim: set to the slim one if it
 * is in that, else to NULL; nullable.
 */
SSL_CTX *ossl_new_ssl_ctx(int fips, int shard, OSSL_LIB_CTX **slim);

/*
 * Uses a new library context as a handshake does. libcrypto makes algorithms when the first of their kind is
 * fetched, and if memory is short then, they are missing for good. Returns 1, or 0 if something that the first
 * shard has is missing, or memory was short since errno was 0. holder, first: NULL for the first shard, which is
 * compared with the default library context.
 */
int slim_works(OSSL_LIB_CTX *lib, OSSL_LIB_CTX *holder, OSSL_LIB_CTX *first);

/*
 * Returns the part of a context for the processor that runs this thread. If that has to be made first,
 * returns NULL and the shard, or if as_is is not 0, the context itself. Borrow.
 */
ossl_ctx *part_of(ossl_ctx *ctx, int as_is, int *shard);

/*
 * Returns the library context of FIPS mode, NULL if it was not set up, or on 1.1.1, which has none:
 * fips.c.
 */
OSSL_LIB_CTX *fips_library(void);

/* Reports whether FIPS mode was set up. */
int fips_ready(void);

/* Parses a certificate into a library context; NULL means the default one. Returns give or NULL. */
X509 *cert_of(OSSL_LIB_CTX *lib, const uint8_t *der, size_t len);

/* Is like cert_of, but doesn't yet read the extensions, and the key may be missing. */
X509 *cert_unread(OSSL_LIB_CTX *lib, const uint8_t *der, size_t len);

/*
 * Appends a certificate's DER, preceded by its length in 4 bytes. This is the packed form in which
 * chains are exchanged with Go. Returns 1, or 0 for one without an encoding, if memory is short or
 * the result would exceed max. i2d_X509(3).
 */
int cert_pack(bytes *to, X509 *x, size_t max);

/*
 * Parses packed certificates: leaf (give) is the first, rest takes the others. Returns 1, or 0 if
 * there is none or one can't be parsed; then too, the parsed ones are in leaf and rest.
 */
int certs_unpack(OSSL_LIB_CTX *lib, const uint8_t *packed, size_t len, X509 **leaf, OPENSSL_STACK *rest);

/*
 * Makes cred->unlisted from the leaf's DER if the leaf is signed with ML-DSA. Returns 1, or 0 if
 * memory is short. unlisted.c.
 */
int cred_unlisted(ossl_cred *cred, OSSL_LIB_CTX *lib, const uint8_t *der, size_t len);

/* Returns the certificate that a connection uses as the leaf of a credential. Borrow. */
X509 *leaf_for(const conn *c, const ossl_cred *cred);

/*
 * Reads the client's list in a callback for its ClientHello, and makes the server use the leaf for
 * it. Returns 1 or 0. SSL_client_hello_get0_ext(3).
 */
int unlisted_hello(conn *c);

/*
 * Gives a connection a pre-shared key, or makes it wait for one: shim.h, ossl_conn_use_psk. Returns 1 or 0.
 */
int psk_use(conn *c, const uint8_t *packed, size_t len);
/* Reports whether the peers have agreed to use it: 1 or 0. */
int psk_agreed(const conn *c);
/* Forgets the key, once the handshake is done. */
void psk_forget(conn *c);
/* Reports whether a session is resumed, which libssl says of a pre-shared key in TLS 1.3 too: 1 or 0. SSL_session_reused(3). */
int session_resumed(const conn *c);

/* Reads the server's list in a CertificateRequest, header included. */
void unlisted_request(conn *c, const uint8_t *message, size_t len);

/*
 * Executes the commands of the host's policy. tolerant: 1 or 0, whether commands that libssl
 * refuses are ignored. Returns 1, or 0 after a refused command: policy.c.
 */
int ossl_policy_apply(SSL_CTX *ctx, const uint8_t *commands, size_t len, int tolerant);

/*
 * Prevents the host's policy, whether honoured or not, from weakening settings that crypto/tls
 * always has. policy.c.
 */
void ossl_policy_narrow(SSL_CTX *ctx);

/*
 * Undoes the host's policy in a new SSL_CTX, as far as no other function sets the same: policy.c.
 */
void ossl_policy_lift(SSL_CTX *ctx);

/* Ends the making of a credential, nullable, which is kept only if memory was not short. Returns it or NULL with errors. */
ossl_cred *cred_made(ossl_cred *cred, unsigned long *errors);

/* Makes a credential without its key. */
ossl_cred *cred_of(OSSL_LIB_CTX *lib, const uint8_t *chain, size_t chain_len, const char *sigalgs, const uint8_t *staple,
	size_t staple_len, const uint8_t *scts, size_t scts_len);

/*
 * Moves the thread's error queue into errors, 0-terminated if there is room. Returns 1 if memory was
 * short, and has that among the errors then, else 0.
 */
int ossl_drain_errors(unsigned long *errors);

/*
 * Allocate as malloc and calloc do. For want of memory they leave an error in the thread's queue, as
 * libcrypto's functions do, so that the one that drains it knows the cause. Give: free(3).
 */
void *new_memory(size_t n);
void *new_zeros(size_t n);

/* Leaves that error for memory that comes from elsewhere. */
void raise_no_memory(void);

/* Returns it, for where there is no memory to leave it. */
unsigned long memory_error(void);

/*
 * Reports whether an allocation of libcrypto may have failed since errno was 0: 1 or 0. malloc(3)
 * sets errno, also for an attempt that it makes good; a program's own allocator may not.
 */
int memory_may_have_failed(void);

#endif
