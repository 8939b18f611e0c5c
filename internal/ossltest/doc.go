// Package ossltest holds those helpers of the tests that need package ossl, which package tlstest
// doesn't import: ossl as one of tlstest's implementations, Contexts for tests, and the ways of
// running the tests that the environment asks for.
package ossltest
