package libp2ptls

import (
	"crypto/sha256"
	"crypto/x509"
	"sync"
	"time"
)

// peerCache remembers the certificates that were verified, so that a peer met again costs a hash instead of two signatures.
// libp2p's certificates are a process's for as long as it runs.
//
// A hit is as good as a verification: who signed for a certificate, and that it is its own issuer, is decided by its bytes alone,
// which the key pins by SHA-256; its dates are checked at every hit. That the peer has the certificate's key is the handshake's
// to prove, each time; whether it is the one expected, the connection's to compare. Refusals are not remembered.
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

// certified returns who signed for a chain that is one valid certificate.
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
	for old := range c.entries { // in random order, which no peer can predict
		if len(c.entries) < c.max {
			break
		}
		delete(c.entries, old)
	}
	c.entries[sum] = p
	return p, nil
}
