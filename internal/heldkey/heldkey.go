// Package heldkey gives package ossl access to the keys that package keys has loaded. It is a package
// of its own because package keys imports package ossl.
package heldkey

import (
	"crypto"

	"github.com/ossl-go/ossl/internal/gate"
	"github.com/ossl-go/ossl/internal/libssl"
)

// A Key is a private key that OpenSSL holds, and signs with.
type Key struct {
	*libssl.Key

	// Share is the key's share of [gate.Tokens], nil if the number of its signatures is not
	// bounded.
	Share *gate.Share
}

var find = func(crypto.PrivateKey) *Key { return nil }

// Register sets the function that returns the Key in a private key, or nil. Package keys calls it
// when it is initialized: if that is not part of the program, such keys don't exist.
func Register(f func(crypto.PrivateKey) *Key) { find = f }

// In returns the Key in a private key, or nil if the private key is of another kind.
func In(private crypto.PrivateKey) *Key { return find(private) }
