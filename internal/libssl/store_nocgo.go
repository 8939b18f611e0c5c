//go:build !cgo

package libssl

import "crypto/tls"

// Key is a private key that stays where OpenSSL found it. Without cgo there is none.
type Key struct{}

// LoadStore returns ErrUnavailable.
func LoadStore(string, bool, bool, func() ([]byte, error)) (*Loaded, error) {
	return nil, ErrUnavailable
}

// LoadProvider returns ErrUnavailable.
func LoadProvider(string) (file string, err error) { return "", ErrUnavailable }

// NeverPrompt does nothing.
func NeverPrompt() {}

// NewKeyCredential returns ErrUnavailable.
func NewKeyCredential([][]byte, *Key, []tls.SignatureScheme, []byte, []byte) (*Credential, error) {
	return nil, ErrUnavailable
}

// The methods exist so that callers compile.

func (k *Key) Public() ([]byte, error)                          { return nil, ErrUnavailable }
func (k *Key) Provider() string                                 { return "" }
func (k *Key) Sign(int, string, string, []byte) ([]byte, error) { return nil, ErrUnavailable }
