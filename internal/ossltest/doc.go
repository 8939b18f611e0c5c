// Package ossltest holds the tests' helpers that need package ossl, which package tlstest doesn't
// import: ossl as a tlstest implementation, Contexts for tests, and the ways of running the tests
// that the environment asks for.
package ossltest
