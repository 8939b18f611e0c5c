package bench

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/session"
)

// inFIPS reports whether all Contexts are in FIPS mode.
var inFIPS = sync.OnceValue(func() bool {
	lib, err := ossl.Library()
	return err == nil && lib.FIPSRequired != ""
})

func (e *Ends) newOSSLEnd(server bool, config *tls.Config) (func(net.Conn) Conn, error) {
	p := e.pair
	options := []ossl.Option{ossl.WithTLS13CipherSuites(tls.TLS_AES_128_GCM_SHA256)}
	if p.NoChainCache {
		options = append(options, ossl.WithVerifiedChainCache(0))
	}
	if server && (p.Resume == "id" || p.Sessions == "id") {
		cache := session.NewCache(1024)
		e.cached = func() int { return cache.Stats().Entries }
		options = append(options, ossl.WithSessionCache(cache))
	}
	switch p.Records {
	case "libssl":
		options = append(options, ossl.WithRecordPath(ossl.RecordsLibssl))
	case "direct":
		options = append(options, ossl.WithRecordPath(ossl.RecordsDirect))
	case "kernel":
		options = append(options, ossl.WithRecordPath(ossl.RecordsDirect), ossl.WithKernelTLS())
	}
	if inFIPS() {
		roots := ossl.Roots{Certificates: []*x509.Certificate{e.root}}
		options = append(options, ossl.WithRoots(roots), ossl.WithClientRoots(roots))
		config = config.Clone()
		config.RootCAs, config.ClientCAs = nil, nil
	}
	ctx, err := ossl.NewContext(config, options...)
	if err != nil {
		return nil, err
	}
	if server {
		return func(c net.Conn) Conn { return ctx.Server(c) }, nil
	}
	return func(c net.Conn) Conn { return ctx.Client(c, "") }, nil
}

// Crossings returns the number of calls into libssl by connections that are closed by now, since
// the process began.
func Crossings() uint64 { return libssl.Crossings() }

// cHeapInUse returns the number of malloc's bytes in use.
func cHeapInUse() uint64 { return libssl.HeapInUse() }

// GroupRefused reports whether err means that the host's libssl lacks a pair's group.
func GroupRefused(err error) bool {
	var refused *ossl.ConfigError
	return errors.As(err, &refused) && refused.Field == "CurvePreferences"
}
