package terminator

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/keys"
	"github.com/ossl-go/ossl/policy"
)

// DefaultPolicy is the policy of servers on the engine ossl that name no other one.
const DefaultPolicy = policy.Default

// A tlsConn is an *ossl.Conn or a *tls.Conn.
type tlsConn interface {
	net.Conn
	HandshakeContext(ctx context.Context) error
	ConnectionState() tls.ConnectionState
	CloseWrite() error
	NetConn() net.Conn
}

// An engine makes TLS connections with a configuration.
type engine struct {
	current atomic.Pointer[compiled]
	// compile makes the successor of current when a certificate has changed. It is nil for crypto/tls,
	// whose servers ask for the certificate in each handshake.
	compile func() (*compiled, error)
	checks  checks // used by compile alone
	log     *slog.Logger
}

// A compiled is a configuration that is ready for use. With the certificates in it, a handshake
// doesn't stop at the ClientHello to ask for one.
type compiled struct {
	server func(net.Conn) tlsConn
	attach attach // nil for crypto/tls
	used   []usedCertificates
}

// checks check certificates before they are used, for all that an engine compiles.
type checks struct {
	contexts map[demand]*ossl.Context      // without certificates; Reloaders have only weak references to them
	passed   map[demand][]*tls.Certificate // need no further check
}

// usedCertificates are the certificates of one or more sites that a compiled has.
type usedCertificates struct {
	of   *certificates
	site string // the first name of the first site
	all  []*tls.Certificate
}

// lookEvery is the time between two looks at the certificates, which read files that have changed.
const lookEvery = time.Second

// A tlsPlan is the part of a plan that is about TLS.
type tlsPlan struct {
	plain      bool   // clients have no TLS
	engine     string // "ossl" or "go"
	policy     policyPlan
	kernelTLS  bool
	fips       bool
	http1      bool       // HTTP/2 is off
	sessions   int        // in the cache
	ticketKeys []string   // files
	handshakes int        // at a time, or 0 for no bound
	store      *storePlan // or nil
	resumption string     // the settings that sessions and ticket keys are made for
	crls       crlPlan    // for clients
}

// newEngine compiles the TLS configuration of sites.
func newEngine(
	p *tlsPlan, sites []*site, state *sessions, lists crlStore, challenges *tlsChallenges, log *slog.Logger,
) (*engine, error) {
	e := &engine{log: log, checks: checks{map[demand]*ossl.Context{}, map[demand][]*tls.Certificate{}}}
	compile := func() (*compiled, error) { return compileEngine(p, sites, state, lists, challenges, &e.checks) }
	if p.engine == "ossl" {
		e.compile = compile
	}
	first, err := compile()
	if err != nil {
		return nil, err
	}
	e.current.Store(first)
	for _, u := range first.used {
		for j, cert := range u.all {
			if end, ok := endOf(cert); ok && time.Now().After(end) {
				log.Warn("a certificate has expired", "site", u.site, "certificate", j+1, "until", end.UTC().Format(time.RFC3339))
			}
		}
	}
	return e, nil
}

func (e *engine) server(conn net.Conn) tlsConn { return e.current.Load().server(conn) }

// attach goes on with a client's connection that is in a state.
func (e *engine) attach(conn net.Conn, state []byte) (tlsConn, error) {
	return e.current.Load().attach.to(conn, state)
}

// An attach goes on with a connection that is in a state.
type attach func(conn net.Conn, state []byte) (*ossl.Conn, error)

// to returns the connection, or an error if the engine has no such states.
func (a attach) to(conn net.Conn, state []byte) (tlsConn, error) {
	if a == nil {
		return nil, errors.ErrUnsupported
	}
	secure, err := a(conn, state)
	if err != nil {
		return nil, err
	}
	return secure, nil
}

// watch looks at the certificates until ctx is done. No handshake does, since file systems may be
// slow; and if no client comes for a long time, the first one still gets the certificate of that day.
func (e *engine) watch(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for failed := ""; ; {
		select {
		case <-ticker.C:
			failed = e.look(failed)
		case <-ctx.Done():
			return
		}
	}
}

// look makes new connections use the certificates that have changed. It returns the reason why they
// can't be used, which it logs unless the last look had the same reason.
func (e *engine) look(before string) (failed string) {
	if e.current.Load().isCurrent() {
		return ""
	}
	next, err := e.compile()
	if err != nil {
		if failed = err.Error(); failed != before {
			e.log.Error("certificate not replaced", "error", err)
		}
		return failed
	}
	e.logChanges(e.current.Swap(next), next)
	return ""
}

// logChanges logs the certificates that have taken the places of others.
func (e *engine) logChanges(before, now *compiled) {
	for i, u := range now.used {
		for j, cert := range u.all {
			if j < len(before.used[i].all) && cert == before.used[i].all[j] {
				continue
			}
			attributes := []any{"site", u.site, "certificate", j + 1}
			if end, ok := endOf(cert); ok {
				attributes = append(attributes, "until", end.UTC().Format(time.RFC3339))
			}
			e.log.Info("certificate replaced", attributes...)
		}
	}
}

// isCurrent reports whether the certificates are the sites' current ones. It reads files that have
// changed.
func (c *compiled) isCurrent() bool {
	for _, u := range c.used {
		if !slices.Equal(u.of.all(), u.all) {
			return false
		}
	}
	return true
}

// use returns the certificates of a site, which are the same ones for all sites that share them.
func (c *compiled) use(of *certificates, site string) []*tls.Certificate {
	for _, u := range c.used {
		if u.of == of {
			return u.all
		}
	}
	c.used = append(c.used, usedCertificates{of, site, of.all()})
	return c.used[len(c.used)-1].all
}

// A demand is the part of a site's TLS configuration in which sites differ. Sites with the same
// demand share a configuration, so a session of one resumes at another only as if it were the same
// site.
type demand struct {
	certificates *certificates
	authorities  *x509.CertPool
	optional     bool
	allow        string // the rules, quoted
	alpn         string // the protocols, quoted
}

func compileEngine(
	p *tlsPlan, sites []*site, state *sessions, lists crlStore, challenges *tlsChallenges, checks *checks,
) (*compiled, error) {
	base, options := state.base.Clone(), slices.Clone(state.options)
	if !sites[0].plan.http {
		base.NextProtos = nil
	} else if p.http1 {
		base.NextProtos = []string{"http/1.1"}
	} else {
		base.NextProtos = []string{"h2", "http/1.1"}
		options = append(options, ossl.WithHTTP2())
	}
	if p.kernelTLS {
		options = append(options, ossl.WithKernelTLS())
	}
	if p.handshakes > 0 {
		options = append(options, ossl.WithMaxHandshakes(p.handshakes))
	}
	options = slices.Concat(options, withFIPS(p.fips), lists.options(p.crls))

	var names namedSites[*tls.Config]
	made := &compiled{}
	configs := map[demand]*tls.Config{}
	for _, s := range sites {
		plan := s.plan
		d := demand{s.certificates, s.authorities, plan.ClientOptional, fmt.Sprintf("%q", plan.ClientAllow),
			fmt.Sprintf("%q", plan.ALPN)}
		if configs[d] == nil {
			config := base.Clone()
			if len(plan.ALPN) > 0 {
				config.NextProtos = plan.ALPN
			}
			setClients(config, plan.ClientOptional, s.authorities)
			setAllowed(config, plan.allow, plan.name())
			configs[d] = config
			all := made.use(s.certificates, plan.name())
			if p.engine == "go" {
				config.GetCertificate = s.certificates.get
				// crypto/tls would resume a session of a site whose clients have other authorities.
				config.SessionTicketsDisabled = len(sites) > 1 && config.ClientAuth != tls.NoClientCert
			} else {
				if err := checks.pass(all, d, config, options); err != nil {
					return nil, plan.fault(p.policy.explainPairs(err, plan.Pairs))
				}
				for _, cert := range all {
					config.Certificates = append(config.Certificates, *cert)
				}
				if len(all) == 0 { // by ACME, to come
					config.GetCertificate = s.certificates.get
				}
			}
		}
		names.add(plan.Names, configs[d])
	}
	config := choose(names, sites, challenges, base)
	if p.engine == "go" {
		made.server = func(conn net.Conn) tlsConn { return tls.Server(conn, config) }
		return made, nil
	}
	ctx, err := ossl.NewContext(config, options...)
	if err != nil {
		return nil, p.policy.explainPairs(err, sites[0].plan.Pairs)
	}
	made.server = func(conn net.Conn) tlsConn { return ctx.Server(conn) }
	made.attach = ctx.Attach
	return made, nil
}

// pass returns an error if the certificates of a demand can't be used with a configuration that doesn't
// have them yet. The Context for this serves nobody: package ossl makes one for the handshakes of each
// configuration that is chosen, when the first one is.
func (c *checks) pass(all []*tls.Certificate, d demand, config *tls.Config, options []ossl.Option) error {
	if slices.Equal(c.passed[d], all) {
		return nil
	}
	clients := d
	clients.certificates = nil
	if c.contexts[clients] == nil {
		config := config.Clone()
		config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.ErrUnsupported }
		ctx, err := ossl.NewContext(config, options...)
		if err != nil {
			return err
		}
		c.contexts[clients] = ctx
	}
	if err := d.certificates.usedBy(c.contexts[clients]); err != nil {
		return err
	}
	c.passed[d] = all
	return nil
}

// choose returns the configuration that chooses the site's configuration by the server name, or the
// configuration for the answer to a challenge.
func choose(names namedSites[*tls.Config], sites []*site, challenges *tlsChallenges, base *tls.Config) *tls.Config {
	if len(sites) == 1 && len(names.exact)+len(names.wildcard) == 0 {
		return names.others
	}
	config := base.Clone()
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if challenges.are(hello) {
			return challenges.config(hello, base)
		}
		if chosen, ok := names.get(hello.ServerName); ok {
			return chosen, nil
		}
		return nil, errNoSite(hello.ServerName)
	}
	return config
}

// setClients sets the verification of clients' certificates, unless authorities is nil.
func setClients(config *tls.Config, optional bool, authorities *x509.CertPool) {
	if authorities == nil {
		return
	}
	config.ClientCAs, config.ClientAuth = authorities, tls.RequireAndVerifyClientCert
	if optional {
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
}

// readPool reads authorities from files in PEM, which must be whole and hold nothing else.
func readPool(files []string) (*x509.CertPool, error) {
	pool, _, err := readPoolAndSum(files)
	return pool, err
}

// readPoolAndSum is readPool, and returns a hash of all files.
func readPoolAndSum(files []string) (*x509.CertPool, []byte, error) {
	pool, sum := x509.NewCertPool(), sha256.New()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		sum.Write(text)
		certs, err := keys.ParseCertificates(text)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, cert := range certs {
			pool.AddCert(cert)
		}
	}
	return pool, sum.Sum(nil), nil
}
