package bench

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
)

// An Impl names a TLS implementation, spelled as in benchmark names.
type Impl string

// The implementations that are compared.
const (
	Std  Impl = "std"  // crypto/tls
	OSSL Impl = "ossl" // on the host's libssl

	// TCP means no TLS. It has the costs of the kernel, Go's scheduler and the measurement itself,
	// which every implementation needs. Only [Plain] has it.
	TCP Impl = "tcp"
)

// Plain is data over TCP, without TLS. Only [NewLatency] and [NewBulk] accept it: there is no
// handshake, no certificate, and no use for a Pair's other fields.
var Plain = Pair{Server: TCP, Client: TCP}

// A Conn is the set of methods that the measurements need and both implementations' connections
// have.
type Conn interface {
	net.Conn
	Handshake() error
	ConnectionState() tls.ConnectionState
}

// A Pair is the implementations of the server and the client, and their parameters.
type Pair struct {
	Server, Client Impl
	Cert           Cert
	Mutual         bool        // the client has a certificate too, and the server verifies it
	Kex            tls.CurveID // the only group either end has; 0 is DefaultKex()

	// NoChainCache turns the cache of verified chains off: the peer's chain is verified in each
	// handshake, as in crypto/tls. It only affects OSSL: crypto/tls has no such cache.
	NoChainCache bool

	// Resume is how later connections resume the first one's session: "ticket", "id" (from a cache of
	// OSSL's server), or "" for not at all.
	Resume  string
	Version uint16 // the only TLS version; 0 is TLS 1.3
	// Suite is the only TLS 1.2 suite of both sides; 0 is the suite with AES-128-GCM. crypto/tls can't
	// choose among the TLS 1.3 suites.
	Suite uint16

	// Sessions is how the server keeps sessions that are not resumed: "ticket", "id" as above, or ""
	// for not at all.
	Sessions string

	// Records is OSSL's record path: "libssl", "direct", "kernel" (direct, and the kernel seals the
	// data that is sent), or "" for its default.
	Records string
}

// Pairings are the four ways in which two implementations can meet. The two whose ratio matters
// most are neighbours, because they are measured one after the other.
var Pairings = []Pair{
	{Server: Std, Client: Std},
	{Server: OSSL, Client: OSSL},
	{Server: OSSL, Client: Std},
	{Server: Std, Client: OSSL},
}

// RecordPaths returns p with each record path that its rows compare: only one, if neither end is
// OSSL.
func (p Pair) RecordPaths() []Pair {
	if !p.Uses(OSSL) {
		return []Pair{p}
	}
	libssl, direct := p, p
	libssl.Records, direct.Records = "libssl", "direct"
	return []Pair{libssl, direct}
}

// RecordKey is the last part of the name of a benchmark that compares record paths.
func (p Pair) RecordKey() string {
	if p.Records == "" {
		return ""
	}
	return "/record=" + p.Records
}

// Uses reports whether one end of p is of implementation impl.
func (p Pair) Uses(impl Impl) bool { return p.Server == impl || p.Client == impl }

// Ends are the two compiled configurations of a Pair. They are made once and serve any number of
// connections, as a *tls.Config does.
type Ends struct {
	pair           Pair
	root           *x509.Certificate
	Server, Client func(net.Conn) Conn
	cached         func() int // the number of sessions that OSSL's server has put into its cache; nil if it has none
}

// Open makes the configurations of the server and the client. Its error is the implementation's:
// ossl's library may be missing, or lack p.Kex. For Plain it is an error.
func (p Pair) Open() (*Ends, error) {
	if p.Kex == 0 {
		p.Kex = DefaultKex()
	}
	if p.Version == 0 {
		p.Version = tls.VersionTLS13
	}
	id, err := identityOf(p.Cert)
	if err != nil {
		return nil, err
	}
	common := tls.Config{
		MinVersion:             p.Version,
		MaxVersion:             p.Version,
		CurvePreferences:       []tls.CurveID{p.Kex},
		SessionTicketsDisabled: p.Resume == "",
	}
	if p.Suite != 0 {
		common.CipherSuites = []uint16{p.Suite}
	}
	if p.Version == tls.VersionTLS12 && p.Cert == P256 { // libssl needs the certificate's group in this list too
		common.CurvePreferences = append(common.CurvePreferences, tls.CurveP256)
	}
	server, client := common.Clone(), common.Clone()
	server.SessionTicketsDisabled = p.Resume != "ticket" && p.Sessions != "ticket"
	if p.Resume != "" {
		client.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	server.Certificates = []tls.Certificate{id.server}
	client.RootCAs = id.roots
	client.ServerName = serverName
	if p.Mutual {
		server.ClientAuth = tls.RequireAndVerifyClientCert
		server.ClientCAs = id.roots
		client.Certificates = []tls.Certificate{id.client}
	}
	e := &Ends{pair: p, root: id.root}
	if e.Server, err = e.newEnd(p.Server, true, server); err != nil {
		return nil, err
	}
	if e.Client, err = e.newEnd(p.Client, false, client); err != nil {
		return nil, err
	}
	return e, nil
}

// DefaultKex returns the group of pairs that name none: X25519, or P-256 if all of ossl's Contexts
// are in FIPS mode.
func DefaultKex() tls.CurveID {
	if inFIPS() {
		return tls.CurveP256
	}
	return tls.X25519
}

func (e *Ends) newEnd(impl Impl, server bool, config *tls.Config) (func(net.Conn) Conn, error) {
	switch {
	case impl == Std && server:
		return func(c net.Conn) Conn { return tls.Server(c, config) }, nil
	case impl == Std:
		return func(c net.Conn) Conn { return tls.Client(c, config) }, nil
	case impl == OSSL:
		return e.newOSSLEnd(server, config)
	}
	return nil, fmt.Errorf("bench: no implementation of TLS is called %q", impl)
}

// check returns an error if a connection of e differs from its row's name.
func (e *Ends) check(client, server Conn) error {
	for side, c := range map[string]Conn{"client": client, "server": server} {
		state := c.ConnectionState()
		switch {
		case state.Version != e.pair.Version:
			return fmt.Errorf("bench: %s negotiated %s", side, tls.VersionName(state.Version))
		case state.CipherSuite != e.pair.suite():
			return fmt.Errorf("bench: %s negotiated %s", side, tls.CipherSuiteName(state.CipherSuite))
		case state.CurveID != e.pair.Kex:
			return fmt.Errorf("bench: %s negotiated %v", side, state.CurveID)
		case state.DidResume:
			return fmt.Errorf("bench: %s resumed a session", side)
		case (side == "client" || e.pair.Mutual) != (len(state.VerifiedChains) > 0):
			return fmt.Errorf("bench: %s has %d verified chains", side, len(state.VerifiedChains))
		}
	}
	return nil
}

// suite returns the suite that crypto/tls and libssl agree on by default.
func (p Pair) suite() uint16 {
	switch {
	case p.Suite != 0:
		return p.Suite
	case p.Version == tls.VersionTLS13:
		return tls.TLS_AES_128_GCM_SHA256
	case p.Cert == RSA2048:
		return tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
	}
	return tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
}

// establish makes one connection over loopback TCP, checks that it has the requested parameters, and
// returns both sides of it.
func (e *Ends) establish(l *loopback) (client, server Conn, err error) {
	clientRaw, serverRaw, err := l.connect()
	if err != nil {
		return nil, nil, err
	}
	client, server = e.Client(clientRaw), e.Server(serverRaw)
	done := make(chan error, 1)
	go func() {
		err := server.Handshake()
		if err != nil {
			serverRaw.Close() // otherwise the client would wait for it forever
		}
		done <- err
	}()
	err = client.Handshake()
	if err != nil {
		clientRaw.Close()
	}
	err = errors.Join(err, <-done)
	if err == nil {
		err = e.check(client, server)
	}
	if err != nil {
		client.Close()
		server.Close()
		return nil, nil, err
	}
	return client, server, nil
}

// try makes and closes one connection, to check that e works, and to allocate the state that is
// made with a first connection.
func (e *Ends) try(l *loopback) error {
	client, server, err := e.establish(l)
	if err != nil {
		return err
	}
	client.Close()
	server.Close()
	if e.pair.Sessions == "id" && (e.cached == nil || e.cached() == 0) {
		return errors.New("bench: the server kept no session")
	}
	return nil
}

// A loopback makes TCP connections from this process to itself.
type loopback struct{ listener net.Listener }

func newLoopback() (*loopback, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &loopback{l}, nil
}

// connect returns both sides of a new connection.
func (l *loopback) connect() (client, server net.Conn, err error) {
	addr := l.listener.Addr()
	if client, err = net.Dial(addr.Network(), addr.String()); err != nil {
		return nil, nil, err
	}
	if server, err = l.listener.Accept(); err != nil {
		client.Close()
		return nil, nil, err
	}
	return client, server, nil
}

func (l *loopback) Close() error { return l.listener.Close() }
