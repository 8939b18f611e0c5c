// Package stdtls holds the code that depends on crypto/tls and crypto/x509 internals: on unexported
// fields, on the layout of a structure, or on the bytes that a crypto/tls handshake sends. When a
// new Go release changes a field, look here: this package's tests fail.
//
// Some of it makes crypto/tls do the work, so that defaults, GODEBUG settings and new releases are
// followed without a copy of crypto/tls's tables: [ParseHello], [DefaultHello] and
// [SessionTemplate] run handshakes in memory. The rest reads or sets fields that have no exported
// access. If this Go version does not have such a field, the functions here report it, or they keep
// the object's zero value; they never guess.
package stdtls
