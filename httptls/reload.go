package httptls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/keys"
)

// A Reloader is a certificate from files that may change while a server runs. Set its
// GetCertificate in a [tls.Config]:
//
//	reloader, err := httptls.NewReloader("cert.pem", "key.pem")
//	...
//	server.TLSConfig = &tls.Config{GetCertificate: reloader.GetCertificate}
//
// A handshake that begins after the files were replaced uses the new pair. If the new pair can't be
// used, the Reloader reports it, keeps the pair in use, and tries again when the files change
// again. A pair can't be used if
//   - it doesn't parse, or the key doesn't match the certificate, for example while only one file
//     is new;
//   - the server can't complete a handshake with it. Each [ossl.Context] whose handshakes have
//     called GetCertificate, including a [Server]'s, checks the pair
//     ([ossl.Context.CheckCertificate]). If a Context can't use the pair in use either, its result
//     doesn't count, unless no Context can use the new pair;
//   - it has expired or is not yet valid, and the pair in use is valid. The new pair is used as
//     soon as this changes.
//
// If a file can't be read, or there is no memory or descriptor for it, the Reloader reports that once,
// and tries again each Interval.
//
// The Reloader checks the files when a handshake calls GetCertificate, at most once every Interval.
// The handshake waits at most a second for this; if the file system takes longer, it uses the pair
// in use. A Reloader need not be closed. [Reloader.Reload] checks at once, and returns the result.
type Reloader struct {
	// Interval is the minimum time between two checks of the files. Zero means one second; if it is
	// negative, only Reload reads the files. Set Interval and OnError before the Reloader is used.
	Interval time.Duration

	// OnError is called with the reason if a changed pair isn't used, once for each change, on a
	// goroutine of its own. If it is nil, the log package's standard logger prints the reason.
	OnError func(error)

	certFile, keyFile string
	options           []keys.Option
	watch             *ossl.Watch
	clock             func() time.Time                // time.Now, except in tests
	patience          time.Duration                   // lookPatience, except in tests
	current           atomic.Pointer[tls.Certificate] // with its Leaf

	lastUser atomic.Pointer[weak.Pointer[ossl.Context]]
	usersMu  sync.Mutex
	users    []weak.Pointer[ossl.Context] // guarded by usersMu; the last one is lastUser
}

// NewReloader loads a certificate, with its chain, from a PEM file, and its key from a file, as
// [tls.LoadX509KeyPair] does. A file with a PEM block that is cut or damaged is refused, since a
// part of the chain would be missing. It also loads a certificate that has expired, since it has no
// other, and crypto/tls would serve it. It returns an error if a Context with default options can't
// use the pair; see [Reloader.UsedBy] for other Contexts.
//
// If the key is encrypted, or not in PEM, [keys.Load] loads it with the options, such as
// [keys.WithPassphrase].
func NewReloader(certFile, keyFile string, options ...keys.Option) (*Reloader, error) {
	r := &Reloader{certFile: certFile, keyFile: keyFile, options: options, clock: time.Now, patience: lookPatience}
	r.watch = ossl.NewWatch(r.load, certFile, keyFile)
	r.watch.OnEvent = report(&r.OnError, r.explain)
	if err := r.Reload(); err != nil {
		return nil, err
	}
	return r, nil
}

// GetCertificate returns the certificate. It is for [tls.Config.GetCertificate].
func (r *Reloader) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if ctx := ossl.ContextOf(hello); ctx != nil {
		r.noteUser(ctx)
	}
	if r.watch.Due(r.Interval) {
		lookBriefly(r.watch, hello, r.patience)
	}
	return r.current.Load(), nil
}

// UsedBy makes ctx check new pairs from now on, and not only after its first handshake. It returns
// an error if ctx can't use the pair in use. The Reloader forgets a Context when the program no
// longer refers to it, or when 16 others have used the Reloader since.
func (r *Reloader) UsedBy(ctx *ossl.Context) error {
	r.noteUser(ctx)
	return r.explain(ctx.CheckCertificate(r.current.Load()))
}

// maxUsers bounds the number of Contexts that check a pair: GetConfigForClient may make one for
// each connection.
const maxUsers = 16

// noteUser remembers that ctx uses the Reloader.
func (r *Reloader) noteUser(ctx *ossl.Context) {
	if last := r.lastUser.Load(); last != nil && last.Value() == ctx {
		return
	}
	user := weak.Make(ctx)
	r.usersMu.Lock()
	defer r.usersMu.Unlock()
	r.users = slices.DeleteFunc(r.users, func(u weak.Pointer[ossl.Context]) bool { return u == user || u.Value() == nil })
	if len(r.users) >= maxUsers {
		r.users = slices.Delete(r.users, 0, 1)
	}
	r.users = append(r.users, user)
	r.lastUser.Store(&user)
}

// Reload reads the files now, however long the file system takes. If it returns an error, the
// certificate doesn't change.
func (r *Reloader) Reload() error { return r.explain(r.watch.Reload()) }

// Stats returns how often the certificate has changed, how often a change was refused, and when.
func (r *Reloader) Stats() ossl.WatchStats { return r.watch.Stats() }

func (r *Reloader) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("httptls: certificate of %s and %s: %w", r.certFile, r.keyFile, err)
}

// load starts to use the pair in the files, unless it is worse than the one in use.
func (r *Reloader) load() error {
	text, err := os.ReadFile(r.certFile)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(r.keyFile)
	if err != nil {
		return err
	}
	cert, err := parsePair(text, r.keyFile, key, r.options)
	if err != nil {
		return err
	}
	if err := r.try(&cert); err != nil {
		return err
	}
	if err := r.checkDates(cert.Leaf); err != nil {
		return err
	}
	r.current.Store(&cert)
	return nil
}

// try makes the Contexts that use the Reloader check a pair. If there are none, a Context with
// default options checks it.
func (r *Reloader) try(cert *tls.Certificate) error {
	r.usersMu.Lock()
	users := slices.Clone(r.users)
	r.usersMu.Unlock()
	current := r.current.Load()
	tried, good := false, false
	var refused error
	for _, user := range users {
		ctx := user.Value()
		if ctx == nil {
			continue
		}
		err := ctx.CheckCertificate(cert)
		if errors.Is(err, net.ErrClosed) { // its configuration is one that GetConfigForClient no longer returns
			continue
		}
		tried = true
		switch {
		case err == nil:
			good = true
		case ctx.CheckCertificate(current) == nil:
			return err
		default: // it can't use the current pair either
			refused = err
		}
	}
	if tried {
		if good {
			return nil
		}
		return refused
	}
	ctx, err := defaultContext()
	if err != nil {
		return err
	}
	return ctx.CheckCertificate(cert)
}

// standard is the Context that defaultContext has made last, while somebody uses it.
var standard struct {
	sync.Mutex
	ctx  weak.Pointer[ossl.Context]
	fips string // OSSL_FIPS, on which it depends
}

// defaultContext returns a Context with default options. A server with many certificates needs one for
// each.
func defaultContext() (*ossl.Context, error) {
	standard.Lock()
	defer standard.Unlock()
	fips := os.Getenv("OSSL_FIPS")
	if ctx := standard.ctx.Value(); ctx != nil && fips == standard.fips {
		return ctx, nil
	}
	ctx, err := ossl.NewContext(nil)
	if err == nil {
		standard.ctx, standard.fips = weak.Make(ctx), fips
	}
	return ctx, err
}

// checkDates returns an error if a certificate is not valid now, unless the one in use is not valid
// either.
func (r *Reloader) checkDates(leaf *x509.Certificate) error {
	now := r.clock()
	err := validAt(leaf, now)
	if current := r.current.Load(); err != nil && (current == nil || validAt(current.Leaf, now) != nil) {
		return nil
	}
	return err
}

// validAt returns an error if leaf is not valid at now. The text doesn't depend on now, because
// reported errors are recognized by it.
func validAt(leaf *x509.Certificate, now time.Time) error {
	if !now.Before(leaf.NotBefore) && !now.After(leaf.NotAfter) {
		return nil
	}
	const form = time.RFC3339
	return x509.CertificateInvalidError{Cert: leaf, Reason: x509.Expired, // covers not yet valid too, as in crypto/x509
		Detail: fmt.Sprintf("valid from %s to %s", leaf.NotBefore.Format(form), leaf.NotAfter.Format(form))}
}
