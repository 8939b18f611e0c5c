//go:build cgo && ossl_coroutine_threads

package libssl

// A build tag, unlike CGO_CFLAGS, makes the go command compile only this package anew.

// #cgo CFLAGS: -DOSSL_COROUTINE_THREADS
import "C"
