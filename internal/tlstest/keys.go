package tlstest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"strings"
	"sync"
)

// A KeyLog collects key-log lines; it is safe for concurrent use.
type KeyLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (k *KeyLog) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.Write(p)
}

// String returns all lines so far.
func (k *KeyLog) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.String()
}

// Secret returns the secret of the first line with the label, or nil.
func (k *KeyLog) Secret(label string) []byte {
	for line := range strings.Lines(k.String()) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == label {
			secret, err := hex.DecodeString(f[2])
			if err == nil {
				return secret
			}
		}
	}
	return nil
}

// Keys seal and open the records of one direction under one secret. They know the AEAD suites that
// crypto/tls has.
type Keys struct {
	version uint16
	suite   uint16
	secret  []byte // TLS 1.3 only
	aead    cipher.AEAD
	iv      []byte
	seq     uint64
	// explicit is the number of bytes of the nonce in each record: TLS 1.2 with AES-GCM.
	explicit int
}

var errSuite = errors.New("tlstest: keys of this suite are not known")

// suiteParams are the parameters with which a cipher suite derives its keys.
type suiteParams struct {
	hash     func() hash.Hash
	keyLen   int
	explicit int // TLS 1.2 only
	newAEAD  func(key []byte) cipher.AEAD
}

// ivLen is the length of the part of a nonce that is derived.
func (p *suiteParams) ivLen() int { return 12 - p.explicit }

func paramsOf(suite uint16) (*suiteParams, error) {
	switch suite {
	case tls.TLS_AES_128_GCM_SHA256:
		return &suiteParams{sha256.New, 16, 0, newGCM}, nil
	case tls.TLS_AES_256_GCM_SHA384:
		return &suiteParams{sha512.New384, 32, 0, newGCM}, nil
	case tls.TLS_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256:
		return &suiteParams{sha256.New, 32, 0, newChaCha20Poly1305}, nil
	case tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_128_GCM_SHA256:
		return &suiteParams{sha256.New, 16, 8, newGCM}, nil
	case tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_RSA_WITH_AES_256_GCM_SHA384:
		return &suiteParams{sha512.New384, 32, 8, newGCM}, nil
	}
	return nil, errSuite
}

func newGCM(key []byte) cipher.AEAD { return must(cipher.NewGCM(must(aes.NewCipher(key)))) }

func expandLabel(newHash func() hash.Hash, secret []byte, label string, n int) []byte {
	info := binary.BigEndian.AppendUint16(nil, uint16(n))
	info = append(info, byte(len("tls13 ")+len(label)))
	info = append(info, "tls13 "+label...)
	info = append(info, 0)
	return must(hkdf.Expand(newHash, secret, string(info), n))
}

// Keys13 derives the keys of a TLS 1.3 traffic secret.
func Keys13(suite uint16, secret []byte) (*Keys, error) {
	p, err := paramsOf(suite)
	if err != nil {
		return nil, err
	}
	if secret == nil {
		return nil, errors.New("tlstest: no traffic secret in the key log")
	}
	return &Keys{
		version: tls.VersionTLS13,
		suite:   suite,
		secret:  secret,
		aead:    p.newAEAD(expandLabel(p.hash, secret, "key", p.keyLen)),
		iv:      expandLabel(p.hash, secret, "iv", p.ivLen()),
	}, nil
}

// Next returns the keys after a KeyUpdate.
func (k *Keys) Next() *Keys {
	p := must(paramsOf(k.suite))
	return must(Keys13(k.suite, expandLabel(p.hash, k.secret, "traffic upd", p.hash().Size())))
}

// Keys12 derives the keys of both directions from a TLS 1.2 master secret and the randoms of the
// hellos.
func Keys12(suite uint16, master, clientRandom, serverRandom []byte) (client, server *Keys, err error) {
	p, err := paramsOf(suite)
	if err != nil {
		return nil, nil, err
	}
	if master == nil {
		return nil, nil, errors.New("tlstest: no master secret in the key log")
	}
	seed := append(append([]byte("key expansion"), serverRandom...), clientRandom...)
	n, iv := p.keyLen, p.ivLen()
	block := prf12(p.hash, master, seed, 2*n+2*iv)
	keys := func(key, iv []byte) *Keys {
		return &Keys{version: tls.VersionTLS12, suite: suite, aead: p.newAEAD(key), iv: iv, explicit: p.explicit}
	}
	return keys(block[:n], block[2*n:2*n+iv]), keys(block[n:2*n], block[2*n+iv:]), nil
}

// prf12 is P_hash of RFC 5246, section 5.
func prf12(newHash func() hash.Hash, secret, seed []byte, n int) (out []byte) {
	mac := func(parts ...[]byte) []byte {
		m := hmac.New(newHash, secret)
		for _, p := range parts {
			m.Write(p)
		}
		return m.Sum(nil)
	}
	for a := mac(seed); len(out) < n; a = mac(a) {
		out = append(out, mac(a, seed)...)
	}
	return out[:n]
}

// nonce is the IV with the sequence number in its last bytes (RFC 8446, section 5.3; RFC 7905,
// section 2).
func (k *Keys) nonce() []byte {
	nonce := bytes.Clone(k.iv)
	var seq [8]byte
	binary.BigEndian.PutUint64(seq[:], k.seq)
	for i, b := range seq {
		nonce[4+i] ^= b
	}
	return nonce
}

func (k *Keys) additional12(typ byte, n int) []byte {
	b := binary.BigEndian.AppendUint64(nil, k.seq)
	return append(b, typ, 3, 3, byte(n>>8), byte(n))
}

// Seal returns a record with the payload encrypted as the direction's next record.
func (k *Keys) Seal(typ byte, payload []byte) []byte {
	return k.SealPadded(typ, payload, 0)
}

// SealPadded is Seal with padding (TLS 1.3 only).
func (k *Keys) SealPadded(typ byte, payload []byte, padding int) []byte {
	if k.version == tls.VersionTLS13 {
		return k.SealInner(append(append(bytes.Clone(payload), typ), make([]byte, padding)...))
	}
	defer func() { k.seq++ }()
	var explicit, nonce []byte
	if k.explicit > 0 {
		explicit = binary.BigEndian.AppendUint64(nil, k.seq)
		nonce = append(bytes.Clone(k.iv), explicit...)
	} else {
		nonce = k.nonce()
	}
	sealed := k.aead.Seal(nil, nonce, payload, k.additional12(typ, len(payload)))
	return MakeRecord(typ, tls.VersionTLS12, append(explicit, sealed...))
}

// SealInner returns a record of any TLSInnerPlaintext, which may be without a content type or
// without anything (TLS 1.3 only).
func (k *Keys) SealInner(inner []byte) []byte { return k.SealOuter(TypeApplicationData, inner) }

// SealOuter is SealInner with any type in the record's header, in which TLS 1.3 has
// application_data.
func (k *Keys) SealOuter(typ byte, inner []byte) []byte {
	defer func() { k.seq++ }()
	n := len(inner) + k.aead.Overhead()
	header := []byte{typ, 3, 3, byte(n >> 8), byte(n)}
	return k.aead.Seal(header, k.nonce(), inner, header)
}

// Open decrypts the next record of the direction. The sequence number advances only if the record
// is authentic.
func (k *Keys) Open(r Record) (Record, error) {
	if k.version == tls.VersionTLS13 {
		n := len(r.Payload)
		header := []byte{r.Type, byte(r.Version >> 8), byte(r.Version), byte(n >> 8), byte(n)}
		inner, err := k.aead.Open(nil, k.nonce(), r.Payload, header)
		if err != nil {
			return r, err
		}
		k.seq++
		inner = bytes.TrimRight(inner, "\x00")
		if len(inner) == 0 {
			return r, errors.New("tlstest: a record of padding only")
		}
		return Record{Type: inner[len(inner)-1], Version: r.Version, Payload: inner[:len(inner)-1], Sealed: true}, nil
	}
	if len(r.Payload) < k.explicit+k.aead.Overhead() {
		return r, errors.New("tlstest: a record too short to be sealed")
	}
	var nonce []byte
	if k.explicit > 0 {
		nonce = append(bytes.Clone(k.iv), r.Payload[:k.explicit]...)
	} else {
		nonce = k.nonce()
	}
	sealed := r.Payload[k.explicit:]
	plain, err := k.aead.Open(nil, nonce, sealed, k.additional12(r.Type, len(sealed)-k.aead.Overhead()))
	if err != nil {
		return r, err
	}
	k.seq++
	return Record{Type: r.Type, Version: r.Version, Payload: plain, Sealed: true}, nil
}

// SkipTo sets the number of records sealed so far.
func (k *Keys) SkipTo(seq uint64) { k.seq = seq }
