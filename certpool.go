package ossl

import (
	"crypto/x509"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// poolRoot is how crypto/x509 keeps a certificate of a CertPool. TestCertPoolLayout tells when a Go release changes it.
type poolRoot struct {
	rawSubject []byte
	constraint func([]*x509.Certificate) error // of AddCertWithConstraint, which each Verify asks
	//lint:ignore U1000 the layout is crypto/x509's
	getCert func() (*x509.Certificate, error)
}

// poolLayout says where a CertPool has its list of poolRoots. ok is false if this version of Go has anything in a CertPool that
// isn't known: it could decide something.
var poolLayout = sync.OnceValue(func() (layout struct {
	roots uintptr
	ok    bool
}) {
	pool, root, known := reflect.TypeFor[x509.CertPool](), reflect.TypeFor[poolRoot](), true
	for i := range pool.NumField() {
		switch f := pool.Field(i); f.Name {
		case "byName", "haveSum", "systemPool":
		case "lazyCerts":
			layout.roots = f.Offset
			layout.ok = f.Type.Kind() == reflect.Slice && sameFields(f.Type.Elem(), root)
		default:
			known = false
		}
	}
	layout.ok = layout.ok && known
	return layout
})

// sameFields reports whether two structs have the same fields at the same places.
func sameFields(a, b reflect.Type) bool {
	if a.Kind() != reflect.Struct || a.NumField() != b.NumField() || a.Size() != b.Size() {
		return false
	}
	for i := range a.NumField() {
		if f, g := a.Field(i), b.Field(i); f.Name != g.Name || f.Type != g.Type || f.Offset != g.Offset {
			return false
		}
	}
	return true
}

// rootsOf returns pool's own list, or false if it can't be found.
func rootsOf(pool *x509.CertPool) ([]poolRoot, bool) {
	layout := poolLayout()
	if !layout.ok {
		return nil, false
	}
	return *(*[]poolRoot)(unsafe.Add(unsafe.Pointer(pool), layout.roots)), true
}

// A trust is what a CertPool held at a moment. One that holds something else now has another trust.
type trust struct {
	roots []poolRoot // the pool's own list; as long as it is kept no other list is in its place

	// asks is whether a root has a constraint, or may have one: then two verifications of the same chain may end differently.
	asks bool
}

// trustIn returns what pool holds now: last if that is the same.
func trustIn(pool *x509.CertPool, last *trust) *trust {
	roots, ok := rootsOf(pool)
	if last != nil && len(roots) == len(last.roots) && unsafe.SliceData(roots) == unsafe.SliceData(last.roots) {
		return last
	}
	t := &trust{roots: roots, asks: !ok}
	for i := range roots {
		t.asks = t.asks || roots[i].constraint != nil
	}
	return t
}

// systemLookEvery is how often is looked what the system's roots are: it takes a copy of them.
const systemLookEvery = time.Second

// A systemLook is what the system's roots were at a moment.
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

// trustInSystem is trustIn for the system's roots. They are what they were when the process began, but for what
// x509.SetFallbackRoots puts in their place: any pool.
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
	if next.pool, err = x509.SystemCertPool(); err != nil { // and no chain is good
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
