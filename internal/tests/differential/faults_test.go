//go:build cgo || ossl_nocgo

package differential

import (
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"fmt"
	"math/big"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestDifferentialFaults uses peers whose faults must all get the same answer, because attacks can
// decrypt if answers differ. The premaster secrets in RSA key exchanges are padded wrongly (ROBOT,
// CVE-2017-13099; CVE-2022-4304 and CVE-2023-45287, as far as answers show them): the client's
// Finished fits none of them, so all fail as a bad MAC. So must records with CBC suites that have
// faults in the padding, the MAC and the length, in the handshake and after it (CVE-2013-0169,
// CVE-2016-2107).
func TestDifferentialFaults(t *testing.T) {
	run := func(name string, victim tlstest.Role, suite uint16, edit func(i, sealed int, record []byte) []byte) {
		t.Run(fmt.Sprintf("%s/%s/%s", tls.CipherSuiteName(suite), victim, name), func(t *testing.T) {
			edits := opts(tlstest.Only(tls.VersionTLS12), tlstest.Suites(suite))
			certs := tlstest.Certificates(tlstest.ServerCert(tlstest.P256), tlstest.ServerCert(tlstest.RSA2048))
			c := tlstest.Case{Client: tlstest.ClientWith(edits...), Server: tlstest.ServerWith(append(edits, certs)...)}
			s := differIn(t, withFault(c, victim, func() tlstest.Fault {
				sealed := -2
				return tlstest.Records(func(i int, record []byte) [][]byte {
					if sealed > -2 || record[0] == tlstest.TypeChangeCipherSpec {
						sealed++
					}
					return [][]byte{edit(i, sealed, record)}
				})
			}), against(victim)...).Of(victim)
			const want = "local error: tls: bad record MAC"
			if s.Handshake != want && (s.Handshake != "ok" || s.Talk != want) {
				t.Errorf("crypto/tls: handshake %s, then %s", s.Handshake, s.Talk)
			}
		})
	}
	key := tlstest.ServerCert(tlstest.RSA2048).Leaf.PublicKey.(*rsa.PublicKey)
	padded := fmt.Appendf(nil, "\x00\x02%s\x00\x03\x03%046d", bytes.Repeat([]byte{7}, key.Size()-51), 0)
	for name, fault := range map[string][2]int{ // the value of a byte
		"none": {20, 7}, "first byte": {0, 1}, "type": {1, 1}, "zero byte early": {20, 0}, "zero byte in the least padding": {4, 0},
		"no zero byte": {key.Size() - 49, 7}, "version": {key.Size() - 47, 1},
	} {
		message := bytes.Clone(padded)
		message[fault[0]] = byte(fault[1])
		sent := new(big.Int).Exp(new(big.Int).SetBytes(message), big.NewInt(int64(key.E)), key.N)
		for _, suite := range []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_128_CBC_SHA} {
			run(name, tlstest.ServerRole, suite, func(i, _ int, record []byte) []byte {
				if i == 1 { // ClientKeyExchange
					sent.FillBytes(record[len(record)-key.Size():])
				}
				return record
			})
		}
	}
	flip := func(at int, mask byte) func([]byte) []byte {
		return func(b []byte) []byte { b[(at+len(b))%len(b)] ^= mask; return b }
	}
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:(n+len(b))%len(b)] } }
	for name, edit := range map[string]func([]byte) []byte{ // of the IV and the blocks
		"IV": flip(0, 1), "first block": flip(16, 1), "last block": flip(-1, 1), "padding": flip(-18, 1),
		"length of the padding": flip(-17, 1), "long padding": flip(-17, 0x80), "a block less": cut(-16),
		"a byte less": cut(-1), "one block": cut(32), "no block": cut(16), "nothing": cut(0),
	} {
		for _, suite := range []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256} {
			for number, which := range []string{"Finished", "data"} {
				for _, victim := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
					run(which+"/"+name, victim, suite, func(_, sealed int, record []byte) []byte {
						if sealed == number {
							record = tlstest.MakeRecord(record[0], tls.VersionTLS12, edit(record[5:]))
						}
						return record
					})
				}
			}
		}
	}
}
