//go:build !unix

package session

import "io/fs"

// ours reports false: this system has no modes to check.
func ours(fs.FileInfo) bool { return false }
