package session_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ossl-go/ossl/session"
)

func Example() {
	cache := session.NewCache(1000) // 400 kB at most
	ctx, id := context.Background(), []byte("a session's ID")
	if err := cache.Put(ctx, id, []byte("the session"), time.Now().Add(time.Hour)); err != nil {
		fmt.Println(err)
	}
	for range 2 {
		s, err := cache.Get(ctx, id, true) // take: once
		fmt.Printf("%q %v\n", s, err)
	}
	stats := cache.Stats()
	fmt.Println(stats.Hits, "hit,", stats.Misses, "miss")
	// Output:
	// "the session" <nil>
	// "" <nil>
	// 1 hit, 1 miss
}

func ExampleNewMemory() {
	cache, err := session.NewMemory(session.MemoryConfig{
		Bytes:  64 << 20, // for sessions of any size
		MaxTTL: 12 * time.Hour,
	})
	fmt.Println(cache, err)
	// Output: session cache of 0 entries, 0 bytes <nil>
}

// A server that reads its ticket keys from nginx's files, and reads them again on request.
func ExampleReadTicketKeyFiles() {
	dir, _ := os.MkdirTemp("", "keys")
	defer os.RemoveAll(dir)
	paths := []string{filepath.Join(dir, "current"), filepath.Join(dir, "previous")}
	for _, path := range paths { // openssl rand 80 > file
		os.WriteFile(path, fmt.Appendf(nil, "%-16s%-64s", filepath.Base(path), "these are no random bytes"), 0o600)
	}

	keys, err := session.ReadTicketKeyFiles(paths...)
	if err != nil {
		fmt.Println(err)
		return
	}
	ring, err := session.NewRing(keys...)
	fmt.Println(ring != nil, err)

	reload := func() error {
		keys, err := session.ReadTicketKeyFiles(paths...)
		if err != nil {
			return err // the ring stays as it is
		}
		return ring.Set(keys...)
	}
	fmt.Println(reload())
	fmt.Println(keys[0])
	// Output:
	// true <nil>
	// <nil>
	// ticket key 63757272656e74202020202020202020
}

func ExampleNewRotatingRing() {
	ring := session.NewRotatingRing(0, 0) // a key a day, each opens for a week
	keys, _ := ring.Snapshot()
	fmt.Println(len(keys))
	// Output: 1
}

// A cache outside of the process gets nothing that it could use.
func ExampleSeal() {
	outside := session.NewCache(10) // stands for one
	sealer, err := session.NewSealer("sessions", session.Secret{1: 42} /* 32 random bytes */)
	if err != nil {
		fmt.Println(err)
		return
	}
	cache := session.Seal(outside, sealer)
	ctx, id := context.Background(), []byte("a session's ID")
	fmt.Println(cache.Put(ctx, id, []byte("the session"), time.Now().Add(time.Hour)))

	s, err := outside.Get(ctx, id, false)
	fmt.Printf("outside: %q %v\n", s, err)
	s, err = cache.Get(ctx, id, false)
	fmt.Printf("inside: %q %v\n", s, err)
	// Output:
	// <nil>
	// outside: "" <nil>
	// inside: "the session" <nil>
}
