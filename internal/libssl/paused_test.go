//go:build cgo || ossl_nocgo

package libssl_test

import (
	"crypto"
	"crypto/tls"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// paused returns a server whose handshake waits for a signature, and the other end of its
// connection.
func paused(t testing.TB, version uint16, cred *libssl.Credential) (e *endpoint, peer chan error) {
	t.Helper()
	cfg := &libssl.ContextConfig{MinVersion: version, MaxVersion: version, SecurityLevel: -1, Credential: cred}
	ctx, err := libssl.NewContext(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := tlstest.Buffered()
	peer = make(chan error, 1)
	go func() {
		defer theirs.Close()
		peer <- tls.Client(theirs, tlstest.ClientConfig()).Handshake()
	}()
	ours.SetDeadline(time.Now().Add(tlstest.Patience))
	e = &endpoint{wire: ours, out: make([]byte, 1<<15)}
	if e.conn, _, err = ctx.Start(true, true, "", nil, nil, e.out); err != nil {
		t.Fatal(err)
	}
	for {
		s := e.conn.Handshake(e.unread, e.out, &e.facts)
		e.unread = e.unread[s.Consumed:]
		switch s.Status {
		case libssl.WantRead:
			if err := e.fill(); err != nil {
				t.Fatal(err)
			}
		case libssl.NeedSign:
			if !e.conn.Paused() {
				t.Fatal("it asks and is not paused")
			}
			return e, peer
		default:
			t.Fatalf("status %d before a signature was asked for", s.Status)
		}
	}
}

// TestPausedOnAnotherThread: a step that began on one thread finishes on another.
func TestPausedOnAnotherThread(t *testing.T) {
	load(t)
	for _, kind := range []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			cred, key := credential(t, kind)
			runtime.LockOSThread() // so that no other goroutine gets this thread
			e, peer := paused(t, version, cred)
			done := make(chan error)
			go func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				sig, err := e.conn.SignRequest().Sign(t.Context())
				if err == nil {
					e.conn.SetSignature(sig)
					err = e.handshake()
				}
				done <- err
			}()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if libssl.Occupied() {
				t.Error("the thread that began the step still is in the handshake")
			}
			runtime.UnlockOSThread()
			if err := <-peer; err != nil {
				t.Error(err)
			}
			if key.signed.Load() != 1 {
				t.Errorf("%d signatures", key.signed.Load())
			}
			e.conn.Free(false, nil)
			e.wire.Close()
		}
	}
}

// TestPausedIsFreed: connections whose handshake waits for an answer that never comes release all
// their memory, many at once and in any order, and don't disturb others.
func TestPausedIsFreed(t *testing.T) {
	load(t)
	if libssl.HeapInUse() == 0 {
		t.Skip("the C library, such as musl, can't tell what is in use on its heap")
	}
	cert := tlstest.New(tlstest.Options{})
	key := &opaqueKey{key: cert.PrivateKey.(crypto.Signer)}
	cred, err := libssl.NewSignerCredential(cert.Certificate, key, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	const many = 100
	round := func() {
		var all [many]*endpoint
		var peers [many]chan error
		for i := range all {
			all[i], peers[i] = paused(t, uint16(tls.VersionTLS12+i%2), cred)
		}
		for i, e := range all { // freed; freed after a failure to sign; and completed
			switch i % 3 {
			case 1:
				e.conn.SetSignature(nil)
				if e.handshake() == nil {
					t.Error("a handshake without a signature succeeds")
				}
			case 2:
				sig, err := e.conn.SignRequest().Sign(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				e.conn.SetSignature(sig)
				if err := e.handshake(); err != nil {
					t.Error(err)
				}
			}
			e.conn.Free(false, nil)
			e.wire.Close()
			if err := <-peers[i]; (err == nil) != (i%3 == 2) {
				t.Errorf("the peer's end of %d: %v", i, err)
			}
		}
		runtime.GC()
	}
	// A connection that is not freed keeps some 20 KB.
	const leak = many * 200
	round()
	var growth []int64
	for range 20 {
		before := libssl.HeapInUse()
		round()
		growth = append(growth, int64(libssl.HeapInUse())-int64(before))
		if growth[len(growth)-1] < leak {
			return
		}
	}
	t.Errorf("C heap grew by %d bytes in rounds of %d handshakes", growth, many)
}

// TestStacksAreKept: as many stacks are kept as KeepStacks says, at least 64.
func TestStacksAreKept(t *testing.T) {
	load(t)
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil || libssl.PausesHoldThreads() {
		return // not on Linux, or there are no stacks
	}
	const stack = 1 << 20
	stacks := func() (n int) {
		maps, err = os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(maps)) {
			var from, to uint64
			if _, err := fmt.Sscanf(line, "%x-%x rw-p", &from, &to); err == nil && to-from == stack {
				n++
			}
		}
		return n
	}
	cert := tlstest.New(tlstest.Options{})
	cred, err := libssl.NewSignerCredential(cert.Certificate, &opaqueKey{key: cert.PrivateKey.(crypto.Signer)}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer libssl.KeepStacks(0)
	for _, c := range []struct{ keep, least, most int }{{100, 100, 110}, {0, 64, 74}} {
		libssl.KeepStacks(c.keep)
		var all []*endpoint
		for range 120 {
			e, peer := paused(t, tls.VersionTLS13, cred)
			all = append(all, e)
			go func() { <-peer }()
		}
		for _, e := range all {
			e.conn.Free(false, nil)
			e.wire.Close()
		}
		if n := stacks(); n < c.least || n > c.most {
			t.Errorf("KeepStacks(%d): %d stacks are left, want %d to %d", c.keep, n, c.least, c.most)
		}
	}
}
