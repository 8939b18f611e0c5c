package ossl

import (
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"reflect"
	"time"

	"github.com/ossl-go/ossl/internal/gate"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/negotiate"
	"github.com/ossl-go/ossl/session"
)

// An Option sets a property of a [Context] for which [tls.Config] has no field.
type Option func(*options) error

type options struct {
	library           string
	suiteOrder        bool
	suites13          []uint16
	signatures        []tls.SignatureScheme
	securityLevel     int
	levelNamed        bool // WithSecurityLevel has set securityLevel
	chainCache        int
	certificates      int64 // of WithCertificateCache
	configurations    int64 // of WithConfigurationCache
	chainCacheSet     bool  // by WithVerifiedChainCache
	records           RecordPath
	recordsNamed      bool // by WithRecordPath
	kernelTLS         bool
	shards            int // by WithShards; 0 for the default
	alpnByClient      bool
	http2             bool
	withoutHostPolicy bool
	nothingOmitted    bool // by WithAllNamed
	allowTruncation   bool // by WithInsecureTruncation
	// handsOver reports whether crypto/tls goes on with a connection that is refused at the ClientHello. It is
	// nil except in programs that "ossl go" has built.
	handsOver   func() bool
	cache       session.Cache
	tickets13   bool          // of WithTLS13Tickets
	ring        *session.Ring // of WithTicketKeys
	lifetime    time.Duration
	handshakes  *gate.Gate // of WithMaxHandshakes, or nil
	unsigned    bool       // for clients without signature_algorithms: unsigned.go
	psk         pskOptions
	fips        bool
	roots       *Roots // of FIPS mode; nil for the system's
	clientRoots *Roots
	crls        *CRLs // of WithCRLs; nil for none
	crlHardFail bool
	crlSoftFail bool
	crlGrace    time.Duration
	events      func(Event) // nil for none
	labels      bool        // of profiles
	trace       io.Writer   // nil for none

	// Of the settings of a program that "ossl go" has built.
	keyLog   string                  // a file, unless the environment names one
	restrict func(*tls.Config) error // to a policy; nil for none
	refused  func(error) error       // explains that a configuration contradicts the settings; nil in other programs
}

// envRecords names the environment variable that chooses the record path ("auto", "libssl" or
// "direct") if WithRecordPath is not used.
const envRecords = "OSSL_RECORDS"

// A RecordPath is the code that seals and opens the records of a connection after its handshake.
type RecordPath int

const (
	// RecordsAuto, the default, takes connections over from libssl if ossl's own path is proven for
	// them. It is proven for TLS 1.3, and for TLS 1.2 with AES-GCM or ChaCha20-Poly1305, on OpenSSL
	// before 5.0.
	RecordsAuto RecordPath = iota
	// RecordsLibssl leaves every connection with libssl. Only if a TLS 1.3 client refuses a server
	// in the handshake does ossl seal the alert, which libssl would send in the clear.
	RecordsLibssl
	// RecordsDirect makes a handshake fail if its connection can't be taken over. A TLS 1.3 client
	// with a ClientSessionCache takes over when it reads its first ticket or data; until then
	// libssl has the records.
	RecordsDirect
)

var recordPaths = map[string]RecordPath{"": RecordsAuto, "auto": RecordsAuto, "libssl": RecordsLibssl, "direct": RecordsDirect}

// defaultChainCache is the number of verified chains that a Context remembers.
const defaultChainCache = 1024

func newOptions(records RecordPath) *options {
	return &options{
		securityLevel: negotiate.DefaultSecurityLevel,
		chainCache:    defaultChainCache,

		certificates:   defaultCache,
		configurations: defaultCache,
		records:        records,
		lifetime:       maxSessionLifetime,
	}
}

// recordsOfEnvironment returns the record path that the environment asks for.
func recordsOfEnvironment() (RecordPath, error) {
	named := os.Getenv(envRecords)
	path, ok := recordPaths[named]
	if !ok {
		return 0, &ConfigError{Field: envRecords, Reason: fmt.Sprintf("%q is not auto, libssl or direct", named)}
	}
	return path, nil
}

func optionsOf(opts []Option) (*options, error) {
	records, err := recordsOfEnvironment()
	if err != nil {
		return nil, err
	}
	o := newOptions(records)
	for _, opt := range opts {
		if err := opt(o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// WithCipherSuiteOrder makes connections prefer suites in the order of tls.Config's CipherSuites, most
// preferred first. Without this option, the order is crypto/tls's, and the field's order is
// ignored. The field must name suites. Servers still prefer ChaCha20 for clients that do.
func WithCipherSuiteOrder() Option {
	return func(o *options) error {
		o.suiteOrder = true
		return nil
	}
}

// WithAllNamed makes [NewContext] refuse a configuration that names a cipher suite or a group which the
// OpenSSL that is loaded lacks. Without this option it leaves them out if others remain, and
// [Context.Omitted] returns them.
func WithAllNamed() Option {
	return func(o *options) error {
		o.nothingOmitted = true
		return nil
	}
}

// WithInsecureTruncation makes Read return io.EOF, as crypto/tls does, if the connection is closed
// between two records without close_notify. Without the option Read then returns
// io.ErrUnexpectedEOF, because an attacker can cut a connection there. Use it for peers that don't
// send close_notify, and only if the protocol above shows the end of each message. OpenSSL's
// SSL_OP_IGNORE_UNEXPECTED_EOF is similar: SSL_CTX_set_options(3).
func WithInsecureTruncation() Option {
	return func(o *options) error {
		o.allowTruncation = true
		return nil
	}
}

// WithTLS13CipherSuites sets the TLS 1.3 suites and their order, which are fixed in crypto/tls.
// Besides crypto/tls's three, OpenSSL has TLS_AES_128_CCM_SHA256 (0x1304) and
// TLS_AES_128_CCM_8_SHA256 (0x1305).
func WithTLS13CipherSuites(ids ...uint16) Option {
	return func(o *options) error {
		if len(ids) == 0 {
			return &ConfigError{Field: "WithTLS13CipherSuites", Reason: "no suite given"}
		}
		o.suites13 = ids
		return nil
	}
}

// WithSignatureAlgorithms sets the signature algorithms that are offered, accepted and used, in
// order of preference. A certificate's SupportedSignatureAlgorithms can remove some of them for its
// own key, but can't add any. The default is crypto/tls's list; ML-DSA requires Go 1.27 and OpenSSL
// 3.5.
func WithSignatureAlgorithms(schemes ...tls.SignatureScheme) Option {
	return func(o *options) error {
		if len(schemes) == 0 {
			return &ConfigError{Field: "WithSignatureAlgorithms", Reason: "no algorithm given"}
		}
		o.signatures = schemes
		return nil
	}
}

// WithSecurityLevel sets OpenSSL's security level, 0 to 5, which is the minimum strength of keys,
// hashes and suites: SSL_CTX_set_security_level(3). The default is 2, which is 112 bits. If this
// option is used, or if the host's policy has a higher level, the level also applies to the
// verified certificates of peers. A level below the policy's is refused.
func WithSecurityLevel(level int) Option {
	return func(o *options) error {
		if level < 0 || level > 5 {
			return &ConfigError{Field: "WithSecurityLevel", Reason: fmt.Sprintf("%d is not between 0 and 5", level)}
		}
		o.securityLevel, o.levelNamed = level, true
		return nil
	}
}

// WithVerifiedChainCache sets the number of verified certificate chains that the Context remembers.
// The default is 1024, and 0 turns the cache off. SECURITY.md explains why a remembered chain
// is as good as one that is verified again.
func WithVerifiedChainCache(entries int) Option {
	return func(o *options) error {
		if entries < 0 {
			return &ConfigError{Field: "WithVerifiedChainCache", Reason: "negative"}
		}
		o.chainCache, o.chainCacheSet = entries, true
		return nil
	}
}

// WithCertificateCache sets the bound, in bytes, of the memory for certificates that GetCertificate,
// GetClientCertificate and GetConfigForClient have returned, in OpenSSL's form. The default is 256 MB,
// which is enough for 10,000 certificates with an intermediate each: a certificate takes 4 KB, and 4 KB
// and four times its length for itself and each other one of its chain. A certificate is converted again,
// which takes half a millisecond, if it has left the cache: when others need the room, or ten minutes
// after its last use. Its key in OpenSSL's memory is cleared and freed with the next garbage collection
// after that, which Go runs at least every two minutes, unless a connection still uses it. Entries for
// which there was no room are counted: [ConversionCacheStats]. 0 turns the cache off.
func WithCertificateCache(bytes int64) Option {
	return func(o *options) error {
		if bytes < 0 {
			return &ConfigError{Field: "WithCertificateCache", Reason: "negative"}
		}
		o.certificates = bytes
		return nil
	}
}

// WithConfigurationCache sets the bound, in bytes, of the memory for configurations that
// GetConfigForClient has returned, in OpenSSL's form. The default is 256 MB, of which those that were
// used only once may take a quarter. A configuration takes 32 KB, its certificates as much as with
// [WithCertificateCache], and 2 KB for each of ClientCAs. A configuration is compiled again, which takes
// a millisecond, if it has left the cache: when others need the room, or ten minutes after its last
// use. Entries for which there was no room are counted: [ConversionCacheStats]. 0 turns the cache off.
//
// The drop-in functions, such as [Server], share one cache with the default bound. They also keep a
// compiled configuration as long as the program keeps the configuration, up to the same bound.
func WithConfigurationCache(bytes int64) Option {
	return func(o *options) error {
		if bytes < 0 {
			return &ConfigError{Field: "WithConfigurationCache", Reason: "negative"}
		}
		o.configurations = bytes
		return nil
	}
}

// WithClientProtocolOrder makes servers choose the ALPN protocol that the client prefers among
// those in NextProtos. By default they choose the one that comes first in NextProtos, as in
// crypto/tls.
func WithClientProtocolOrder() Option {
	return func(o *options) error {
		o.alpnByClient = true
		return nil
	}
}

// WithRecordPath sets the code that seals and opens records after the handshake. The default is the
// value of the environment variable OSSL_RECORDS, or [RecordsAuto].
func WithRecordPath(path RecordPath) Option {
	return func(o *options) error {
		if path < RecordsAuto || path > RecordsDirect {
			return &ConfigError{Field: "WithRecordPath", Reason: fmt.Sprintf("unknown path %d", path)}
		}
		o.records, o.recordsNamed = path, true
		return nil
	}
}

// WithShards sets the number of shards, 1 to 32, among which the Context divides its connections, so that
// many processors don't wait for each other: OpenSSL has locks that each handshake takes some hundred
// times. A shard has its own library context of OpenSSL and its own part of the Context, which is made when the
// shard's first connection starts, and takes 20 to 25 KB. A connection belongs to the shard of the processor
// on which it starts. Shards share ticket keys and sessions, and no setting depends on them.
//
// The default is the value of the environment variable OSSL_SHARDS or, if that is not set, a shard for
// every four processors that the process uses, which is one on small machines. There is one shard with
// OpenSSL 1.1.1, in FIPS mode, and whenever the slim library context of docs/ARCHITECTURE.md is not used.
// [LibraryInfo] has the number.
func WithShards(n int) Option {
	return func(o *options) error {
		if n < 1 || n > libssl.MaxShards {
			return &ConfigError{Field: "WithShards", Reason: fmt.Sprintf("%d is not between 1 and %d", n, libssl.MaxShards)}
		}
		o.shards = n
		return nil
	}
}

// WithKernelTLS makes Linux seal the data that connections send, if its module tls is loaded, and
// [Conn.SendFile] and [Conn.ReadFrom] send files with sendfile(2). [Conn.KernelTLS] reports whether
// Linux seals, and [KernelTLS] returns the versions for which it can. Received data is still opened
// by OpenSSL.
//
// The option has no effect in these cases: the module is missing; the underlying connection is not
// a [net.TCPConn]; the version is TLS 1.3 and Linux is older than 6.14, which can't change keys
// when the peer asks for it; or the record path or the host's policy leaves the records with
// libssl. All records have the full size: there is no dynamic record sizing. The option is refused
// in FIPS mode, because the kernel's cryptography is not part of the FIPS module.
//
// The option applies to the configurations that GetConfigForClient returns as well.
func WithKernelTLS() Option {
	return func(o *options) error {
		o.kernelTLS = true
		return nil
	}
}

// WithSessionCache makes servers keep sessions in cache, so that clients can resume them by their
// IDs. These are the TLS 1.2 sessions of clients that don't support tickets, which crypto/tls does
// not resume at all (RFC 5246, section 7.4.1.3), and all TLS 1.3 sessions, each of which can then
// be resumed once (RFC 8446, appendix C.4), except with [WithTLS13Tickets]. TLS 1.2 clients that
// support tickets still get tickets, unless SessionTicketsDisabled is set.
//
// Any number of Contexts may share the cache. Each session is bound to the policy, identity, name
// and protocol that it was made for, and is resumed only for these. The cache is called during
// handshakes, each time with a context that expires after a quarter of a second. It must return
// when that context is done, since the handshake waits for it. Its errors count as misses.
func WithSessionCache(cache session.Cache) Option {
	return func(o *options) error {
		if cache == nil || reflect.ValueOf(cache).Kind() == reflect.Pointer && reflect.ValueOf(cache).IsNil() {
			return &ConfigError{Field: "WithSessionCache", Reason: "nil"}
		}
		o.cache = cache
		return nil
	}
}

// WithTLS13Tickets makes servers that have a session cache ([WithSessionCache]) send tickets to TLS
// 1.3 clients, as servers without a cache do. The cache then has the sessions of TLS 1.2 clients that
// don't support tickets, and no others. A TLS 1.3 session can be resumed more than once, on every
// server that has the same ticket keys, and needs no call of the cache. While there is no ticket
// key, and if the host's policy allows no tickets, TLS 1.3 sessions are kept in the cache.
func WithTLS13Tickets() Option {
	return func(o *options) error {
		o.tickets13 = true
		return nil
	}
}

// WithTicketKeys makes servers seal and open tickets with the keys of ring, which may be shared and
// may change. By default, a Context has the keys that were given to
// [tls.Config.SetSessionTicketKeys] or, if there are none, a ring of its own that rotates as
// crypto/tls's keys do. While ring holds no key, servers send no tickets.
func WithTicketKeys(ring *session.Ring) Option {
	return func(o *options) error {
		if ring == nil {
			return &ConfigError{Field: "WithTicketKeys", Reason: "nil"}
		}
		o.ring = ring
		return nil
	}
}

// maxSessionLifetime is the maximum in TLS 1.3 and in crypto/tls: RFC 8446, section 4.6.1.
const maxSessionLifetime = 7 * 24 * time.Hour

// WithSessionLifetime sets the time for which servers resume a session. The default and the maximum
// are a week.
func WithSessionLifetime(lifetime time.Duration) Option {
	return func(o *options) error {
		if lifetime < time.Second || lifetime > maxSessionLifetime {
			return &ConfigError{Field: "WithSessionLifetime", Reason: fmt.Sprintf("%v is not between a second and %v", lifetime,
				maxSessionLifetime)}
		}
		o.lifetime = lifetime
		return nil
	}
}

// WithMaxHandshakes bounds the handshakes that the Context's servers run at once, those with configurations
// that GetConfigForClient returns included. A client that begins one more waits until another handshake
// ends, or until its own handshake's context or deadline does. A handshake under way takes about 100 KB
// of memory. It begins when the ClientHello has arrived, and ends with the client's last message: servers
// should set a deadline, so that clients which don't go on give up their places. With this option, no
// callback may wait for another handshake of the same Context. Without it there is no bound.
func WithMaxHandshakes(n int) Option {
	return func(o *options) error {
		if n < 1 {
			return &ConfigError{Field: "WithMaxHandshakes", Reason: fmt.Sprintf("%d is not positive", n)}
		}
		o.handshakes = gate.New(n)
		return nil
	}
}

// WithHTTP2 prepares the Context for HTTP/2, as net/http and gRPC prepare their configurations. If
// NextProtos doesn't contain the ALPN protocol "h2", it is added at the end. If CipherSuites is
// nil, the TLS 1.2 suites that HTTP/2 prohibits (RFC 9113, section 9.2.2) are left out. The option
// applies to the configurations that GetConfigForClient returns as well.
func WithHTTP2() Option {
	return func(o *options) error {
		o.http2 = true
		return nil
	}
}

// WithoutHostPolicy makes the Context ignore the restrictions in the host's OpenSSL configuration,
// which [HostPolicy] describes, and the parts of that configuration that are not in force although
// it asks for them. The defaults are then crypto/tls's, and the security level 2. The option does not
// lift FIPS mode. It applies to the configurations that GetConfigForClient returns as well.
func WithoutHostPolicy() Option {
	return func(o *options) error {
		o.withoutHostPolicy = true
		return nil
	}
}

// WithLibrary chooses the OpenSSL to load by its version ("3", "3.5", "1.1"), by the path of
// libssl, or by its folder. A process uses one OpenSSL: if another one is loaded already,
// [NewContext] returns an error.
func WithLibrary(versionOrPath string) Option {
	return func(o *options) error {
		o.library = versionOrPath
		return nil
	}
}
