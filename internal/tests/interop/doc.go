// Package interop tests that other implementations' programs can talk to package ossl, in both
// roles and both TLS versions. Tests whose program isn't installed are skipped.
package interop
