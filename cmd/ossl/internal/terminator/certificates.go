package terminator

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
	"github.com/ossl-go/ossl/keys"
)

// certificates are a site's certificates, in the order of the configuration. Pairs of files are read
// again when they change.
type certificates struct {
	loadedPairs
	awaited *awaitedPair // by ACME, or nil
}

type loadedPairs struct {
	pairs []loadedPair
	files httptls.Reloaders // the pairs' reloaders
}

// An awaitedPair is one by ACME, whose file may not be there yet.
type awaitedPair struct {
	load func() (*certificates, error)
	site string
	log  *slog.Logger

	opened atomic.Bool                 // else nothing is read
	pairs  atomic.Pointer[loadedPairs] // of the file, once it is there

	mu   sync.Mutex // held while the file is read
	last string     // guarded by mu; the last error
}

// awaitCertificate returns the certificate of a site with ACME, which is none until its file is there.
func awaitCertificate(acme *acmePlan, s *Site, policy policyPlan, log *slog.Logger) *certificates {
	pair := acme.pair(s)
	c := &certificates{awaited: &awaitedPair{site: s.name(), log: log,
		load: func() (*certificates, error) { return loadCertificates([]Pair{pair}, policy, log) }}}
	// Root doesn't read in the storage: a symbolic link there may lead to a file that the service's user may not read.
	if !acme.isStillRoot() {
		c.open()
	}
	return c
}

// open lets c read its certificate by ACME from now on.
func (c *certificates) open() {
	if a := c.awaited; a != nil && !a.opened.Swap(true) && len(c.all()) == 0 {
		a.log.Warn("acme: no certificate yet: handshakes fail until the authority has issued one", "site", a.site)
	}
}

// loaded returns the pairs that are there.
func (c *certificates) loaded() loadedPairs {
	a := c.awaited
	if a == nil {
		return c.loadedPairs
	}
	if now := a.pairs.Load(); now != nil {
		return *now
	}
	if !a.opened.Load() || !a.mu.TryLock() { // if the storage hangs, one client waits for it, and not all
		return loadedPairs{}
	}
	defer a.mu.Unlock()
	now, err := a.load()
	switch {
	case err == nil:
		a.pairs.CompareAndSwap(nil, &now.loadedPairs)
		return *a.pairs.Load()
	case !errors.Is(err, fs.ErrNotExist) && err.Error() != a.last:
		a.last = err.Error()
		a.log.Error("acme: the stored certificate can't be used", "error", err)
	}
	return loadedPairs{}
}

// errAwaited is the error of handshakes with a site whose certificate has not been issued yet.
var errAwaited = errors.New("acme: the site has no certificate yet")

// A loadedPair is a certificate with its key: loaded from files, or fixed if either name is a URI.
type loadedPair struct {
	files *httptls.Reloader
	fixed *tls.Certificate
}

// loadCertificates loads the pairs of a site. log gets the reasons why changed files aren't used.
func loadCertificates(pairs []Pair, policy policyPlan, log *slog.Logger) (*certificates, error) {
	c := &certificates{}
	for _, p := range pairs {
		if isURI(p.Key) || isURI(p.Cert) {
			cert, err := keys.LoadX509KeyPair(p.Cert, p.Key, p.keyOptions()...)
			if err != nil {
				return nil, err
			}
			c.pairs = append(c.pairs, loadedPair{fixed: &cert})
			continue
		}
		r, err := p.newReloader()
		if err != nil {
			return nil, policy.explainPairs(err, []Pair{p})
		}
		r.OnError = func(err error) { log.Error("certificate not replaced", "error", policy.explainPairs(err, []Pair{p})) }
		c.files = append(c.files, r)
		c.pairs = append(c.pairs, loadedPair{files: r})
	}
	return c, nil
}

// isURI reports whether a name is a URI of package keys instead of a file's name.
func isURI(name string) bool {
	scheme, _, ok := strings.Cut(name, ":")
	return ok && len(scheme) > 1 && !strings.ContainsAny(scheme, `/\.`)
}

// get returns the first certificate that suits the client, or the first of all.
func (c *certificates) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	now := c.loaded()
	if len(now.files) > 0 { // reads all files that have changed, at the same time
		if cert, err := now.files.GetCertificate(hello); err != nil || len(now.files) == len(now.pairs) {
			return cert, err
		}
	}
	all := c.all()
	if len(all) == 0 {
		return nil, errAwaited
	}
	for _, cert := range all {
		if hello.SupportsCertificate(cert) == nil {
			return cert, nil
		}
	}
	return all[0], nil
}

// all returns the certificates, and reads files that have changed.
func (c *certificates) all() (all []*tls.Certificate) {
	for _, p := range c.loaded().pairs {
		if p.fixed != nil {
			all = append(all, p.fixed)
		} else if cert, err := p.files.GetCertificate(nil); err == nil {
			all = append(all, cert)
		}
	}
	return all
}

// ends returns the times at which the certificates expire.
func (c *certificates) ends() (ends []time.Time) {
	for _, cert := range c.all() {
		if end, ok := endOf(cert); ok {
			ends = append(ends, end)
		}
	}
	return ends
}

// endOf returns the time at which a certificate expires, unless only OpenSSL can parse it.
func endOf(cert *tls.Certificate) (time.Time, bool) {
	leaf := cert.Leaf
	if leaf == nil {
		var err error
		if leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
			return time.Time{}, false
		}
	}
	return leaf.NotAfter, true
}

// usedBy returns an error if there is a certificate that servers of ctx can't use.
func (c *certificates) usedBy(ctx *ossl.Context) error {
	now := c.loaded()
	err := now.files.UsedBy(ctx)
	for _, p := range now.pairs {
		if p.fixed != nil {
			err = errors.Join(err, ctx.CheckCertificate(p.fixed))
		}
	}
	return err
}

// A namedSites are the sites by their names.
type namedSites[S any] struct {
	exact    map[string]S
	wildcard map[string]S // by the part after "*."
	others   S            // of the name "*"
	any      bool         // there is such a site
}

// add adds a site under its names; without names it is for all.
func (n *namedSites[S]) add(names []string, site S) {
	if n.exact == nil {
		n.exact, n.wildcard = map[string]S{}, map[string]S{}
	}
	for _, name := range names {
		if rest, ok := strings.CutPrefix(name, "*."); ok {
			n.wildcard[rest] = site
		} else if name == "*" {
			n.others, n.any = site, true
		} else {
			n.exact[name] = site
		}
	}
	if len(names) == 0 {
		n.others, n.any = site, true
	}
}

// get returns the site for a server name or a host, and reports whether there is one.
func (n *namedSites[S]) get(name string) (S, bool) {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if site, ok := n.exact[name]; ok {
		return site, true
	}
	if _, rest, ok := strings.Cut(name, "."); ok {
		if site, ok := n.wildcard[rest]; ok {
			return site, true
		}
	}
	return n.others, n.any
}

// errNoSite returns the error of handshakes of clients that ask for an unknown name.
func errNoSite(name string) error { return fmt.Errorf("no site has the name %q", name) }
