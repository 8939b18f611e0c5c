// Package httptls puts net/http on OpenSSL: a client transport and a server whose TLS is package ossl's.
package httptls
