// Package localca makes certificates for development: an authority of the user's own, in a folder,
// and certificates for servers and clients that it issues.
package localca

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/wholefile"
)

// The files of an authority, in its folder.
const (
	CertificateFile = "ca.pem"
	KeyFile         = "ca-key.pem"
)

const (
	authorityYears = 10 // and so more than 3650 days
	// Early is the time by which a certificate is valid before it is made, since the clock of another
	// machine, or of a container, may be behind.
	Early = time.Hour
)

// An Authority issues certificates.
type Authority struct {
	Certificate *x509.Certificate
	File        string // of the certificate, in PEM
	Made        bool   // it was made by Open, and did not exist before

	key crypto.Signer
}

// ErrExists is wrapped by the error of Open if a kind of key is given for an authority that exists.
var ErrExists = errors.New("the authority exists already, with a key of its own")

// Open returns the authority in a folder. If the folder is missing or empty, Open makes an authority
// with a key of the given kind, ECDSA if kind is "". A kind that is given for an existing authority is
// refused.
func Open(folder string, kind Kind) (*Authority, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	unfinished, err := isUnfinished(folder)
	if err != nil {
		return nil, err
	}
	if !unfinished {
		if kind != "" {
			return nil, fmt.Errorf("%s: %w", folder, ErrExists)
		}
		return load(folder)
	}
	if err := checkNew(folder); err != nil {
		return nil, err
	}
	if kind == "" {
		kind = ECDSA
	}
	if err := create(folder, kind); errors.Is(err, fs.ErrExist) {
		return load(folder) // another process was faster
	} else if err != nil {
		return nil, err
	}
	a, err := load(folder)
	if err == nil {
		a.Made = true
	}
	return a, err
}

// isUnfinished reports whether a folder has no authority yet: it is missing or empty, or a process that
// was killed has left the key in it.
func isUnfinished(folder string) (bool, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return len(entries) == 0 || len(entries) == 1 && entries[0].Name() == KeyFile, err
}

// create makes an authority in a folder. Its error wraps fs.ErrExist if another process was faster.
func create(folder string, kind Kind) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	defer wholefile.Lock(folder)()
	if unfinished, err := isUnfinished(folder); err != nil {
		return err
	} else if !unfinished {
		return fs.ErrExist
	}
	certFile, keyFile := filepath.Join(folder, CertificateFile), filepath.Join(folder, KeyFile)
	key, made, err := keyIn(keyFile, kind)
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: authorityName(), Organization: []string{"ossl development authority"}},
		NotBefore:             now.Add(-Early),
		NotAfter:              now.AddDate(authorityYears, 0, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true, // it certifies no other authorities
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		// Verifiers that know the constraint accept its certificates for TLS alone, not for code or mail.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	return writePair(certFile, der, keyFile, key, made)
}

// authorityName names the user and the host, so that lists of trusted authorities show whose it is.
func authorityName() string {
	name := "ossl"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name += " " + u.Username
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		name += "@" + host
	}
	return shorten(name)
}

// shorten cuts a common name to the 64 characters that it may have: RFC 5280, appendix A.1,
// ub-common-name.
func shorten(name string) string {
	const most = 64
	if r := []rune(name); len(r) > most {
		return string(r[:most])
	}
	return name
}

// load reads an authority.
func load(folder string) (*Authority, error) {
	a := &Authority{File: filepath.Join(folder, CertificateFile)}
	keyFile := filepath.Join(folder, KeyFile)
	for _, file := range []string{a.File, keyFile} {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s holds other files, but no %s: give the folder of an authority, or one that doesn't exist",
				folder, filepath.Base(file))
		}
	}
	if err := checkFile(keyFile, 0); err != nil {
		return nil, err
	}
	if err := checkFile(a.File, 0o055); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(a.File, keyFile)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", a.File, keyFile, err)
	}
	if a.Certificate, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", a.File, err)
	}
	var ok bool
	if a.key, ok = pair.PrivateKey.(crypto.Signer); !ok {
		return nil, fmt.Errorf("%s: the key can't sign", keyFile)
	}
	now := time.Now()
	switch cert := a.Certificate; {
	case !cert.BasicConstraintsValid || !cert.IsCA || cert.KeyUsage&x509.KeyUsageCertSign == 0:
		return nil, fmt.Errorf("%s is not the certificate of an authority", a.File)
	case now.Before(cert.NotBefore):
		return nil, fmt.Errorf("%s is not valid before %s", a.File, cert.NotBefore.Format(time.DateTime))
	case now.After(cert.NotAfter):
		return nil, fmt.Errorf("%s has expired on %s: make a new authority in another folder, or remove %s",
			a.File, cert.NotAfter.Format(time.DateOnly), folder)
	}
	return a, nil
}

// A Request asks for a certificate.
type Request struct {
	Names    []string // DNS names, IP addresses, email addresses and URIs
	Client   bool     // for a client instead of a server; its first name may also be any text
	Kind     Kind     // of the key; ECDSA if it is ""
	Lifetime time.Duration
}

// Check returns an error if a name of the request can't be in a certificate.
func (r Request) Check() error {
	_, err := parseNames(r)
	return err
}

// Files returns the names of the files that Issue writes.
func (r Request) Files(folder string) (certificate, key string) {
	base := filepath.Join(folder, fileName(r.Names[0]))
	return base + ".pem", base + "-key.pem"
}

// An Issued is a certificate that an authority has made, in files.
type Issued struct {
	CertificateFile, KeyFile string
	Names                    []string
	NotAfter                 time.Time
}

// Issue makes a key and a certificate, and writes them to a folder, as NAME.pem and NAME-key.pem. It
// replaces no file: the error for one that exists wraps fs.ErrExist. If there is a key without a
// certificate, as a process leaves it that is killed between the two, Issue uses that key.
func (a *Authority) Issue(r Request, folder string) (*Issued, error) {
	names, err := parseNames(r)
	if err != nil {
		return nil, err
	}
	if r.Kind == "" {
		r.Kind = ECDSA
	}
	now := time.Now()
	end := now.Add(r.Lifetime)
	if end.After(a.Certificate.NotAfter) {
		return nil, fmt.Errorf("the certificate would be valid until %s, but its authority ends on %s: it can have %d days at most",
			end.Format(time.DateOnly), a.Certificate.NotAfter.Format(time.DateOnly), int(a.Certificate.NotAfter.Sub(now).Hours()/24))
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: shorten(r.Names[0]), Organization: []string{"ossl development certificate"}},
		NotBefore:             latest(now.Add(-Early), a.Certificate.NotBefore),
		NotAfter:              end,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:              names.dns,
		IPAddresses:           names.ips,
		EmailAddresses:        names.emails,
		URIs:                  names.uris,
	}
	if r.Client {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	if r.Kind == RSA {
		template.KeyUsage |= x509.KeyUsageKeyEncipherment // TLS 1.2's RSA key exchange, of old clients
	}
	issued := &Issued{Names: r.Names, NotAfter: end}
	issued.CertificateFile, issued.KeyFile = r.Files(folder)
	defer wholefile.Lock(folder)()
	if _, err := os.Lstat(issued.CertificateFile); err == nil { // before an RSA key is searched for
		return nil, &fs.PathError{Op: "create", Path: issued.CertificateFile, Err: fs.ErrExist}
	}
	key, made, err := keyIn(issued.KeyFile, r.Kind)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	if _, err := x509.ParseCertificate(der); err != nil { // its rules are stricter for parsing than for making
		return nil, fmt.Errorf("the certificate for %q couldn't be read: %w", r.Names, err)
	}
	return issued, writePair(issued.CertificateFile, der, issued.KeyFile, key, made)
}

func latest(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
