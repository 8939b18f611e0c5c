//go:build cgo || ossl_nocgo

package resumption

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

const shards = 3

// hasShards reports whether Contexts can have several shards, so that a test can choose the shard.
func hasShards(t *testing.T) bool {
	t.Helper()
	if _, err := ossl.Library(); err != nil {
		t.Fatal(err)
	}
	if libssl.Shards(shards) == 1 || !libssl.UseSlim() || ossltest.InFIPS { // FIPS mode has one
		return false
	}
	t.Cleanup(func() { libssl.PinShard(-1) })
	return true
}

// TestResumedInAnotherShard resumes the sessions of one shard in another: by ticket and by ID, at both ends.
func TestResumedInAnotherShard(t *testing.T) {
	several := hasShards(t)
	opaque, key := tlstest.Opaque(tlstest.P256, tlstest.ServerName)
	certs := map[string]tls.Certificate{
		"P256":    tlstest.ServerCert(tlstest.P256),
		"RSA2048": tlstest.ServerCert(tlstest.RSA2048),
		"Ed25519": tlstest.ServerCert(tlstest.Ed25519), // one for all shards
		"signer":  opaque,
	}
	for _, version := range tlstest.Versions {
		for _, way := range []string{"ticket", "ID"} {
			for name, cert := range certs {
				t.Run(fmt.Sprint(tls.VersionName(version), "/", way, "/", name), func(t *testing.T) {
					cc, sc := tlstest.Resuming(version)
					sc.Certificates = []tls.Certificate{cert}
					var ofClient, ofServer bytes.Buffer
					opts := []ossl.Option{ossl.WithShards(shards), ossl.WithTrace(&ofServer)}
					if way == "ID" {
						sc.SessionTicketsDisabled = true
						opts = append(opts, ossl.WithSessionCache(session.NewCache(8)))
					}
					libssl.PinShard(0)
					client := ossltest.Client(t, cc, ossl.WithShards(shards), ossl.WithTrace(&ofClient))
					server := ossltest.Server(t, sc, opts...)
					for i, shard := range []int{0, 1, 2, 0, 2, 1} {
						libssl.PinShard(shard)
						tlstest.WantResumed(t, client, server, i > 0)
						for end, trace := range map[string]*bytes.Buffer{"client": &ofClient, "server": &ofServer} {
							if several != strings.Contains(trace.String(), fmt.Sprintf(", shard %d of %d\n", shard+1, shards)) {
								t.Errorf("connection %d of the %s, in shard %d: %s", i, end, shard+1, trace)
							}
							trace.Reset()
						}
					}
				})
			}
		}
	}
	if key.Signed.Load() == 0 {
		t.Error("the signer was not asked")
	}
}

// TestFullHandshakesInShards makes connections with each key in each shard, without sessions.
func TestFullHandshakesInShards(t *testing.T) {
	hasShards(t)
	for _, version := range tlstest.Versions {
		opaque, key := tlstest.Opaque(tlstest.RSA2048, tlstest.ServerName)
		certs := []tls.Certificate{tlstest.ServerCert(tlstest.P256), tlstest.ServerCert(tlstest.RSA2048),
			tlstest.ServerCert(tlstest.Ed25519), opaque}
		for i, cert := range certs {
			libssl.PinShard(0)
			mutual := func(c *tls.Config) {
				c.Certificates = []tls.Certificate{cert}
				c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
			}
			server := ossltest.Server(t, tlstest.ServerConfig(mutual), ossl.WithShards(shards))
			client := ossltest.Client(t, tlstest.ClientConfig(tlstest.Only(version), tlstest.SendCertificate(
				tlstest.ClientCert(tlstest.P256))), ossl.WithShards(shards))
			for shard := range 2 * shards {
				libssl.PinShard(shard)
				if c, _ := tlstest.Visit(t, client, server); !bytes.Equal(c.PeerCertificates[0].Raw, cert.Certificate[0]) {
					t.Errorf("%s, certificate %d: another one came", tls.VersionName(version), i)
				}
			}
		}
		if n := key.Signed.Load(); n < 2*shards {
			t.Errorf("%s: the signer was asked %d times", tls.VersionName(version), n)
		}
	}
}

// TestShardsRotate makes clients connect to all shards of a server while its ticket keys change: each of their
// sessions must be resumed, since the keys are never gone from one shard and not yet known in another.
func TestShardsRotate(t *testing.T) {
	several := hasShards(t)
	rotations := uint64(200)
	if testing.Short() {
		rotations = 20
	}
	keyOf := func(n uint64) session.TicketKey {
		var b [32]byte
		binary.BigEndian.PutUint64(b[:], n+1)
		return session.KeyOf(b)
	}
	for _, version := range tlstest.Versions {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			ring, err := session.NewRing(keyOf(0))
			if err != nil {
				t.Fatal(err)
			}
			cc, sc := tlstest.Resuming(version)
			server := ossltest.Server(t, sc, ossl.WithTicketKeys(ring), ossl.WithShards(shards))
			const clients = 6
			var rotated atomic.Uint64
			var visited sync.WaitGroup // by each client, since the last rotation
			var all sync.WaitGroup
			visited.Add(clients)
			for range clients {
				all.Go(func() {
					cc := cc.Clone()
					cc.ClientSessionCache = tls.NewLRUClientSessionCache(1)
					client := ossltest.Client(t, cc, ossl.WithShards(shards))
					resumes, seen := false, uint64(0)
					for seen <= rotations {
						began := rotated.Load()
						if several {
							libssl.PinShard(rand.IntN(shards))
						}
						c, s, err := tlstest.TryVisit(client, server)
						if err != nil || c.DidResume != resumes || s.DidResume != resumes {
							t.Errorf("after %d rotations: %v; resumed: %v, %v; want %v", began, err, c.DidResume, s.DidResume, resumes)
						}
						resumes = true
						if began >= seen {
							seen = began + 1
							visited.Done()
						}
					}
				})
			}
			for n := uint64(1); n <= rotations; n++ {
				visited.Wait()
				if err := ring.Set(keyOf(n), keyOf(n-1)); err != nil {
					t.Error(err)
				}
				visited.Add(clients)
				rotated.Store(n)
			}
			all.Wait()
		})
	}
}
