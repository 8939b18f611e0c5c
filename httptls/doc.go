// Package httptls puts net/http on OpenSSL: a client transport and a server whose TLS is package ossl's.
//
// A client takes its settings from an [http.Transport], or from none:
//
//	client, err := httptls.NewClient(nil)
//	...
//	resp, err := client.Get("https://example.org/")
//
// A server is started by the functions of net/http's names, or wraps an [http.Server]:
//
//	err := httptls.ListenAndServeTLS(":443", "cert.pem", "key.pem", handler)
//
//	server := &httptls.Server{Server: &http.Server{Addr: ":443", Handler: handler}}
//	err := server.ListenAndServeTLS("cert.pem", "key.pem")
//
// Both speak HTTP/1.1 and HTTP/2, chosen by ALPN, and behave as net/http does with crypto/tls: what net/http says of a setting
// holds here. A setting that can't be honoured is refused by an error that names it, a [*ossl.ConfigError]. docs/HTTP.md is the
// guide, and lists the differences.
//
// # How it works
//
// HTTP is net/http's and golang.org/x/net/http2's own. net/http of Go 1.26 takes a connection for HTTP/2 only if it is a
// [*tls.Conn]; so this package looks at the protocol that the handshake agreed on, and hands the connection to one or the
// other. From Go 1.27 on net/http does that itself, with any connection that has ConnectionState and HandshakeContext, and this
// package leaves that to it.
package httptls
