//go:build cgo || ossl_nocgo

package conns

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// namedServer returns a server with the key of that name.
func namedServer(kind tlstest.KeyKind, name string) tlstest.End {
	config := tlstest.PlainServer(tls.VersionTLS13)
	config.Certificates = []tls.Certificate{tlstest.New(tlstest.Options{Key: tlstest.Key(kind, name)})}
	return tlstest.StdServer(config)
}

// TestPeerKeysKept connects to servers twice, and checks that their keys are decoded once.
func TestPeerKeysKept(t *testing.T) {
	lib, err := libssl.Load("")
	if err != nil {
		t.Fatal(err)
	}
	slim := libssl.UseSlim()
	_, kept := libssl.PeerKeysKept()
	if want := slim && lib.Number < 0x40100000; kept != want {
		t.Fatalf("with OpenSSL %s, slim %t, keys are kept: %t", lib.Version(), slim, kept)
	}
	for _, kind := range []tlstest.KeyKind{tlstest.P256, tlstest.P384, tlstest.P521, tlstest.RSA2048, tlstest.Ed25519} {
		t.Run(string(kind), func(t *testing.T) {
			client := ossltest.Client(t, tlstest.PlainClient(tls.VersionTLS13))
			server := namedServer(kind, "kept")
			tlstest.Visit(t, client, server) // another test may have met the key, but none drives it out before the next visit
			before, _ := libssl.PeerKeysKept()
			tlstest.Visit(t, client, server)
			after, _ := libssl.PeerKeysKept()
			if want := kept && kind != tlstest.Ed25519; (after > before) != want {
				t.Errorf("%d keys found, then %d; want more: %t", before, after, want)
			}
		})
	}
}

// TestPeerKeysMany connects to more servers than the number of kept keys, many times and from
// several goroutines. Each server has its own key: with another's key, its signature would be
// refused.
func TestPeerKeysMany(t *testing.T) {
	client := ossltest.Client(t, tlstest.PlainClient(tls.VersionTLS13))
	var servers []tlstest.End
	for i := range 150 {
		servers = append(servers, namedServer(tlstest.P256, fmt.Sprint("many ", i)))
	}
	servers = append(servers, namedServer(tlstest.RSA2048, "kept"), namedServer(tlstest.P384, "kept"))
	visits := 150
	if testing.Short() {
		visits = 50
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range visits {
				i := rand.IntN(len(servers))
				if rand.IntN(2) == 0 {
					i %= 8 // some are met often
				}
				if _, _, err := tlstest.TryVisit(client, servers[i]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestPeerKeysNotTheSigners connects to a server that sends a certificate seen before, but signs
// with a key of its own.
func TestPeerKeysNotTheSigners(t *testing.T) {
	for _, kind := range []tlstest.KeyKind{tlstest.P256, tlstest.RSA2048} {
		t.Run(string(kind), func(t *testing.T) {
			client := ossltest.Client(t, tlstest.PlainClient(tls.VersionTLS13))
			tlstest.Visit(t, client, namedServer(kind, "kept"))
			config := tlstest.PlainServer(tls.VersionTLS13)
			config.Certificates = []tls.Certificate{tlstest.New(tlstest.Options{Key: tlstest.Key(kind, "kept")})}
			config.Certificates[0].PrivateKey = tlstest.Key(kind, "another")
			if _, _, err := tlstest.TryVisit(client, tlstest.StdServer(config)); err == nil {
				t.Error("a signature of another key was accepted")
			}
			tlstest.Visit(t, client, namedServer(kind, "kept"))
		})
	}
}
