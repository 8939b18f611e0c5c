// Package conns tests behaviour of connections that can't be compared with crypto/tls: Close,
// deadlines and errors of the transport; uploads; callbacks and signers that are slow, panic or use
// their connection; checks of configurations and certificates; and ClientHellos.
package conns
