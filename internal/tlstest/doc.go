// Package tlstest holds the helpers that the tests of this module share: certificates made once per
// process, connected pairs of net.Conn with faults in between, recordings of the wire, edits of
// configurations, helpers for programs and processes, and a runner that plays the same case over
// any two TLS implementations. It doesn't import package ossl, whose own tests import it: helpers
// that need ossl are in package ossltest.
package tlstest
