// Package ticketsecret derives ticket keys from the secrets that crypto/tls is given for its own.
package ticketsecret

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha512"
)

// label separates what is derived from whatever else the same secret is used for.
const label = "ossl session ticket key v1"

// Hash is crypto/tls's first step with a secret, the key material that it keeps: SHA-512 cut to what has never been shown on a
// wire (ticketKeyFromBytes in crypto/tls).
func Hash(secret [32]byte) (material [32]byte) {
	sum := sha512.Sum512(secret[:])
	copy(material[:], sum[16:48])
	return material
}

// Derive makes a ticket key of what crypto/tls keeps of a secret, by HKDF-SHA256: a MAC key of 32 bytes and an AES-256 key.
func Derive(material [32]byte) (name [16]byte, mac, cipher []byte) {
	derived, err := hkdf.Key(sha256.New, material[:], nil, label, 16+32+32)
	if err != nil {
		panic("ticketsecret: " + err.Error()) // the lengths are constants that fit
	}
	return [16]byte(derived), derived[16:48:48], derived[48:]
}
