// Package conns tests connections in cases that can't be compared with crypto/tls: closing,
// deadlines and errors of the transport, uploads, callbacks and signers that take their time, panic
// or use their connection, checks of configurations, and hellos.
package conns
