package ossl

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/ossl-go/ossl/internal/chain"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/negotiate"
)

// A Context is a configuration compiled for libssl: made once, never changed, shared by any number
// of connections of both roles.
type Context struct {
	config   *tls.Config
	opts     *options
	host     *negotiate.Host // the host's policy, or nil if there is none to honour
	ssl      *libssl.Context
	serveErr error // why the Context can't serve, or nil

	fips     bool        // it is in FIPS mode
	stores   *rootStores // in FIPS mode: the trust anchors of both roles
	verifier *chain.Verifier

	rule   *credentialRule      // for certificates
	static []*libssl.Credential // of config.Certificates
	creds  *credentialCache     // of all others

	sealsAlerts    bool // TLS 1.3 clients protect the alert for a handshake that Go refuses
	ownRecords     bool // connections are taken over after the handshake
	kernelTLS      bool // the kernel is asked to seal
	pausesToVerify bool // libssl itself pauses clients for verification; it never pauses servers
	pausesAtHello  bool // servers pause at the ClientHello, to choose a configuration and certificate
	asksToSign     bool // a certificate's key is a crypto.Signer: libssl has to ask Go to sign

	ticketKeys
	forChosen *options        // for the Contexts of GetConfigForClient's configurations
	chosen    *chosenContexts // these Contexts
}

// NewContext compiles config. It returns a [*ConfigError] that names the first field or option that
// can't be honoured, and an error that wraps [ErrUnavailable] if there is no usable OpenSSL. config
// is copied; as with crypto/tls, anything that it points to must not be changed afterwards.
func NewContext(config *tls.Config, opts ...Option) (*Context, error) {
	o, err := optionsOf(opts)
	if err != nil {
		return nil, err
	}
	return newContext(config, o)
}

func (c *Context) time() time.Time {
	if c.config.Time != nil {
		return c.config.Time()
	}
	return time.Now()
}

// ServerName returns the configuration's ServerName, the default for clients' connections.
func (c *Context) ServerName() string { return c.config.ServerName }

// Client returns a connection that takes the client's role over conn. It sends serverName to the
// server and verifies the server's certificate for it; "" means the configuration's ServerName. The
// handshake runs at the first Read or Write, or by [Conn.HandshakeContext].
func (c *Context) Client(conn net.Conn, serverName string, opts ...ConnOption) *Conn {
	if serverName == "" {
		serverName = c.config.ServerName
	}
	return (&Conn{conn: conn, isClient: true, serverName: serverName}).with(c, opts)
}

// Server returns a connection that takes the server's role over conn. The handshake runs at the first
// Read or Write, or by [Conn.HandshakeContext].
func (c *Context) Server(conn net.Conn, opts ...ConnOption) *Conn {
	return (&Conn{conn: conn, configErr: c.serveErr}).with(c, opts)
}

// A ConnOption changes one connection of a [Context].
type ConnOption func(*Conn)

func (c *Conn) with(ctx *Context, opts []ConnOption) *Conn {
	c.ctx.Store(ctx)
	c.out.sender = recordSender{}
	for _, opt := range opts {
		opt(c)
	}
	return c
}

// WithVerification has verify decide, after all other verification, whether the handshake may
// continue. It is for decisions that differ between the connections of a Context, such as which peer
// is expected. It is called with the same state as the configuration's VerifyConnection, and after
// it: it can refuse a connection that the configuration accepts, but not accept one that the
// configuration refuses. If there are several, all must accept.
func WithVerification(verify func(tls.ConnectionState) error) ConnOption {
	return func(c *Conn) { c.verify = append(c.verify, verify) }
}

// DialContext connects to addr with a [net.Dialer] and runs the handshake. ctx bounds both, and
// nothing afterwards. If the configuration has no ServerName, addr's host is the name.
func (c *Context) DialContext(ctx context.Context, network, addr string) (*Conn, error) {
	return c.dial(ctx, new(net.Dialer), network, addr)
}

// Dial is DialContext without a bound.
func (c *Context) Dial(network, addr string) (*Conn, error) {
	return c.DialContext(context.Background(), network, addr)
}

// Listen listens like [net.Listen]; Accept returns connections of type [*Conn] whose handshake has not run.
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

// NewListener returns a listener whose connections are inner's, as [*Conn] in the server's role.
func (c *Context) NewListener(inner net.Listener) net.Listener { return &listener{inner, c, nil} }
