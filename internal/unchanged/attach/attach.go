//go:build ossl_unchanged

// Package attach gives a program that "ossl go" has built the packages that import package ossl: keys by
// URI, and named policies. Their settings are in package settings.
package attach

import (
	"crypto"
	"crypto/tls"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/keys"
	"github.com/ossl-go/ossl/policy"
	"github.com/ossl-go/ossl/policy/apply"
)

func init() {
	ossl.RegisterPolicies(policyOptions)
	ossl.RegisterKeys(func(uri string) (crypto.Signer, error) { return keys.Load(uri) })
}

// policyOptions returns a policy's configuration and options for this host and day.
func policyOptions(name string, client bool) (*tls.Config, []ossl.Option, error) {
	p, err := policy.Get(name)
	if err != nil {
		return nil, nil, err
	}
	configure := apply.Server
	if client {
		configure = apply.Client
	}
	config, options, _, err := configure(p.At(time.Now()))
	if err != nil {
		return nil, nil, err
	}
	if r := p.Resumption; client && (r.ID.Value == "no" || r.Tickets.Value == "no" || r.TLS13.Value == "no") {
		config.SessionTicketsDisabled = true // a client's cache holds sessions of all kinds
	}
	return config, options, nil
}
