package tlstest

import (
	"crypto/tls"
	"strings"
)

// SendCertificate makes a client send a certificate even if the server asks for others.
func SendCertificate(cert tls.Certificate) func(*tls.Config) {
	return func(c *tls.Config) {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	}
}

// Versions are the TLS versions that the tests are run for.
var Versions = []uint16{tls.VersionTLS12, tls.VersionTLS13}

// VersionName returns the name of a version as the names of subtests have it.
func VersionName(v uint16) string { return strings.ReplaceAll(tls.VersionName(v), " ", "") }

// Only limits a configuration to one version.
func Only(version uint16) func(*tls.Config) {
	return func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }
}

// Certificates sets Certificates.
func Certificates(certs ...tls.Certificate) func(*tls.Config) {
	return func(c *tls.Config) { c.Certificates = certs }
}

// Suites sets CipherSuites.
func Suites(ids ...uint16) func(*tls.Config) { return func(c *tls.Config) { c.CipherSuites = ids } }

// Curves sets CurvePreferences. Without arguments, a configuration has crypto/tls's own.
func Curves(ids ...tls.CurveID) func(*tls.Config) {
	return func(c *tls.Config) { c.CurvePreferences = ids }
}

// Protocols sets NextProtos.
func Protocols(names ...string) func(*tls.Config) {
	return func(c *tls.Config) { c.NextProtos = names }
}

// AskClient makes a server ask the client for a certificate, which CA must have issued if the mode
// verifies it.
func AskClient(mode tls.ClientAuthType) func(*tls.Config) {
	return func(c *tls.Config) { c.ClientAuth, c.ClientCAs = mode, CA().Pool() }
}

// ClientWith returns a function that makes ClientConfig(edits...): a [Case] makes its
// configurations anew for each run.
func ClientWith(edits ...func(*tls.Config)) func() *tls.Config {
	return func() *tls.Config { return ClientConfig(edits...) }
}

// ServerWith is ClientWith for ServerConfig.
func ServerWith(edits ...func(*tls.Config)) func() *tls.Config {
	return func() *tls.Config { return ServerConfig(edits...) }
}

// DenyConn makes VerifyConnection fail with ErrDenied.
func DenyConn(c *tls.Config) {
	c.VerifyConnection = func(tls.ConnectionState) error { return ErrDenied }
}

// InsecureSkipVerify sets InsecureSkipVerify.
func InsecureSkipVerify(c *tls.Config) { c.InsecureSkipVerify = true }

// PlainClient returns a client's configuration for one version that names no groups.
func PlainClient(version uint16) *tls.Config {
	return &tls.Config{MinVersion: version, MaxVersion: version, RootCAs: CA().Pool(), ServerName: ServerName,
		SessionTicketsDisabled: true}
}

// PlainServer returns a server's configuration for one version that names no groups and has no
// certificate.
func PlainServer(version uint16) *tls.Config {
	return &tls.Config{MinVersion: version, MaxVersion: version, ClientCAs: CA().Pool(), SessionTicketsDisabled: true}
}

// Resuming returns configurations for version or an older one whose connections can be resumed.
func Resuming(version uint16) (client, server *tls.Config) {
	client, server = ClientConfig(), ServerConfig()
	client.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	server.SessionTicketsDisabled = false
	client.MaxVersion = version
	return client, server
}
