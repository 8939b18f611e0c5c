// Package ossl implements TLS 1.2 and TLS 1.3, for clients and servers, with the OpenSSL that it
// finds on the host at run time.
//
// It has crypto/tls's API: [Dial], [Listen], [Client], [Server] and [Conn] take the same
// [tls.Config], give the same [tls.ConnectionState], fail with the same errors and send the same
// alerts. In the simplest case, only the import changes:
//
//	conn, err := ossl.Dial("tcp", "example.org:443", &tls.Config{})
//
// [NewContext] compiles a configuration once. It names the field that can't be honoured, if there
// is one, and takes options for the properties that [tls.Config] has no field for:
//
//	ctx, err := ossl.NewContext(config, ossl.WithSignatureAlgorithms(tls.Ed25519))
//	...
//	listener, err := ctx.Listen("tcp", ":443")
//
// # The library
//
// The first constructor that a program calls loads OpenSSL 1.1.1, 3.x or 4.x. Building the program
// needs no headers. By default the newest version on the host is loaded; the environment variable
// OSSL_LIBRARY chooses another one by its version ("3", "1.1"), by the path of libssl, or by a
// folder. If none is usable, constructors return an error that wraps [ErrUnavailable] and lists
// every library that was tried. The program goes on, and a later call tries again. [Library]
// describes the library that was loaded.
//
// With OpenSSL 3.0 and later, OSSL_SLIM=off turns off a shortcut that makes handshakes cheaper and
// changes nothing else: the slim library context of docs/ARCHITECTURE.md. On machines with more than
// four processors there are several, and connections are divided among them: [WithShards].
//
// After a burst of hundreds of handshakes or connections, ossl makes glibc return the free memory to
// the system, with malloc_trim(3), unless the environment has OSSL_TRIM=off.
//
// OpenSSL's libssl runs the handshake. Afterwards ossl takes the connection over if it can, and
// seals and opens its records itself, with OpenSSL's libcrypto. [WithRecordPath] or the environment
// variable OSSL_RECORDS (auto, libssl, direct) changes that.
//
// # What happens
//
// [Context.Stats] and [ProcessStats] count handshakes, failures and more, [WithEvents] calls a
// function at each, and [WithTrace] or the environment variable OSSL_TRACE print handshakes message
// by message. The environment variable OSSL_KEYLOG names a file that gets the keys of all
// connections. docs/OBSERVABILITY.md describes these and more.
//
// # FIPS mode
//
// In FIPS mode, all cryptography is done by OpenSSL's FIPS module. [WithFIPS], the environment
// variable OSSL_FIPS=require, or the host's own FIPS mode turn it on, and [Conn.FIPS] shows it.
// docs/FIPS.md lists the claims that this supports.
//
// # HTTP
//
// Use the transport and the server of package httptls for HTTP. net/http before Go 1.27 speaks
// HTTP/2 only over a [*tls.Conn]. If [net/http.Serve] gets a listener of this package and
// NextProtos list "h2", clients fail: Go's report "frame too large", since the answers are
// HTTP/1.1. Request.TLS is the state before the handshake, without peer certificates. A
// [net/http.Transport] with the dialing function of a [Dialer] fails too if the server agrees on
// "h2". With net/http alone, leave "h2" out of NextProtos, and take the peer's certificates from
// the [*Conn] in ConnContext. From Go 1.27 on net/http treats a [*Conn] as it does a [*tls.Conn].
//
// # Limits
//
// Chains are verified by crypto/x509 or, in FIPS mode, by OpenSSL with the same errors. Sessions
// are resumed as crypto/tls resumes them, and also by their IDs from a cache that servers may
// share. docs/COMPATIBILITY.md lists every field of tls.Config, and every difference from
// crypto/tls that libssl forces.
package ossl
