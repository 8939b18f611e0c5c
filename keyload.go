package ossl

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
	"slices"
	"strings"
	"syscall"

	"github.com/ossl-go/ossl/internal/libssl"
)

// A KeyError says why [LoadKey] or [LoadX509KeyPair] failed. Neither its text nor its fields have a PIN or passphrase in them.
type KeyError struct {
	URI    string // as it was given, but without what may be a secret
	Reason string
	Err    error // the cause, or nil. A missing file's is fs.ErrNotExist to errors.Is
}

func (e *KeyError) Error() string {
	s := "ossl: "
	if e.URI != "" {
		s += e.URI + ": "
	}
	s += e.Reason
	if e.Err != nil {
		s += ": " + strings.TrimPrefix(e.Err.Error(), "ossl: ")
	}
	return s
}

// Unwrap returns the cause.
func (e *KeyError) Unwrap() error { return e.Err }

// A KeyOption asks for something of [LoadKey] and [LoadX509KeyPair].
type KeyOption func(*keyOptions) error

type keyOptions struct {
	ask        func(uri string) ([]byte, error)
	maxSigners int
}

// WithPassphrase has ask called for the passphrase of an encrypted file, or for a token's PIN, if one is needed and neither the
// URI nor OpenSSL's configuration gives it. uri is what is being loaded, without secrets. ask is called once at most for each
// URI, by the goroutine that loads it, and what it returns is cleared after use.
//
// A token counts wrong PINs and locks itself after a few: don't try again with the same one. One PIN is offered to every token
// that the URI fits, so let the URI name one.
func WithPassphrase(ask func(uri string) ([]byte, error)) KeyOption {
	return func(o *keyOptions) error {
		if ask == nil {
			return &KeyError{Reason: "WithPassphrase: nil"}
		}
		o.ask = ask
		return nil
	}
}

// WithProvider loads an OpenSSL provider, such as "pkcs11" or "tpm2", into the process's default library context before anything
// else, unless it is there already. It stays until the process ends. What openssl.cnf says about it counts, whether or not it is
// activated there; the module is looked for where OpenSSL looks for modules. It needs OpenSSL 3.0.
func WithProvider(name string) KeyOption {
	return func(*keyOptions) error {
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" {
			return &KeyError{Reason: fmt.Sprintf("WithProvider: %q is no provider's name; a path goes into openssl.cnf", name)}
		}
		if !libraryHas(libssl.Version3_0) {
			return &KeyError{Reason: fmt.Sprintf("WithProvider: provider %q needs OpenSSL 3.0 or later", name)}
		}
		if err := libssl.LoadProvider(name); err != nil {
			return &KeyError{Reason: fmt.Sprintf("WithProvider: provider %q can't be loaded", name), Err: fileError(err)}
		}
		return nil
	}
}

// WithMaxSigners bounds how many signatures are made with the key at the same time, handshakes of all Contexts and calls of
// [Key.Sign] together. Other handshakes wait for their turn, until their context ends, a deadline passes, the peer hangs up, or
// Close is called. It is for tokens that have few sessions: without a bound, a handshake that finds no free session may fail.
//
// The default is 128 if the key's provider is not one of OpenSSL's own, and no bound otherwise. All bounded keys of the process
// together hold at most 2048 threads; as fewer of these are left, each key may use fewer.
func WithMaxSigners(n int) KeyOption {
	return func(o *keyOptions) error {
		if n < 1 {
			return &KeyError{Reason: fmt.Sprintf("WithMaxSigners: %d", n)}
		}
		o.maxSigners = n
		return nil
	}
}

// defaultMaxSigners bounds the threads that one slow token can hold, unless WithMaxSigners sets a bound.
const defaultMaxSigners = 128

// LoadKey loads the one private key that a store URI names: ossl_store(7). That is the path of a file or a "file:" URI, whose
// file is PEM, DER or PKCS #12; or, with OpenSSL 3.0 or later, a URI of any scheme that an active provider knows, such as
// "pkcs11:" (RFC 7512). The key must be of RSA, ECDSA or Ed25519. Everything but a file wants its provider: from openssl.cnf, or
// from [WithProvider]; docs/KEYS.md shows how.
//
// The PIN or passphrase may come with the URI ("pin-value", "pin-source"), from OpenSSL's configuration, or by [WithPassphrase].
// Nobody is asked at the terminal: where a URI of another scheme than "file" is loaded, OpenSSL's own prompt is turned off for
// the process, unless the process has chosen another one.
//
// LoadKey returns when the provider has answered, which may take long; nothing can cut it short. Errors are a [*KeyError], or
// wrap [ErrUnavailable]. It loads OpenSSL if that has not happened yet, as [Library] does.
func LoadKey(uri string, opts ...KeyOption) (*Key, error) {
	o, err := keyOptionsOf(opts)
	if err != nil {
		return nil, err
	}
	return o.loadKey(uri)
}

// LoadX509KeyPair is [tls.LoadX509KeyPair] for store URIs, as [LoadKey] takes them: the private key stays with OpenSSL or in its
// token. The leaf is the one certificate, of those that certURI names, which belongs to the key, wherever it stands. It is
// followed by what else there is of its chain, and by nothing else: a token may have many certificates.
//
// The two URIs may be the same: a PKCS #12 file's, or a token's.
func LoadX509KeyPair(certURI, keyURI string, opts ...KeyOption) (tls.Certificate, error) {
	o, err := keyOptionsOf(opts)
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
		return tls.Certificate{}, &KeyError{URI: showURI(certURI), Reason: err.Error()}
	}
	return tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}, nil
}

func keyOptionsOf(opts []KeyOption) (*keyOptions, error) {
	if _, err := loadLibrary(""); err != nil {
		return nil, err
	}
	o := new(keyOptions)
	for _, opt := range opts {
		if err := opt(o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (o *keyOptions) loadKey(uri string) (*Key, error) {
	refuse := func(reason string, err error) (*Key, error) {
		return nil, &KeyError{URI: showURI(uri), Reason: reason, Err: err}
	}
	loaded, err := o.load(uri, true)
	if err != nil {
		return nil, err
	}
	switch {
	case loaded.Keys == 0 && !isFileURI(uri): // pkcs11-provider doesn't say which
		return refuse("there is no private key, or the PIN is wrong", nil)
	case loaded.Keys == 0:
		return refuse("there is no private key", nil)
	case loaded.Keys > 1:
		return refuse(fmt.Sprintf("there are %d private keys: name one", loaded.Keys), nil)
	}
	der, err := loaded.Key.Public()
	if err != nil {
		return refuse("the private key comes without its public half", storeError(err))
	}
	public, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return refuse("the private key's public half is of no known kind", err)
	}
	switch public.(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
	default:
		return refuse(fmt.Sprintf("the private key belongs to a %T, with which TLS does not sign", public), nil)
	}
	key := &Key{key: loaded.Key, public: public, uri: showURI(uri)}
	if o.maxSigners > 0 {
		key.turns = &share{max: o.maxSigners}
	} else if !libssl.IsOwnProvider(key.Provider()) {
		key.turns = &share{max: defaultMaxSigners}
	}
	if !libraryHas(libssl.Version3_0) {
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

// load loads what uri names.
func (o *keyOptions) load(uri string, keys bool) (*libssl.Loaded, error) {
	shown := showURI(uri)
	refuse := func(reason string, err error) (*libssl.Loaded, error) {
		return nil, &KeyError{URI: shown, Reason: reason, Err: err}
	}
	if uri == "" || strings.ContainsRune(uri, 0) {
		return refuse("is no URI and no path", nil)
	}
	scheme, file := schemeOf(uri), isFileURI(uri)
	if scheme == "file" && !strings.HasPrefix(uri[len("file:"):], "/") { // some versions of OpenSSL take them
		return refuse("a file: URI has an absolute path", nil)
	}
	if !file {
		if !libraryHas(libssl.Version3_0) {
			return refuse(scheme+": URIs need OpenSSL 3.0 or later; before, there are engines, which ossl does not load", nil)
		}
		if isFile(uri) {
			return refuse("is a file's name too, which OpenSSL would take: say file: if that is meant", nil)
		}
		libssl.NeverPrompt()
	}
	var ask func() ([]byte, error)
	if o.ask != nil {
		ask = func() ([]byte, error) { return o.ask(shown) }
	}
	const needed = "a passphrase or PIN is needed, see WithPassphrase"
	loaded, err := libssl.LoadStore(uri, file, keys, ask)
	switch {
	case err == nil && loaded.Folder:
		return refuse("is a folder", nil)
	case err == nil && loaded.Asked && o.ask == nil && loaded.Keys == 0 && len(loaded.Certs) == 0:
		return refuse(needed, nil)
	case err == nil:
		return loaded, nil
	}
	cause := storeError
	if file {
		cause = fileError
	}
	if _, ok := err.(*libssl.Error); !ok { // what the passphrase's giver said
		return refuse("no passphrase", err)
	}
	switch {
	case loaded.Unserved:
		return refuse(fmt.Sprintf("no active provider serves %s: URIs; activate one in openssl.cnf, or by WithProvider", scheme),
			cause(err))
	case loaded.Asked && o.ask == nil:
		return refuse(needed, cause(err))
	case loaded.Asked:
		return refuse("can't be loaded; is the passphrase or PIN right?", cause(err))
	}
	return refuse("can't be loaded", cause(err))
}

// fileError is libraryError, or the system's error if there is one.
func fileError(err error) error {
	var e *libssl.Error
	if errors.As(err, &e) {
		for _, code := range e.Codes {
			if errno := systemError(code); errno != 0 {
				return errno
			}
		}
	}
	return libraryError(err)
}

// storeError is libraryError without what OpenSSL found when it looked for a file of the URI's name, which it does first.
func storeError(err error) error {
	var e *libssl.Error
	if !errors.As(err, &e) {
		return libraryError(err)
	}
	const unregisteredScheme = 105 // OSSL_STORE_R_UNREGISTERED_SCHEME
	codes := slices.DeleteFunc(slices.Clone(e.Codes), func(code uint64) bool {
		return systemError(code) != 0 || code>>23 == libraryOfStore && code&0x7fffff == unregisteredScheme
	})
	return libraryError(&libssl.Error{Op: e.Op, Codes: codes})
}

// libraryOfStore is ERR_LIB_OSSL_STORE.
const libraryOfStore = 44

// systemError returns what a packed error code says of errno, 0 if nothing: ERR_SYSTEM_ERROR(3), ERR_GET_LIB(3).
func systemError(code uint64) syscall.Errno {
	const flag, libSys = 1 << 31, 2
	switch {
	case libraryHas(libssl.Version3_0):
		if code&flag != 0 {
			return syscall.Errno(code &^ flag)
		}
	case code>>24 == libSys:
		return syscall.Errno(code & 0xfff)
	}
	return 0
}

// chainFor finds the key's certificate among certs, and what belongs to its chain, in the order in which they stand.
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

// issued reports whether, by the names, issuer may have issued cert: RFC 5280, sections 4.1.2.4 and 4.2.1.1.
func issued(issuer, cert *x509.Certificate) bool {
	return bytes.Equal(issuer.RawSubject, cert.RawIssuer) && (len(cert.AuthorityKeyId) == 0 || len(issuer.SubjectKeyId) == 0 ||
		bytes.Equal(cert.AuthorityKeyId, issuer.SubjectKeyId))
}
