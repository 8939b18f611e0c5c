// Package ticketsecret derives libssl's ticket keys from secrets in crypto/tls's form, which
// programs set in a tls.Config or pass to session.KeyOf.
package ticketsecret

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha512"
)

// label separates the derived keys from other uses of the same secret.
const label = "ossl session ticket key v1"

// Hash is crypto/tls's first step with a secret: SHA-512, cut to the key material that it keeps and
// that has never been visible on the wire (ticketKeyFromBytes in crypto/tls).
func Hash(secret [32]byte) (material [32]byte) {
	sum := sha512.Sum512(secret[:])
	copy(material[:], sum[16:48])
	return material
}

// Derive derives a ticket key from that key material, with HKDF-SHA256: a name, a MAC key of 32
// bytes and an AES-256 key.
func Derive(material [32]byte) (name [16]byte, mac, cipher []byte) {
	derived, err := hkdf.Key(sha256.New, material[:], nil, label, 16+32+32)
	if err != nil {
		panic("ticketsecret: " + err.Error()) // the lengths are constants that fit
	}
	return [16]byte(derived), derived[16:48:48], derived[48:]
}
