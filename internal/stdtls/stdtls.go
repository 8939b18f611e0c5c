// Package stdtls holds the code that depends on the internals of crypto/tls and crypto/x509: on
// unexported fields, on the layout of a structure, or on the bytes that a handshake of crypto/tls
// sends. When a new Go release changes a field, look here: this package's tests fail.
//
// Some of it has crypto/tls do the work, so that defaults, GODEBUG settings and new releases are
// followed without a copy of crypto/tls's tables: [ParseHello], [DefaultHello] and
// [SessionTemplate] run handshakes in memory. The rest reads or sets fields that have no exported
// access. If this version of Go does not have such a field, the functions here report it, or they
// leave the object as its zero value has it; they never guess.
package stdtls
