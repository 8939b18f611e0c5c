package session

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/ossl-go/ossl/internal/ticketsecret"
)

// A TicketKey seals session tickets with AES in CBC mode under Cipher, authenticated by HMAC-SHA256
// under MAC. libssl's tickets have this form (RFC 5077, section 4). Name identifies the key; it is
// in each ticket in the clear.
//
// A TicketKey prints as its name only; see [TicketKey.Format] for the exceptions.
type TicketKey struct {
	Name   [16]byte
	Cipher []byte // 16 bytes for AES-128, 32 for AES-256
	MAC    []byte // 16 or 32 bytes
}

// NewTicketKey returns a random key: AES-256, a 32-byte MAC key, and a random name.
func NewTicketKey() TicketKey {
	k, err := ticketKeyFrom(rand.Reader)
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	return k
}

func ticketKeyFrom(random io.Reader) (TicketKey, error) {
	var b [80]byte
	defer clear(b[:])
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return TicketKey{}, err
	}
	return splitTicketKey(&b), nil
}

// KeyOf returns the key derived from a 32-byte secret, such as one given to
// [crypto/tls.Config.SetSessionTicketKeys]: servers with the same secret open each other's tickets.
//
// Name, Cipher (AES-256) and MAC (32 bytes) are derived with HKDF-SHA256 from the part of the
// secret's hash that crypto/tls keeps. The keys that crypto/tls itself derives differ, and its
// tickets encode sessions differently, so servers that use crypto/tls can't be part of such a
// fleet.
//
// For a secret of 32 zero bytes, which is one that was never set, KeyOf returns the zero TicketKey,
// which no [Ring] accepts.
func KeyOf(secret [32]byte) TicketKey {
	if secret == [32]byte{} {
		return TicketKey{}
	}
	name, mac, cipher := ticketsecret.Derive(ticketsecret.Hash(secret))
	return TicketKey{Name: name, MAC: mac, Cipher: cipher}
}

// splitTicketKey returns the key in 80 bytes in the order that nginx's files have: name, MAC,
// cipher.
func splitTicketKey(b *[80]byte) TicketKey {
	k := TicketKey{MAC: append([]byte(nil), b[16:48]...), Cipher: append([]byte(nil), b[48:]...)}
	copy(k.Name[:], b[:16])
	return k
}

// ParseTicketKey parses a key from a file for nginx's ssl_session_ticket_key or Envoy's
// session_ticket_keys. A key of 80 bytes is a name of 16 bytes, a MAC key of 32 and an AES-256 key of
// 32. In a key of 48 bytes, which Envoy doesn't take, the last two are in the other order: a name of 16
// bytes, an AES-128 key of 16 and a MAC key of 16. The functions are ngx_ssl_session_ticket_keys in
// nginx's src/event/ngx_event_openssl.c and getSessionTicketKey in Envoy's
// source/common/tls/server_context_config_impl.cc.
func ParseTicketKey(b []byte) (TicketKey, error) {
	var k TicketKey
	switch len(b) {
	case 48:
		k = TicketKey{Cipher: append([]byte(nil), b[16:32]...), MAC: append([]byte(nil), b[32:]...)}
		copy(k.Name[:], b)
	case 80:
		k = splitTicketKey((*[80]byte)(b))
	default:
		return TicketKey{}, fmt.Errorf("session: a ticket key has 48 or 80 bytes, not %d", len(b))
	}
	if err := k.check(); err != nil {
		return TicketKey{}, err
	}
	return k, nil
}

// check returns an error if the key is malformed or not set.
func (k TicketKey) check() error {
	switch {
	case len(k.Cipher) != 16 && len(k.Cipher) != 32:
		return fmt.Errorf("session: %v: Cipher has %d bytes; AES needs 16 or 32", k, len(k.Cipher))
	case len(k.MAC) != 16 && len(k.MAC) != 32:
		return fmt.Errorf("session: %v: MAC has %d bytes instead of 16 or 32", k, len(k.MAC))
	case allZero(k.Cipher) || allZero(k.MAC):
		return fmt.Errorf("session: %v: Cipher or MAC is all zeros: it was not set", k)
	}
	return nil
}

func allZero(b []byte) bool {
	var or byte
	for _, c := range b {
		or |= c
	}
	return or == 0
}

// clone returns a key that shares no memory with k.
func (k TicketKey) clone() TicketKey {
	k.Cipher = append([]byte(nil), k.Cipher...)
	k.MAC = append([]byte(nil), k.MAC...)
	return k
}

// String returns the key's name, which is not secret.
func (k TicketKey) String() string { return fmt.Sprintf("ticket key %x", k.Name[:]) }

// Format implements [fmt.Formatter]; every verb prints only the key's name. There are two
// exceptions: package fmt calls no method of a value in an unexported field of a struct, which
// should therefore hold a *Ring instead of a TicketKey; and it calls none for the verb %p, which go
// vet refuses for structs.
func (k TicketKey) Format(s fmt.State, verb rune) { io.WriteString(s, k.String()) }

// LogValue implements [slog.LogValuer]; it returns the key's name.
func (k TicketKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText implements [encoding.TextMarshaler]; it returns the key's name. So encoding/json and
// encoding/xml write the name, which can't be read back.
func (k TicketKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// errNoKeys is the error of NewRing and Set for an empty list.
var errNoKeys = errors.New("session: a ring needs at least one ticket key")
