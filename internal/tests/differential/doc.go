// Package differential compares package ossl with crypto/tls: it plays each case over both, in all
// four pairings of client and server. The pairing of crypto/tls client and server gives the right
// outcome: the errors, as errors.Is and errors.As see them, the whole ConnectionState, the data
// that was read, and the alerts on the wire. Each difference needs a row in the table of
// deviations. The tests that no wrong certificate is accepted are here too, because they compare
// the alerts.
package differential
