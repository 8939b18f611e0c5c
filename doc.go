// Package ossl gives TLS 1.2 and TLS 1.3 connections, client and server, through the OpenSSL that it finds on the host at run
// time.
//
// It stands in for crypto/tls: [Dial], [Listen], [Client], [Server] and [Conn] take the same [tls.Config], give the same
// [tls.ConnectionState], fail with the same errors and send the same alerts. The simplest use changes an import:
//
//	conn, err := ossl.Dial("tcp", "example.org:443", &tls.Config{})
//
// [NewContext] compiles a configuration once, reports by field what can't be honoured, and takes options that crypto/tls has no
// field for:
//
//	ctx, err := ossl.NewContext(config, ossl.WithSignatureAlgorithms(tls.Ed25519))
//	...
//	listener, err := ctx.Listen("tcp", ":443")
//
// # The library
//
// OpenSSL 1.1.1, 3.x or 4.x is loaded when the first constructor runs; no header is needed to build. The environment variable
// OSSL_LIBRARY chooses another one than the newest found: a version ("3", "1.1"), the path of libssl, or a folder. Where none is
// usable, constructors return an error that wraps [ErrUnavailable] and lists what was tried; the program goes on, and a later
// call tries again. [Library] tells what was loaded. With OpenSSL 3.0 and 3.1, OSSL_SLIM=off turns off a shortcut that makes
// handshakes cheaper and changes nothing else (docs/ARCHITECTURE.md).
//
// OpenSSL's libssl does the handshake. Afterwards ossl takes the connection over, where it can, and seals and opens its records
// itself, by OpenSSL's libcrypto; [WithRecordPath] or the environment variable OSSL_RECORDS (auto, libssl, own) decides.
//
// # FIPS mode
//
// [WithFIPS], the environment variable OSSL_FIPS=require, or the host's own FIPS mode have all cryptography done by OpenSSL's
// FIPS module, and [Conn.FIPS] shows it. docs/FIPS.md says what may be claimed of that.
//
// # Limits
//
// Chains are verified by crypto/x509 (in FIPS mode by OpenSSL, with the same errors). Sessions are resumed as crypto/tls resumes
// them, and by ID from a cache that servers may share. docs/COMPATIBILITY.md lists every field of tls.Config and every place
// where libssl forces another behaviour than crypto/tls's.
package ossl
