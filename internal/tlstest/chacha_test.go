package tlstest

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// TestChaCha20Poly1305 is the example of RFC 8439, section 2.8.2.
func TestChaCha20Poly1305(t *testing.T) {
	key := must(hex.DecodeString("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"))
	nonce := must(hex.DecodeString("070000004041424344454647"))
	additional := must(hex.DecodeString("50515253c0c1c2c3c4c5c6c7"))
	text := []byte("Ladies and Gentlemen of the class of '99: If I could offer you only one tip " +
		"for the future, sunscreen would be it.")
	want := must(hex.DecodeString("d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6" +
		"3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36" +
		"92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc" +
		"3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691"))
	aead := newChaCha20Poly1305(key)
	if got := aead.Seal(nil, nonce, text, additional); !bytes.Equal(got, want) {
		t.Fatalf("sealed\n%x, want\n%x", got, want)
	}
	if got, err := aead.Open(nil, nonce, want, additional); err != nil || !bytes.Equal(got, text) {
		t.Fatalf("opened %q, %v", got, err)
	}
	for i := range want {
		bad := bytes.Clone(want)
		bad[i] ^= 1
		if _, err := aead.Open(nil, nonce, bad, additional); err == nil {
			t.Fatalf("opened with byte %d changed", i)
		}
	}
}
