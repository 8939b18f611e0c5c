package chain

import (
	"bytes"
	"crypto/x509"
	"runtime"
	"sync"
	"weak"
)

// A certCache lets all connections share one parsed certificate of a server, as in crypto/tls. It
// keeps none alive: an entry lasts as long as the certificate is in use. Nothing is decided
// here; see cache.
//
// Each Verifier has its own, because a callback may change a certificate
// (UnhandledCriticalExtensions). The next verification by the same configuration must see the
// change, and no other. The cache is a separate object, so that the cleanup of a certificate keeps
// it alive, and not the Verifier.
type certCache struct {
	mu    sync.RWMutex
	certs map[string]weak.Pointer[x509.Certificate] // guarded by mu; by DER
}

// parse is like x509.ParseCertificate, and keeps no reference to der.
func (c *certCache) parse(der []byte) (*x509.Certificate, error) {
	c.mu.RLock()
	cert := c.certs[string(der)].Value()
	c.mu.RUnlock()
	if cert != nil {
		return cert, nil
	}
	cert, err := x509.ParseCertificate(bytes.Clone(der)) // it keeps its bytes
	if err != nil {
		return nil, err
	}
	key, pointer := string(der), weak.Make(cert)
	c.mu.Lock()
	defer c.mu.Unlock()
	if first := c.certs[key].Value(); first != nil {
		return first, nil
	}
	if c.certs == nil {
		c.certs = make(map[string]weak.Pointer[x509.Certificate])
	}
	c.certs[key] = pointer
	runtime.AddCleanup(cert, func(key string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.certs[key] == pointer { // the same certificate may have come again
			delete(c.certs, key)
		}
		if len(c.certs) == 0 {
			c.certs = nil // a map that was large once stays large
		}
	}, key)
	return cert, nil
}
