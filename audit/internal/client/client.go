// Package client makes TLS 1.2 and TLS 1.3 handshakes to measure and audit servers. It keeps the
// facts that a TLS library would hide: the certificates as the server sent them, the bytes and the
// times of the server's flight, tickets and their secrets, and the bytes of early data, which can
// be sent again.
//
// It verifies the server's Finished message and the server's signature on the handshake, so that
// its reports are about the owner of the certificate's key. It doesn't verify the chain. Its
// cryptography is the standard library's, and it hides nothing from an observer of its own process:
// don't send secrets with it.
package client

import (
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"net"
	"time"

	"github.com/ossl-go/ossl/audit/internal/hello"
)

// A Config describes the offer of a handshake.
type Config struct {
	// Hello is the client's offer; Default(ServerName) if nil. The handshake copies it. It sets
	// the fields that belong to its own state: Random and SessionID if they are nil, KeyShares,
	// Cookie, PSK, EarlyData, Ticket (of a Session), and Extra if EarlyData needs it.
	Hello *hello.ClientHello

	ServerName string   // Hello.ServerName if empty
	ALPN       []string // Hello.ALPN if nil

	// Shares are the groups for which TLS 1.3 sends key shares. If it is nil, X25519MLKEM768 and
	// X25519 get one, as in browsers; if the hello has neither, the first of its groups that this
	// package has. If the slice is empty and not nil, the hello has none: the server must answer
	// with a HelloRetryRequest.
	Shares []uint16

	// Session is offered to the server if it isn't nil. Its version must be the handshake's.
	Session *Session

	// Early is sent as early data, if Session allows it. Only TLS 1.3 has it.
	Early []byte
}

// Default returns a ClientHello that offers everything this package has for the versions, the most
// common first.
func Default(serverName string, versions ...uint16) *hello.ClientHello {
	if len(versions) == 0 {
		versions = []uint16{hello.TLS13}
	}
	h := &hello.ClientHello{
		ServerName:     serverName,
		Signatures:     []uint16{0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0603, 0x0806, 0x0601, 0x0807},
		StatusRequest:  true,
		ExtendedMaster: true,
		Renegotiation:  true,
		Points:         []byte{0},
		Ticket:         []byte{},
	}
	groups := []uint16{X25519, P256, P384, P521}
	for _, v := range versions {
		switch v {
		case hello.TLS13:
			h.Suites = append(h.Suites, AES128GCM, AES256GCM, ChaCha20)
			h.Versions = append(h.Versions, hello.TLS13)
			h.PSKModes = []byte{pskDHE}
			h.Ticket = nil
			h.Extra = append(h.Extra, hello.Extension{Type: extSCT})
			groups = []uint16{X25519MLKEM768, X25519, P256, P384, P521}
		case hello.TLS12:
			h.Suites = append(h.Suites, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc009, 0xc013, 0xc00a, 0xc014,
				0x009c, 0x009d, 0x002f, 0x0035)
			h.Versions = append(h.Versions, hello.TLS12)
		}
	}
	h.Groups = groups
	if len(versions) == 1 && versions[0] == hello.TLS12 {
		h.Versions = nil
		h.Extra = append(h.Extra, hello.Extension{Type: extSCT})
	}
	return h
}

// Groups that this package has, as on the wire.
const (
	P256           uint16 = 23
	P384           uint16 = 24
	P521           uint16 = 25
	X25519         uint16 = 29
	X25519MLKEM768 uint16 = 0x11ec
)

// TLS 1.3 cipher suites that this package has.
const (
	AES128GCM uint16 = 0x1301
	AES256GCM uint16 = 0x1302
	ChaCha20  uint16 = 0x1303
)

// A State describes a handshake. If the handshake fails, its State has the facts found before.
type State struct {
	Version   uint16
	Suite     uint16
	Group     uint16 // of the key exchange; 0 if there was none
	ALPN      string
	Signature uint16 // the scheme of the server's signature; 0 if it didn't sign

	Certificates [][]byte // as sent, in DER if the server is honest
	Staple       []byte   // the OCSP response
	SCTs         []byte   // a SignedCertificateTimestampList (RFC 6962, section 3.3)
	// Unverified is the reason why the server's signature wasn't verified although it signed: this
	// package, or the standard library, doesn't have the key's kind or refuses the certificate.
	Unverified error
	// Compressed is the algorithm of RFC 8879 in which the certificates were sent, or 0. If it
	// isn't zlib (1), Certificates is empty.
	Compressed uint16

	Resumed       bool
	Retried       bool // the server sent a HelloRetryRequest
	EarlyAccepted bool // the server accepted the early data

	// Of TLS 1.2.
	ExtendedMaster      bool
	EncryptThenMAC      bool
	SecureRenegotiation bool

	ServerHello *hello.ServerHello
	// Encrypted are the extensions of EncryptedExtensions.
	Encrypted []hello.Extension
	Times     Times

	// FirstFlight is everything that the client sent before it read: the ClientHello, and the early
	// data with its records. It can be sent again as it is, to see whether the server accepts a
	// replay.
	FirstFlight []byte
	// Flight counts the bytes of the server's first flight with the headers of its records: from
	// the ServerHello to Finished in TLS 1.3, to ServerHelloDone (or Finished, if it resumes) in
	// TLS 1.2. A HelloRetryRequest isn't part of it.
	Flight int
}

// Times are the times of a handshake's events. Zero stands for an event that didn't happen.
type Times struct {
	Sent      time.Time // the (last) ClientHello was handed to TCP
	Retry     time.Time // the last byte of a HelloRetryRequest was read
	FirstByte time.Time // the first bytes after the (last) ClientHello were read
	Flight    time.Time // the last byte of the server's first flight was read
	Done      time.Time // the handshake is complete on our side
}

// A Session can be resumed.
type Session struct {
	Version        uint16
	Suite          uint16
	Secret         []byte // the master secret, or the pre-shared key in TLS 1.3
	ID             []byte // TLS 1.2
	Ticket         []byte
	Lifetime       uint32 // seconds, as the server sent them; 0 if it didn't
	AgeAdd         uint32
	MaxEarly       uint32 // bytes of early data
	ALPN           string
	Received       time.Time
	ExtendedMaster bool
	EncryptThenMAC bool
	Certificates   [][]byte // of the full handshake
}

// Sessions returns the sessions that the server has sent so far. In TLS 1.3 they arrive after the
// handshake, and are found by Read and [Conn.ReadSessions].
func (c *Conn) Sessions() []*Session { return append([]*Session(nil), c.sessions...) }

// An AlertError is an alert after which the connection was closed. Its text is for reports, as are
// the texts of the errors below.
type AlertError struct {
	hello.Alert
}

func (e *AlertError) Error() string {
	if e.Silent {
		return "the server closed the connection without an alert"
	}
	return "the server sent the alert " + hello.AlertName(e.Code)
}

// A ProtocolError reports that the server broke the protocol's rules, or lied.
type ProtocolError struct{ Message string }

func (e *ProtocolError) Error() string { return e.Message }

func protocolError(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// An UnsupportedError reports that the server chose something that the hello offered, but that this
// package doesn't have.
type UnsupportedError struct{ Message string }

func (e *UnsupportedError) Error() string { return "no support for " + e.Message }

// leaf parses the certificate whose key signs the handshake.
func (s *State) leaf() (*x509.Certificate, error) {
	if len(s.Certificates) == 0 {
		return nil, protocolError("the server sent no certificate")
	}
	certificate, err := ParseCertificate(s.Certificates[0])
	if certificate == nil {
		return nil, err
	}
	if key, ok := certificate.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSA {
		return nil, protocolError("the server's RSA key has %d bits", key.N.BitLen())
	}
	return certificate, nil
}

// maxRSA bounds the work for a server's RSA key, in bits: with a megabyte it would take minutes.
const maxRSA = 16384

// A Conn is a TLS connection. It isn't safe for concurrent use. The caller sets deadlines on the
// net.Conn, which stays the caller's to close if the handshake fails.
type Conn struct {
	State State
	conn  net.Conn

	in  opener // nil before the server encrypts
	out sealer // nil before the client encrypts

	buf      []byte // bytes read from conn that are not yet parsed
	read     int    // bytes of whole records so far
	lastRead time.Time
	messages []byte // bytes of handshake messages that are not yet parsed
	data     []byte // application data that Read has not yet returned
	budget   int    // bytes that the server may still send before it sends application data
	eof      error  // the end of the connection, once found

	// post handles a handshake message after the handshake.
	post     func(typ byte, message []byte) error
	sessions []*Session

	replay      func(net.Conn) *handshake13        // TLS 1.3 only: the state after the first flight
	renegotiate func() (*hello.ClientHello, error) // TLS 1.2 only: the ClientHello of a renegotiation
}
