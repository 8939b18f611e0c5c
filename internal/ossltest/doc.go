// Package ossltest holds the helpers of package ossl's tests that import it, as package tlstest
// can't: ossl as one of tlstest's implementations, Contexts for tests, and the ways of running the
// tests that the environment may ask for.
package ossltest
