// Package conns tests connections where no case can be compared with crypto/tls's: closing,
// deadlines and errors of the transport, uploads, callbacks and signers that take their time, panic
// or use their connection, checks of configurations, and hellos.
package conns
