// Package hello writes ClientHellos, of SSL 2 to TLS 1.3, and reads the beginnings of servers'
// answers. It makes no handshake: it offers things that no TLS library would, and stops reading as
// soon as the server has answered the question.
package hello

// Versions of the protocol, as on the wire.
const (
	SSL2  uint16 = 0x0002
	SSL3  uint16 = 0x0300
	TLS10 uint16 = 0x0301
	TLS11 uint16 = 0x0302
	TLS12 uint16 = 0x0303
	TLS13 uint16 = 0x0304
)

// A ClientHello is a ClientHello of SSL 3 to TLS 1.3. Each extension is sent if its field has a
// value.
type ClientHello struct {
	RecordVersion uint16 // of the record's header; TLS10 if 0
	Version       uint16 // legacy_version; TLS12 if 0
	Random        []byte // 32 bytes; random if nil
	SessionID     []byte
	Suites        []uint16
	Compressions  []byte // null if nil

	ServerName          string
	Groups              []uint16
	Points              []byte // ec_point_formats
	Signatures          []uint16
	ALPN                []string
	Versions            []uint16   // supported_versions
	KeyShares           []KeyShare // key_share; a non-nil empty slice sends the extension without shares
	PSKModes            []byte
	Cookie              []byte
	StatusRequest       bool
	ExtendedMaster      bool
	EncryptThenMAC      bool
	Renegotiation       bool   // an empty renegotiation_info
	Ticket              []byte // session_ticket; a non-nil empty slice asks for a ticket
	CompressCertificate []uint16
	EarlyData           bool
	Extra               []Extension // sent after the others, and before pre_shared_key
	PSK                 []byte      // the body of pre_shared_key, which is the last extension

	// Order has the types of extensions in the order in which they are sent. Those that have a
	// value and aren't in it follow, in the order of this struct. The data of GREASE types (RFC
	// 8701) are empty.
	Order []uint16
	// Pad pads the message to this length with the padding extension (RFC 7685).
	Pad int
}

// A KeyShare is a client's key share for one group.
type KeyShare struct {
	Group uint16
	Data  []byte
}

// An Extension is an extension as on the wire, without type and length.
type Extension struct {
	Type uint16
	Data []byte
}

// A Stop is the message after which [Read] stops.
type Stop int

// The messages at which Read can stop.
const (
	AtServerHello Stop = iota // after ServerHello or HelloRetryRequest
	AtDone                    // after ServerHelloDone; in TLS 1.3, the same as AtServerHello
)

// A Reply is the beginning of a server's answer.
type Reply struct {
	Alert       *Alert       // the server refused, perhaps after its ServerHello
	Warnings    []Alert      // before the rest; the server went on
	ServerHello *ServerHello // also a HelloRetryRequest
	Raw         []byte       // the handshake messages up to the end of the reply, without the records' headers
	Bytes       int          // read from the connection

	// Of TLS 1.2 and earlier, as far as Stop lets it be read.
	Certificates       [][]byte
	Status             []byte // the OCSP response of CertificateStatus
	KeyExchange        *KeyExchange
	CertificateRequest bool
	Done               bool

	SSL2      *SSL2Hello // the answer to an SSL 2 ClientHello
	SSL2Error uint16     // or its refusal: an error's number
}

// An Alert is an alert, or the end of a connection that stands for one.
type Alert struct {
	Level, Code uint8
	// Silent reports whether the server closed or reset the connection instead of sending an alert.
	Silent bool
}

// A ServerHello is a ServerHello or a HelloRetryRequest.
type ServerHello struct {
	Version       uint16 // the negotiated one: supported_versions, or else legacy_version
	LegacyVersion uint16
	Retry         bool // it is a HelloRetryRequest
	Random        []byte
	SessionID     []byte
	Suite         uint16
	Compression   byte
	Group         uint16 // of key_share
	KeyShare      []byte
	Cookie        []byte
	ALPN          string
	PSK           int // selected_identity; -1 if there is none
	Extensions    []Extension
}

// Extension returns the data of an extension, and whether the server sent it.
func (h *ServerHello) Extension(typ uint16) ([]byte, bool) {
	for _, e := range h.Extensions {
		if e.Type == typ {
			return e.Data, true
		}
	}
	return nil, false
}

// A KeyExchange is a ServerKeyExchange.
type KeyExchange struct {
	Group     uint16 // of elliptic curves, and of named finite fields; 0 if the server sent its own parameters
	Bits      int    // of the prime of finite-field Diffie-Hellman, or of a temporary RSA key
	Prime     []byte
	Signature uint16 // the signature scheme (TLS 1.2); 0 if the exchange isn't signed or doesn't name it
	Signed    bool

	Generator      []byte // of finite-field Diffie-Hellman
	Public         []byte // the server's public value
	Params         []byte // the signed part of the message
	SignatureBytes []byte
}

// An SSL2Hello is a SERVER-HELLO of SSL 2.
type SSL2Hello struct {
	Version     uint16
	Certificate []byte
	Suites      []uint32 // 3 bytes each
}

// Limits of a reply. A reply that is larger is an error.
const (
	MaxReply = 1 << 20 // bytes of all records; a chain of certificates can have 2^24-1
)

// A SyntaxError reports that a server's answer isn't TLS, or breaks its rules. Its text is for reports.
type SyntaxError struct {
	Message string
	Data    []byte // the first bytes at fault, at most 64
}

func (e *SyntaxError) Error() string { return e.Message }
