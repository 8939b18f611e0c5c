package ossl

import (
	"crypto/x509"

	"github.com/ossl-go/ossl/internal/chain"
	"github.com/ossl-go/ossl/internal/negotiate"
)

// newVerifier returns the Verifier of a Context whose security level is level.
func (c *Context) newVerifier(level int) *chain.Verifier {
	config := chain.Config{
		RootCAs:            c.config.RootCAs,
		ClientCAs:          c.config.ClientCAs,
		InsecureSkipVerify: c.config.InsecureSkipVerify,
		ClientAuth:         c.config.ClientAuth,
		CacheSize:          c.opts.chainCache,
		Counts:             &c.observer.chains,
	}
	if c.opts.levelNamed || level > negotiate.DefaultSecurityLevel {
		config.Level = level
	}
	if c.fips {
		config.CacheSize = 0 // every chain is verified by the module
		config.Module = &chain.Module{Servers: c.stores.servers, Clients: c.stores.clients, Level: c.ssl.SecurityLevel()}
	}
	return chain.New(config)
}

// decide verifies the peer's chain, which is not empty, by the configuration and revocation lists.
func (c *Conn) decide(packed []byte) (certs []*x509.Certificate, chains [][]*x509.Certificate, r *refusal) {
	ctx := c.context()
	var refused *chain.Refusal
	if c.isClient {
		certs, chains, refused = ctx.verifier.VerifyServer(packed, c.serverName, ctx.time())
	} else {
		certs, chains, refused = ctx.verifier.VerifyClient(packed, ctx.time())
	}
	if refused != nil {
		return nil, nil, &refusal{refused.Err, refused.Alert}
	}
	if ctx.opts.crls != nil { // remembered chains too: no verdict of a list is remembered
		var r *refusal
		if chains, r = c.unrevoked(certs, chains); r != nil {
			return nil, nil, r
		}
	}
	return certs, chains, nil
}
