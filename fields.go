package ossl

import (
	"context"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// Fields of crypto/tls's types that have no exported way to be set, or that the Go version in use may lack. TestUnexportedFields
// tells when a Go release changes one.
var (
	// What the Context methods return, nil otherwise.
	helloContext   = fieldOf[tls.ClientHelloInfo, context.Context]("ctx")
	requestContext = fieldOf[tls.CertificateRequestInfo, context.Context]("ctx")
	// The function behind ConnectionState.ExportKeyingMaterial, which panics otherwise.
	stateExporter   = fieldOf[tls.ConnectionState, func(label string, context []byte, length int) ([]byte, error)]("ekm")
	stateHelloRetry = fieldOf[tls.ConnectionState, bool]("HelloRetryRequest")
	stateLocal      = fieldOf[tls.ConnectionState, [][]byte]("LocalCertificate") // from Go 1.27 on
)

// A field is one of type F in a struct of type T. It is looked for once: that takes longer than what a handshake does with it.
type field[T, F any] struct {
	offset uintptr
	there  bool
}

// fieldOf finds T's field of this name and exactly this type.
func fieldOf[T, F any](name string) field[T, F] {
	f, ok := reflect.TypeFor[T]().FieldByName(name)
	if !ok || len(f.Index) != 1 || f.Type != reflect.TypeFor[F]() {
		return field[T, F]{}
	}
	return field[T, F]{offset: f.Offset, there: true}
}

// set sets the field of object. It does nothing where there is no such field: then object stays as a zero value has it.
func (f field[T, F]) set(object *T, value F) {
	if f.there {
		*(*F)(unsafe.Add(unsafe.Pointer(object), f.offset)) = value
	}
}
