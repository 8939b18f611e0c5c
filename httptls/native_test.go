//go:build go1.27

package httptls_test

const native = true // net/http treats an *ossl.Conn as a *tls.Conn
