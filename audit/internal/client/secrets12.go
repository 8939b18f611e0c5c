package client

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"hash"
)

// Labels of the pseudorandom function, RFC 5246, section 8.1, and RFC 7627, section 4.
const (
	labelMaster         = "master secret"
	labelExtendedMaster = "extended master secret"
	labelKeys           = "key expansion"
	labelClientFinished = "client finished"
	labelServerFinished = "server finished"
)

// A prf is the TLS 1.2 pseudorandom function with one hash, or the pseudorandom function for TLS
// 1.0 and 1.1 if the hash is nil.
type prf struct{ hash func() hash.Hash }

// derive returns n bytes.
func (p prf) derive(secret []byte, label string, seed []byte, n int) []byte {
	seed = append([]byte(label), seed...)
	out := make([]byte, n)
	if p.hash != nil {
		expand(out, p.hash, secret, seed)
		return out
	}
	// RFC 2246, section 5: the halves share the middle byte of an odd secret.
	half := (len(secret) + 1) / 2
	expand(out, md5.New, secret[:half], seed)
	other := make([]byte, n)
	expand(other, sha1.New, secret[len(secret)-half:], seed)
	for i := range out {
		out[i] ^= other[i]
	}
	return out
}

// expand is P_hash of RFC 5246, section 5.
func expand(out []byte, h func() hash.Hash, secret, seed []byte) {
	mac := hmac.New(h, secret)
	mac.Write(seed)
	a := mac.Sum(nil)
	for len(out) > 0 {
		mac.Reset()
		mac.Write(a)
		mac.Write(seed)
		out = out[copy(out, mac.Sum(nil)):]
		mac.Reset()
		mac.Write(a)
		a = mac.Sum(nil)
	}
}

// sum returns the hash of a transcript, as Finished and the extended master secret need it.
func (p prf) sum(transcript []byte) []byte {
	if p.hash != nil {
		h := p.hash()
		h.Write(transcript)
		return h.Sum(nil)
	}
	a, b := md5.Sum(transcript), sha1.Sum(transcript)
	return append(a[:], b[:]...)
}

// master returns the master secret. The transcript is nil, or, for the extended master secret, has
// the messages up to ClientKeyExchange.
func (p prf) master(premaster, clientRandom, serverRandom, transcript []byte) []byte {
	if transcript != nil {
		return p.derive(premaster, labelExtendedMaster, p.sum(transcript), 48)
	}
	return p.derive(premaster, labelMaster, concat(clientRandom, serverRandom), 48)
}

// finished returns the content of a Finished message.
func (p prf) finished(master []byte, label string, transcript []byte) []byte {
	return p.derive(master, label, p.sum(transcript), 12)
}

func concat(parts ...[]byte) []byte {
	var out []byte
	for _, part := range parts {
		out = append(out, part...)
	}
	return out
}
