//go:build !unix || aix

package netio

// receiveNow receives nothing: on AIX package syscall lacks MSG_DONTWAIT, and on systems other than
// Unix Input.raw is nil.
func receiveNow(uintptr, []byte) int { return 0 }
