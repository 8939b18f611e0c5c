//go:build cgo || ossl_nocgo

package libssl_test

import (
	"bytes"
	"crypto/hkdf"
	"crypto/tls"
	"encoding/binary"
	"testing"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// expand is HKDF-Expand-Label without a context, RFC 8446, section 7.1.
func expand(t *testing.T, suite uint16, secret []byte, label string, n int) []byte {
	t.Helper()
	info := append([]byte{0, byte(n), byte(len("tls13 " + label))}, "tls13 "+label+"\x00"...)
	b, err := hkdf.Expand(hashOf(suite), secret, string(info), n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestKernelKey: the kernel gets the key, the IV and the number of the next record; until it has
// them sealing continues, and afterwards nothing is sealed.
func TestKernelKey(t *testing.T) {
	eachSuite(t, func(t *testing.T, suite uint16) {
		secret := secretOf(suite, 5)
		c, keys := ofSecrets(t, suite, nil, secret), keysOf(t, suite, secret)
		for update := range 3 {
			var number uint64
			for ; number < 3 && update == 0; number++ {
				var key libssl.KernelKey
				if !c.write.KernelKey(&key) {
					t.Fatal("no key")
				}
				records, _ := tlstest.SplitRecords(seal(t, c, tlstest.TypeApplicationData, []byte("text")))
				if _, err := keys.Open(records[0]); err != nil {
					t.Fatalf("record %d, after the key was looked at: %v", number, err)
				}
			}
			var key libssl.KernelKey
			if !c.write.KernelKey(&key) {
				t.Fatal("no key")
			}
			c.write.KernelSeals()
			var again libssl.KernelKey
			if c.write.KernelKey(&again) || again != (libssl.KernelKey{}) {
				t.Fatal("a key was given out twice")
			}
			size := 16
			if suite != tls.TLS_AES_128_GCM_SHA256 {
				size = 32
			}
			if key.Suite != suite || key.TLS13 != 1 || int(key.KeyLen) != size ||
				!bytes.Equal(key.Key[:size], expand(t, suite, secret, "key", size)) || !bytes.Equal(key.Key[size:], make([]byte, 32-size)) ||
				!bytes.Equal(key.IV[:], expand(t, suite, secret, "iv", 12)) || binary.BigEndian.Uint64(key.Seq[:]) != number {
				t.Fatalf("after %d updates: %+v", update, key)
			}
			if step := c.Seal(tlstest.TypeApplicationData, []byte("text"), make([]byte, 100), 0, 0, 0); step.Produced != 0 ||
				step.Status != libssl.Fatal {
				t.Fatalf("sealed with a key that the kernel has: %+v", step)
			}
			if !c.write.Update() {
				t.Fatal("no update")
			}
			secret = expand(t, suite, secret, "traffic upd", hashOf(suite)().Size())
		}
	})
}

// TestKernelKeyGone: a side without a secret has no key.
func TestKernelKeyGone(t *testing.T) {
	const suite = tls.TLS_AES_128_GCM_SHA256
	key := libssl.KernelKey{Key: [32]byte{1}}
	if ofSecrets(t, suite, secretOf(suite, 6), nil).write.KernelKey(&key) || key != (libssl.KernelKey{}) {
		t.Errorf("a key: %+v", key)
	}
}
