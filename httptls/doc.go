// Package httptls provides an HTTP client transport and an HTTP server that use OpenSSL for TLS,
// through package ossl.
//
// A client takes its settings from an [http.Transport], or from none:
//
//	client, err := httptls.NewClient(nil)
//	...
//	resp, err := client.Get("https://example.org/")
//
// A server is started by a function named as in net/http, or wraps an [http.Server]:
//
//	err := httptls.ListenAndServeTLS(":443", "cert.pem", "key.pem", handler)
//
//	server := &httptls.Server{Server: &http.Server{Addr: ":443", Handler: handler}}
//	err := server.ListenAndServeTLS("cert.pem", "key.pem")
//
// Both speak HTTP/1.1 and HTTP/2, chosen by ALPN, and behave as net/http does with crypto/tls:
// net/http's documentation of a setting applies here too. A setting that can't be honoured causes
// an error that names it, a [*ossl.ConfigError]. docs/HTTP.md is the guide, and lists the
// differences.
//
// # How it works
//
// HTTP is implemented by net/http and golang.org/x/net/http2. In Go 1.26, net/http uses a
// connection for HTTP/2 only if it is a [*tls.Conn]; so this package looks at the protocol that the
// handshake agreed on, and gives the connection to one or the other. From Go 1.27 on net/http does
// that itself, with any connection that has ConnectionState and HandshakeContext, and this package
// leaves it to net/http.
package httptls
