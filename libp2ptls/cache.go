package libp2ptls

import (
	"crypto/sha256"
	"crypto/x509"
	"sync"
	"time"
)

// peerCache remembers verified certificates, so that the certificate of a known peer costs a hash
// instead of two signatures. A libp2p process uses one certificate for as long as it runs.
//
// A hit is as good as a verification. The certificate's bytes alone decide which peer signed for it
// and that it is self-signed; the key pins them by SHA-256. Its dates are checked at every hit.
// Each handshake proves that the peer has the certificate's key, and each connection compares the
// peer with the expected one. Refusals are not remembered.
type peerCache struct {
	max     int
	mu      sync.Mutex
	entries map[[sha256.Size]byte]*certifiedPeer // guarded by mu
}

// maxPeers is the number of certificates that a transport remembers.
const maxPeers = 1024

// newPeerCache returns a cache of at most size entries. One of size 0 remembers nothing.
func newPeerCache(size int) *peerCache {
	return &peerCache{max: size, entries: make(map[[sha256.Size]byte]*certifiedPeer)}
}

// certified returns the peer that signed for a chain of one valid certificate.
func (c *peerCache) certified(chain []*x509.Certificate) (*certifiedPeer, error) {
	if len(chain) != 1 || c.max == 0 {
		return verifyChain(chain)
	}
	sum := sha256.Sum256(chain[0].Raw)
	c.mu.Lock()
	known := c.entries[sum]
	c.mu.Unlock()
	now := time.Now()
	if known != nil && !now.Before(chain[0].NotBefore) && !now.After(chain[0].NotAfter) {
		return known, nil
	}
	p, err := verifyChain(chain)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for old := range c.entries { // in random order, which peers can't predict
		if len(c.entries) < c.max {
			break
		}
		delete(c.entries, old)
	}
	c.entries[sum] = p
	return p, nil
}
