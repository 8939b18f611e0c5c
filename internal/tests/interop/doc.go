// Package interop tests that other implementations' programs can talk to package ossl, in both
// roles and both versions of TLS. Tests whose program isn't installed are skipped.
package interop
