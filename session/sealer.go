package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"
)

// ErrSealed is wrapped by errors for values that a [Sealer] can't open: they were sealed under
// another secret or for another purpose, ID or expiry, were changed, or were not sealed at all.
var ErrSealed = errors.New("session: a sealed value can't be opened")

// A Secret is 32 random bytes that the members of a fleet share. A [32]byte can be used in its
// place. It doesn't print itself.
type Secret [32]byte

// Format implements [fmt.Formatter]; no verb prints the secret.
func (s Secret) Format(f fmt.State, verb rune) { io.WriteString(f, "session.Secret") }

// LogValue implements [slog.LogValuer] without the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue("session.Secret") }

// MarshalText implements [encoding.TextMarshaler] without the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte("session.Secret"), nil }

// A Sealer encrypts and authenticates values that leave the process, under secrets that the members
// of a fleet share.
//
// Each value is sealed with AES-256-GCM under its own key, which HKDF-SHA256 derives from the
// secret and a random salt of 32 bytes. GCM under one key with random nonces is safe for 2^32
// values, which a busy fleet seals in days. Here no key ever seals a second value (the probability
// that two of 2^48 salts are equal is below 2^-160), so secrets need not be changed after any
// number of values. The nonce is random too, because FIPS 140-3 modules accept no other.
//
// The ID, the expiry and the purpose are authenticated with the value: sealed bytes that are found
// under another ID, or whose expiry was changed, don't open. The length of a value is visible.
type Sealer struct {
	purpose string
	keys    atomic.Pointer[[]sealKey] // the first seals
}

// A sealKey is derived from a secret and a purpose.
type sealKey struct {
	secret Secret
	name   [8]byte  // identifies the key in a sealed value
	id     [32]byte // hashes IDs
}

// The layout of a sealed value: version, name of the secret, salt and expiry, which are all
// authenticated, then the nonce, the ciphertext and the tag of GCM.
const (
	sealVersion = 1
	saltAt      = 1 + 8
	expiryAt    = saltAt + 32
	headerLen   = expiryAt + 8
	gcmOverhead = 12 + 16
)

// SealOverhead is the number of bytes by which a sealed value is longer than the value.
const SealOverhead = headerLen + gcmOverhead

// NewSealer returns a Sealer for a purpose. It seals under the first secret and opens under all of
// them. Sealers of different purposes can't open each other's values. Secrets must be random.
// NewSealer returns an error if there is no secret, if one has zero bytes only, or if two are
// equal.
func NewSealer(purpose string, secrets ...Secret) (*Sealer, error) {
	s := &Sealer{purpose: purpose}
	if err := s.Set(secrets...); err != nil {
		return nil, err
	}
	return s, nil
}

// Set replaces the Sealer's secrets. To change a fleet's secret, give all members the new one as
// the second, then give it to all as the first, and remove the old one when the values sealed under
// it have expired.
func (s *Sealer) Set(secrets ...Secret) error {
	if len(secrets) == 0 {
		return errors.New("session: a Sealer needs a secret")
	}
	keys := make([]sealKey, len(secrets))
	for i, secret := range secrets {
		if secret == (Secret{}) {
			return fmt.Errorf("session: secret %d of a Sealer is all zeros: it was not set", i)
		}
		k := sealKey{secret: secret}
		s.derive(k.name[:], &k.secret, nil, "name")
		s.derive(k.id[:], &k.secret, nil, "id")
		for _, other := range keys[:i] {
			if subtle.ConstantTimeCompare(other.name[:], k.name[:]) == 1 {
				return fmt.Errorf("session: secret %d of a Sealer is a duplicate", i)
			}
		}
		keys[i] = k
	}
	s.keys.Store(&keys)
	return nil
}

// derive fills out with bytes derived from a secret, for one use.
func (s *Sealer) derive(out []byte, secret *Secret, salt []byte, use string) {
	derived, err := hkdf.Key(sha256.New, secret[:], salt, "ossl session seal v1 "+use+"\x00"+s.purpose, len(out))
	if err != nil {
		panic("session: " + err.Error()) // the lengths are constants that fit
	}
	copy(out, derived)
	clear(derived)
}

// aead returns the cipher for one value.
func (s *Sealer) aead(k *sealKey, salt []byte) cipher.AEAD {
	var key [32]byte
	defer clear(key[:])
	s.derive(key[:], &k.secret, salt, "value")
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("session: " + err.Error())
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("session: " + err.Error())
	}
	return aead
}

// Seal returns value sealed for an ID and an expiry, which has a resolution of milliseconds.
func (s *Sealer) Seal(id, value []byte, expires time.Time) []byte {
	return s.seal(&(*s.keys.Load())[0], id, value, expires)
}

func (s *Sealer) seal(k *sealKey, id, value []byte, expires time.Time) []byte {
	sealed := make([]byte, headerLen, SealOverhead+len(value))
	sealed[0] = sealVersion
	copy(sealed[1:], k.name[:])
	rand.Read(sealed[saltAt:expiryAt]) // never fails
	binary.BigEndian.PutUint64(sealed[expiryAt:], uint64(expires.UnixMilli()))
	return s.aead(k, sealed[saltAt:expiryAt]).Seal(sealed, nil, value, bound(sealed, id))
}

// bound returns the data that is authenticated besides the value: the header, whose length is
// fixed, and the ID.
func bound(sealed, id []byte) []byte {
	b := make([]byte, 0, headerLen+len(id))
	return append(append(b, sealed[:headerLen]...), id...)
}

// Open returns the value and the expiry that Seal was given for the ID. It doesn't compare the
// expiry with any clock. Its error wraps [ErrSealed].
func (s *Sealer) Open(id, sealed []byte) (value []byte, expires time.Time, err error) {
	if len(sealed) < SealOverhead {
		return nil, time.Time{}, fmt.Errorf("%w: %d bytes are too few", ErrSealed, len(sealed))
	}
	if sealed[0] != sealVersion {
		return nil, time.Time{}, fmt.Errorf("%w: version %d", ErrSealed, sealed[0])
	}
	keys := *s.keys.Load()
	for i := range keys {
		k := &keys[i]
		if string(k.name[:]) != string(sealed[1:saltAt]) {
			continue
		}
		value, err := s.aead(k, sealed[saltAt:expiryAt]).Open([]byte{}, nil, sealed[headerLen:], bound(sealed, id))
		if err != nil {
			return nil, time.Time{}, fmt.Errorf("%w: not sealed for this ID, or changed", ErrSealed)
		}
		return value, time.UnixMilli(int64(binary.BigEndian.Uint64(sealed[expiryAt:]))), nil
	}
	return nil, time.Time{}, fmt.Errorf("%w: unknown secret", ErrSealed)
}

// Names returns the names of an ID in a store, one for each secret, in the order of the secrets. A
// name has 32 bytes of HMAC-SHA256.
func (s *Sealer) Names(id []byte) [][]byte {
	keys := *s.keys.Load()
	names := make([][]byte, len(keys))
	for i := range keys {
		names[i] = keys[i].hashID(id)
	}
	return names
}

// hashID returns the name of an ID in the store.
func (k *sealKey) hashID(id []byte) []byte {
	h := hmac.New(sha256.New, k.id[:])
	h.Write(id)
	return h.Sum(nil)
}

// String reports the Sealer's purpose.
func (s *Sealer) String() string { return fmt.Sprintf("sealer for %q", s.purpose) }

// Format implements [fmt.Formatter]; no verb prints a secret.
func (s *Sealer) Format(f fmt.State, verb rune) { io.WriteString(f, s.String()) }
