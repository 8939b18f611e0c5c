// Package conns tests connections where a comparison with crypto/tls is not possible: Close,
// deadlines and errors of the transport; uploads; callbacks and signers that are slow, panic or use
// their connection; checks of configurations and certificates; and ClientHellos.
package conns
