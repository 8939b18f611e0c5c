package chain

import (
	"crypto/x509"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ossl-go/ossl/internal/stdtls"
)

// A trust is the content of a CertPool at one time. A pool whose content has changed has another
// trust.
type trust struct {
	roots []stdtls.PoolRoot // the pool's own list; while it is kept, no other list can have its address

	// asks reports whether a root has a constraint, or may have one: two verifications of one chain
	// may then differ.
	asks bool
}

// trustIn returns the trust of pool as it is now: last, if pool has not changed since.
func trustIn(pool *x509.CertPool, last *trust) *trust {
	roots, ok := stdtls.PoolRoots(pool)
	if last != nil && len(roots) == len(last.roots) && unsafe.SliceData(roots) == unsafe.SliceData(last.roots) {
		return last
	}
	t := &trust{roots: roots, asks: !ok}
	for i := range roots {
		t.asks = t.asks || roots[i].HasConstraint()
	}
	return t
}

// systemLookEvery is the time between two looks at the system's roots, each of which copies them.
const systemLookEvery = time.Second

// A systemLook is the system's roots at one time.
type systemLook struct {
	at    time.Time
	pool  *x509.CertPool
	trust *trust
}

func (l *systemLook) isFresh(now time.Time) bool {
	if l == nil {
		return false
	}
	old := age(now, l.at)
	return old >= 0 && old < systemLookEvery
}

// systemTrust is the last look.
var systemTrust struct {
	mu   sync.Mutex // one look at a time
	last atomic.Pointer[systemLook]
}

// trustInSystem is trustIn for the system's roots. They don't change while the process runs, unless
// x509.SetFallbackRoots replaces them with another pool.
func trustInSystem(now time.Time) *trust {
	if look := systemTrust.last.Load(); look.isFresh(now) {
		return look.trust
	}
	systemTrust.mu.Lock()
	defer systemTrust.mu.Unlock()
	look := systemTrust.last.Load()
	if look.isFresh(now) {
		return look.trust
	}
	next := &systemLook{at: now}
	var err error
	if next.pool, err = x509.SystemCertPool(); err != nil { // then no chain can be verified
		next.pool, next.trust = nil, &trust{asks: true}
	} else {
		next.trust = trustIn(next.pool, nil)
		if look != nil && look.pool != nil && look.pool.Equal(next.pool) && look.trust.asks == next.trust.asks {
			next.trust = look.trust
		}
	}
	systemTrust.last.Store(next)
	return next.trust
}
