package client

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"hash"

	"github.com/ossl-go/ossl/audit/internal/hello"
)

// An exchange12 is a TLS 1.2 key exchange.
type exchange12 int

const (
	exchangeRSA exchange12 = iota
	exchangeDHE
	exchangeECDHE
)

// A cipher12 is a TLS 1.2 cipher.
type cipher12 int

const (
	cipherGCM cipher12 = iota
	cipherChaCha
	cipherCBC
	cipher3DES
)

// A suite12 is a cipher suite with which the client can finish a handshake in TLS 1.2 or earlier.
type suite12 struct {
	id       uint16
	exchange exchange12
	cipher   cipher12
	key      int              // bytes
	mac      func() hash.Hash // of CBC
	hash     func() hash.Hash // for the TLS 1.2 pseudorandom function
	since    uint16           // the first version
}

// suites12 has the suites in the order in which they are offered.
var suites12 = []suite12{
	{0xc02b, exchangeECDHE, cipherGCM, 16, nil, sha256.New, hello.TLS12},
	{0xc02f, exchangeECDHE, cipherGCM, 16, nil, sha256.New, hello.TLS12},
	{0xc02c, exchangeECDHE, cipherGCM, 32, nil, sha512.New384, hello.TLS12},
	{0xc030, exchangeECDHE, cipherGCM, 32, nil, sha512.New384, hello.TLS12},
	{0xcca9, exchangeECDHE, cipherChaCha, 32, nil, sha256.New, hello.TLS12},
	{0xcca8, exchangeECDHE, cipherChaCha, 32, nil, sha256.New, hello.TLS12},
	{0xc009, exchangeECDHE, cipherCBC, 16, sha1.New, sha256.New, hello.TLS10},
	{0xc013, exchangeECDHE, cipherCBC, 16, sha1.New, sha256.New, hello.TLS10},
	{0xc00a, exchangeECDHE, cipherCBC, 32, sha1.New, sha256.New, hello.TLS10},
	{0xc014, exchangeECDHE, cipherCBC, 32, sha1.New, sha256.New, hello.TLS10},
	{0xc023, exchangeECDHE, cipherCBC, 16, sha256.New, sha256.New, hello.TLS12},
	{0xc027, exchangeECDHE, cipherCBC, 16, sha256.New, sha256.New, hello.TLS12},
	{0xc024, exchangeECDHE, cipherCBC, 32, sha512.New384, sha512.New384, hello.TLS12},
	{0xc028, exchangeECDHE, cipherCBC, 32, sha512.New384, sha512.New384, hello.TLS12},
	{0x009e, exchangeDHE, cipherGCM, 16, nil, sha256.New, hello.TLS12},
	{0x009f, exchangeDHE, cipherGCM, 32, nil, sha512.New384, hello.TLS12},
	{0xccaa, exchangeDHE, cipherChaCha, 32, nil, sha256.New, hello.TLS12},
	{0x0033, exchangeDHE, cipherCBC, 16, sha1.New, sha256.New, hello.TLS10},
	{0x0039, exchangeDHE, cipherCBC, 32, sha1.New, sha256.New, hello.TLS10},
	{0x0067, exchangeDHE, cipherCBC, 16, sha256.New, sha256.New, hello.TLS12},
	{0x006b, exchangeDHE, cipherCBC, 32, sha256.New, sha256.New, hello.TLS12},
	{0x009c, exchangeRSA, cipherGCM, 16, nil, sha256.New, hello.TLS12},
	{0x009d, exchangeRSA, cipherGCM, 32, nil, sha512.New384, hello.TLS12},
	{0x002f, exchangeRSA, cipherCBC, 16, sha1.New, sha256.New, hello.TLS10},
	{0x0035, exchangeRSA, cipherCBC, 32, sha1.New, sha256.New, hello.TLS10},
	{0x003c, exchangeRSA, cipherCBC, 16, sha256.New, sha256.New, hello.TLS12},
	{0x003d, exchangeRSA, cipherCBC, 32, sha256.New, sha256.New, hello.TLS12},
	{0xc012, exchangeECDHE, cipher3DES, 24, sha1.New, sha256.New, hello.TLS10},
	{0x000a, exchangeRSA, cipher3DES, 24, sha1.New, sha256.New, hello.TLS10},
}

// suite12ByID returns a suite, or nil.
func suite12ByID(id uint16) *suite12 {
	for i := range suites12 {
		if suites12[i].id == id {
			return &suites12[i]
		}
	}
	return nil
}

// prf returns the pseudorandom function of the suite in a version.
func (s *suite12) prf(version uint16) prf {
	if version < hello.TLS12 {
		return prf{}
	}
	return prf{s.hash}
}
