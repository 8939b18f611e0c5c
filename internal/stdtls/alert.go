package stdtls

import "reflect"

// Alert returns the number of an alert: a value of an unexported crypto/tls type, which
// connections' errors contain. ok is false for other errors.
func Alert(err error) (number uint8, ok bool) {
	v := reflect.ValueOf(err)
	if !v.IsValid() || v.Kind() != reflect.Uint8 || v.Type().PkgPath() != "crypto/tls" {
		return 0, false
	}
	return uint8(v.Uint()), true
}
