package ossl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ossl-go/ossl/internal/chain"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// A Context is a configuration compiled for libssl: made once, never changed, shared by any number of connections of both roles.
type Context struct {
	config     *tls.Config
	opts       *options
	fips       bool        // it is in FIPS mode
	policy     *hostPolicy // nil if there is none to honour
	ssl        *libssl.Context
	verifier   *chain.Verifier
	kernelTLS  bool                 // the kernel is asked to seal
	rule       *credentialRule      // for certificates
	static     []*libssl.Credential // of config.Certificates
	creds      *credentialCache     // of all others
	server     error                // why the Context can't serve, or nil
	seals      bool                 // TLS 1.3 clients protect the alert for what Go refuses
	pauses     bool                 // libssl itself pauses clients for verification; it never pauses servers
	asksToSign bool                 // a certificate's key is a crypto.Signer: libssl has to ask Go to sign
	hellos     bool                 // servers pause at the ClientHello to choose
	ticketKeys
	forChosen *options        // for the Contexts of GetConfigForClient's configurations
	chosen    *chosenContexts // these Contexts

	stores *rootStores // in FIPS mode: the trust anchors of both roles
}

// NewContext compiles config. It returns a [*ConfigError] that names the first field or option that can't be honoured, and an
// error that wraps [ErrUnavailable] if there is no usable OpenSSL. config is copied; as with crypto/tls, what it points to must
// not be changed afterwards.
func NewContext(config *tls.Config, opts ...Option) (*Context, error) {
	o, err := optionsOf(opts)
	if err != nil {
		return nil, err
	}
	return newContext(config, o)
}

func newContext(config *tls.Config, o *options) (*Context, error) {
	lib, err := loadLibrary(o.library)
	if err != nil {
		return nil, err
	}
	if config == nil {
		config = &tls.Config{}
	}
	config = config.Clone()
	if o.http2 {
		offerHTTP2(config)
	}
	if err := checkConfig(config); err != nil {
		return nil, err
	}
	fips, err := o.setUpFIPS()
	if err != nil {
		return nil, err
	}
	if fips {
		if err := checkFIPS(config, o); err != nil {
			return nil, err
		}
	}
	policy, err := o.hostPolicy()
	if err != nil {
		return nil, err
	}
	s, err := resolve(config, o, policy, fips)
	if err != nil {
		return nil, err
	}
	level, err := policy.limitLevel(o)
	if err != nil {
		return nil, err
	}
	records, err := policy.limitRecords(o.records)
	if err != nil {
		return nil, err
	}
	if o.kernelTLS && o.records == RecordsLibssl && o.recordsNamed {
		return nil, &ConfigError{Field: "WithKernelTLS", Reason: "RecordsLibssl leaves the records with libssl"}
	}
	c := &Context{
		config: config,
		opts:   o,
		fips:   fips,
		policy: policy,
		rule:   &credentialRule{fips: fips, policy: policy, signatures: s.signatures, ordered: o.signatures != nil},
		pauses: lib.Number >= libssl.Version3_0,
		creds:  o.creds,
		chosen: newChosenContexts(),
	}
	if c.creds == nil {
		c.creds = newCredentialCache()
	}
	c.hellos = config.GetConfigForClient != nil || config.GetCertificate != nil || len(config.Certificates) != 1
	if len(config.Certificates) == 0 && config.GetCertificate == nil && config.GetConfigForClient == nil {
		c.server = errors.New("tls: neither Certificates, GetCertificate, nor GetConfigForClient set in Config")
	}
	if err := c.makeRing(); err != nil {
		return nil, err
	}
	if config.ClientSessionCache != nil && !config.SessionTicketsDisabled {
		if _, err := stdtls.SessionTemplate(); err != nil {
			return nil, &ConfigError{Field: "ClientSessionCache", Reason: "crypto/tls makes no session to carry ours", Err: err}
		}
	}
	proven := records == RecordsOwn || lib.Number < libssl.Version5_0
	c.seals = proven
	c.kernelTLS = o.kernelTLS && proven && records != RecordsLibssl
	cfg := &libssl.ContextConfig{
		MinVersion:          s.min,
		MaxVersion:          s.max,
		SecurityLevel:       level,
		ExactLevel:          o.levelNamed || o.withoutHostPolicy,
		WithoutHostPolicy:   o.withoutHostPolicy,
		HostCommands:        policy.all(),
		RequestClientCert:   config.ClientAuth != tls.NoClientCert,
		RequireClientCert:   config.ClientAuth == tls.RequireAnyClientCert || config.ClientAuth == tls.RequireAndVerifyClientCert,
		WantHello:           c.hellos,
		Tickets:             c.ring != nil,
		Cached:              o.cache != nil && c.server == nil,
		KeepSessions:        config.ClientSessionCache != nil && !config.SessionTicketsDisabled,
		SessionTimeout:      o.lifetime,
		WantCert:            config.GetClientCertificate != nil || len(config.Certificates) > 0,
		WantKeyLog:          config.KeyLogWriter != nil,
		VerifyPauses:        c.pauses,
		FIPS:                fips,
		OwnRecords:          proven && records != RecordsLibssl,
		SealRefusals:        proven,
		CipherList:          s.suites12,
		CipherSuites:        s.suites13,
		Groups:              s.groups,
		SignatureAlgorithms: s.sigalgs,
		ClientSignatures:    s.clientSigalgs,
		ALPN:                alpnWire(config.NextProtos),
		ALPNByClient:        o.alpnByClient,
	}
	if cfg.WithoutHostPolicy { // the host may have a list of its own
		cfg.ClientSignatures = s.sigalgs
	}
	if config.ClientAuth != tls.NoClientCert && config.ClientCAs != nil {
		cfg.ClientCAs = subjects(config.ClientCAs)
	}
	if fips {
		if c.stores, err = o.rootStores(); err != nil {
			return nil, err
		}
		c.forChosen.stores = c.stores
		if config.ClientAuth != tls.NoClientCert {
			cfg.ClientCAs = c.stores.names
		}
	}
	cfg.Policy = sessionPolicy(config, fips, cfg.ClientCAs)
	config.Certificates = slices.Clone(config.Certificates) // to set Leaf, which SupportsCertificate would parse each time
	for i := range config.Certificates {
		cert := &config.Certificates[i]
		cred, err := c.ownCredential(cert)
		if err != nil {
			return nil, &ConfigError{Field: "Certificates", Reason: fmt.Sprintf("certificate %d can't be used", i), Err: err}
		}
		c.static = append(c.static, cred)
		c.asksToSign = c.asksToSign || cred.AsksGo()
		if len(config.Certificates) == 1 {
			cfg.Credential = cred
		}
	}
	//lint:ignore SA1019 deprecated, and still honoured by crypto/tls
	for _, cert := range config.NameToCertificate {
		c.asksToSign = c.asksToSign || cert != nil && onlySigns(cert.PrivateKey)
	}
	c.ssl, err = libssl.NewContext(cfg)
	if err != nil {
		return nil, policy.explain(contextError(err), o)
	}
	c.verifier = c.newVerifier(level)
	if s.min <= tls.VersionTLS12 {
		for _, id := range s.requiredSuites {
			if !c.ssl.HasCipher(id) {
				return nil, &ConfigError{Field: "CipherSuites", Reason: fmt.Sprintf(
					"%s is not in this OpenSSL, or weaker than security level %d", tls.CipherSuiteName(id), c.ssl.SecurityLevel())}
			}
		}
	}
	if c.server == nil && !c.hellos && s.max <= tls.VersionTLS12 {
		c.server = checkKeyUsage(config.Certificates[0].Leaf)
	}
	return c, nil
}

// checkKeyUsage returns an error if a leaf certificate can't serve in TLS 1.2: libssl finds no suite for an ECDSA certificate
// whose key usage doesn't allow signing. In TLS 1.3 libssl doesn't look at the key usage; crypto/tls never does.
func checkKeyUsage(leaf *x509.Certificate) error {
	if leaf.PublicKeyAlgorithm != x509.ECDSA || leaf.KeyUsage == 0 || leaf.KeyUsage&x509.KeyUsageDigitalSignature != 0 {
		return nil
	}
	return &ConfigError{Field: "Certificates", Reason: "the key usage of the ECDSA certificate lacks digitalSignature, " +
		"which OpenSSL requires of a TLS 1.2 server's certificate"}
}

// contextError names the field or option whose setting libssl refused.
func contextError(err error) error {
	fields := map[string]string{
		"MinVersion":            "MinVersion",
		"MaxVersion":            "MaxVersion",
		"TLS 1.3 cipher suites": "WithTLS13CipherSuites",
		"CipherSuites":          "CipherSuites",
		"CurvePreferences":      "CurvePreferences",
		"signature algorithms":  "WithSignatureAlgorithms",
		"NextProtos":            "NextProtos",
		"Certificates":          "Certificates",
		"ClientCAs":             "ClientCAs",
		"host policy":           hostPolicyField,
	}
	var e *libssl.Error
	if errors.As(err, &e) && fields[e.Setting] != "" {
		return &ConfigError{Field: fields[e.Setting], Reason: "OpenSSL refuses it", Err: libraryError(err)}
	}
	return libraryError(err)
}

// subjects returns the names of a pool's certificates: what a server tells clients that it accepts.
func subjects(pool *x509.CertPool) [][]byte {
	return pool.Subjects() //lint:ignore SA1019 crypto/tls does the same: the names of a pool that is not the system's
}

// libraryHas reports whether the loaded OpenSSL is of a version or later.
func libraryHas(version uint64) bool {
	lib, err := libssl.Load("")
	return err == nil && lib.Number >= version
}

var groupsKnown sync.Map // knownGroup: bool, for the one library of the process

type knownGroup struct {
	name string
	fips bool
}

func hasGroup(name string, fips bool) bool {
	key := knownGroup{name, fips}
	if has, ok := groupsKnown.Load(key); ok {
		return has.(bool)
	}
	has := libssl.HasGroup(name, fips)
	groupsKnown.Store(key, has)
	return has
}

// ownCredential returns libssl's form of cert, a certificate in the Context's configuration, and sets its Leaf. The Contexts for
// GetConfigForClient's configurations share a cache of these, since most of them have the same few certificates.
func (c *Context) ownCredential(cert *tls.Certificate) (*libssl.Credential, error) {
	if !c.opts.chosen {
		return newCredential(cert, c.rule)
	}
	cred, err := c.creds.get(cert, c.rule)
	if err == nil && cert.Leaf == nil {
		cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0])
	}
	return cred, err
}

// credential returns cert for libssl's use.
func (c *Context) credential(cert *tls.Certificate) (*libssl.Credential, error) {
	for i := range c.static {
		if cert == &c.config.Certificates[i] {
			return c.static[i], nil
		}
	}
	return c.creds.get(cert, c.rule)
}

func (c *Context) time() time.Time {
	if c.config.Time != nil {
		return c.config.Time()
	}
	return time.Now()
}

// ServerName returns the configuration's ServerName, which a client's connections are for where none is given.
func (c *Context) ServerName() string { return c.config.ServerName }

// Client returns a connection that takes the client's role over conn. It sends serverName to the server and verifies the server's
// certificate for it; "" means the configuration's ServerName. The handshake runs at the first Read or Write, or by
// [Conn.HandshakeContext].
func (c *Context) Client(conn net.Conn, serverName string, opts ...ConnOption) *Conn {
	if serverName == "" {
		serverName = c.config.ServerName
	}
	return (&Conn{conn: conn, isClient: true, serverName: serverName}).with(c, opts)
}

// Server returns a connection that takes the server's role over conn. The handshake runs at the first Read or Write, or by
// [Conn.HandshakeContext].
func (c *Context) Server(conn net.Conn, opts ...ConnOption) *Conn {
	return (&Conn{conn: conn, configErr: c.server}).with(c, opts)
}

// A ConnOption asks for something of one connection that differs from what its [Context] does for the others.
type ConnOption func(*Conn)

func (c *Conn) with(ctx *Context, opts []ConnOption) *Conn {
	c.ctx.Store(ctx)
	c.out.sender = recordSender{}
	for _, opt := range opts {
		opt(c)
	}
	return c
}

// WithVerification has verify decide, at the end of all other verification, whether the handshake may go on. It is for decisions
// that differ between the connections of a Context, such as which peer is expected. It is called as the configuration's
// VerifyConnection is, after it: it can refuse what the configuration accepts, never the other way round. Of several, all must
// accept.
func WithVerification(verify func(tls.ConnectionState) error) ConnOption {
	return func(c *Conn) { c.verify = append(c.verify, verify) }
}

// DialContext connects to addr by a [net.Dialer] and runs the handshake. ctx bounds both and nothing afterwards.
// Without a ServerName in the configuration, addr's host is the name.
func (c *Context) DialContext(ctx context.Context, network, addr string) (*Conn, error) {
	return c.dial(ctx, new(net.Dialer), network, addr)
}

// Dial is DialContext without a bound.
func (c *Context) Dial(network, addr string) (*Conn, error) {
	return c.DialContext(context.Background(), network, addr)
}

// Listen listens like [net.Listen]; Accept returns connections of type [*Conn] whose handshake has not run.
func (c *Context) Listen(network, laddr string) (net.Listener, error) {
	if c.server != nil {
		return nil, c.server
	}
	inner, err := net.Listen(network, laddr)
	if err != nil {
		return nil, err
	}
	return c.NewListener(inner), nil
}

// NewListener returns a listener whose connections are inner's, as [*Conn] in the server's role.
func (c *Context) NewListener(inner net.Listener) net.Listener { return &listener{inner, c, nil} }
