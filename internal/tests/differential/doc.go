// Package differential compares package ossl with crypto/tls: it plays each case over both, in all
// four pairings of client and server. A run of crypto/tls with itself gives the right outcome:
// errors, by everything that errors.Is and errors.As find in them, the whole ConnectionState, the
// data that were read, and the alerts on the wire. Each difference has a row in the table of
// deviations. Here too are the tests that no wrong certificate is accepted, which compare alerts
// with crypto/tls's.
package differential
