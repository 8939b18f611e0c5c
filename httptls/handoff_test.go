//go:build !go1.27

package httptls_test

const native = false // net/http speaks HTTP/2 over a *tls.Conn only
