// Package errortexts provokes mistakes, in handshakes, configurations, files and on the host, and
// compares the texts of the errors with docs/ERRORS.md and with crypto/tls. Other tests compare
// only types.
package errortexts
