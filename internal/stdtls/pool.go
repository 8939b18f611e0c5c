package stdtls

import (
	"crypto/x509"
	"errors"
	"reflect"
	"sync"
	"unsafe"
)

// A PoolRoot has the layout in which crypto/x509 keeps a certificate of a CertPool.
type PoolRoot struct {
	rawSubject []byte
	constraint func([]*x509.Certificate) error // of AddCertWithConstraint; each Verify calls it
	getCert    func() (*x509.Certificate, error)
}

// HasConstraint reports whether the certificate was added by AddCertWithConstraint.
func (r *PoolRoot) HasConstraint() bool { return r.constraint != nil }

// poolLayout is the offset of a CertPool's list of PoolRoots. ok is false if this Go version has an
// unknown field in a CertPool, since verification could depend on it.
var poolLayout = sync.OnceValue(func() (layout struct {
	roots uintptr
	ok    bool
}) {
	pool, root, known := reflect.TypeFor[x509.CertPool](), reflect.TypeFor[PoolRoot](), true
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

// sameFields reports whether two structs have the same fields at the same offsets.
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

// PoolRoots returns pool's own list, which each change of the pool replaces or lengthens. ok is
// false if this Go version keeps it in an unknown way.
func PoolRoots(pool *x509.CertPool) (roots []PoolRoot, ok bool) {
	layout := poolLayout()
	if !layout.ok {
		return nil, false
	}
	return *(*[]PoolRoot)(unsafe.Add(unsafe.Pointer(pool), layout.roots)), true
}

// PoolCertificates returns the certificates of a pool. It returns an error if the pool has
// constraints, or anything else besides certificates, such as the system's verifier on macOS and
// Windows.
func PoolCertificates(pool *x509.CertPool) ([]*x509.Certificate, error) {
	roots, ok := PoolRoots(pool)
	if !ok {
		return nil, errors.New("this version of Go keeps its certificates in an unknown way")
	}
	certs, same := make([]*x509.Certificate, len(roots)), x509.NewCertPool()
	for i := range roots {
		if roots[i].HasConstraint() {
			return nil, errors.New("it has a certificate with a constraint")
		}
		cert, err := roots[i].getCert()
		if err != nil {
			return nil, err
		}
		certs[i] = cert
		same.AddCert(cert)
	}
	if !same.Equal(pool) {
		return nil, errors.New("it has the system's verifier")
	}
	return certs, nil
}
