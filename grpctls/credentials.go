package grpctls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"slices"
	"sync"

	"google.golang.org/grpc/credentials"

	"github.com/ossl-go/ossl"
)

// tlsCredentials are what every constructor returns.
type tlsCredentials struct {
	compiled   *compiled // shared by clones: it has nothing of a target's
	serverName string    // not to be changed once in use, as in gRPC
}

// compiled is a configuration and what was made of it.
type compiled struct {
	config *tls.Config // our own copy
	opts   []ossl.Option

	mu  sync.Mutex
	ctx *ossl.Context // guarded by mu; nil until compiling succeeds
}

// context returns the Context. A failure is not remembered: a library that was missing may be there the next time.
func (c *compiled) context() (*ossl.Context, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		ctx, err := ossl.NewContext(c.config, c.opts...)
		if err != nil {
			return nil, err
		}
		c.ctx = ctx
	}
	return c.ctx, nil
}

// New returns credentials for clients and servers from a configuration, which is copied; nil is like the zero one. To what it
// says they add what HTTP/2 asks for, as gRPC's own do: see [ossl.WithHTTP2]. ServerName, if set, is the channel's authority.
//
// It returns an [*ossl.ConfigError] that names the first field or option that can't be honoured, and an error that wraps
// [ossl.ErrUnavailable] if there is no usable OpenSSL.
func New(config *tls.Config, opts ...ossl.Option) (credentials.TransportCredentials, error) {
	c := newCredentials(config, opts)
	if _, err := c.compiled.context(); err != nil {
		return nil, err
	}
	return c, nil
}

// NewTLS is [New] with the signature of gRPC's NewTLS: it has no way to return an error, so every handshake fails with it.
// On a client's calls that is the status Unavailable.
func NewTLS(config *tls.Config, opts ...ossl.Option) credentials.TransportCredentials {
	c := newCredentials(config, opts)
	_, _ = c.compiled.context() // not in the first handshake's time; which tries again what failed
	return c
}

func newCredentials(config *tls.Config, opts []ossl.Option) *tlsCredentials {
	if config == nil {
		config = &tls.Config{}
	}
	config = config.Clone()
	name := config.ServerName
	config.ServerName = "" // the name is each handshake's own: without one there must be none
	return &tlsCredentials{
		compiled:   &compiled{config: config, opts: append(slices.Clone(opts), ossl.WithHTTP2())},
		serverName: name,
	}
}

// FromContext returns credentials that use a Context that was made before. To agree with anyone it must offer HTTP/2: make it
// with [ossl.WithHTTP2].
func FromContext(ctx *ossl.Context) credentials.TransportCredentials {
	return &tlsCredentials{compiled: &compiled{ctx: ctx}, serverName: ctx.ServerName()}
}

// NewClientTLSFromCert returns credentials for clients that verify servers by the authorities in roots; nil means the host's.
//
// serverNameOverride, if not empty, is the channel's authority: it is for tests. Use [google.golang.org/grpc.WithAuthority]
// otherwise.
func NewClientTLSFromCert(roots *x509.CertPool, serverNameOverride string) credentials.TransportCredentials {
	return NewTLS(&tls.Config{ServerName: serverNameOverride, RootCAs: roots})
}

// NewClientTLSFromFile is [NewClientTLSFromCert] with the authorities in a PEM file, of which there must be one at least.
func NewClientTLSFromFile(certFile, serverNameOverride string) (credentials.TransportCredentials, error) {
	pem, err := os.ReadFile(certFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("grpctls: no certificate in " + certFile)
	}
	return New(&tls.Config{ServerName: serverNameOverride, RootCAs: roots})
}

// NewServerTLSFromCert returns credentials for servers with a certificate, which ask for none of clients.
func NewServerTLSFromCert(cert *tls.Certificate) credentials.TransportCredentials {
	return NewTLS(&tls.Config{Certificates: []tls.Certificate{*cert}})
}

// NewServerTLSFromFile is [NewServerTLSFromCert] with the chain and the key in PEM files.
func NewServerTLSFromFile(certFile, keyFile string) (credentials.TransportCredentials, error) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	return New(&tls.Config{Certificates: []tls.Certificate{cert}})
}

// Info implements [credentials.TransportCredentials], with what gRPC's own TLS credentials say.
func (c *tlsCredentials) Info() credentials.ProtocolInfo {
	//lint:ignore SA1019 SecurityVersion and ServerName are deprecated, and in gRPC's own
	return credentials.ProtocolInfo{SecurityProtocol: "tls", SecurityVersion: "1.2", ServerName: c.serverName}
}

// Clone returns credentials with a server name of their own.
func (c *tlsCredentials) Clone() credentials.TransportCredentials {
	clone := *c
	return &clone
}

// OverrideServerName sets what Info says, and so the authority of channels that are made afterwards.
func (c *tlsCredentials) OverrideServerName(name string) error {
	c.serverName = name
	return nil
}
