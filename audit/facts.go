package audit

import (
	"context"
	"time"
)

// Facts are the observations of an audit, without judgement. The Outcome of each part reports
// whether it was tested.
type Facts struct {
	Addresses []AddressFacts `json:"addresses"`        // all of the name's
	Address   string         `json:"address"`          // of the address that the other facts are about
	Server    string         `json:"server,omitempty"` // the product, if the server names it: "nginx/1.22.1"

	Protocols    ProtocolFacts    `json:"protocols"`
	Options      OptionFacts      `json:"options"`
	Certificates CertificateFacts `json:"certificates"`
	Flight       FlightFacts      `json:"flight"`
	Timing       TimingFacts      `json:"timing"`
	Resumption   ResumptionFacts  `json:"resumption"`
	EarlyData    EarlyDataFacts   `json:"early_data"`
	// Injection reports whether the server executes commands within TLS that it received in clear
	// text before.
	Injection Switch      `json:"starttls_injection"`
	HTTP      HTTPFacts   `json:"http"`
	DNS       DNSFacts    `json:"dns"`
	Clients   ClientFacts `json:"clients"`
	Extra     *ExtraFacts `json:"extra,omitempty"` // nil if they weren't asked for
}

// AddressFacts are about one address of the name.
type AddressFacts struct {
	Outcome
	Address     string    `json:"address"`                 // host:port
	RoundTrip   *Interval `json:"round_trip_ms,omitempty"` // duration of the TCP handshake
	Version     string    `json:"version,omitempty"`
	Suite       string    `json:"suite,omitempty"`
	Group       string    `json:"group,omitempty"`
	Certificate string    `json:"certificate,omitempty"` // the leaf's SHA-256, in hexadecimal
	TLSError    string    `json:"tls_error,omitempty"`   // why Version and the fields after it are empty
	Refused     string    `json:"refused,omitempty"`     // the alert by which it refuses TLS 1.3 and TLS 1.2
}

// ProtocolFacts are the versions, suites and groups. Names are IANA's; unknown ones are in
// hexadecimal: "0xcca8".
type ProtocolFacts struct {
	Outcome
	Versions map[string]VersionFacts `json:"versions"` // by name: "SSL 2", "TLS 1.3"
	// Lies are answers that no client offered, or that aren't TLS.
	Lies []string `json:"lies,omitempty"`
	// Silent counts the refusals without an alert: the server closed the connection before it
	// answered, and answered other connections before and after. They are less certain than alerts.
	Silent int `json:"refusals_without_alert,omitempty"`
	// LargeHello reports whether the server answers a ClientHello as large as a browser's.
	LargeHello HelloSize `json:"large_hello"`
}

// A HelloSize reports whether the server answers a ClientHello of a size.
type HelloSize struct {
	Outcome
	Answered bool `json:"answered"`
	Bytes    int  `json:"bytes"`           // of the hello
	Small    int  `json:"small,omitempty"` // of the same hello without its padding, which was answered, if Answered is false
}

// VersionFacts are about one version of the protocol.
type VersionFacts struct {
	Outcome
	Offered bool     `json:"offered"`
	Suites  []string `json:"suites,omitempty"` // the most preferred first if Order is "server"
	// Order reports whose order decides: "server", "client", "server, ChaCha20 if the client
	// prefers it", or "" if there is one suite.
	Order      string   `json:"order,omitempty"`
	Groups     []string `json:"groups,omitempty"` // the most preferred first if GroupOrder is "server"
	GroupOrder string   `json:"group_order,omitempty"`
	PrimeBits  int      `json:"prime_bits,omitempty"` // of finite-field Diffie-Hellman
	// Signatures are the schemes in which the server signed. The audit offers all schemes, and then
	// the weak ones by themselves.
	Signatures []string `json:"signatures,omitempty"`
	// Retry reports whether the server sends a HelloRetryRequest to a client without a key share.
	Retry bool `json:"retry,omitempty"`
	// Inherits reports whether the suites of the later version weren't asked for again, except the
	// first: servers have one list for TLS 1.0 to 1.2.
	Inherits bool `json:"inherits,omitempty"`
	// Partial is the reason why the lists may be incomplete: all their entries are offered, and
	// there may be more.
	Partial string `json:"partial,omitempty"`
}

// OptionFacts are about extensions and settings of a handshake.
type OptionFacts struct {
	ExtendedMaster      Switch    `json:"extended_master_secret"` // up to TLS 1.2, RFC 7627
	EncryptThenMAC      Switch    `json:"encrypt_then_mac"`       // RFC 7366
	SecureRenegotiation Switch    `json:"secure_renegotiation"`   // RFC 5746
	ClientRenegotiation Switch    `json:"client_renegotiation"`   // the server renegotiates when a client asks
	Compression         Switch    `json:"compression"`
	Fallback            Switch    `json:"fallback_scsv"`           // the server refuses a fallback, RFC 7507
	ALPN                ListFacts `json:"alpn"`                    // protocols that the server chooses
	CompressCertificate ListFacts `json:"certificate_compression"` // RFC 8879: "zlib", "brotli", "zstd"
}

// A Switch reports whether a server does something.
type Switch struct {
	Outcome
	On bool `json:"on"`
}

// ListFacts are a list.
type ListFacts struct {
	Outcome
	Values []string `json:"values,omitempty"`
}

// CertificateFacts are the chains that a server sends.
type CertificateFacts struct {
	Outcome
	Chains []ChainFacts `json:"chains"`         // one for each kind of key that the server has
	CRLs   bool         `json:"crls,omitempty"` // the certificates were looked up in revocation lists
}

// ChainFacts are about one chain.
type ChainFacts struct {
	Key          string            `json:"key"` // "ECDSA secp256r1", "RSA 2048"
	Certificates []CertificateFact `json:"certificates"`
	Bytes        int               `json:"bytes"` // of the certificates
	Trusted      bool              `json:"trusted"`
	TrustError   string            `json:"trust_error,omitempty"`
	NameError    string            `json:"name_error,omitempty"` // why the leaf isn't valid for the target's name
	InOrder      bool              `json:"in_order"`
	Missing      string            `json:"missing,omitempty"`  // the issuer that the server should send, and doesn't
	Needless     []int             `json:"needless,omitempty"` // indexes of certificates that no path needs
	Root         bool              `json:"root"`               // a self-signed certificate is sent after the leaf
	OCSP         []string          `json:"ocsp,omitempty"`     // the responders that the leaf names
	CRL          []string          `json:"crl,omitempty"`      // the distribution points that the leaf names
	MustStaple   bool              `json:"must_staple"`
	Stapled      bool              `json:"stapled"`
	StapleError  string            `json:"staple_error,omitempty"`
	StapleFrom   *time.Time        `json:"staple_from,omitempty"`
	StapleUntil  *time.Time        `json:"staple_until,omitempty"`
	SCTs         int               `json:"scts"`
	DER          [][]byte          `json:"-"`
	Staple       []byte            `json:"-"`

	fetch func(context.Context) (*ChainFacts, error) // looks at the chain again

	Path []int `json:"path,omitempty"` // indexes of the certificates from the leaf to the one that a trust anchor issued
}

// A CertificateFact is about one certificate.
type CertificateFact struct {
	Subject   string    `json:"subject"`
	Issuer    string    `json:"issuer"`
	Names     []string  `json:"names,omitempty"`
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
	Key       string    `json:"key"`
	Signature string    `json:"signature"` // its algorithm: "ECDSA-SHA256"
	Bytes     int       `json:"bytes"`
	SHA256    string    `json:"sha256"`
	Error     string    `json:"error,omitempty"` // it can't be parsed
	// Refused is the reason why strict clients, for example in Go, refuse to parse it, although
	// others can.
	Refused string `json:"refused,omitempty"`
	// Revoked is the reason why the certificate is revoked, by the revocation lists that were given.
	Revoked string `json:"revoked,omitempty"`
	// RevocationUnknown is the reason why the lists don't tell.
	RevocationUnknown string `json:"revocation_unknown,omitempty"`
}

// FlightFacts are about the server's first flight: ServerHello to Finished, or to ServerHelloDone.
type FlightFacts struct {
	Outcome
	Bytes      int       `json:"bytes"`
	RoundTrips float64   `json:"round_trips"` // from ClientHello to the flight's last byte, in TCP round trips
	Millis     *Interval `json:"ms,omitempty"`
}

// TimingFacts are times measured in alternating rounds.
type TimingFacts struct {
	Outcome
	RoundTrip *Interval `json:"round_trip_ms,omitempty"` // TCP connect
	Retry     *Interval `json:"retry_ms,omitempty"`      // ClientHello to HelloRetryRequest: no public-key operation
	Full      *Interval `json:"full_ms,omitempty"`       // ClientHello to the end of the flight
	Resumed   *Interval `json:"resumed_ms,omitempty"`
	// PublicKey is the server's public-key work for a handshake: Full less Retry, measured in
	// pairs. It is nil if the noise is larger.
	PublicKey map[string]*Interval `json:"public_key_ms,omitempty"` // by ChainFacts.Key
	Noise     float64              `json:"noise_ms"`                // differences below this can't be measured
}

// ResumptionFacts are about sessions.
type ResumptionFacts struct {
	ID12     Resumed `json:"tls12_id"`
	Ticket12 Resumed `json:"tls12_ticket"`
	Ticket13 Resumed `json:"tls13"`
	// Fleet reports for each pair of addresses whether the second resumes a session of the first.
	Fleet []FleetFacts `json:"fleet,omitempty"`
	// WeakKey is the known key that opens the server's tickets, if one does.
	WeakKey struct {
		Outcome
		Key string `json:"key,omitempty"`
	} `json:"weak_ticket_key"`
	Lifetime12 int         `json:"tls12_ticket_lifetime_seconds,omitempty"` // the hint
	Lifetime13 int         `json:"tls13_ticket_lifetime_seconds,omitempty"`
	Tickets13  int         `json:"tls13_tickets,omitempty"` // a full handshake
	Watch      *WatchFacts `json:"watch,omitempty"`
}

// Resumed reports how often a session was really resumed.
type Resumed struct {
	Outcome
	Offered bool `json:"offered"` // the server gave an ID or a ticket
	Tries   int  `json:"tries"`
	Hits    int  `json:"hits"`
}

// FleetFacts are one cell of the matrix.
type FleetFacts struct {
	Outcome
	From  string `json:"from"`
	To    string `json:"to"`
	Kind  string `json:"kind"` // "TLS 1.2 ID", "TLS 1.2 ticket", "TLS 1.3"
	Tries int    `json:"tries"`
	Hits  int    `json:"hits"`
}

// WatchFacts are about the keys of tickets over time.
type WatchFacts struct {
	Since   time.Time     `json:"since"`
	Until   time.Time     `json:"until"`
	Samples []WatchSample `json:"samples"`
	Changes []time.Time   `json:"changes"` // when another key encrypted tickets
}

// A WatchSample is one look at the server's tickets.
type WatchSample struct {
	Time     time.Time `json:"time"`
	KeyName  string    `json:"key_name"`           // the ticket's first bytes, in hexadecimal
	Accepted *bool     `json:"accepted,omitempty"` // whether the first sample's ticket still resumes
	Error    string    `json:"error,omitempty"`
}

// EarlyDataFacts are about 0-RTT.
type EarlyDataFacts struct {
	Outcome
	Limit    int    `json:"limit"` // bytes that the server's tickets allow
	Accepted bool   `json:"accepted"`
	Replay   Replay `json:"replay"`
}

// A Replay reports how often a request in early data was executed again.
type Replay struct {
	Outcome
	Sent     int `json:"sent"`
	Executed int `json:"executed"`
	TooEarly int `json:"too_early"` // answered by 425 (RFC 8470)
}

// HTTPFacts are about HTTP.
type HTTPFacts struct {
	Outcome
	HSTS      string  `json:"hsts,omitempty"` // the header
	HSTSAge   int     `json:"hsts_seconds"`
	Redirect  Outcome `json:"redirect"`
	Redirects string  `json:"redirects,omitempty"` // where plain HTTP leads
	// PlainStatus is the status of plain HTTP's answer.
	PlainStatus int    `json:"plain_status,omitempty"`
	NoName      bool   `json:"no_name,omitempty"` // the target is an address: clients ignore HSTS
	HTTP3       string `json:"alt_svc,omitempty"`
}

// DNSFacts are about the name's records.
type DNSFacts struct {
	Outcome
	HTTPS []string `json:"https,omitempty"` // HTTPS records (RFC 9460), in presentation format
	ECH   Switch   `json:"ech"`             // the record has ECH configurations
	CAA   []string `json:"caa,omitempty"`
}

// ExtraFacts are about the surroundings of TLS.
type ExtraFacts struct {
	Status   int               `json:"status,omitempty"` // of the answer to GET / by HTTPS
	Headers  map[string]string `json:"headers"`          // those of its headers that limit scripts and frames
	OwnRoots bool              `json:"own_roots"`        // the trust anchors aren't the system's
}

// ClientFacts are the simulated clients.
type ClientFacts struct {
	Outcome
	Clients []SimulatedClient `json:"clients"`
}

// A SimulatedClient is one client's ClientHello, and the answer to it.
type SimulatedClient struct {
	Outcome
	Name    string `json:"name"`
	Source  string `json:"source"` // where its ClientHello is from
	Common  bool   `json:"common"` // a public server should serve the client
	Version string `json:"version,omitempty"`
	Suite   string `json:"suite,omitempty"`
	Group   string `json:"group,omitempty"`
	Retry   bool   `json:"retry"`             // it pays a HelloRetryRequest: one round trip
	Refused string `json:"refused,omitempty"` // the alert
}
