package libssl

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// Key is a private key that stays where OpenSSL found it. Its methods may be called at the same
// time.
type Key struct {
	p        *c_ossl_key
	provider string
}

// asking is the state that osslGoPassphrase uses.
type asking struct {
	file     bool                   // loading from a file
	ask      func() ([]byte, error) // nil if there is no callback
	asked    bool
	answer   []byte
	err      error
	panicked any
}

// passphrase returns ask's answer, nil for none. It calls ask only once.
func (a *asking) passphrase(max int) []byte {
	if !a.asked {
		a.asked = true
		if a.ask != nil {
			a.askFor()
		}
	}
	if a.err == nil && len(a.answer) > max {
		a.err = fmt.Errorf("a passphrase of %d bytes, where %d are the most", len(a.answer), max)
	}
	if a.err != nil {
		return nil
	}
	return a.answer
}

// askFor calls ask, which is the user's code and may load a key itself.
func (a *asking) askFor() {
	if !a.file {
		storeMu.Unlock()
		defer storeMu.Lock()
	}
	a.answer, a.err = a.ask()
}

// passphraseFor is called on libcrypto's thread for a passphrase or PIN. No panic gets out.
func passphraseFor(handle c_uintptr_t, buf *c_uint8_t, size c_int32_t) (n c_int32_t) {
	a, ok := valueOf(uintptr(handle)).(*asking)
	if !ok || size <= 0 {
		return 0
	}
	defer func() {
		if p := recover(); p != nil {
			n, a.panicked, a.err = 0, p, errors.New("panic")
		}
	}()
	return c_int32_t(copy(unsafe.Slice((*byte)(unsafe.Pointer(buf)), int(size)), a.passphrase(int(size))))
}

// storeMu is held while objects are loaded from other sources than files, except while a passphrase
// is requested: if several threads load from a token, pkcs11-provider 1.0 with SoftHSM 2.6 crashes
// or hangs. TestPKCS11Parallel.
var storeMu sync.Mutex

// LoadStore loads either the keys or the certificates that a URI names, which may be a file's. ask,
// which may be nil, is called at most once, for a passphrase or PIN, which LoadStore then owns. The
// library must be loaded. The results found so far are returned with an error too.
func LoadStore(uri string, file, keys bool, ask func() ([]byte, error)) (*Loaded, error) {
	name := c_CString(uri)
	defer func() {
		clear(unsafe.Slice((*byte)(unsafe.Pointer(name)), len(uri))) // it may contain a PIN
		c_free(unsafe.Pointer(name))
	}()
	a := &asking{file: file, ask: ask}
	defer func() { clear(a.answer) }()
	handle := newHandle(a)
	defer freeHandle(handle)
	what := c_int(c_OSSL_STORE_CERTS)
	if keys {
		what = c_OSSL_STORE_KEYS
	}
	var found c_ossl_loaded
	var errs [errorSlots]c_ulong
	if !file {
		storeMu.Lock()
		defer storeMu.Unlock()
	}
	ok := c_ossl_store_load(name, c_int(flag(file)), what, c_uintptr_t(handle), &found, &errs[0])
	defer c_ossl_loaded_free(&found)
	loaded := &Loaded{Keys: int(found.keys), Objects: int(found.objects), Folder: found.names > 0,
		Unserved: found.unserved != 0, Asked: a.asked}
	if found.key != nil {
		loaded.Key = &Key{p: found.key, provider: c_GoString(c_ossl_key_provider(found.key))}
		runtime.AddCleanup(loaded.Key, func(p *c_ossl_key) { c_ossl_key_free(p) }, found.key)
	}
	for packed := c_GoBytes(unsafe.Pointer(found.certs), c_int(found.certs_len)); len(packed) >= 4; {
		n := 4 + int(binary.BigEndian.Uint32(packed))
		loaded.Certs = append(loaded.Certs, packed[4:n:n])
		packed = packed[n:]
	}
	switch {
	case a.panicked != nil:
		panic(a.panicked)
	case a.err != nil:
		return loaded, a.err
	case ok != 1:
		return loaded, &Error{Op: "load", Codes: codes(&errs)}
	}
	return loaded, nil
}

var providerMu sync.Mutex

// LoadProvider loads a provider into the process's default library context, where it stays. file is
// the module that libcrypto loads for it, or "".
func LoadProvider(name string) (file string, err error) {
	providerMu.Lock() // a concurrent second caller finds it loaded
	defer providerMu.Unlock()
	s := c_CString(name)
	defer c_free(unsafe.Pointer(s))
	config, fault := ReadConfig()
	defer config.Close()
	if fault != nil && fault.Passing() {
		return "", fmt.Errorf("%s: %w", fault.File, fault)
	}
	if file, err = checkModules(c_ossl_module_of_provider(config.parsed(), s)); err != nil {
		return "", err // which names it
	}
	var errs [errorSlots]c_ulong
	if c_ossl_provider_load(s, &errs[0]) != 1 {
		return file, &Error{Op: "load provider", Codes: codes(&errs)}
	}
	return file, nil
}

// NeverPrompt prevents providers from asking for a PIN at the terminal, unless the process has
// chosen its own way of asking.
func NeverPrompt() { c_ossl_prompt_never() }

// Public returns the key's SubjectPublicKeyInfo.
func (k *Key) Public() ([]byte, error) {
	defer runtime.KeepAlive(k)
	var errs [errorSlots]c_ulong
	der := make([]byte, 1<<14)
	n := c_ossl_key_public(k.p, bytePtr(der), c_size_t(len(der)), &errs[0])
	if n == 0 {
		return nil, &Error{Op: "public key", Codes: codes(&errs)}
	}
	return der[:n:n], nil
}

// Provider returns the name of the provider that has the key, "" on 1.1.1.
func (k *Key) Provider() string { return k.provider }

// Sign signs a digest, or with Ed25519 and ML-DSA a message. hash is a HashName or "", salt is for PSS: "max",
// "digest" or a number.
func (k *Key) Sign(algorithm int, hash, salt string, tbs []byte) ([]byte, error) {
	defer runtime.KeepAlive(k)
	h, s := cString(hash), cString(salt)
	defer c_free(unsafe.Pointer(h))
	defer c_free(unsafe.Pointer(s))
	var errs [errorSlots]c_ulong
	size := 1 << 11 // RSA with 16384 bits
	if algorithm == signMLDSA {
		size = 4627 // ML-DSA-87: FIPS 204, table 2
	}
	sig := make([]byte, size)
	n := c_ossl_key_sign(k.p, c_int(algorithm), h, s, bytePtr(tbs), c_size_t(len(tbs)), bytePtr(sig), c_size_t(len(sig)), &errs[0])
	if n == 0 {
		return nil, &Error{Op: "sign", Codes: codes(&errs)}
	}
	return sig[:n:n], nil
}

// NewKeyCredential makes a credential from a chain and a Key. schemes is as for [NewCredential].
func NewKeyCredential(chain [][]byte, key *Key, schemes []tls.SignatureScheme, staple, scts []byte) (*Credential, error) {
	defer runtime.KeepAlive(key)
	sigalgs, err := list(schemes, signatureNames())
	if err != nil {
		return nil, err
	}
	packed := PackChain(chain)
	limits := cString(sigalgs)
	defer c_free(unsafe.Pointer(limits))
	var errs [errorSlots]c_ulong
	p := c_ossl_cred_new_key(bytePtr(packed), c_size_t(len(packed)), key.p, limits, bytePtr(staple),
		c_size_t(len(staple)), bytePtr(scts), c_size_t(len(scts)), &errs[0])
	if p == nil {
		return nil, &Error{Op: "load certificate for a key", Codes: codes(&errs)}
	}
	return ownCredential(&Credential{p: p, provider: key.provider}), nil
}
