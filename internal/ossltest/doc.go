// Package ossltest holds what the tests of package ossl share and package tlstest, which doesn't
// know ossl, can't have: ossl as one of tlstest's implementations, Contexts for tests, and the ways
// of running the tests that the environment may ask for.
package ossltest
