package ossl

import (
	"crypto/tls"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/ossl-go/ossl/internal/negotiate"
	"github.com/ossl-go/ossl/session"
)

// An Option asks for something of a [Context] that [tls.Config] has no field for.
type Option func(*options) error

type options struct {
	library           string
	suites13          []uint16
	signatures        []tls.SignatureScheme
	securityLevel     int
	levelNamed        bool // securityLevel is WithSecurityLevel's
	chainCache        int
	chainCacheSet     bool // by WithVerifiedChainCache
	records           RecordPath
	recordsNamed      bool // by WithRecordPath
	kernelTLS         bool
	alpnByClient      bool
	http2             bool
	withoutHostPolicy bool
	cache             session.Cache
	ring              *session.Ring // of WithTicketKeys
	lifetime          time.Duration
	fips              bool
	roots             *Roots // of FIPS mode; nil for the system's
	clientRoots       *Roots

	// Of a Context for a configuration that GetConfigForClient has chosen, what it has of the Context that asked.
	chosen        bool          // it is one
	inherited     *session.Ring // the ticket keys
	inheritedFIPS bool          // they are the FIPS module's
	stores        *rootStores   // whom to trust, in FIPS mode
	creds         *credentialCache
}

// envRecords names the environment variable that chooses the record path where no [WithRecordPath] does: "auto", "libssl" or
// "own".
const envRecords = "OSSL_RECORDS"

// A RecordPath says what seals and opens the records of a connection after its handshake.
type RecordPath int

const (
	// RecordsAuto takes connections over from libssl where ossl's own path is proven: TLS 1.3 and TLS 1.2 with AES-GCM or
	// ChaCha20-Poly1305, on OpenSSL before 5.0. It is the default.
	RecordsAuto RecordPath = iota
	// RecordsLibssl leaves every connection with libssl. The alert by which a TLS 1.3 client refuses a server in the handshake is
	// ossl's: libssl would send it in the clear.
	RecordsLibssl
	// RecordsOwn fails handshakes whose connection can't be taken over. A client of TLS 1.3 with a ClientSessionCache takes over
	// when it reads its first ticket or data; libssl has the records until then.
	RecordsOwn
)

var recordPaths = map[string]RecordPath{"": RecordsAuto, "auto": RecordsAuto, "libssl": RecordsLibssl, "own": RecordsOwn}

// defaultChainCache is the number of verified chains that a Context remembers.
const defaultChainCache = 1024

func newOptions(records RecordPath) *options {
	return &options{
		securityLevel: negotiate.DefaultSecurityLevel,
		chainCache:    defaultChainCache,
		records:       records,
		lifetime:      maxSessionLifetime,
	}
}

// recordsOfEnvironment returns the record path that the environment asks for.
func recordsOfEnvironment() (RecordPath, error) {
	named := os.Getenv(envRecords)
	path, ok := recordPaths[named]
	if !ok {
		return 0, &ConfigError{Field: envRecords, Reason: fmt.Sprintf("%q is none of auto, libssl and own", named)}
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

// WithTLS13CipherSuites chooses the TLS 1.3 suites and their order, which crypto/tls fixes. Beside crypto/tls's three, OpenSSL
// has TLS_AES_128_CCM_SHA256 (0x1304) and TLS_AES_128_CCM_8_SHA256 (0x1305).
func WithTLS13CipherSuites(ids ...uint16) Option {
	return func(o *options) error {
		if len(ids) == 0 {
			return &ConfigError{Field: "WithTLS13CipherSuites", Reason: "no suite given"}
		}
		o.suites13 = ids
		return nil
	}
}

// WithSignatureAlgorithms chooses the signature algorithms that are offered, accepted and used, in order of preference. A
// certificate's SupportedSignatureAlgorithms leaves out some of them for its own key; it adds none.
func WithSignatureAlgorithms(schemes ...tls.SignatureScheme) Option {
	return func(o *options) error {
		if len(schemes) == 0 {
			return &ConfigError{Field: "WithSignatureAlgorithms", Reason: "no algorithm given"}
		}
		o.signatures = schemes
		return nil
	}
}

// WithSecurityLevel sets OpenSSL's security level, 0 to 5, the least strength of keys, hashes and suites; the default is 2, which
// is 112 bits: SSL_CTX_set_security_level(3). Once it is named, or the host's policy has a higher one, it goes for
// the verified certificates of peers as well. A level below the policy's is refused.
func WithSecurityLevel(level int) Option {
	return func(o *options) error {
		if level < 0 || level > 5 {
			return &ConfigError{Field: "WithSecurityLevel", Reason: fmt.Sprintf("%d is not between 0 and 5", level)}
		}
		o.securityLevel, o.levelNamed = level, true
		return nil
	}
}

// WithVerifiedChainCache sets how many verified certificate chains are remembered, 1024 by default; 0 turns the cache off.
// docs/ARCHITECTURE.md says why a remembered chain is as good as a verified one.
func WithVerifiedChainCache(entries int) Option {
	return func(o *options) error {
		if entries < 0 {
			return &ConfigError{Field: "WithVerifiedChainCache", Reason: "negative"}
		}
		o.chainCache, o.chainCacheSet = entries, true
		return nil
	}
}

// WithClientProtocolOrder has servers choose the ALPN protocol that the client prefers, of those in NextProtos. By default it is
// the one that NextProtos has first, as in crypto/tls.
func WithClientProtocolOrder() Option {
	return func(o *options) error {
		o.alpnByClient = true
		return nil
	}
}

// WithRecordPath chooses what seals and opens records after the handshake. The default is [RecordsAuto], or what the environment
// variable OSSL_RECORDS says.
func WithRecordPath(path RecordPath) Option {
	return func(o *options) error {
		if path < RecordsAuto || path > RecordsOwn {
			return &ConfigError{Field: "WithRecordPath", Reason: fmt.Sprintf("no path %d", path)}
		}
		o.records, o.recordsNamed = path, true
		return nil
	}
}

// WithKernelTLS has Linux seal what connections send, where it can (its module tls), and [Conn.SendFile] send files by
// sendfile(2). [Conn.KernelTLS] tells whether it does, and [KernelTLS] whether it could. What they receive is opened by OpenSSL
// as ever.
//
// The kernel can't, and all goes on as without the option, where there is no such module, where the connection beneath is no
// [net.TCPConn] itself, with TLS 1.3 before Linux 6.14 (a peer can ask for new keys at any time, which older ones don't take),
// and where the record path or the host's policy leaves the records with libssl. Records have their full size at once: there is
// no dynamic record sizing. It is refused in FIPS mode, because the kernel's cryptography is not the FIPS module's.
//
// It goes for the configurations that GetConfigForClient returns as well.
func WithKernelTLS() Option {
	return func(o *options) error {
		o.kernelTLS = true
		return nil
	}
}

// WithSessionCache lets servers keep sessions in cache, to be resumed by their IDs: TLS 1.2 sessions of clients that know no
// tickets, which crypto/tls does not resume at all (RFC 5246, section 7.4.1.3), and all of TLS 1.3's, each of which can then be
// resumed once (RFC 8446, appendix C.4). TLS 1.2 clients that know tickets go on getting them, unless SessionTicketsDisabled is
// set.
//
// The cache may be shared by any number of Contexts: what is resumed where is decided by what a session was made for. It is asked
// during handshakes, each time with a context that ends after a quarter of a second. It must return when that context ends:
// nothing else ends the wait for it. Its errors count as misses.
func WithSessionCache(cache session.Cache) Option {
	return func(o *options) error {
		if cache == nil || reflect.ValueOf(cache).Kind() == reflect.Pointer && reflect.ValueOf(cache).IsNil() {
			return &ConfigError{Field: "WithSessionCache", Reason: "nil"}
		}
		o.cache = cache
		return nil
	}
}

// WithTicketKeys lets servers seal and open tickets with the keys of ring, which may be shared and may change. The default is a
// ring of the Context's own that rotates as crypto/tls's keys do, or the keys given to [tls.Config.SetSessionTicketKeys].
// As long as ring holds no key no tickets are sent; of more than 32 keys the first 32 are used.
func WithTicketKeys(ring *session.Ring) Option {
	return func(o *options) error {
		if ring == nil {
			return &ConfigError{Field: "WithTicketKeys", Reason: "nil"}
		}
		o.ring = ring
		return nil
	}
}

// maxSessionLifetime is TLS 1.3's bound, and crypto/tls's: RFC 8446, section 4.6.1.
const maxSessionLifetime = 7 * 24 * time.Hour

// WithSessionLifetime sets how long servers let a session be resumed, a week by default, which is also the most.
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

// WithHTTP2 makes the Context fit for HTTP/2, as net/http and gRPC make their configurations: it offers the ALPN protocol "h2",
// last, where NextProtos doesn't name it, and leaves out the TLS 1.2 suites that HTTP/2 prohibits where CipherSuites is nil
// (RFC 9113, section 9.2.2). It goes for the configurations that GetConfigForClient returns as well.
func WithHTTP2() Option {
	return func(o *options) error {
		o.http2 = true
		return nil
	}
}

// WithoutHostPolicy ignores what the host's OpenSSL configuration says of TLS: [HostPolicy]. What is not asked for is then
// crypto/tls's default, and the security level 2. It goes for the configurations that GetConfigForClient returns as well.
func WithoutHostPolicy() Option {
	return func(o *options) error {
		o.withoutHostPolicy = true
		return nil
	}
}

// WithLibrary chooses the OpenSSL to load: a version ("3", "3.5", "1.1"), the path of libssl, or the path of a folder that holds
// it. A process uses one OpenSSL: if another is loaded already, [NewContext] fails.
func WithLibrary(versionOrPath string) Option {
	return func(o *options) error {
		o.library = versionOrPath
		return nil
	}
}
