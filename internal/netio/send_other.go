//go:build !unix || aix

package netio

// sendNow sends nothing on this system.
func sendNow(uintptr, []byte, bool) (int, error) { return 0, nil }
