package audit

import (
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"time"

	"github.com/ossl-go/ossl/policy"
)

// A Target is a server to be audited.
type Target struct {
	Host string `json:"host"` // a name or an address
	Port uint16 `json:"port"`
	// Protocol is "tls" or "https", in which TLS begins at once, or "smtp", "imap", "pop3", "ldap",
	// "postgres", "mysql", "xmpp" or "xmpp-server", in which the client asks for it. "postgres-direct" is
	// PostgreSQL that begins with TLS, as version 17 can.
	Protocol string `json:"protocol"`
}

// Options are the options of [Check]. The zero value is usable.
type Options struct {
	Policy     *policy.Policy   // fast-and-safe if nil
	At         time.Time        // judges as on that day; now if zero
	Server     string           // the product, if it is known: "nginx"; HTTP servers often send it
	ServerName string           // the name to ask for and to verify; the target's host if empty
	Addresses  []netip.AddrPort // instead of the name's
	Roots      *x509.CertPool   // the system's if nil
	// CheckCRL looks a certificate up in revocation lists. issuer is the next certificate of its chain. The
	// reason is why it is revoked or, if it isn't revoked, why that is not known; "" if it is known.
	CheckCRL func(cert, issuer *x509.Certificate) (revoked bool, reason string)
	Timeout  time.Duration // of one connection, 5 s if 0
	// Greeting is how long to wait for the greeting of an SMTP, IMAP, POP3 or MySQL server: 30 s if
	// 0, and at least Timeout.
	Greeting time.Duration
	// MaxConnections bounds the connections of the whole audit; 0 stands for 200, or for 1,000 with All.
	// Probes that need more are not tested.
	MaxConnections int
	Rate           float64 // connections a second, 0 for no bound
	// MaxTime bounds the time of the whole audit. 0 stands for 3 minutes, or 36 times Timeout if that is
	// more, and as much more as Rate, Watch, Precise and late greetings need.
	MaxTime time.Duration
	// Replay sends GET requests in early data twice. Use it for your own servers only.
	Replay bool
	// ReplayPath is the path of the request, "/" if empty.
	ReplayPath string
	// Watch looks at the server's ticket keys for this long, once in each WatchEvery (an hour if 0).
	Watch, WatchEvery time.Duration
	OneAddress        bool // audits the first reachable address only
	NoHTTP, NoDNS     bool
	NoClients         bool // no simulated clients
	// All finds all cipher suites of all versions, and simulates all clients, even if the audit then makes
	// more than 60 connections.
	All bool
	// Extra judges the surroundings of TLS too: CAA records, certificate timestamps, and headers that limit
	// scripts and frames.
	Extra    bool
	NoTiming bool // no prices in milliseconds
	Precise  bool // prices in milliseconds from 60 rounds instead of 6

	// Progress is called with the name of each probe as it begins, from one goroutine at a time.
	Progress func(probe string)
	// Dial replaces net.Dialer.DialContext, and Resolver net.DefaultResolver, in tests and behind proxies.
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
	Resolver *net.Resolver
}
