// Package conns tests connections beyond what can be compared with crypto/tls case by case:
// closing, deadlines and errors of the transport, callbacks and signers that take their time, panic
// or use their connection, checks of configurations, and hellos.
package conns
