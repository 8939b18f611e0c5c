//go:build cgo || ossl_nocgo

package psk

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// A maskedKey is a key that the process has only as two halves, and that it returns in slices that it wipes.
type maskedKey struct {
	mask, masked [32]byte

	mu    sync.Mutex
	given [][]byte // guarded by mu
}

func newMaskedKey() *maskedKey {
	k := new(maskedKey)
	rand.Read(k.mask[:])
	rand.Read(k.masked[:])
	return k
}

func (k *maskedKey) psk(context.Context) (*ossl.PSK, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := make([]byte, len(k.mask))
	for i := range key {
		key[i] = k.mask[i] ^ k.masked[i]
	}
	k.given = append(k.given, key)
	return &ossl.PSK{Identity: key256.Identity, Key: key}, nil
}

func (k *maskedKey) wipe() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range k.given {
		clear(key)
	}
	k.given = nil
}

// in reports whether the key is in b.
func (k *maskedKey) in(b []byte) bool {
	for {
		at := bytes.IndexByte(b, k.mask[0]^k.masked[0])
		if at < 0 || at+len(k.mask) > len(b) {
			return false
		}
		n := 1
		for n < len(k.mask) && b[at+n] == k.mask[n]^k.masked[n] {
			n++
		}
		if n == len(k.mask) {
			return true
		}
		b = b[at+1:]
	}
}

// findInMemory returns the mappings of this process in which the key is.
func findInMemory(t *testing.T, k *maskedKey) (found []string) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	buf := make([]byte, 1<<20)
	for s := bufio.NewScanner(bytes.NewReader(maps)); s.Scan(); {
		var from, to int64
		var rights string
		if _, err := fmt.Sscanf(s.Text(), "%x-%x %s", &from, &to, &rights); err != nil || !strings.HasPrefix(rights, "rw") ||
			to-from > 1<<28 { // the race detector's
			continue
		}
		for at := from; at < to; at += int64(len(buf)) - 64 { // a key may be at an edge
			n, err := mem.ReadAt(buf[:min(int64(len(buf)), to-at)], at)
			if k.in(buf[:n]) {
				found = append(found, s.Text())
			}
			clear(buf) // else the key would be found in it
			if err != nil {
				break
			}
		}
	}
	return slices.Compact(found)
}

// TestPSKIsWiped: after the handshakes, the key is nowhere in the memory of the process, on either record path,
// while the connections are open. A copy that is always left is found each time. But a copied key also stays in
// vector registers, and if the runtime interrupts the thread then, the kernel saves these on the signal's stack:
// that is seen in one of eight rounds, and isn't ours to wipe.
func TestPSKIsWiped(t *testing.T) {
	for _, version := range tlstest.Versions {
		for _, path := range []ossl.RecordPath{ossl.RecordsAuto, ossl.RecordsLibssl} {
			var found []string
			for range 6 {
				if found = leftInMemory(t, version, path); found == nil {
					break
				}
			}
			if found != nil {
				t.Errorf("%s, path %d: the key is in %q", tls.VersionName(version), path, found)
			}
		}
	}
}

// leftInMemory shakes hands with a new key, and returns the mappings in which it is afterwards.
func leftInMemory(t *testing.T, version uint16, path ossl.RecordPath) []string {
	t.Helper()
	k := newMaskedKey()
	get := ossl.WithPSK(func(ctx context.Context, _ string) (*ossl.PSK, error) { return k.psk(ctx) })
	find := ossl.WithPSKLookup(func(ctx context.Context, _ []byte) (*ossl.PSK, error) { return k.psk(ctx) })
	client := ossltest.NewPlainContext(t, only(version), get, ossl.WithRecordPath(path))
	server := ossltest.NewPlainContext(t, only(version), find, ossl.WithRecordPath(path))
	psk, _ := k.psk(t.Context())
	if findInMemory(t, k) == nil {
		t.Fatal("a key that is there was not found")
	}
	c, s := connect(t, client, server, key256.Identity)
	runtime.KeepAlive(psk)
	k.wipe()
	found := findInMemory(t, k)
	echo(t, c, s)
	return found
}
