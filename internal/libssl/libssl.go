// Package libssl is the boundary to OpenSSL: the only package that imports "C".
//
// It finds libssl and its libcrypto at run time, without OpenSSL's headers at build time, and
// offers one function for each operation of a connection. It holds no policy: its callers decide
// which peers to accept, when to read and where to send. Without cgo it compiles and every
// constructor returns [ErrUnavailable].
package libssl

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// ErrUnavailable is wrapped by every error that means that no usable libssl was found.
var ErrUnavailable = errors.New("OpenSSL is not available")

// Versions in the form of OPENSSL_VERSION_NUMBER.
const (
	Version3_0 = 0x30000000
	Version3_5 = 0x30500000
	Version5_0 = 0x50000000
)

// Library describes the loaded library.
type Library struct {
	Number     uint64 // OPENSSL_VERSION_NUMBER
	Text       string // "OpenSSL 3.0.19 27 Jan 2026"
	Path       string // of libssl
	CryptoPath string // of libcrypto
}

// Version returns the dotted version, such as "3.0.19" or "1.1.1w".
func (l *Library) Version() string {
	if fields := strings.Fields(l.Text); len(fields) > 1 {
		return fields[1]
	}
	return fmt.Sprintf("%#x", l.Number)
}

// Status is the result of a step of a connection.
type Status int32

// The statuses, by shim.h's numbers.
const (
	Done       Status = iota // the operation is complete
	WantRead                 // more input is needed
	WantWrite                // the output window is full
	NeedHello                // Message is a ClientHello: choose, then step again
	NeedVerify               // Message is the peer's chain, empty if a client sent none: SetVerdict, then step again
	NeedCert                 // Message is a CertificateRequest: UseCredential, then step again
	Closed                   // the peer's close_notify was read
	Fatal                    // failed for good
	Record                   // a record was opened that the caller must handle
	NeedUpdate               // the sending key has reached its limit
	NeedResume               // Message is the client's chain in a session that it offers: SetResume, then step again
	NeedSign                 // SignRequest has the bytes to sign: SetSignature, then step again
	_                        // Start makes the part
	NeedPSK                  // Message is a TLS 1.2 client's identity: UsePSK, then step again; without it the step fails
)

// Step is the result of one call on a connection.
type Step struct {
	Status    Status
	Pending   bool // decrypted bytes wait inside libssl
	TakenOver bool // of Read: the connection was taken over
	Consumed  int  // bytes taken from the input
	Produced  int  // bytes put into the output
	N         int  // bytes of user data read or written
	Records   int  // records written
}

// Opened is the result of one call of Open.
type Opened struct {
	Status   Status
	Alert    uint8 // Fatal: the alert to send. The record that caused it is not consumed
	Type     uint8 // Record: its content type
	Consumed int   // bytes of the input whose records were opened
	N        int   // bytes of application data read
	At, Len  int   // Record: its text, in the input. For application data, the part that did not fit
}

// MissFinished makes Miss leave out Finished: shim.h, OSSL_MISS_FINISHED.
const MissFinished = 255

// RecordsPerKey is the number of records after which a TLS 1.3 sending key is updated: shim.h,
// OSSL_RECORDS_PER_KEY.
const RecordsPerKey = 1 << 24

// KernelKey is the data that the kernel needs to seal records, in the layout of shim.h's
// ossl_kernel_key.
type KernelKey struct {
	Suite  uint16
	TLS13  uint8
	KeyLen uint8
	Key    [32]byte
	IV     [12]byte
	Seq    [8]byte
}

// Secrets is an established connection, from which another process can go on, in the layout of shim.h's
// ossl_secrets. The caller of a function that fills one wipes it.
type Secrets struct {
	Suite                    uint16
	Server                   uint8 // 1 or 0
	Sides                    uint8 // those that can be used: ReadSide is 1, WriteSide 2
	Kernel                   uint8 // 1 if the kernel seals: then the connection never does
	Read, Write, Exporter    [48]byte
	Randoms                  [64]byte
	ReadSeq, WriteSeq, Nonce uint64
}

// Verdict is the answer to a peer's chain: OK or the X509_V_ERR that makes libssl send the alert
// wanted.
type Verdict int32

// The verdicts, each with the alert that libssl sends for it, on both sides and in every version.
const (
	VerdictOK          Verdict = 0  // X509_V_OK
	VerdictInternal    Verdict = 1  // X509_V_ERR_UNSPECIFIED: internal_error(80)
	VerdictExpired     Verdict = 10 // X509_V_ERR_CERT_HAS_EXPIRED: certificate_expired(45)
	VerdictRevoked     Verdict = 23 // X509_V_ERR_CERT_REVOKED: certificate_revoked(44)
	VerdictUnknownCA   Verdict = 20 // X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknown_ca(48)
	VerdictUnsupported Verdict = 26 // X509_V_ERR_INVALID_PURPOSE: unsupported_certificate(43)
	VerdictBad         Verdict = 28 // X509_V_ERR_CERT_REJECTED: bad_certificate(42)
	VerdictUnknown     Verdict = 44 // X509_V_ERR_DIFFERENT_CRL_SCOPE: certificate_unknown(46), as for all errors without a row
)

// Facts are the negotiated parameters of a connection. Its byte slices are copies.
type Facts struct {
	Version              uint16
	CipherSuite          uint16
	Group                uint16
	Resumed              bool
	PSK                  bool // the peers have used a pre-shared key
	HelloRetry           bool
	ExtendedMasterSecret bool
	TakenOver            bool // libssl no longer has it: Sides instead of Read and Write
	Deferred             bool // a later Read will take it over, because a client waits for its tickets
	ALPN                 string
	ServerName           string // servers only
	OCSPResponse         []byte // clients only
	SCTs                 []byte // SignedCertificateTimestampList, RFC 6962
	LocalFinished        []byte // TLS 1.2 only
	PeerFinished         []byte // TLS 1.2 only
}

// ContextConfig specifies how a context is made. An empty list means libssl's default.
type ContextConfig struct {
	MinVersion, MaxVersion uint16
	SecurityLevel          int  // at least this; -1 keeps the library's
	ExactLevel             bool // SecurityLevel is set even if it is lower than the library's
	AsHost                 bool // MinVersion is a lower bound, and MaxVersion the host's
	WithoutHostPolicy      bool // settings that are not given here are libssl's defaults, not the host's
	HostCommands           []HostCommand
	RequestClientCert      bool
	RequireClientCert      bool
	WantHello              bool // servers pause at the ClientHello
	WantCert               bool // clients pause when a server requests a certificate
	WantKeyLog             bool
	WantTrace              bool // keep the messages of handshakes for Trace
	DirectRecords          bool // take connections over after the handshake; requires SealRefusals
	SealRefusals           bool // TLS 1.3 clients protect the alert if Go refuses the server, on either record path
	FIPS                   bool // use only the FIPS module, after SetUpFIPS
	Tickets                bool // servers seal sessions into tickets: SetTicketKeys
	Cached                 bool // servers pause for Lookup, and make Sessions
	TLS13Tickets           bool // if Cached: TLS 1.3 sessions are in tickets while there are keys
	KeepSessions           bool // clients make Sessions
	SessionTimeout         time.Duration
	Policy                 [32]byte // servers: sessions made under another policy are not resumed
	VerifyPauses           bool     // the library is 3.0 or later: clients pause for verification
	CipherSuites           []uint16 // TLS 1.2
	TLS13CipherSuites      []uint16
	Groups                 []tls.CurveID
	SignatureSchemes       []tls.SignatureScheme
	ClientSignatureSchemes []tls.SignatureScheme // with which clients sign; SignatureSchemes if empty
	ALPN                   []byte                // in wire form
	ALPNByClient           bool                  // servers choose by the client's order
	ClientCAs              [][]byte              // DER names
	Credential             *Credential
	PSK                    *PSKSettings // nil if connections have no pre-shared keys
	Shards                 int          // of the slim library context, among which connections are divided; one if 0
}

// PSKSettings are the settings of connections with pre-shared keys.
type PSKSettings struct {
	Servers      bool     // servers report PSKOffer, if WantHello
	WithoutDHE   bool     // in TLS 1.3, the key may be the only key exchange
	CipherSuites []uint16 // of TLS 1.2, with a key; they come before the context's
	Alone        bool     // the context's are left out
	// Connections with a key have no other TLS 1.2 suites than those.
	NarrowsClients, NarrowsServers bool
}

// MaxShards is the largest number of shards: shim.h, OSSL_MAX_SHARDS.
const MaxShards = 32

// A Session is a session that a connection has made, in libssl's encoding.
type Session struct {
	ID  []byte
	DER []byte
}

// A Message is a message of a handshake, as it was sent or received in the clear or under the
// handshake's keys.
type Message struct {
	Sent        bool
	ContentType uint8  // RFC 8446, appendix B.1
	Data        []byte // with the header of a handshake message
}

// A TicketKey seals tickets: session.TicketKey has the fields' meanings.
type TicketKey struct {
	Name        [16]byte
	Cipher, MAC []byte
}

var crossings atomic.Uint64

// Crossings returns the number of calls into C that the connections freed so far have made. It is
// for tests and measurements.
func Crossings() uint64 { return crossings.Load() }

// PackChain concatenates certificates, each preceded by its length. This is the form in which the
// shim reads and returns chains.
func PackChain(chain [][]byte) []byte {
	var packed []byte
	for _, der := range chain {
		n := len(der)
		packed = append(packed, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
		packed = append(packed, der...)
	}
	return packed
}
