package client

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"hash"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/audit/internal/wire"
	"golang.org/x/crypto/chacha20poly1305"
)

// A protection12 protects one direction's records, in TLS 1.2 or earlier.
type protection12 interface {
	seal(typ uint8, seq uint64, data []byte) ([]byte, error)
	open(typ uint8, seq uint64, fragment []byte) ([]byte, error)
}

// A half12 is a direction that is protected: an opener or a sealer.
type half12 struct {
	protection12
	version uint16
	seq     uint64
}

type opener12 struct{ half12 }

func (o *opener12) open(header [headerSize]byte, record []byte) (byte, []byte, error) {
	data, err := o.half12.open(header[0], o.seq, record)
	o.seq++
	return header[0], data, err
}

type sealer12 struct{ half12 }

func (s *sealer12) seal(typ byte, data []byte) ([]byte, error) {
	fragment, err := s.half12.seal(typ, s.seq, data)
	s.seq++
	return wire.AppendVector(wire.Append([]byte{typ}, 2, int(s.version)), 2, fragment), err
}

// errRecord is the error if a record's authentication failed. The client measures, and has no
// secrets of anybody: it needs no defence against a server that watches how long a failure takes.
var errRecord = &ProtocolError{"the authentication of the server's record failed"}

// keys12 makes the protection of both directions from the master secret.
func keys12(suite *suite12, version uint16, encryptThenMAC bool, master, clientRandom,
	serverRandom []byte) (client, server protection12, err error) {
	mac, iv := 0, 0
	switch suite.cipher {
	case cipherGCM:
		iv = 4
	case cipherChaCha:
		iv = 12
	default:
		mac = suite.mac().Size()
		if version < hello.TLS11 {
			iv = suite.block()
		}
	}
	block := suite.prf(version).derive(master, labelKeys, concat(serverRandom, clientRandom), 2*(mac+suite.key+iv))
	take := func(n int) []byte {
		part := block[:n]
		block = block[n:]
		return part
	}
	macs := [2][]byte{take(mac), take(mac)}
	keys := [2][]byte{take(suite.key), take(suite.key)}
	ivs := [2][]byte{take(iv), take(iv)}
	var sides [2]protection12
	for i := range sides {
		if sides[i], err = suite.protection(version, encryptThenMAC, macs[i], keys[i], ivs[i]); err != nil {
			return nil, nil, err
		}
	}
	return sides[0], sides[1], nil
}

// block returns the block size of a CBC suite.
func (s *suite12) block() int {
	if s.cipher == cipher3DES {
		return des.BlockSize
	}
	return aes.BlockSize
}

func (s *suite12) protection(version uint16, encryptThenMAC bool, mac, key, iv []byte) (protection12, error) {
	switch s.cipher {
	case cipherChaCha:
		aead, err := chacha20poly1305.New(key)
		return &aead12{aead: aead, iv: iv, version: version}, err
	case cipherGCM:
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(block)
		return &aead12{aead: aead, iv: iv, explicit: 8, version: version}, err
	}
	var block cipher.Block
	var err error
	if s.cipher == cipher3DES {
		block, err = des.NewTripleDESCipher(key)
	} else {
		block, err = aes.NewCipher(key)
	}
	return &cbc12{block: block, mac: hmac.New(s.mac, mac), iv: iv, version: version, encryptThenMAC: encryptThenMAC}, err
}

// An aead12 is AES-GCM (RFC 5288) or ChaCha20-Poly1305 (RFC 7905).
type aead12 struct {
	aead     cipher.AEAD
	iv       []byte
	explicit int // bytes of the nonce in each record
	version  uint16
}

func (p *aead12) nonce(seq uint64, explicit []byte) []byte {
	if p.explicit > 0 {
		return concat(p.iv, explicit)
	}
	nonce := bytes.Clone(p.iv)
	for i := range 8 {
		nonce[4+i] ^= byte(seq >> (56 - 8*i))
	}
	return nonce
}

func (p *aead12) seal(typ uint8, seq uint64, data []byte) ([]byte, error) {
	var explicit []byte
	if p.explicit > 0 {
		explicit = binary.BigEndian.AppendUint64(nil, seq)
	}
	return p.aead.Seal(explicit, p.nonce(seq, explicit), data, header12(seq, typ, p.version, len(data))), nil
}

func (p *aead12) open(typ uint8, seq uint64, fragment []byte) ([]byte, error) {
	if len(fragment) < p.explicit+p.aead.Overhead() {
		return nil, errRecord
	}
	explicit, sealed := fragment[:p.explicit], fragment[p.explicit:]
	data, err := p.aead.Open(nil, p.nonce(seq, explicit), sealed, header12(seq, typ, p.version, len(sealed)-p.aead.Overhead()))
	if err != nil {
		return nil, errRecord
	}
	return data, nil
}

// header12 returns the bytes that are authenticated with a record's data.
func header12(seq uint64, typ uint8, version uint16, n int) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 13), seq)
	b = append(b, typ)
	b = binary.BigEndian.AppendUint16(b, version)
	return binary.BigEndian.AppendUint16(b, uint16(n))
}

// A cbc12 is a block cipher in CBC mode with HMAC.
type cbc12 struct {
	block          cipher.Block
	mac            hash.Hash
	iv             []byte // in TLS 1.0, the last block of the record before
	version        uint16
	encryptThenMAC bool // RFC 7366
}

func (p *cbc12) sum(typ uint8, seq uint64, data []byte) []byte {
	p.mac.Reset()
	p.mac.Write(header12(seq, typ, p.version, len(data)))
	p.mac.Write(data)
	return p.mac.Sum(nil)
}

func (p *cbc12) seal(typ uint8, seq uint64, data []byte) ([]byte, error) {
	size := p.block.BlockSize()
	plain := bytes.Clone(data)
	if !p.encryptThenMAC {
		plain = append(plain, p.sum(typ, seq, data)...)
	}
	pad := size - len(plain)%size
	plain = append(plain, bytes.Repeat([]byte{byte(pad - 1)}, pad)...)
	iv, out := p.iv, []byte(nil)
	if p.version >= hello.TLS11 {
		iv = make([]byte, size)
		rand.Read(iv)
		out = bytes.Clone(iv)
	}
	cipher.NewCBCEncrypter(p.block, iv).CryptBlocks(plain, plain)
	if p.version < hello.TLS11 {
		p.iv = bytes.Clone(plain[len(plain)-size:])
	}
	out = append(out, plain...)
	if p.encryptThenMAC {
		out = append(out, p.sum(typ, seq, out)...)
	}
	return out, nil
}

func (p *cbc12) open(typ uint8, seq uint64, fragment []byte) ([]byte, error) {
	size := p.block.BlockSize()
	if p.encryptThenMAC {
		n := len(fragment) - p.mac.Size()
		if n < 0 || !hmac.Equal(p.sum(typ, seq, fragment[:n]), fragment[n:]) {
			return nil, errRecord
		}
		fragment = fragment[:n]
	}
	iv := p.iv
	if p.version >= hello.TLS11 {
		if len(fragment) < size {
			return nil, errRecord
		}
		iv, fragment = fragment[:size], fragment[size:]
	}
	if len(fragment) == 0 || len(fragment)%size != 0 {
		return nil, errRecord
	}
	plain := make([]byte, len(fragment))
	cipher.NewCBCDecrypter(p.block, iv).CryptBlocks(plain, fragment)
	if p.version < hello.TLS11 {
		p.iv = bytes.Clone(fragment[len(fragment)-size:])
	}
	pad := int(plain[len(plain)-1]) + 1
	if pad > len(plain) {
		return nil, errRecord
	}
	for _, b := range plain[len(plain)-pad:] {
		if int(b) != pad-1 {
			return nil, errRecord
		}
	}
	plain = plain[:len(plain)-pad]
	if p.encryptThenMAC {
		return plain, nil
	}
	n := len(plain) - p.mac.Size()
	if n < 0 || !hmac.Equal(p.sum(typ, seq, plain[:n]), plain[n:]) {
		return nil, errRecord
	}
	return plain[:n], nil
}
