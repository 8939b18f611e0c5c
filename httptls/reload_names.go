package httptls

import (
	"crypto/tls"
	"errors"
	"sync"

	"github.com/ossl-go/ossl"
)

// Reloaders are the certificates of a server that has several, for several names or with several
// kinds of keys. Set their GetCertificate in a [tls.Config]:
//
//	both := httptls.Reloaders{example, other} // *httptls.Reloader
//	server.TLSConfig = &tls.Config{GetCertificate: both.GetCertificate}
//
// Each pair is renewed by itself: one that can't be used doesn't delay the others.
type Reloaders []*Reloader

// GetCertificate returns the first certificate that suits the client, or the first of all if none
// does, as crypto/tls chooses among [tls.Config.Certificates]: by the server name, and by the
// versions, suites, curves and signature algorithms that the client offers. It is for
// [tls.Config.GetCertificate].
func (rs Reloaders) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if len(rs) == 0 {
		return nil, errors.New("httptls: no Reloaders")
	}
	rs.look(hello)
	for _, r := range rs {
		if cert := r.current.Load(); hello.SupportsCertificate(cert) == nil {
			return cert, nil
		}
	}
	return rs[0].current.Load(), nil
}

// look checks the files of all pairs at the same time, so that a handshake waits for a slow file
// system only once.
func (rs Reloaders) look(hello *tls.ClientHelloInfo) {
	ctx := ossl.ContextOf(hello)
	var looks sync.WaitGroup
	for _, r := range rs {
		if ctx != nil {
			r.noteUser(ctx)
		}
		if r.watch.Due(r.Interval) {
			looks.Go(func() { lookBriefly(r.watch, hello, r.patience) })
		}
	}
	looks.Wait()
}

// Reload calls [Reloader.Reload] of all pairs, and joins the errors.
func (rs Reloaders) Reload() error {
	return rs.each((*Reloader).Reload)
}

// UsedBy calls [Reloader.UsedBy] of all pairs, and joins the errors.
func (rs Reloaders) UsedBy(ctx *ossl.Context) error {
	return rs.each(func(r *Reloader) error { return r.UsedBy(ctx) })
}

func (rs Reloaders) each(do func(*Reloader) error) error {
	var errs []error
	for _, r := range rs {
		errs = append(errs, do(r))
	}
	return errors.Join(errs...)
}
