package client

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"hash"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/audit/internal/wire"
)

// A suite13 is a TLS 1.3 cipher suite.
type suite13 struct {
	id      uint16
	keySize int
	hash    func() hash.Hash
	aead    func(key []byte) (cipher.AEAD, error)
}

var suites13 = []suite13{
	{AES128GCM, 16, sha256.New, newGCM},
	{AES256GCM, 32, sha512.New384, newGCM},
	{ChaCha20, 32, sha256.New, chacha20poly1305.New},
}

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func findSuite13(id uint16) (suite13, error) {
	for _, s := range suites13 {
		if s.id == id {
			return s, nil
		}
	}
	return suite13{}, &UnsupportedError{hexName("cipher suite", id)}
}

func (s suite13) size() int { return s.hash().Size() }

func (s suite13) sum(data []byte) []byte {
	h := s.hash()
	h.Write(data)
	return h.Sum(nil)
}

// extract is HKDF-Extract; a nil secret stands for zeros.
func (s suite13) extract(secret, salt []byte) ([]byte, error) {
	if secret == nil {
		secret = make([]byte, s.size())
	}
	return hkdf.Extract(s.hash, secret, salt)
}

// expand is HKDF-Expand-Label of RFC 8446, section 7.1.
func (s suite13) expand(secret []byte, label string, context []byte, n int) ([]byte, error) {
	info := wire.Append(nil, 2, n)
	info = wire.AppendVector(info, 1, []byte("tls13 "+label))
	info = wire.AppendVector(info, 1, context)
	return hkdf.Expand(s.hash, secret, string(info), n)
}

// derive is Derive-Secret of a transcript.
func (s suite13) derive(secret []byte, label string, transcript []byte) ([]byte, error) {
	return s.expand(secret, label, s.sum(transcript), s.size())
}

// finished returns the verify_data of a Finished message, or of a PSK binder.
func (s suite13) finished(secret, transcript []byte) ([]byte, error) {
	key, err := s.expand(secret, "finished", nil, s.size())
	if err != nil {
		return nil, err
	}
	mac := hmac.New(s.hash, key)
	mac.Write(s.sum(transcript))
	return mac.Sum(nil), nil
}

// A half13 encrypts or decrypts the TLS 1.3 records of one direction.
type half13 struct {
	suite  suite13
	secret []byte
	aead   cipher.AEAD
	iv     []byte
	seq    uint64
}

func newHalf13(s suite13, secret []byte) (*half13, error) {
	h := &half13{suite: s}
	return h, h.use(secret)
}

func (h *half13) use(secret []byte) error {
	key, err := h.suite.expand(secret, "key", nil, h.suite.keySize)
	if err != nil {
		return err
	}
	if h.iv, err = h.suite.expand(secret, "iv", nil, 12); err != nil {
		return err
	}
	h.secret, h.seq = secret, 0
	h.aead, err = h.suite.aead(key)
	return err
}

// update takes the next generation of keys (RFC 8446, section 7.2).
func (h *half13) update() error {
	next, err := h.suite.expand(h.secret, "traffic upd", nil, h.suite.size())
	if err != nil {
		return err
	}
	return h.use(next)
}

func (h *half13) nonce() []byte {
	nonce := append([]byte(nil), h.iv...)
	for i := range 8 {
		nonce[11-i] ^= byte(h.seq >> (8 * i))
	}
	h.seq++
	return nonce
}

func (h *half13) open(header [headerSize]byte, record []byte) (byte, []byte, error) {
	if header[0] != recordApplication {
		return 0, nil, protocolError("the server sent a plain record of type %d after its ServerHello", header[0])
	}
	if len(record) > maxPlaintext+256 {
		return 0, nil, protocolError("the server sent a record of %d bytes", len(record))
	}
	data, err := h.aead.Open(record[:0], h.nonce(), record, header[:])
	if err != nil {
		return 0, nil, protocolError("a record of the server can't be decrypted")
	}
	n := len(data)
	for n > 0 && data[n-1] == 0 {
		n--
	}
	if n == 0 {
		return 0, nil, protocolError("the server sent a record without a type")
	}
	typ := data[n-1]
	if typ != recordAlert && typ != recordHandshake && typ != recordApplication {
		return 0, nil, protocolError("the server sent an encrypted record of type %d", typ)
	}
	return typ, data[:n-1], nil
}

func (h *half13) seal(typ byte, data []byte) ([]byte, error) {
	n := len(data) + 1 + h.aead.Overhead()
	record := []byte{recordApplication, 3, 3, byte(n >> 8), byte(n)}
	plain := append(append(make([]byte, 0, n), data...), typ)
	return h.aead.Seal(record, h.nonce(), plain, record), nil
}

// A share is the secret of a key share of the client.
type share struct {
	group uint16
	ec    *ecdh.PrivateKey
	kem   *mlkem.DecapsulationKey768
}

func curve(group uint16) ecdh.Curve {
	switch group {
	case P256:
		return ecdh.P256()
	case P384:
		return ecdh.P384()
	case P521:
		return ecdh.P521()
	case X25519, X25519MLKEM768:
		return ecdh.X25519()
	}
	return nil
}

// newShare makes a key share.
func newShare(group uint16) (s share, public hello.KeyShare, err error) {
	c := curve(group)
	if c == nil {
		return s, public, &UnsupportedError{hexName("group", group)}
	}
	s.group = group
	if s.ec, err = c.GenerateKey(rand.Reader); err != nil {
		return s, public, err
	}
	data := s.ec.PublicKey().Bytes()
	if group == X25519MLKEM768 {
		if s.kem, err = mlkem.GenerateKey768(); err != nil {
			return s, public, err
		}
		data = append(s.kem.EncapsulationKey().Bytes(), data...)
	}
	return s, hello.KeyShare{Group: group, Data: data}, nil
}

// NewShare returns a key share whose secret is thrown away: for a hello that is never completed.
func NewShare(group uint16) (hello.KeyShare, error) {
	_, public, err := newShare(group)
	return public, err
}

// secret returns the shared secret with the server's key share.
func (s share) secret(peer []byte) ([]byte, error) {
	var first []byte
	if s.kem != nil {
		if len(peer) != mlkem.CiphertextSize768+32 {
			return nil, protocolError("the server's key share has %d bytes", len(peer))
		}
		var err error
		if first, err = s.kem.Decapsulate(peer[:mlkem.CiphertextSize768]); err != nil {
			return nil, protocolError("the server's ML-KEM ciphertext: %v", err)
		}
		peer = peer[mlkem.CiphertextSize768:]
	}
	key, err := curve(s.group).NewPublicKey(peer)
	if err != nil {
		return nil, protocolError("the server's key share: %v", err)
	}
	second, err := s.ec.ECDH(key)
	if err != nil {
		return nil, protocolError("the server's key share: %v", err)
	}
	return append(first, second...), nil
}
