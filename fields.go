package ossl

import (
	"reflect"
	"unsafe"
)

// setField sets a field of one of crypto/tls's types that has no exported way to be set, or that the Go version in use may lack:
// the context of a CertificateRequestInfo, whose Context method would otherwise return nil; the function behind
// ConnectionState.ExportKeyingMaterial, which would otherwise panic. It does nothing, and returns false, where there is no such
// field of value's type: then those methods stay as a zero value has them. TestUnexportedFields tells when a Go release changes
// one.
func setField[T any](object *T, name string, value any) bool {
	field := reflect.ValueOf(object).Elem().FieldByName(name)
	v := reflect.ValueOf(value)
	if !field.IsValid() || !v.IsValid() || !v.Type().AssignableTo(field.Type()) {
		return false
	}
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(v)
	return true
}
