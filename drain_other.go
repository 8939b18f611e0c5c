//go:build !unix || aix

package ossl

// receiveNow receives nothing: on AIX package syscall lacks MSG_DONTWAIT, and on systems other than Unix input.raw is nil.
func receiveNow(uintptr, []byte) int { return 0 }
