package ossl

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/pemtext"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// Roots are the certificates that are trusted in FIPS mode, in which OpenSSL verifies chains. Files
// and directories are read when the Context is made. They can name OpenSSL's own store of the
// system; otherwise RootCAs and ClientCAs do the same.
type Roots struct {
	// Files hold certificates as PEM. A file without any is refused.
	Files []string

	// Directories are searched for such files, but their subdirectories are not. Files that hold no
	// certificate are ignored.
	Directories []string

	// Certificates are trusted as they are.
	Certificates []*x509.Certificate

	// System adds the certificates that the host's OpenSSL is configured to trust. The environment
	// variables SSL_CERT_FILE and SSL_CERT_DIR change them: SSL_CTX_set_default_verify_paths(3).
	// OpenSSL reads the directory during handshakes, each time that it needs an issuer.
	System bool
}

// WithRoots sets the certificates that clients trust in FIPS mode, in place of RootCAs. The default
// is RootCAs, or the system's certificates.
func WithRoots(roots Roots) Option {
	return func(o *options) error {
		o.roots = &roots
		return nil
	}
}

// WithClientRoots sets the certificates that servers trust in FIPS mode, in place of ClientCAs. The
// default is ClientCAs, or the system's certificates. Servers send clients the names of these
// authorities, except those of the system's certificates. A configuration that GetConfigForClient
// returns has these roots too, unless it has ClientCAs.
func WithClientRoots(roots Roots) Option {
	return func(o *options) error {
		o.clientRoots = &roots
		return nil
	}
}

// load reads the certificates into a store. names are their subjects. option is the option that
// gave them, for errors.
func (r *Roots) load(option string) (store *libssl.Roots, names [][]byte, err error) {
	certs, err := r.certificates()
	if err == nil && len(certs) == 0 && !r.System {
		err = fmt.Errorf("they hold no certificate")
	}
	if err != nil {
		return nil, nil, &ConfigError{Field: option, Reason: "can't be used", Err: err}
	}
	ders := make([][]byte, len(certs))
	for i, cert := range certs {
		ders[i] = cert.Raw
		names = append(names, cert.RawSubject)
	}
	store, err = libssl.NewRoots(r.System, ders)
	if err != nil {
		return nil, nil, settingRefused(option, "OpenSSL refuses them", err)
	}
	return store, names, nil
}

func (r *Roots) certificates() ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for i, cert := range r.Certificates {
		if cert == nil {
			return nil, fmt.Errorf("certificate %d is nil", i)
		}
		all = append(all, cert)
	}
	for _, file := range r.Files {
		certs, err := certificatesIn(file)
		if err != nil {
			return nil, err
		}
		if len(certs) == 0 {
			return nil, fmt.Errorf("%s holds no certificate", file)
		}
		all = append(all, certs...)
	}
	for _, directory := range r.Directories {
		entries, err := os.ReadDir(directory)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			file := filepath.Join(directory, entry.Name())
			if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
				continue
			}
			certs, err := certificatesIn(file)
			if err != nil {
				return nil, err
			}
			all = append(all, certs...)
		}
	}
	return all, nil
}

// certificatesIn reads the certificates of a PEM file.
func certificatesIn(file string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	blocks, err := pemtext.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var certs []*x509.Certificate
	for _, block := range blocks {
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		certs = append(certs, cert)
	}
	return certs, nil
}

// rootStores hold the certificates that a Context in FIPS mode trusts, and so do the Contexts for
// the configurations that its GetConfigForClient returns.
type rootStores struct {
	servers, clients func() (*libssl.Roots, error)
	names            [][]byte // the subjects of the certificates that servers trust
}

// rootStores makes the stores of WithRoots and WithClientRoots. The system's store is not read until
// a chain has to be verified with it.
func (o *options) rootStores() (*rootStores, error) {
	s := &rootStores{servers: systemRoots, clients: systemRoots}
	if o.roots != nil {
		store, _, err := o.roots.load("WithRoots")
		if err != nil {
			return nil, err
		}
		s.servers = func() (*libssl.Roots, error) { return store, nil }
	}
	if o.clientRoots != nil {
		store, names, err := o.clientRoots.load("WithClientRoots")
		if err != nil {
			return nil, err
		}
		s.clients, s.names = func() (*libssl.Roots, error) { return store, nil }, names
	}
	return s, nil
}

// withPools replaces the stores by a configuration's RootCAs and ClientCAs, if it has them. serves
// reports whether the Context is for servers only.
func (s *rootStores) withPools(config *tls.Config, serves bool) (*rootStores, error) {
	all := *s
	if config.RootCAs != nil && !serves {
		store, err := poolStore("RootCAs", config.RootCAs)
		if err != nil {
			return nil, err
		}
		all.servers = store
	}
	if config.ClientCAs != nil {
		store, err := poolStore("ClientCAs", config.ClientCAs)
		if err != nil {
			return nil, err
		}
		all.clients, all.names = store, subjects(config.ClientCAs)
	}
	return &all, nil
}

// poolStore returns a store of the certificates in a field's pool.
func poolStore(field string, pool *x509.CertPool) (func() (*libssl.Roots, error), error) {
	certs, err := stdtls.PoolCertificates(pool)
	if err != nil {
		return nil, &ConfigError{Field: field, Reason: "OpenSSL, which verifies in FIPS mode, can't use the pool", Err: err}
	}
	ders := make([][]byte, len(certs))
	for i, cert := range certs {
		ders[i] = cert.Raw
	}
	store, err := libssl.NewRoots(false, ders)
	if err != nil {
		return nil, settingRefused(field, "OpenSSL refuses its certificates", err)
	}
	return func() (*libssl.Roots, error) { return store, nil }, nil
}

// systemStores are the stores that hold the system's certificates alone. The keys are the values of
// the environment variables that name the files. Reading a store takes milliseconds and megabytes.
var systemStores sync.Map // [2]string: *libssl.Roots

func systemRoots() (*libssl.Roots, error) {
	key := [2]string{os.Getenv("SSL_CERT_FILE"), os.Getenv("SSL_CERT_DIR")}
	if store, ok := systemStores.Load(key); ok {
		return store.(*libssl.Roots), nil
	}
	store, err := libssl.NewRoots(true, nil)
	if err != nil {
		return nil, libraryError(err)
	}
	kept, _ := systemStores.LoadOrStore(key, store)
	return kept.(*libssl.Roots), nil
}
