//go:build !linux

package confgen

// isKernels reports whether the kernel makes up a file. Only Linux's are known.
func isKernels(string) bool { return false }
