package grpctls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"google.golang.org/grpc/credentials"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/keys"
)

// tlsCredentials is the type of all credentials of this package.
type tlsCredentials struct {
	compiled   *compiled // shared by clones; independent of the target
	serverName string    // not changed once in use, as in gRPC
}

// compiled is a configuration and the Context made from it.
type compiled struct {
	config *tls.Config // our own copy
	opts   []ossl.Option

	mu  sync.Mutex
	ctx *ossl.Context // guarded by mu; nil until compiling succeeds
}

// context returns the Context. A failure is not remembered: a missing library may be there the next
// time.
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

// New returns credentials for clients and servers with a configuration, which is copied; nil is
// like the zero configuration. HTTP/2's requirements are added, as by gRPC's own credentials: see
// [ossl.WithHTTP2]. ServerName, if set, is the channel's authority.
//
// New returns an [*ossl.ConfigError] that names the first field or option that can't be honoured,
// and an error that wraps [ossl.ErrUnavailable] if there is no usable OpenSSL.
func New(config *tls.Config, opts ...ossl.Option) (credentials.TransportCredentials, error) {
	c := newCredentials(config, opts)
	if _, err := c.compiled.context(); err != nil {
		return nil, err
	}
	return c, nil
}

// NewTLS is [New] with the signature of gRPC's NewTLS. It can't return an error, so if there is
// one, every handshake fails with it. A client's calls then have the status Unavailable.
func NewTLS(config *tls.Config, opts ...ossl.Option) credentials.TransportCredentials {
	c := newCredentials(config, opts)
	_, _ = c.compiled.context() // in advance, to save the first handshake's time; if it fails, the handshake tries again
	return c
}

func newCredentials(config *tls.Config, opts []ossl.Option) *tlsCredentials {
	if config == nil {
		config = &tls.Config{}
	}
	config = config.Clone()
	name := config.ServerName
	config.ServerName = "" // each handshake has its own name, or none
	return &tlsCredentials{
		compiled:   &compiled{config: config, opts: append(slices.Clone(opts), ossl.WithHTTP2())},
		serverName: name,
	}
}

// FromContext returns credentials that use an existing Context. Handshakes fail unless it offers
// HTTP/2: make it with [ossl.WithHTTP2].
func FromContext(ctx *ossl.Context) credentials.TransportCredentials {
	return &tlsCredentials{compiled: &compiled{ctx: ctx}, serverName: ctx.ServerName()}
}

// NewClientTLSFromCert returns credentials for clients that verify servers by the authorities in
// roots; nil means the host's.
//
// serverNameOverride, if not empty, is the channel's authority. It is for tests; otherwise use
// [google.golang.org/grpc.WithAuthority].
func NewClientTLSFromCert(roots *x509.CertPool, serverNameOverride string) credentials.TransportCredentials {
	return NewTLS(&tls.Config{ServerName: serverNameOverride, RootCAs: roots})
}

// NewClientTLSFromFile is [NewClientTLSFromCert] with the authorities in a PEM file, which must
// have at least one. A file with a PEM block that is cut or damaged is refused.
func NewClientTLSFromFile(certFile, serverNameOverride string) (credentials.TransportCredentials, error) {
	text, err := readPEM(certFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New("grpctls: no certificate in " + certFile)
	}
	return New(&tls.Config{ServerName: serverNameOverride, RootCAs: roots})
}

// NewServerTLSFromCert returns credentials for servers with a certificate. They request no
// certificates from clients.
func NewServerTLSFromCert(cert *tls.Certificate) credentials.TransportCredentials {
	return NewTLS(&tls.Config{Certificates: []tls.Certificate{*cert}})
}

// NewServerTLSFromFile is [NewServerTLSFromCert] with the chain and the key in PEM files. A
// chain with a PEM block that is cut or damaged is refused.
func NewServerTLSFromFile(certFile, keyFile string) (credentials.TransportCredentials, error) {
	chain, err := readPEM(certFile)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, err
	}
	return New(&tls.Config{Certificates: []tls.Certificate{cert}})
}

// readPEM reads a PEM file, and refuses a block that is cut or damaged: packages crypto/tls and
// crypto/x509 would leave its certificate out.
func readPEM(file string) (text []byte, err error) {
	if text, err = os.ReadFile(file); err != nil {
		return nil, err
	}
	if text, err = keys.NormalizePEM(text); err != nil {
		return nil, fmt.Errorf("grpctls: %s: %w", file, err)
	}
	return text, nil
}

// Info implements [credentials.TransportCredentials]. The values are the same as in gRPC's own TLS
// credentials.
func (c *tlsCredentials) Info() credentials.ProtocolInfo {
	//lint:ignore SA1019 SecurityVersion and ServerName are deprecated, and in gRPC's own
	return credentials.ProtocolInfo{SecurityProtocol: "tls", SecurityVersion: "1.2", ServerName: c.serverName}
}

// Clone returns a copy of the credentials, which has its own server name.
func (c *tlsCredentials) Clone() credentials.TransportCredentials {
	clone := *c
	return &clone
}

// OverrideServerName sets the ServerName that Info returns, and so the authority of channels that
// are made afterwards.
func (c *tlsCredentials) OverrideServerName(name string) error {
	c.serverName = name
	return nil
}
