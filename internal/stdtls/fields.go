package stdtls

import (
	"context"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// The fields in crypto/tls's types that have no exported way to be set, or that the Go version in
// use may lack.
var (
	helloContext    = fieldOf[tls.ClientHelloInfo, context.Context]("ctx")
	requestContext  = fieldOf[tls.CertificateRequestInfo, context.Context]("ctx")
	stateExporter   = fieldOf[tls.ConnectionState, Exporter]("ekm")
	stateHelloRetry = fieldOf[tls.ConnectionState, bool]("HelloRetryRequest")    // from Go 1.26 on
	stateLocal      = fieldOf[tls.ConnectionState, [][]byte]("LocalCertificate") // from Go 1.27 on
)

// An Exporter is the function behind ConnectionState.ExportKeyingMaterial.
type Exporter = func(label string, context []byte, length int) ([]byte, error)

// SetHelloContext sets the result of hello.Context, which is nil otherwise.
func SetHelloContext(hello *tls.ClientHelloInfo, ctx context.Context) { helloContext.set(hello, ctx) }

// SetRequestContext sets the result of info.Context, which is nil otherwise.
func SetRequestContext(info *tls.CertificateRequestInfo, ctx context.Context) {
	requestContext.set(info, ctx)
}

// SetExporter sets the function that state.ExportKeyingMaterial calls. Without it, that method
// panics.
func SetExporter(state *tls.ConnectionState, export Exporter) { stateExporter.set(state, export) }

// SetHelloRetry sets state.HelloRetryRequest, if this Go version has the field.
func SetHelloRetry(state *tls.ConnectionState, retried bool) { stateHelloRetry.set(state, retried) }

// HelloRetry returns the field that SetHelloRetry sets.
func HelloRetry(state *tls.ConnectionState) bool { return stateHelloRetry.get(state) }

// SetLocalCertificate sets state.LocalCertificate, if this Go version has the field.
func SetLocalCertificate(state *tls.ConnectionState, chain [][]byte) { stateLocal.set(state, chain) }

// LocalCertificate returns the field that SetLocalCertificate sets, or nil.
func LocalCertificate(state *tls.ConnectionState) [][]byte { return stateLocal.get(state) }

// A field is a field of type F in a struct of type T. It is looked up once: the lookup takes longer
// than everything that a handshake does with the field.
type field[T, F any] struct {
	offset uintptr
	ok     bool // T has the field
}

// fieldOf finds T's field of this name and exactly this type.
func fieldOf[T, F any](name string) field[T, F] {
	f, ok := reflect.TypeFor[T]().FieldByName(name)
	if !ok || len(f.Index) != 1 || f.Type != reflect.TypeFor[F]() {
		return field[T, F]{}
	}
	return field[T, F]{offset: f.Offset, ok: true}
}

// get returns the field of object, or the zero value if T lacks the field.
func (f field[T, F]) get(object *T) (value F) {
	if f.ok {
		value = *(*F)(unsafe.Add(unsafe.Pointer(object), f.offset))
	}
	return value
}

// set sets the field of object. It does nothing if T lacks the field.
func (f field[T, F]) set(object *T, value F) {
	if f.ok {
		*(*F)(unsafe.Add(unsafe.Pointer(object), f.offset)) = value
	}
}
