package ossl

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"time"

	"github.com/ossl-go/ossl/internal/chain"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/negotiate"
)

// A Context is a configuration compiled for libssl. It does not change, and any number of client
// and server connections may share it.
type Context struct {
	config   *tls.Config
	opts     *options
	host     *negotiate.Host // the host's policy, or nil if there is none to honour
	ssl      *libssl.Context
	serveErr error    // the reason why the Context can't serve, or nil
	suites   []uint16 // for TLS 1.2
	omitted  []Omission
	level    int // OpenSSL's security level in force

	fips         bool        // it is in FIPS mode
	optionStores *rootStores // in FIPS mode: the trust anchors of WithRoots and WithClientRoots
	stores       *rootStores // in FIPS mode: the trust anchors of both roles
	verifier     *chain.Verifier

	rule   *credentialRule      // for certificates
	static []*libssl.Credential // of config.Certificates
	creds  *credentialCache     // of all others

	sealsAlerts    bool // TLS 1.3 clients protect the alert for a handshake that Go refuses
	directRecords  bool // connections are taken over after the handshake
	kernelTLS      bool // the kernel is asked to seal
	pausesToVerify bool // libssl itself pauses clients for verification; it never pauses servers
	pausesAtHello  bool // servers pause at the ClientHello, to choose a configuration and certificate
	asksToSign     bool // a certificate's key is a crypto.Signer: libssl must ask Go to sign

	trace    io.Writer // for the messages of handshakes; nil for none
	observer *observer // shared with the Contexts of GetConfigForClient's configurations
	ticketKeys
	chosen   *contextCache    // the Contexts of GetConfigForClient's configurations, and of unsigned's
	unsigned *unsignedClients // nil if the Context doesn't serve them
	psk      *contextPSK      // nil if connections have no pre-shared keys
}

// NewContext compiles config. If a field or option can't be honoured, it returns a [*ConfigError]
// that names the first one; if no usable OpenSSL is found, an error that wraps [ErrUnavailable].
// config is copied. As with crypto/tls, the values that it points to must not be changed
// afterwards.
func NewContext(config *tls.Config, opts ...Option) (*Context, error) {
	o, err := optionsOf(opts)
	if err != nil {
		return nil, err
	}
	return newContext(config, o, nil)
}

func (c *Context) time() time.Time {
	if c.config.Time != nil {
		return c.config.Time()
	}
	return time.Now()
}

// An Omission is a cipher suite or a group that a configuration names, and that a Context leaves out.
type Omission struct {
	Field  string // of tls.Config: CipherSuites or CurvePreferences
	Name   string // crypto/tls's, as X25519MLKEM768
	Reason string // "X25519MLKEM768 is not in this OpenSSL"
}

// Omitted returns the cipher suites and groups of the configuration that the Context leaves out, since
// the OpenSSL that is loaded lacks them, or they are below the security level. If the configuration
// names no others, NewContext refuses it. As crypto/tls does, a Context passes over numbers that
// crypto/tls doesn't know, and TLS 1.3 suites in CipherSuites; these are not returned.
func (c *Context) Omitted() []Omission { return slices.Clone(c.omitted) }

// ServerName returns the configuration's ServerName, which is the default of [Context.Client].
func (c *Context) ServerName() string { return c.config.ServerName }

// Client returns a new TLS client connection over conn. It sends serverName to the server and
// verifies the server's certificate for that name; "" means the configuration's ServerName. The
// first Read or Write runs the handshake, unless [Conn.HandshakeContext] is called before.
func (c *Context) Client(conn net.Conn, serverName string, opts ...ConnOption) *Conn {
	if serverName == "" {
		serverName = c.config.ServerName
	}
	return (&Conn{conn: conn, isClient: true, serverName: serverName}).with(c, opts)
}

// Server returns a new TLS server connection over conn. The first Read or Write runs the handshake,
// unless [Conn.HandshakeContext] is called before.
func (c *Context) Server(conn net.Conn, opts ...ConnOption) *Conn {
	return (&Conn{conn: conn, configErr: c.serveErr}).with(c, opts)
}

// A ConnOption sets a property of one connection of a [Context].
type ConnOption func(*Conn)

func (c *Conn) with(ctx *Context, opts []ConnOption) *Conn {
	c.ctx.Store(ctx)
	c.watch.observer = ctx.observer
	c.out.sender = recordSender{}
	for _, opt := range opts {
		opt(c)
	}
	return c
}

// WithVerification adds a verification of the connection's peer. If verify returns an error, the
// handshake fails with it. The option is for checks that differ between the connections of a
// Context, such as that for an expected peer. verify is called after all other verification, with
// the same state as the configuration's VerifyConnection. It can't accept a connection that the
// configuration refuses. If the option is given several times, each verify must return nil.
func WithVerification(verify func(tls.ConnectionState) error) ConnOption {
	return func(c *Conn) { c.verify = append(c.verify, verify) }
}

// DialContext connects to addr with a [net.Dialer] and runs the handshake. ctx bounds both; after
// the handshake, it has no effect on the connection. If the configuration has no ServerName, addr's
// host is the name.
func (c *Context) DialContext(ctx context.Context, network, addr string) (*Conn, error) {
	return c.dial(ctx, new(net.Dialer), network, addr, c.config.ServerName)
}

// Dial is like [Context.DialContext] with context.Background. The limits of [Dialer] with net/http
// apply to both.
func (c *Context) Dial(network, addr string) (*Conn, error) {
	return c.DialContext(context.Background(), network, addr)
}

// Listen creates a TLS listener on laddr with [net.Listen]. Its Accept returns connections of type
// [*Conn] whose handshake has not run yet. The limits of [Listen] with net/http apply.
func (c *Context) Listen(network, laddr string) (net.Listener, error) {
	if c.serveErr != nil {
		return nil, c.serveErr
	}
	inner, err := net.Listen(network, laddr)
	if err != nil {
		return nil, err
	}
	return c.NewListener(inner), nil
}

// NewListener returns a listener that accepts connections from inner and wraps each with
// [Context.Server]. Accept returns an error if the Context can't serve, for lack of a certificate for
// example. The limits of [Listen] with net/http apply.
func (c *Context) NewListener(inner net.Listener) net.Listener { return &listener{inner, c} }

type listener struct {
	net.Listener
	ctx *Context
}

func (l *listener) Accept() (net.Conn, error) {
	if l.ctx.serveErr != nil {
		return nil, l.ctx.serveErr
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.ctx.Server(conn), nil
}
