package tlstest

import (
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"math/big"
	"math/bits"
	"slices"
)

// chacha20Poly1305 is the AEAD of RFC 8439, section 2.8, as the RFC describes it. The standard
// library doesn't export its own. This one is for tests: neither fast nor constant in time.
type chacha20Poly1305 struct{ key [8]uint32 }

func newChaCha20Poly1305(key []byte) cipher.AEAD {
	var c chacha20Poly1305
	for i := range c.key {
		c.key[i] = binary.LittleEndian.Uint32(key[4*i:])
	}
	return &c
}

func (*chacha20Poly1305) NonceSize() int { return 12 }
func (*chacha20Poly1305) Overhead() int  { return 16 }

func (c *chacha20Poly1305) Seal(dst, nonce, plaintext, additional []byte) []byte {
	text := c.xor(nonce, plaintext)
	return append(append(dst, text...), c.tag(nonce, text, additional)...)
}

func (c *chacha20Poly1305) Open(dst, nonce, sealed, additional []byte) ([]byte, error) {
	n := len(sealed) - c.Overhead()
	if n < 0 || subtle.ConstantTimeCompare(c.tag(nonce, sealed[:n], additional), sealed[n:]) != 1 {
		return nil, errors.New("tlstest: message authentication failed")
	}
	return append(dst, c.xor(nonce, sealed[:n])...), nil
}

// block is the function of RFC 8439, section 2.3.
func (c *chacha20Poly1305) block(counter uint32, nonce []byte) (out [64]byte) {
	first := [16]uint32{0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}
	copy(first[4:], c.key[:])
	first[12] = counter
	for i := range 3 {
		first[13+i] = binary.LittleEndian.Uint32(nonce[4*i:])
	}
	s := first
	quarter := func(a, b, c, d int) {
		for _, shift := range [2][2]int{{16, 12}, {8, 7}} {
			s[a] += s[b]
			s[d] = bits.RotateLeft32(s[d]^s[a], shift[0])
			s[c] += s[d]
			s[b] = bits.RotateLeft32(s[b]^s[c], shift[1])
		}
	}
	for range 10 {
		for i := range 4 {
			quarter(i, 4+i, 8+i, 12+i)
		}
		for i := range 4 {
			quarter(i, 4+(i+1)%4, 8+(i+2)%4, 12+(i+3)%4)
		}
	}
	for i, v := range s {
		binary.LittleEndian.PutUint32(out[4*i:], v+first[i])
	}
	return out
}

func (c *chacha20Poly1305) xor(nonce, text []byte) []byte {
	out := make([]byte, len(text))
	for i := 0; i < len(text); i += 64 {
		stream := c.block(uint32(1+i/64), nonce)
		subtle.XORBytes(out[i:], text[i:min(i+64, len(text))], stream[:])
	}
	return out
}

var poly1305Prime = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 130), big.NewInt(5))

// littleEndian returns the number that bytes represent in Poly1305.
func littleEndian(b []byte) *big.Int {
	b = slices.Clone(b)
	slices.Reverse(b)
	return new(big.Int).SetBytes(b)
}

// tag is Poly1305 (RFC 8439, section 2.5) of the additional data and the ciphertext, with the key
// that belongs to the nonce.
func (c *chacha20Poly1305) tag(nonce, text, additional []byte) []byte {
	once := c.block(0, nonce)
	for i, mask := range map[int]byte{3: 15, 7: 15, 11: 15, 15: 15, 4: 252, 8: 252, 12: 252} {
		once[i] &= mask
	}
	r, s := littleEndian(once[:16]), littleEndian(once[16:32])

	padded := func(b []byte) []byte { return append(slices.Clone(b), make([]byte, (16-len(b)%16)%16)...) }
	message := append(padded(additional), padded(text)...)
	message = binary.LittleEndian.AppendUint64(message, uint64(len(additional)))
	message = binary.LittleEndian.AppendUint64(message, uint64(len(text)))
	sum := new(big.Int)
	for block := range slices.Chunk(message, 16) {
		sum.Add(sum, littleEndian(append(slices.Clone(block), 1)))
		sum.Mod(sum.Mul(sum, r), poly1305Prime)
	}
	tag := make([]byte, 32)
	sum.Add(sum, s).FillBytes(tag)
	slices.Reverse(tag)
	return tag[:16]
}
