package httptls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/keys"
)

// A ClientCAReloader is the set of the authorities that a server trusts to certify clients, from
// PEM files that may change while the server runs. Set it in a [Server], or have Config complete
// another configuration:
//
//	authorities, err := httptls.NewClientCAReloader("clients.pem")
//	...
//	server := &httptls.Server{
//		Server:    &http.Server{TLSConfig: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}},
//		ClientCAs: authorities,
//	}
//
// A handshake that begins after the files were replaced uses the new set, and no session of another
// set is resumed. If a file is missing, holds no certificate or anything else, holds one that
// doesn't parse, or ends inside a PEM block, the ClientCAReloader reports it, keeps the set in use,
// and tries again when the files change again. Replace a file at once (rename it, or a symbolic
// link to its folder): a file that is cut between two certificates looks like a smaller set.
//
// The files are checked as by a [Reloader]. A ClientCAReloader need not be closed.
type ClientCAReloader struct {
	// Interval and OnError mean the same as in a [Reloader].
	Interval time.Duration
	OnError  func(error)

	files    []string
	watch    *ossl.Watch
	patience time.Duration // lookPatience, except in tests
	fips     atomic.Bool   // a Context in FIPS mode uses the set
	current  atomic.Pointer[x509.CertPool]
}

// NewClientCAReloader loads the certificates in PEM files. All files together are one set.
func NewClientCAReloader(files ...string) (*ClientCAReloader, error) {
	if len(files) == 0 {
		return nil, errors.New("httptls: no files with the authorities of clients")
	}
	r := &ClientCAReloader{files: files, patience: lookPatience}
	r.watch = ossl.NewWatch(r.load, files...)
	r.watch.OnEvent = report(&r.OnError, r.explain)
	if err := r.Reload(); err != nil {
		return nil, err
	}
	return r, nil
}

// Reload reads the files now, however long the file system takes. If it returns an error, the set
// doesn't change.
func (r *ClientCAReloader) Reload() error { return r.explain(r.watch.Reload()) }

// Stats returns how often the set has changed, how often a change was refused, and when.
func (r *ClientCAReloader) Stats() ossl.WatchStats { return r.watch.Stats() }

// Pool returns the set in use. It must not be changed.
func (r *ClientCAReloader) Pool() *x509.CertPool { return r.current.Load() }

// Config returns a copy of config whose ClientCAs follow the files, by means of GetConfigForClient.
// All else must be in config before: NextProtos, certificates, ClientAuth. If config has a
// GetConfigForClient, that is called first, and ClientCAs are set in the configuration that it
// returns, if any.
func (r *ClientCAReloader) Config(config *tls.Config) *tls.Config {
	config = config.Clone()
	choose := config.GetConfigForClient
	config.GetConfigForClient = nil
	base := config.Clone() // never used for a handshake
	type chosen struct {
		pool   *x509.CertPool
		config *tls.Config
	}
	var last atomic.Pointer[chosen]
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		pool := r.get(hello)
		if choose != nil {
			if c, err := choose(hello); err != nil || c != nil {
				if c != nil {
					c = c.Clone()
					c.ClientCAs = pool
				}
				return c, err
			}
		}
		if c := last.Load(); c != nil && c.pool == pool {
			return c.config, nil
		}
		c := base.Clone()
		c.ClientCAs = pool
		last.Store(&chosen{pool, c})
		return c, nil
	}
	config.ClientCAs = r.Pool()
	return config
}

// get returns the set for a handshake.
func (r *ClientCAReloader) get(hello *tls.ClientHelloInfo) *x509.CertPool {
	if ctx := ossl.ContextOf(hello); ctx != nil && ctx.FIPS() != nil {
		r.fips.Store(true)
	}
	if r.watch.Due(r.Interval) {
		lookBriefly(r.watch, hello, r.patience)
	}
	return r.current.Load()
}

func (r *ClientCAReloader) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("httptls: authorities of clients in %s: %w", strings.Join(r.files, ", "), err)
}

// load uses the set in the files if it is good.
func (r *ClientCAReloader) load() error {
	pool := x509.NewCertPool()
	for _, file := range r.files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		certs, err := keys.ParseCertificates(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, cert := range certs {
			pool.AddCert(cert)
		}
	}
	if err := r.try(pool); err != nil {
		return err
	}
	if current := r.current.Load(); current == nil || !current.Equal(pool) { // else only their texts differ
		r.current.Store(pool)
	}
	return nil
}

// try makes a Context with a set, in FIPS mode if a user is in FIPS mode: OpenSSL may refuse the
// set.
func (r *ClientCAReloader) try(pool *x509.CertPool) error {
	var opts []ossl.Option
	if r.fips.Load() {
		opts = append(opts, ossl.WithFIPS())
	}
	_, err := ossl.NewContext(&tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}, opts...)
	return err
}
