package client

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/rsa"
	"encoding/binary"
	"math/big"

	"github.com/ossl-go/ossl/audit/internal/wire"
)

// maxPrime bounds the work for a server's finite-field group.
const maxPrime = 8192

// curve12 returns the curve of a group, or nil.
func curve12(group uint16) ecdh.Curve {
	switch group {
	case 0x0017:
		return ecdh.P256()
	case 0x0018:
		return ecdh.P384()
	case 0x0019:
		return ecdh.P521()
	case 0x001d:
		return ecdh.X25519()
	}
	return nil
}

// An exchanged12 is the client's part of a key exchange.
type exchanged12 struct {
	premaster []byte
	message   []byte // the body of ClientKeyExchange
	group     uint16 // of ECDHE
	// parameters is the number of bytes of ServerKeyExchange that are signed.
	parameters int
}

// exchangeKeys makes the client's part of a key exchange. The version is the one that the
// ClientHello offered.
func exchangeKeys(suite *suite12, offered uint16, certificate, serverKeyExchange []byte) (exchanged12, error) {
	switch suite.exchange {
	case exchangeECDHE:
		return exchangeCurve(serverKeyExchange)
	case exchangeDHE:
		return exchangePrime(serverKeyExchange)
	}
	if serverKeyExchange != nil {
		return exchanged12{}, protocolError("a ServerKeyExchange in an exchange of RSA")
	}
	return exchangeEncrypted(offered, certificate)
}

// exchangeCurve is ECDHE, RFC 8422, section 5.4.
func exchangeCurve(message []byte) (exchanged12, error) {
	r := wire.Reader{Rest: message}
	kind, group, share := r.Uint8(), r.Uint16(), r.Vector(1)
	if r.Failed || kind != 3 { // named_curve
		return exchanged12{}, protocolError("a malformed ServerKeyExchange")
	}
	curve := curve12(group)
	if curve == nil {
		return exchanged12{}, protocolError("the server chose the group 0x%04x, which wasn't offered", group)
	}
	peer, err := curve.NewPublicKey(share)
	if err != nil {
		return exchanged12{}, protocolError("the server's key share: %v", err)
	}
	key, err := curve.GenerateKey(rand.Reader)
	if err != nil {
		return exchanged12{}, err
	}
	premaster, err := key.ECDH(peer)
	if err != nil {
		return exchanged12{}, protocolError("the server's key share: %v", err)
	}
	public := key.PublicKey().Bytes()
	return exchanged12{premaster, wire.AppendVector(nil, 1, public), group, len(message) - len(r.Rest)}, nil
}

// exchangePrime is DHE, RFC 5246, section 7.4.3.
func exchangePrime(message []byte) (exchanged12, error) {
	r := wire.Reader{Rest: message}
	number := func() *big.Int { return new(big.Int).SetBytes(r.Vector(2)) }
	p, g, peer := number(), number(), number()
	if r.Failed {
		return exchanged12{}, protocolError("a malformed ServerKeyExchange")
	}
	one := big.NewInt(1)
	last := new(big.Int).Sub(p, one)
	if p.BitLen() < 256 || p.BitLen() > maxPrime || p.Bit(0) == 0 ||
		g.Cmp(one) <= 0 || g.Cmp(last) >= 0 || peer.Cmp(one) <= 0 || peer.Cmp(last) >= 0 {
		return exchanged12{}, protocolError("unusable Diffie-Hellman parameters with a prime of %d bits", p.BitLen())
	}
	secret := make([]byte, 32) // 256 bits are enough for a key that lives for one measurement
	rand.Read(secret)
	x := new(big.Int).SetBytes(secret)
	public := make([]byte, (p.BitLen()+7)/8)
	new(big.Int).Exp(g, x, p).FillBytes(public)
	premaster := new(big.Int).Exp(peer, x, p).Bytes() // without leading zeros, RFC 5246, section 8.1.2
	return exchanged12{premaster: premaster, message: wire.AppendVector(nil, 2, public), parameters: len(message) - len(r.Rest)}, nil
}

// exchangeEncrypted is RSA, RFC 5246, section 7.4.7.1.
func exchangeEncrypted(offered uint16, der []byte) (exchanged12, error) {
	certificate, err := ParseCertificate(der)
	if certificate == nil {
		return exchanged12{}, protocolError("the server's certificate: %v", err)
	}
	key, ok := certificate.PublicKey.(*rsa.PublicKey)
	if !ok {
		return exchanged12{}, protocolError("an exchange of RSA with a certificate of another kind")
	}
	if key.N.BitLen() > maxRSA {
		return exchanged12{}, protocolError("an RSA key of %d bits", key.N.BitLen())
	}
	premaster := make([]byte, 48)
	rand.Read(premaster)
	binary.BigEndian.PutUint16(premaster, offered)
	// RFC 8017, section 7.2.1, by hand because crypto/rsa refuses the small keys that are worth a finding.
	encrypted := make([]byte, key.Size())
	if len(encrypted) < len(premaster)+11 {
		return exchanged12{}, protocolError("an RSA key of %d bits", key.N.BitLen())
	}
	padded := bytes.Repeat([]byte{0xff}, len(encrypted))
	padded[0], padded[1], padded[len(padded)-49] = 0, 2, 0
	copy(padded[len(padded)-48:], premaster)
	new(big.Int).Exp(new(big.Int).SetBytes(padded), big.NewInt(int64(key.E)), key.N).FillBytes(encrypted)
	return exchanged12{premaster: premaster, message: wire.AppendVector(nil, 2, encrypted)}, nil
}
