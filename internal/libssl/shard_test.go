//go:build cgo || ossl_nocgo

package libssl_test

import (
	"crypto/tls"
	"testing"

	"github.com/ossl-go/ossl/internal/libssl"
)

// TestParts checks that a Context has a part in each shard in which connections start, and that all parts are
// freed with the last connection.
func TestParts(t *testing.T) {
	if slimLibrary(t) == nil || !libssl.UseSlim() {
		return
	}
	defer libssl.PinShard(-1)
	const shards = 3
	before := libssl.Parts()
	libssl.PinShard(0)
	ctx, err := libssl.NewContext(&libssl.ContextConfig{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13,
		SecurityLevel: -1, Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	var conns []*libssl.Conn
	for i, parts := range []int{0, 1, 2, 2, 2} {
		shard := i % shards
		libssl.PinShard(shard)
		conn, step, err := ctx.Start(false, false, "", nil, nil, make([]byte, 1<<14))
		if err != nil || step.Status != libssl.WantRead {
			t.Fatalf("status %d: %v", step.Status, err)
		}
		if n, of := conn.Shard(); n != shard || of != shards {
			t.Errorf("connection %d is in shard %d of %d", i, n, of)
		}
		if n := libssl.Parts() - before; n != parts {
			t.Errorf("after connection %d there are %d parts, not %d", i, n, parts)
		}
		conns = append(conns, conn)
	}
	ctx.Close()
	for _, conn := range conns {
		conn.Free(false, nil)
	}
	if n := libssl.Parts() - before; n != 0 {
		t.Errorf("%d parts are left", n)
	}
}
