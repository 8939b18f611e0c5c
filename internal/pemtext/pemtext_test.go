package pemtext

import (
	"bytes"
	"encoding/pem"
	"testing"
)

// FuzzDecode: blocks that are encoded again are decoded to the same ones, in any text that is accepted.
func FuzzDecode(f *testing.F) {
	block := pem.EncodeToMemory(&pem.Block{Type: "A B", Headers: map[string]string{"K": "v"}, Bytes: []byte("text")})
	f.Add(append(block, "\ufeff"+string(block)...))
	f.Add(block[:len(block)-9])
	f.Add([]byte("-----END X-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		blocks, err := Decode(text)
		if err != nil {
			if len(blocks) > 0 {
				t.Fatal("blocks beside an error")
			}
			return
		}
		if n := bytes.Count(append([]byte("\n"), text...), []byte("\n-----BEGIN ")); n > len(blocks) {
			t.Fatalf("%d blocks of %d", len(blocks), n)
		}
		for _, b := range blocks {
			again, err := Decode(pem.EncodeToMemory(b))
			if err != nil || len(again) != 1 || again[0].Type != b.Type || !bytes.Equal(again[0].Bytes, b.Bytes) {
				t.Fatalf("%q: %v", b.Type, err)
			}
		}
	})
}
