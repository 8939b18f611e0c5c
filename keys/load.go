package keys

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/gate"
	"github.com/ossl-go/ossl/internal/heldkey"
	"github.com/ossl-go/ossl/internal/libssl"
)

// An Error is the error of [Load] and [LoadX509KeyPair]. Neither its text nor its fields contain a
// PIN or passphrase.
type Error struct {
	URI    string // as it was given, but without secrets
	Reason string
	Err    error // the cause, or nil; it wraps fs.ErrNotExist if a file is missing
}

func (e *Error) Error() string {
	s := "keys: "
	if e.URI != "" {
		s += e.URI + ": "
	}
	s += e.Reason
	var cause *ossl.LibraryError
	switch {
	case e.Err == nil:
	case !errors.As(e.Err, &cause):
		s += ": " + strings.TrimPrefix(e.Err.Error(), "ossl: ")
	case !opaque(cause.Reason):
		s += ": OpenSSL: " + cause.Reason
	case e.Reason == notLoaded && isFileURI(e.URI):
		s += ": it is damaged, or not PEM, DER or PKCS #12 of a kind that this OpenSSL knows"
	}
	return s
}

const notLoaded = "can't be loaded"

// opaque reports whether OpenSSL's text explains nothing: "unsupported" means that no decoder has
// taken the data, for any reason.
func opaque(reason string) bool { return reason == "" || reason == "unsupported" }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// An Option changes how [Load] and [LoadX509KeyPair] load a key.
type Option func(*options) error

type options struct {
	ask        func(uri string) ([]byte, error)
	maxSigners int
}

// WithPassphrase sets a function that returns the passphrase of an encrypted file, or the PIN of a
// token. ask is called if one is needed and neither the URI nor OpenSSL's configuration has it, at
// most once for each URI, by the goroutine that loads it. uri is the URI without its secrets. The
// bytes that ask returns are cleared after use.
//
// A token counts wrong PINs and locks itself after a few, so don't try again with the same one. The
// PIN is offered to every token that the URI matches, so the URI should name one token.
func WithPassphrase(ask func(uri string) ([]byte, error)) Option {
	return func(o *options) error {
		if ask == nil {
			return &Error{Reason: "WithPassphrase: nil"}
		}
		o.ask = ask
		return nil
	}
}

// WithProvider first loads an OpenSSL provider, such as "pkcs11" or "tpm2", into the process's
// default library context, unless it is loaded already. The provider stays there until the process
// exits. Its section of openssl.cnf applies even if it is not activated there. Its module must be
// in the folder in which OpenSSL searches for modules, or be named in openssl.cnf. WithProvider
// requires OpenSSL 3.0.
func WithProvider(name string) Option {
	return func(*options) error {
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" {
			return &Error{Reason: fmt.Sprintf("WithProvider: %q is not the name of a provider; a path goes into openssl.cnf", name)}
		}
		if !libssl.AtLeast(libssl.Version3_0) {
			return &Error{Reason: fmt.Sprintf("WithProvider: provider %q requires OpenSSL 3.0 or later", name)}
		}
		if file, err := libssl.LoadProvider(name); err != nil {
			e := &Error{Reason: fmt.Sprintf("WithProvider: provider %q can't be loaded", name), Err: fileError(err)}
			if file != "" {
				e.Reason += " from " + file + ", whose folder OPENSSL_MODULES can change"
			}
			return e
		}
		return nil
	}
}

// WithMaxSigners bounds the number of signatures that are made with the key at the same time, in
// handshakes of all Contexts and in calls of [Key.Sign]. Other handshakes wait for their turn,
// until their context is done, a deadline passes, the peer hangs up, or Close is called. The option
// is for tokens that have few sessions: without a bound, a handshake that finds no free session may
// fail.
//
// The default is 128 for a provider that OpenSSL itself does not include, and no bound otherwise.
// All bounded keys of the process together hold at most 2048 threads; as fewer of these are left,
// each key may use fewer.
func WithMaxSigners(n int) Option {
	return func(o *options) error {
		if n < 1 {
			return &Error{Reason: fmt.Sprintf("WithMaxSigners: %d", n)}
		}
		o.maxSigners = n
		return nil
	}
}

// defaultMaxSigners bounds the threads that one slow token can hold, unless WithMaxSigners sets a
// bound.
const defaultMaxSigners = 128

// Load loads the one private key that a store URI names: ossl_store(7). The URI is
//   - the path of a file, or its "file:" URI; the file is PEM, DER or PKCS #12; or
//   - with OpenSSL 3.0 or later, a URI of any scheme that an active provider serves, such as
//     "pkcs11:" (RFC 7512). openssl.cnf or [WithProvider] activates the provider; docs/KEYS.md
//     shows how.
//
// The key must be for RSA, ECDSA, Ed25519 or, with OpenSSL 3.5 or later and Go 1.27 or later, for
// ML-DSA. OpenSSL loads an ML-DSA key from its seed, its expanded form or both; crypto/tls from its
// seed only.
//
// The PIN or passphrase may be in the URI ("pin-value", "pin-source") or in OpenSSL's
// configuration, or [WithPassphrase] returns it. Load never asks at the terminal: if a URI of
// another scheme than "file" is loaded, OpenSSL's own prompt is turned off for the process, unless
// the process has set another one.
//
// Load returns when the provider has answered, which may take long; nothing can interrupt it.
// Errors are an [*Error], or wrap [ossl.ErrUnavailable]. Load loads OpenSSL if necessary, as
// [ossl.Library] does.
func Load(uri string, opts ...Option) (*Key, error) {
	o, err := optionsOf(opts)
	if err != nil {
		return nil, err
	}
	return o.loadKey(uri)
}

// LoadX509KeyPair is [tls.LoadX509KeyPair] for the store URIs of [Load]: the private key stays with
// OpenSSL or in its token. The leaf is the one certificate among those that certURI names that
// belongs to the key, in any position. The other certificates of its chain follow it. Certificates
// that are not part of the chain are left out, since a token may have many.
//
// The two URIs may be the same: the URI of a PKCS #12 file or of a token.
func LoadX509KeyPair(certURI, keyURI string, opts ...Option) (tls.Certificate, error) {
	o, err := optionsOf(opts)
	if err != nil {
		return tls.Certificate{}, err
	}
	if certURI == keyURI && o.ask != nil {
		var answer []byte
		defer func() { clear(answer) }()
		ask := o.ask
		o.ask = func(uri string) ([]byte, error) {
			if answer == nil {
				given, err := ask(uri)
				if err != nil {
					return nil, err
				}
				answer = given
			}
			return bytes.Clone(answer), nil
		}
	}
	key, err := o.loadKey(keyURI)
	if err != nil {
		return tls.Certificate{}, err
	}
	loaded, err := o.load(certURI, false)
	if err != nil {
		return tls.Certificate{}, err
	}
	chain, leaf, err := chainFor(key.public, loaded.Certs)
	if err != nil {
		return tls.Certificate{}, &Error{URI: showURI(certURI), Reason: err.Error()}
	}
	return tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}, nil
}

func optionsOf(opts []Option) (*options, error) {
	if _, err := libssl.Load(""); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	o := new(options)
	for _, opt := range opts {
		if err := opt(o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (o *options) loadKey(uri string) (*Key, error) {
	refuse := func(reason string, err error) (*Key, error) {
		return nil, &Error{URI: showURI(uri), Reason: reason, Err: err}
	}
	loaded, err := o.load(uri, true)
	if err != nil {
		return nil, err
	}
	switch {
	case loaded.Keys == 0 && !isFileURI(uri): // pkcs11-provider doesn't report which
		return refuse("there is no private key, or the PIN is wrong", nil)
	case loaded.Keys == 0:
		return refuse("there is no private key", nil)
	case loaded.Keys > 1:
		return refuse(fmt.Sprintf("there are %d private keys: name one", loaded.Keys), nil)
	}
	der, err := loaded.Key.Public()
	if err != nil {
		return refuse("the public key is missing", storeError(err))
	}
	if scheme := libssl.MLDSAInfo(der); scheme != 0 && !libssl.GoHasMLDSA {
		return refuse(fmt.Sprintf("a key for %s requires Go 1.27 or later", libssl.MLDSAName(scheme)), nil)
	}
	public, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		if kind := kindOf(der); kind != "" {
			return refuse("a key of an unsupported kind: "+kind, nil)
		}
		return refuse("the public key is of an unknown type", err)
	}
	switch public.(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
	default:
		if libssl.MLDSAKey(public) == 0 {
			return refuse(fmt.Sprintf("TLS does not sign with the private key of a %T", public), nil)
		}
	}
	key := &Key{held: heldkey.Key{Key: loaded.Key}, public: public, uri: showURI(uri)}
	if o.maxSigners > 0 {
		key.held.Share = gate.NewShare(o.maxSigners)
	} else if !libssl.IsOwnProvider(key.Provider()) {
		key.held.Share = gate.NewShare(defaultMaxSigners)
	}
	if !libssl.AtLeast(libssl.Version3_0) {
		// Here a store's public keys are of the same type as private ones.
		if _, err := key.Sign(nil, make([]byte, crypto.SHA256.Size()), probe(public)); err != nil {
			return refuse("there is no private key", err)
		}
	}
	return key, nil
}

// probe returns options to sign 32 bytes with.
func probe(public crypto.PublicKey) crypto.SignerOpts {
	if _, ok := public.(ed25519.PublicKey); ok {
		return crypto.Hash(0)
	}
	return crypto.SHA256
}

// load loads the private keys that uri names if keys is true, and the certificates otherwise.
func (o *options) load(uri string, keys bool) (*libssl.Loaded, error) {
	shown := showURI(uri)
	refuse := func(reason string, err error) (*libssl.Loaded, error) {
		return nil, &Error{URI: shown, Reason: reason, Err: err}
	}
	if uri == "" || strings.ContainsRune(uri, 0) {
		return refuse("is neither a URI nor a path", nil)
	}
	scheme, file := schemeOf(uri), isFileURI(uri)
	if scheme == "file" && !strings.HasPrefix(uri[len("file:"):], "/") { // some OpenSSL versions take them
		return refuse("a file: URI must have an absolute path", nil)
	}
	if !file {
		if !libssl.AtLeast(libssl.Version3_0) {
			return refuse(scheme+": URIs require OpenSSL 3.0 or later; ossl does not load the engines of older versions", nil)
		}
		if isFile(uri) {
			return refuse("is also the name of a file, which OpenSSL would load instead; name it by a file: URI or with a slash", nil)
		}
		libssl.NeverPrompt()
	}
	var ask func() ([]byte, error)
	if o.ask != nil {
		ask = func() ([]byte, error) { return o.ask(shown) }
	}
	const needed = "a passphrase or PIN is required, see WithPassphrase"
	loaded, err := libssl.LoadStore(uri, file, keys, ask)
	switch {
	case err == nil && loaded.Folder:
		return refuse("is a folder", nil)
	case err == nil && loaded.Asked && o.ask == nil && loaded.Keys == 0 && len(loaded.Certs) == 0:
		return refuse(needed, nil)
	case err == nil:
		return loaded, nil
	case file && allRead(uri, loaded.Objects):
		return loaded, nil
	}
	cause := storeError
	if file {
		cause = fileError
	}
	e, ok := err.(*libssl.Error)
	if !ok { // the error of the function of WithPassphrase
		return refuse("no passphrase", err)
	}
	if e.NoMemory() { // OpenSSL's other errors are consequences
		return refuse(notLoaded, cause(err))
	}
	if file && keys && !libssl.AtLeast(libssl.Version3_5) {
		if scheme := mldsaIn(uri); scheme != 0 {
			return refuse(fmt.Sprintf("a key for %s requires OpenSSL 3.5 or later", libssl.MLDSAName(scheme)), cause(err))
		}
	}
	if file && libssl.AtLeast(libssl.Version3_0) {
		if cipher := oldCipherIn(uri); cipher != "" && (!loaded.Asked || o.ask != nil) {
			return refuse(fmt.Sprintf("can't be loaded; it is encrypted with %s, for which OpenSSL needs its provider \"legacy\": "+
				"WithProvider, or encrypt the key anew", cipher), cause(err))
		}
	}
	switch {
	case loaded.Unserved:
		return refuse(fmt.Sprintf("no active provider serves %s: URIs; activate one in openssl.cnf, or by WithProvider", scheme),
			cause(err))
	case loaded.Asked && o.ask == nil: // OpenSSL's errors are the same as for an empty passphrase
		return refuse(needed, nil)
	case loaded.Asked:
		return refuse("can't be loaded; is the passphrase or PIN right?", cause(err))
	}
	return refuse(notLoaded, cause(err))
}

// libraryError returns package ossl's error for an error from libssl.
func libraryError(err error) error {
	var e *libssl.Error
	if errors.As(err, &e) {
		return &ossl.LibraryError{Op: e.Op, Codes: e.Codes, Reason: e.Reason()}
	}
	return fmt.Errorf("keys: %w", err)
}

// fileError is libraryError, or the system's error if there is one.
func fileError(err error) error {
	var e *libssl.Error
	if errors.As(err, &e) {
		if errno := e.Errno(); errno != 0 {
			return errno
		}
	}
	return libraryError(err)
}

// storeError is libraryError without the errors that OpenSSL adds because it finds no file with the
// URI as its name.
func storeError(err error) error {
	var e *libssl.Error
	if !errors.As(err, &e) {
		return libraryError(err)
	}
	return libraryError(e.WithoutFileLookup())
}

// chainFor returns the key's certificate among certs, and the other certificates of its chain
// behind it, in the order in which they stand.
func chainFor(key crypto.PublicKey, certs [][]byte) (chain [][]byte, leaf *x509.Certificate, err error) {
	var parsed []*x509.Certificate
	for i, der := range certs {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, nil, fmt.Errorf("certificate %d: %w", i, err)
		}
		public, ok := cert.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
		switch {
		case !ok || !public.Equal(key):
			parsed = append(parsed, cert)
		case leaf == nil:
			leaf = cert
		case !leaf.Equal(cert):
			return nil, nil, errors.New("there are several certificates for the private key: name one")
		}
	}
	switch {
	case len(certs) == 0:
		return nil, nil, errors.New("there is no certificate")
	case leaf == nil:
		return nil, nil, errors.New("no certificate belongs to the private key")
	}
	chain = [][]byte{leaf.Raw}
	for at, links := 0, []*x509.Certificate{leaf}; at < len(links); at++ {
		for i, cert := range parsed {
			if cert != nil && issued(cert, links[at]) {
				chain, links, parsed[i] = append(chain, cert.Raw), append(links, cert), nil
			}
		}
	}
	return chain, leaf, nil
}

// issued reports whether, by the names, issuer may have issued cert: RFC 5280, sections 4.1.2.4 and
// 4.2.1.1.
func issued(issuer, cert *x509.Certificate) bool {
	return bytes.Equal(issuer.RawSubject, cert.RawIssuer) && (len(cert.AuthorityKeyId) == 0 || len(issuer.SubjectKeyId) == 0 ||
		bytes.Equal(cert.AuthorityKeyId, issuer.SubjectKeyId))
}
