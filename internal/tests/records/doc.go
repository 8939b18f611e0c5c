// Package records tests the record path: that connections are taken over from libssl whenever that
// is possible, that both paths do the same with the same records, genuine or not, and that records
// are as long as crypto/tls's.
package records
