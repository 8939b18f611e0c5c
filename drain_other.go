//go:build !unix || aix

package ossl

// receiveNow receives nothing: input.raw, which it would be for, is nil elsewhere, and on AIX package syscall lacks MSG_DONTWAIT.
func receiveNow(uintptr, []byte) int { return 0 }
