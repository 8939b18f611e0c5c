package ossl

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl/internal/chain"
	"github.com/ossl-go/ossl/internal/crl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// A CRLSource returns certificate revocation lists, by names for errors. A value is one list as DER,
// or any number of them as PEM, and nothing else. The caller must not change it afterwards.
type CRLSource func() (map[string][]byte, error)

// maxCRLFile bounds the size of a file with lists.
const maxCRLFile = 512 << 20

// CRLFiles returns a source that reads files, and the files in folders. In a folder it passes over
// other folders, and over names that begin with a dot. Each file must hold lists: one that holds
// anything else may be a list that was overwritten.
func CRLFiles(paths ...string) CRLSource {
	return func() (map[string][]byte, error) {
		lists := make(map[string][]byte)
		for _, path := range paths {
			if err := readCRLs(lists, path, true); err != nil {
				return nil, err
			}
		}
		return lists, nil
	}
}

// readCRLs reads a file or, if enter is true, the files in a folder.
func readCRLs(lists map[string][]byte, path string, enter bool) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return readCRL(lists, path, info)
	case !enter:
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if err := readCRLs(lists, filepath.Join(path, entry.Name()), false); err != nil {
			return err
		}
	}
	return nil
}

func readCRL(lists map[string][]byte, path string, info os.FileInfo) error {
	switch {
	case !info.Mode().IsRegular(): // to open a pipe would wait for its writer
		return fmt.Errorf("%s: not a file", path)
	case info.Size() > maxCRLFile:
		return fmt.Errorf("%s: %d bytes, where %d are the most", path, info.Size(), maxCRLFile)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	text := make([]byte, info.Size())
	if _, err := io.ReadFull(file, text); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	lists[path] = text
	return nil
}

// CRLs are the certificate revocation lists (RFC 5280, section 5) of a source. Any number of
// Contexts may share them, all in FIPS mode or none: see [WithCRLs].
type CRLs struct {
	source CRLSource
	mu     sync.Mutex // one load at a time, so that no answer of the source replaces a later one
	store  crl.Store
	mode   atomic.Int32 // of the Contexts; 0 before there is one
}

// The modes of the Contexts that share lists.
const (
	crlsPlain = 1 + iota
	crlsFIPS
)

// verify returns the function that verifies the signatures of lists.
func (c *CRLs) verify() crl.VerifyFunc {
	if c.mode.Load() == crlsFIPS {
		return chain.VerifyList
	}
	return crl.ByX509
}

// LoadCRLs returns the lists of a source. It refuses them all if one is malformed, or can't be
// applied in full: a delta list, an indirect list, a list for some reasons only, a list with an
// unknown critical extension or without nextUpdate, one that is signed with SHA-1. A list that is for
// a part of its issuer's certificates (issuingDistributionPoint) is used for these alone: those of
// authorities or of others, or those that name the list's URI.
//
// A list takes 24 bytes of memory for each certificate in it and, until a handshake has first
// verified its signature, its own size.
func LoadCRLs(source CRLSource) (*CRLs, error) {
	if source == nil {
		return nil, &ConfigError{Field: "LoadCRLs", Reason: "nil"}
	}
	c := &CRLs{source: source}
	if err := c.load("LoadCRLs"); err != nil {
		return nil, err
	}
	return c, nil
}

// Reload asks the source again. If it returns an error, the lists in place stay. Handshakes don't
// wait for it. All lists are replaced at once: handshakes that look at lists afterwards, also those
// that resume a session, use the new ones. Open connections stay open.
//
// Once a list's signature was verified, the list stays in place until its issuer has signed a newer
// one for the same certificates, even if the source has it no more. Reload refuses an older list (one
// with a lower number), and one that isn't in force yet. To go without a list, call [LoadCRLs], and
// make another Context.
func (c *CRLs) Reload() error { return c.load("Reload") }

func (c *CRLs) load(field string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	texts, err := c.source()
	if err == nil {
		err = c.store.Replace(texts, c.verify(), time.Now())
	}
	if err != nil {
		return &ConfigError{Field: field, Reason: "the revocation lists can't be used", Err: err}
	}
	return nil
}

// A CRL describes a certificate revocation list.
type CRL struct {
	Issuer                 string
	Number                 *big.Int // nil if the list has none
	ThisUpdate, NextUpdate time.Time
	Revoked                int  // the number of certificates
	Verified               bool // the signature was verified with the key of an issuer
}

// Lists returns the lists in place.
func (c *CRLs) Lists() []CRL {
	var all []CRL
	for _, l := range c.store.Set().Lists() {
		all = append(all, CRL{l.Issuer, l.Number, l.ThisUpdate, l.NextUpdate, l.Len(), l.Verified()})
	}
	return all
}

// Check looks a certificate up in the lists, as connections do at the time now: see [WithCRLs]. issuer is the
// next certificate in the verified chain. If the certificate is revoked, or if no list counts for it, the
// error is a [*RevocationError].
func (c *CRLs) Check(cert, issuer *x509.Certificate, now time.Time) error {
	switch e := checkIn(c.store.Set(), cert, issuer, c.verify(), now, 0); {
	case e == nil:
		return nil
	case e.cause != nil:
		return libraryError(e.cause)
	default:
		return e
	}
}

func checkIn(
	set *crl.Set, cert, issuer *x509.Certificate, verify crl.VerifyFunc, now time.Time, grace time.Duration,
) *RevocationError {
	v := set.Check(cert, issuer, verify, now, grace)
	if v.State == crl.Good {
		return nil
	}
	e := &RevocationError{Cert: cert, State: RevocationState(v.State), Reason: v.Reason, cause: v.Err}
	if v.List != nil {
		e.ThisUpdate, e.NextUpdate = v.List.ThisUpdate, v.List.NextUpdate
	}
	return e
}

// useCRLs prepares the Context's lists. Those of the configuration's own authorities are verified now,
// and those of other issuers by the first handshake that has their certificates.
func (c *Context) useCRLs(lib *libssl.Library) error {
	lists := c.opts.crls
	if lists == nil {
		return nil
	}
	mode, refuse := int32(crlsPlain), func(reason string) error { return &ConfigError{Field: "WithCRLs", Reason: reason} }
	if c.fips {
		mode = crlsFIPS
	}
	switch {
	case c.fips && lib.Number < libssl.Version3_0:
		return refuse("in FIPS mode, OpenSSL 3.0 or later must verify the lists")
	case !lists.mode.CompareAndSwap(0, mode) && lists.mode.Load() != mode:
		return refuse("Contexts in FIPS mode, where the module verifies lists, can't share them with others")
	}
	for _, pool := range []*x509.CertPool{c.config.RootCAs, c.config.ClientCAs} {
		if pool == nil {
			continue
		}
		if issuers, err := stdtls.PoolCertificates(pool); err == nil { // else handshakes verify
			lists.store.Set().Learn(issuers, lists.verify())
		}
	}
	return nil
}

// WithCRLs makes connections look for the certificates of their peers in revocation lists: for all
// certificates of a verified chain except its last one, which is trusted as it is. This is done in
// every handshake of both roles, also before a session is resumed, before VerifyPeerCertificate and
// VerifyConnection are called. Of several chains, VerifiedChains has those that are not revoked.
//
// A list counts if its issuer has the name of the certificate's issuer in the chain, encoded alike,
// and was signed with that one's key. The time of tls.Config must be between the list's thisUpdate
// and nextUpdate, and the issuer's certificate must be for lists (cRLSign). A certificate that
// is listed is refused even if these two don't hold, with the alert certificate_revoked. One on
// hold (certificateHold) is refused as long as it is listed.
//
// The option requires [WithCRLHardFail] or [WithCRLSoftFail], for certificates without a list that
// counts. It is refused with InsecureSkipVerify, RequestClientCert and RequireAnyClientCert, which
// verify no chain. Errors have a [*RevocationError] within a [*tls.CertificateVerificationError].
func WithCRLs(lists *CRLs) Option {
	return func(o *options) error {
		if lists == nil || lists.store.Set() == nil {
			return &ConfigError{Field: "WithCRLs", Reason: "use LoadCRLs"}
		}
		o.crls = lists
		return nil
	}
}

// WithCRLHardFail makes handshakes fail if there is no list that counts for a certificate: see
// [WithCRLs]. The alert is certificate_unknown.
func WithCRLHardFail() Option {
	return func(o *options) error {
		o.crlHardFail = true
		return nil
	}
}

// WithCRLSoftFail lets certificates pass for which there is no list that counts: see [WithCRLs].
// [RevocationStats] counts these handshakes, and [WithEvents] gets a [*RevocationEvent]. A certificate
// that is listed is refused.
func WithCRLSoftFail() Option {
	return func(o *options) error {
		o.crlSoftFail = true
		return nil
	}
}

// WithCRLGrace sets a time for which lists of [WithCRLs] count before their thisUpdate and after
// their nextUpdate: for clocks that differ, and for issuers that are late. The default is 0.
func WithCRLGrace(grace time.Duration) Option {
	return func(o *options) error {
		if grace <= 0 {
			return &ConfigError{Field: "WithCRLGrace", Reason: "not positive"}
		}
		o.crlGrace = grace
		return nil
	}
}

// checkCRLs refuses options for revocation lists, and configurations, that would have no effect.
// chosen means that GetConfigForClient returned the configuration.
func (o *options) checkCRLs(config *tls.Config, chosen bool) error {
	const unverified = "WithCRLs needs chains that are verified"
	for _, rule := range []struct {
		broken         bool
		option, reason string
	}{
		{o.crls == nil && o.crlHardFail, "WithCRLHardFail", "there are no lists: use WithCRLs"},
		{o.crls == nil && o.crlSoftFail, "WithCRLSoftFail", "there are no lists: use WithCRLs"},
		{o.crls == nil && o.crlGrace > 0, "WithCRLGrace", "there are no lists: use WithCRLs"},
		{o.crls != nil && o.crlHardFail == o.crlSoftFail, "WithCRLs",
			"either WithCRLHardFail or WithCRLSoftFail must say what to do about certificates without a list"},
		{o.crls != nil && config.InsecureSkipVerify && !chosen, "InsecureSkipVerify", unverified},
		{o.crls != nil && (config.ClientAuth == tls.RequestClientCert || config.ClientAuth == tls.RequireAnyClientCert),
			"ClientAuth", unverified},
	} {
		if rule.broken {
			return &ConfigError{Field: rule.option, Reason: rule.reason}
		}
	}
	return nil
}

// A RevocationState is the reason for a [RevocationError].
type RevocationState string

const (
	CertificateRevoked RevocationState = "revoked"    // a list has the certificate
	CRLMissing         RevocationState = "missing"    // there is no list of the issuer for the certificate
	CRLUnverified      RevocationState = "unverified" // the issuer has not signed the list, or must not sign lists
	CRLExpired         RevocationState = "expired"    // the list's nextUpdate has passed
	CRLNotYetValid     RevocationState = "not yet"    // the list's thisUpdate has not come
)

// A RevocationError means that a certificate of the peer's chain was revoked, or that there is no list in
// force in which to look.
type RevocationError struct {
	Cert  *x509.Certificate
	State RevocationState
	// Reason is the reason for which the certificate was revoked, as a number of RFC 5280, section
	// 5.3.1: 1 is keyCompromise, and 0 is unspecified.
	Reason                 int
	ThisUpdate, NextUpdate time.Time // of the list; zero if there is none

	cause error // for which the signature of a list couldn't be verified, or nil
}

// reasons are the names of reason codes: RFC 5280, section 5.3.1.
var reasons = [...]string{"unspecified", "keyCompromise", "cACompromise", "affiliationChanged", "superseded",
	"cessationOfOperation", "certificateHold", 7: "", 8: "removeFromCRL", 9: "privilegeWithdrawn", 10: "aACompromise"}

func (e *RevocationError) Error() string {
	s := fmt.Sprintf("ossl: the certificate of %s with the serial number %x ", e.Cert.Subject, e.Cert.SerialNumber)
	date := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch e.State {
	case CertificateRevoked:
		reason := fmt.Sprint(e.Reason)
		if e.Reason >= 0 && e.Reason < len(reasons) && reasons[e.Reason] != "" {
			reason = reasons[e.Reason]
		}
		return s + "was revoked (" + reason + "), according to its issuer's list of " + date(e.ThisUpdate)
	case CRLMissing:
		return s + "may be revoked: there is no list of its issuer for it"
	case CRLExpired:
		return s + "may be revoked: its issuer's list expired at " + date(e.NextUpdate)
	case CRLNotYetValid:
		return s + "may be revoked: its issuer's list is in force only from " + date(e.ThisUpdate) + " on"
	}
	return s + "may be revoked: its issuer has not signed the list of that name, or must not sign lists"
}

// unrevoked returns those of a peer's chains whose certificates are not revoked. With
// WithCRLSoftFail, chains for which there is no list count only if there are no others.
func (c *Conn) unrevoked(certs []*x509.Certificate, chains [][]*x509.Certificate) ([][]*x509.Certificate, *refusal) {
	ctx, counts := c.context(), &c.watch.counting().revocation
	now := ctx.time()
	if now.IsZero() {
		now = time.Now() // as for crypto/x509
	}
	var good, unknown [][]*x509.Certificate
	var revoked, doubt *RevocationError
	for _, chain := range chains {
		switch e := ctx.revocationIn(chain, now); {
		case e == nil:
			good = append(good, chain)
		case e.cause != nil: // memory was short, for example: nothing is known
			return nil, &refusal{libraryError(e.cause), alertInternalError}
		case e.State == CertificateRevoked:
			revoked = e
		default:
			doubt, unknown = e, append(unknown, chain)
		}
	}
	switch {
	case good != nil:
		return good, nil
	case doubt != nil && ctx.opts.crlSoftFail:
		counts.softFails.Add(1)
		if events := c.watch.counting().events; events != nil {
			events(&RevocationEvent{Server: !c.isClient, Err: doubt})
		}
		return unknown, nil
	case revoked != nil:
		counts.revoked.Add(1)
		return nil, &refusal{&tls.CertificateVerificationError{UnverifiedCertificates: certs, Err: revoked}, alertCertificateRevoked}
	case doubt != nil:
		counts.hardFails.Add(1)
		return nil, &refusal{&tls.CertificateVerificationError{UnverifiedCertificates: certs, Err: doubt}, alertCertificateUnknown}
	}
	return nil, &refusal{errors.New("ossl: internal error: no chain to look up in revocation lists"), alertInternalError}
}

// revocationIn returns the worst of a chain's certificates: one that was revoked or whose list could not
// be verified, or one for which no list counts, or nil.
func (c *Context) revocationIn(chain []*x509.Certificate, now time.Time) (worst *RevocationError) {
	set, verify := c.opts.crls.store.Set(), c.opts.crls.verify()
	for i, cert := range chain[:max(len(chain)-1, 0)] {
		e := checkIn(set, cert, chain[i+1], verify, now, c.opts.crlGrace)
		if e != nil && (e.State == CertificateRevoked || e.cause != nil) {
			return e
		}
		if worst == nil {
			worst = e
		}
	}
	return worst
}
