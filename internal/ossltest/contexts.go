package ossltest

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/gate"
	"github.com/ossl-go/ossl/internal/heldkey"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/keys"
)

// Connected returns a connected client and server whose handshake is done.
func Connected(t testing.TB, pair func() (net.Conn, net.Conn), edit func(client, server *tls.Config)) (_, _ *ossl.Conn) {
	t.Helper()
	p := NewContexts(t, edit)
	a, b := pair()
	client, server := p.Client.Client(a, ""), p.Server.Server(b)
	t.Cleanup(func() { client.Close(); server.Close() })
	errs := make(chan error, 1)
	go func() { errs <- server.Handshake() }()
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-errs; err != nil {
		t.Fatal(err)
	}
	return client, server
}

// NewContext returns a Context of a configuration that the environment may add to: see AsTests.
func NewContext(t testing.TB, config *tls.Config, opts ...ossl.Option) *ossl.Context {
	t.Helper()
	ctx, err := ossl.NewContext(config, append(AsTests(), opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// Contexts are Contexts of a client and a server that trust each other.
type Contexts struct{ Client, Server *ossl.Context }

// NewContexts returns Contexts of tlstest's configurations, which edit, if any, changes.
func NewContexts(t testing.TB, edit func(client, server *tls.Config)) Contexts {
	t.Helper()
	c, s := tlstest.ClientConfig(), tlstest.ServerConfig()
	if edit != nil {
		edit(c, s)
	}
	return Contexts{Client: NewContext(t, WithSessions(c)), Server: NewContext(t, s)}
}

// NewPlainContext is NewContext without the additions of the environment.
func NewPlainContext(t testing.TB, config *tls.Config, opts ...ossl.Option) *ossl.Context {
	t.Helper()
	ctx, err := ossl.NewContext(config, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// ClientOf returns an End that makes a Context's clients.
func ClientOf(ctx *ossl.Context) tlstest.End {
	return func(conn net.Conn) tlstest.Conn { return ctx.Client(conn, "") }
}

// ServerOf returns an End that makes a Context's servers.
func ServerOf(ctx *ossl.Context) tlstest.End {
	return func(conn net.Conn) tlstest.Conn { return ctx.Server(conn) }
}

// Client returns an End that makes clients of a new Context.
func Client(t testing.TB, config *tls.Config, opts ...ossl.Option) tlstest.End {
	t.Helper()
	return ClientOf(NewContext(t, config, opts...))
}

// Server returns an End that makes servers of a new Context.
func Server(t testing.TB, config *tls.Config, opts ...ossl.Option) tlstest.End {
	t.Helper()
	return ServerOf(NewContext(t, config, opts...))
}

// LoadedPair returns a certificate for a name whose key OpenSSL has loaded.
func LoadedPair(t testing.TB, kind tlstest.KeyKind, name string, opts ...keys.Option) tls.Certificate {
	t.Helper()
	cert := tlstest.New(tlstest.Options{Kind: kind, Names: []string{name}})
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := errors.Join(
		os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	pair, err := keys.LoadX509KeyPair(certFile, keyFile, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// OccupyKey takes the only turn of a key that OpenSSL has loaded, until release is called.
func OccupyKey(key crypto.PrivateKey) (release func()) {
	turns := heldkey.In(key).Share
	_ = gate.Tokens.Enter(turns, func(ready <-chan struct{}) error { <-ready; return nil })
	return func() { gate.Tokens.Leave(turns) }
}

// SuiteConfigs returns configurations that negotiate a cipher suite, whose server has a key of a
// kind, and options for the client's Context.
func SuiteConfigs(t *testing.T, id uint16, key tlstest.KeyKind) (client, server *tls.Config, clientOpts []ossl.Option) {
	t.Helper()
	version := uint16(tls.VersionTLS12)
	if id>>8 == 0x13 {
		version = tls.VersionTLS13
		clientOpts = append(clientOpts, ossl.WithTLS13CipherSuites(id))
	}
	set := func(c *tls.Config) {
		c.MinVersion, c.MaxVersion = version, version
		if version == tls.VersionTLS12 {
			c.CipherSuites = []uint16{id}
		}
	}
	client, server = tlstest.ClientConfig(set), tlstest.ServerConfig(set)
	server.Certificates = []tls.Certificate{tlstest.ServerCert(key)}
	return client, server, clientOpts
}
