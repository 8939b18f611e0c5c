//go:build !linux

package zoo

// Debian returns the servers of Debian's releases, which run on Linux alone.
func Debian(string) []*Server { return nil }
