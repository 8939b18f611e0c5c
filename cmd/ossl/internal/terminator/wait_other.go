//go:build !unix

package terminator

// waitReadable can't wait without a buffer on this system.
func waitReadable(*idleConn) (bool, error) { return false, nil }
