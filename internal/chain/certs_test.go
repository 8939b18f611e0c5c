package chain

import (
	"crypto/x509"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

func TestCertCache(t *testing.T) {
	var c certCache
	der := tlstest.ServerCert(tlstest.P256).Certificate[0]
	given := append([]byte(nil), der...)
	first, err := c.parse(given)
	if err != nil {
		t.Fatal(err)
	}
	clear(given) // the caller's to use again
	want, err := x509.ParseCertificate(der)
	if err != nil || !first.Equal(want) {
		t.Fatalf("got %v, %v", first, err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				if again, err := c.parse(der); again != first || err != nil {
					t.Errorf("another certificate, %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	if other, err := c.parse(tlstest.ServerCert(tlstest.RSA2048).Certificate[0]); other.Equal(first) || err != nil {
		t.Errorf("got the first again, %v", err)
	}
	if _, err := c.parse(der[:len(der)-1]); err == nil {
		t.Error("no error")
	}
	runtime.KeepAlive(first)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		c.mu.RLock()
		left := len(c.certs)
		c.mu.RUnlock()
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d certificates that nobody has", left)
		}
	}
}

// TestCertCacheComesAgain parses a certificate again while the collector drops the unused ones.
func TestCertCacheComesAgain(t *testing.T) {
	var c certCache
	der := tlstest.ServerCert(tlstest.P256).Certificate[0]
	for range 200 {
		cert, err := c.parse(der)
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		if again, err := c.parse(der); again != cert || err != nil {
			t.Fatalf("another certificate than the one that is held, %v", err)
		}
	}
}
