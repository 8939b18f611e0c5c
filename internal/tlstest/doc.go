// Package tlstest holds what the tests of this module share: certificates made once per process,
// connected pairs of net.Conn with faults in between, recordings of what went over the wire and a
// runner that plays the same case over any two TLS implementations. It knows nothing of package
// ossl: tests hand its constructors in as an [Impl].
package tlstest
