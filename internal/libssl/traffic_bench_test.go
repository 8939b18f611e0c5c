//go:build cgo || ossl_nocgo

package libssl

import (
	"fmt"
	"testing"
)

func recordContext(b *testing.B) *Context {
	if _, err := Load(""); err != nil {
		b.Fatal(err)
	}
	ctx, err := NewContext(&ContextConfig{
		MinVersion: 0x0304, MaxVersion: 0x0304, SecurityLevel: -1, DirectRecords: true, SealRefusals: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	return ctx
}

// BenchmarkRecord seals and opens one record with a crossing each. It includes the cost of the
// crossings.
func BenchmarkRecord(b *testing.B) {
	ctx := recordContext(b)
	for _, size := range []int{5, 1000, 16384} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			secret := make([]byte, 32)
			conn, err := ctx.OfSecrets(TrafficSecrets(0x1301, secret, secret))
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Free(false, nil)
			read, write := conn.Sides()
			var s Step
			var o Opened
			text, sealed, opened := make([]byte, size), make([]byte, size+64), make([]byte, size+64)
			b.SetBytes(int64(size))
			n := 0
			for b.Loop() {
				if n++; n == 1<<24 { // the key is used up
					write.Update()
					read.Update()
					n = 1
				}
				write.Seal(&s, 23, text, sealed, 0, 0, 0)
				if read.Open(&o, sealed[:s.Produced], opened); o.N != size {
					b.Fatalf("%+v %+v", s, o)
				}
			}
		})
	}
}

// BenchmarkTakenOver makes both directions of a connection, with their keys, and frees it: the cost
// of a takeover in addition to the handshake.
func BenchmarkTakenOver(b *testing.B) {
	ctx := recordContext(b)
	secret, text, sealed, opened := make([]byte, 32), make([]byte, 5), make([]byte, 100), make([]byte, 100)
	for b.Loop() {
		c, err := ctx.OfSecrets(TrafficSecrets(0x1301, secret, secret))
		if err != nil {
			b.Fatal(err)
		}
		read, write := c.Sides()
		var s Step
		var o Opened
		write.Seal(&s, 23, text, sealed, 0, 0, 0)
		if read.Open(&o, sealed[:s.Produced], opened); o.N != len(text) {
			b.Fatalf("%+v %+v", s, o)
		}
		c.Free(false, nil)
	}
}
