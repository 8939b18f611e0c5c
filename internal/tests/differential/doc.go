// Package differential compares package ossl with crypto/tls: it plays each case over both, in all
// four pairings of client and server. What crypto/tls does with itself is right: errors by
// everything that errors.Is and errors.As can tell, the whole ConnectionState, the data that were
// read, and the alerts on the wire. Each difference has a row in the table of deviations. Here too
// are the tests that a peer's certificate is never accepted wrongly, which hold the alerts against
// crypto/tls's.
package differential
