//go:build unix && !aix && !linux

package netio

// sendNow sends b to a socket, or a part of it. The end of the stream is another segment, even if
// last is set. As package net's writes do, it leaves SIGPIPE to the runtime.
func sendNow(fd uintptr, b []byte, last bool) (int, error) {
	_ = last
	return sendSome(fd, b, 0)
}
